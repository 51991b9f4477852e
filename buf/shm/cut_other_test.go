//go:build !linux

package shm

// cut ends the connection of a sender, as if its process had ended.
func cut(s *Sender) { _ = s.link.(*streamSender).conn.Close() }
