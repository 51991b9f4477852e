//go:build !coirinterleave

package sched

// The tests check which locks the scheduler holds when it calls foreign code.

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir/internal/park"
)

// prober checks, inside foreign code, whether the scheduler's locks can be taken. Another worker may hold one for a
// moment, so it tries until a deadline; a lock that its own caller holds stays taken.
type prober struct {
	s      *Scheduler
	taken  atomic.Pointer[string] // a lock that could not be taken
	onWhat [4]atomic.Int64        // calls by kind
}

// The kinds of foreign code.
const (
	onParked = iota
	onReadied
	onStalled
	onRun
)

//go:norace
func (p *prober) probe(kind int) {
	p.onWhat[kind].Add(1)
	for name, mu := range map[string]*sync.Mutex{
		"Scheduler.mu": &p.s.mu, "Scheduler.closing": &p.s.closing, "global.mu": &p.s.global.mu, "pool.mu": &p.s.pool.mu,
		"monitor.mu": &p.s.monitor.mu, "monitor.whole": &p.s.monitor.whole,
	} {
		end := time.Now().Add(20 * time.Second)
		for !mu.TryLock() {
			if time.Now().After(end) {
				p.taken.Store(&name)
				return
			}
			runtime.Gosched()
		}
		mu.Unlock()
	}
}

//go:norace
func (p *prober) Parked(*Task) { p.probe(onParked) }

//go:norace
func (p *prober) Readied(_, _ *Task) { p.probe(onReadied) }

// TestNoLockIsHeldInForeignCode: the scheduler holds none of its locks when it calls a task's function, an observer or
// a stall handler. So these may take their own locks, and their locks always come first in the order of locks.
//
// Spec: SC-46 (locks have one order, and none is held in user code)
func TestNoLockIsHeldInForeignCode(t *testing.T) {
	p := new(prober)
	stalled := make(chan struct{})
	told := sync.OnceFunc(func() { close(stalled) })
	h := open(t, Config{
		Workers: 2, Observer: p, StallAfter: time.Millisecond,
		OnStall: func(Stall) { p.probe(onStalled); told() },
	})
	p.s = h.Scheduler
	tickets := make(chan park.Ticket, 1)
	j := h.start(nil, func(j *job) {
		p.probe(onRun)
		j.park(tickets)
	})
	ticket := <-tickets
	for j.task.State() != park.Parked { // so that it is readied, and not only notified
		runtime.Gosched()
	}
	j.wake(ticket, park.Data)
	h.start(nil, func(*job) {
		p.probe(onRun)
		select {
		case <-stalled:
		case <-time.After(20 * time.Second):
			t.Error("a task that blocks was not reported as stalled")
		}
	})
	h.live.Wait()
	if name := p.taken.Load(); name != nil {
		t.Errorf("%s is held while foreign code runs", *name)
	}
	for kind := range p.onWhat {
		if p.onWhat[kind].Load() == 0 {
			t.Errorf("foreign code of kind %d was not called: the test shows nothing", kind)
		}
	}
}
