//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package netio

import (
	"context"

	"github.com/coir-go/coir"
)

// AwaitWaiting returns when the given numbers of callers wait to read from c (or to accept) and to write.
func AwaitWaiting(c any, reads, writes int) {
	var d *descriptor
	switch c := c.(type) {
	case *Conn:
		d = c.d
	case *Listener:
		d = c.d
	}
	for d.r.waiting() < reads || d.w.waiting() < writes {
		_ = coir.Yield(context.Background())
	}
}

func (s *side) waiting() int {
	s.cond.Lock()
	defer s.cond.Unlock()
	return s.cond.Len()
}
