//go:build !linux

package shm

// cut ends the connection of a sender, as the end of its process does.
func cut(s *Sender) { _ = s.link.(*streamSender).conn.Close() }
