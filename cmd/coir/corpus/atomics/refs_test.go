//go:build corpus

package atomics

import (
	"sync"
	"sync/atomic"
	"testing"
)

// A segment is unmapped when its last user releases it. A new user checks whether there are users and then increments
// the count. The last user may leave in between, and the new user reads a segment that is no longer mapped.
//
// Class: atomicity
// Expect: fail

type segment struct {
	users  atomic.Int32
	mapped atomic.Bool
}

func newSegment() *segment {
	s := &segment{}
	s.users.Store(1)
	s.mapped.Store(true)
	return s
}

func (s *segment) acquire() bool {
	if s.users.Load() == 0 {
		return false
	}
	s.users.Add(1)
	return true
}

func (s *segment) acquireFixed() bool {
	for {
		n := s.users.Load()
		if n == 0 {
			return false
		}
		if s.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

func (s *segment) release() {
	if s.users.Add(-1) == 0 {
		s.mapped.Store(false)
	}
}

func runSegment(t *testing.T, acquire func(*segment) bool) {
	s := newSegment()
	var wg sync.WaitGroup
	wg.Go(s.release)
	if acquire(s) {
		if !s.mapped.Load() {
			t.Error("read after unmap")
		}
		s.release()
	}
	wg.Wait()
}

func TestBugSegment(t *testing.T) {
	runSegment(t, (*segment).acquire)
}

func TestFixedSegment(t *testing.T) {
	runSegment(t, (*segment).acquireFixed)
}
