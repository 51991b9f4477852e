//go:build corpus

package corpus

import (
	"sync"
	"sync/atomic"
	"testing"
)

// Requests wait at a gate until the service has started. The gate is opened by setting a flag and waking all who
// wait. The flag is set without the lock. If that and the wake-up fall between a request's look at the flag and its
// wait, the request sleeps for ever.
//
// Class: lost
// Expect: deadlock

type startGate struct {
	mu     sync.Mutex
	cond   *sync.Cond
	opened atomic.Bool
}

func newStartGate() *startGate {
	g := &startGate{}
	g.cond = sync.NewCond(&g.mu)
	return g
}

func (g *startGate) wait() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for !g.opened.Load() {
		g.cond.Wait()
	}
}

func (g *startGate) open() {
	g.opened.Store(true)
	g.cond.Broadcast()
}

func (g *startGate) openFixed() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.opened.Store(true)
	g.cond.Broadcast()
}

func runStartGate(t *testing.T, open func(*startGate)) {
	g := newStartGate()
	var served atomic.Int32
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			g.wait()
			served.Add(1)
		})
	}
	open(g)
	wg.Wait()
	if n := served.Load(); n != 2 {
		t.Errorf("served %d requests, want 2", n)
	}
}

func TestBugStartGate(t *testing.T) {
	runStartGate(t, (*startGate).open)
}

func TestFixedStartGate(t *testing.T) {
	runStartGate(t, (*startGate).openFixed)
}
