//go:build corpus

package corpus

import (
	"sync"
	"testing"
	"time"
)

// A health checker probes at every tick and counts under its lock. Stop holds the lock while it waits for the loop to
// end. If the loop has just taken a tick, its probe waits for the lock, and stop waits for the loop.
//
// Class: abba
// Expect: deadlock

type healthChecker struct {
	mu      sync.Mutex
	probes  int
	stopped bool
	quit    chan struct{}
	done    chan struct{}
}

func startHealthChecker(every time.Duration) *healthChecker {
	h := &healthChecker{quit: make(chan struct{}), done: make(chan struct{})}
	go h.loop(every)
	return h
}

func (h *healthChecker) loop(every time.Duration) {
	defer close(h.done)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			h.probe()
		case <-h.quit:
			return
		}
	}
}

func (h *healthChecker) probe() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.probes++
}

func (h *healthChecker) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return
	}
	h.stopped = true
	close(h.quit)
	<-h.done
}

func (h *healthChecker) stopFixed() {
	h.mu.Lock()
	if !h.stopped {
		h.stopped = true
		close(h.quit)
	}
	h.mu.Unlock()
	<-h.done
}

func runHealthChecker(t *testing.T, stop func(*healthChecker)) {
	const every = 10 * time.Millisecond
	h := startHealthChecker(every)
	time.Sleep(2 * every)
	stop(h)
	stop(h)
	if !h.stopped {
		t.Errorf("not stopped after %d probes", h.probes)
	}
}

func TestBugHealthChecker(t *testing.T) {
	runHealthChecker(t, (*healthChecker).stop)
}

func TestFixedHealthChecker(t *testing.T) {
	runHealthChecker(t, (*healthChecker).stopFixed)
}
