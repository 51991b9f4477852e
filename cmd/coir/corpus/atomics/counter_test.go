//go:build corpus

package atomics

import (
	"sync"
	"sync/atomic"
	"testing"
)

// A server counts its requests by an atomic load and an atomic store. Two requests at a time may count as one.
//
// Class: atomicity
// Expect: fail

type requestStats struct {
	served int64
}

func (s *requestStats) count() {
	atomic.StoreInt64(&s.served, atomic.LoadInt64(&s.served)+1)
}

func (s *requestStats) countFixed() {
	atomic.AddInt64(&s.served, 1)
}

func runRequestStats(t *testing.T, count func(*requestStats)) {
	s := &requestStats{}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { count(s) })
	}
	wg.Wait()
	if n := atomic.LoadInt64(&s.served); n != 2 {
		t.Errorf("served %d, want 2", n)
	}
}

func TestBugRequestStats(t *testing.T) {
	runRequestStats(t, (*requestStats).count)
}

func TestFixedRequestStats(t *testing.T) {
	runRequestStats(t, (*requestStats).countFixed)
}
