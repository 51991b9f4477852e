package shm

import "syscall"

// cut ends the connection of a sender, as if its process had ended.
func cut(s *Sender) {
	if l, ok := s.link.(*sharedSender); ok {
		_ = l.sock.fd.Control(func(fd int) { _ = syscall.Shutdown(fd, syscall.SHUT_RDWR) })
		return
	}
	_ = s.link.(*streamSender).conn.Close()
}
