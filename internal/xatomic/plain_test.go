//go:build !coirinterleave

package xatomic

// In a normal build there is nothing between the library and the standard one: the types are the same, so the code is.

import (
	"sync"
	"sync/atomic"
	"testing"
)

var (
	_ *atomic.Bool         = (*Bool)(nil)
	_ *atomic.Int32        = (*Int32)(nil)
	_ *atomic.Int64        = (*Int64)(nil)
	_ *atomic.Uint32       = (*Uint32)(nil)
	_ *atomic.Uint64       = (*Uint64)(nil)
	_ *atomic.Pointer[int] = (*Pointer[int])(nil)
	_ *sync.Mutex          = (*Mutex)(nil)
	_ *sync.Cond           = (*Cond)(nil)
)

func TestSema(t *testing.T) {
	s, done := NewSema(), NewGate()
	Go(func() {
		s.Wait()
		done.Open()
	})
	s.Post()
	done.Wait()
	done.Wait()
}
