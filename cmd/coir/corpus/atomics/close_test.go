//go:build corpus

package atomics

import (
	"sync"
	"sync/atomic"
	"testing"
)

// A subscription is closed by its owner and by the server that shuts down. Close checks whether the subscription is
// closed and then marks it as closed. If both check first, both close the channel.
//
// Class: atomicity
// Expect: panic

type subscription struct {
	closed atomic.Bool
	done   chan struct{}
}

func (s *subscription) close() {
	if s.closed.Load() {
		return
	}
	s.closed.Store(true)
	close(s.done)
}

func (s *subscription) closeFixed() {
	if s.closed.CompareAndSwap(false, true) {
		close(s.done)
	}
}

func runSubscription(closing func(*subscription)) {
	s := &subscription{done: make(chan struct{})}
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() { closing(s) })
	}
	wg.Wait()
	<-s.done
}

func TestBugSubscription(*testing.T) {
	runSubscription((*subscription).close)
}

func TestFixedSubscription(*testing.T) {
	runSubscription((*subscription).closeFixed)
}
