package shm

import "syscall"

// cut ends the connection of a sender, as the end of its process does.
func cut(s *Sender) {
	if l, ok := s.link.(*sharedSender); ok {
		_ = l.sock.fd.Control(func(fd int) { _ = syscall.Shutdown(fd, syscall.SHUT_RDWR) })
		return
	}
	_ = s.link.(*streamSender).conn.Close()
}
