package sched

import (
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/coir-go/coir/internal/bubble"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/xatomic"
)

// How a worker that is stuck in native code is replaced within microseconds.
//
// While target workers are active and a task is queued, one more worker stands by: its goroutine is runnable, but does
// nothing. Go runs it when a processor has nothing else to do, which is when an active worker has blocked. So the Go
// scheduler notices the block, and no timer is needed. The standby then checks again, takes the place of a worker that
// has not switched since (see hold), takes one task, and makes another worker stand by, because that may be needed as
// soon as the task blocks.
//
// A processor also runs the standby when a worker calls Gosched (see glance) or is preempted. So the standby asks the
// Go runtime how many goroutines run or are runnable. If there are at least target of them, all workers compute, and
// nothing needs to be done. A worker may also wait for a lock for a moment, so the standby keeps checking for as long
// as that may take.
//
// The protocol, which TestExploreStandIn explores:
//
//	A waker that queues a task      publishes it; then looks whether a place is free (idle.go). If not, and standing is
//	                                not set, it sets standing and makes a worker stand by.
//	The standby                     looks for work; if there is none, clears standing, goes to rest, and so looks again.
//	                                If it takes a place, it clears standing, then takes a task, and then looks whether
//	                                there is another.
//
// Either the second look sees the task, or the waker sees that no worker stands by.
//
// In a bubble of testing/synctest no worker stands by, because the bubble's time would not advance while it does. With
// a policy no worker stands by either, because the policy decides which task runs.

const (
	standTurns  = 8                     // how often the standby yields before it naps
	standNap    = 50 * time.Microsecond // the first nap; each nap is twice as long as the last, up to standNapMax
	standNapMax = 400 * time.Microsecond
	lockWait    = 20 * time.Microsecond // a worker that waits for a lock usually continues within this time
)

// standBy makes a worker stand by, if none does.
//
// Spec: SC-51 (a worker stands by while work is queued)
//
//go:norace
func (s *Scheduler) standBy() {
	if s.standing.Load() || s.max <= int(s.target.Load()) || s.policy != nil || s.home != 0 || bubble.Explored != nil ||
		!s.standing.CompareAndSwap(false, true) {
		return
	}
	s.mu.Lock()
	switch {
	case s.gone:
		s.standing.Store(false)
		s.mu.Unlock()
	case s.idle != nil:
		w := s.takeIdle()
		w.stands = true
		s.mu.Unlock()
		w.sema.Post()
	case len(s.workers) < s.max && !bubble.Outside(s.home):
		w := s.newWorker()
		w.stands = true
		w.start()
		s.mu.Unlock()
	default:
		s.standing.Store(false) // a waker that relied on it would find no worker either
		s.mu.Unlock()
		s.stats.atCap.Add(1)
	}
}

// stand is called by the worker that stands by. It reports whether the worker has become active. If not, nothing was
// queued, and rest checks again.
//
//go:norace
func (w *Worker) stand() bool {
	s := w.s
	w.stands = false
	active := false
	for turn := 0; !active && s.needed(); turn++ {
		switch active = s.step(w); {
		case active:
		case xatomic.Instrumented:
			xatomic.Yield()
		case turn < standTurns:
			runtime.Gosched()
		default:
			time.Sleep(min(standNap<<min(turn-standTurns, 8), standNapMax))
		}
	}
	s.standing.Store(false)
	return active
}

// needed reports whether a worker should stand by.
//
//go:norace
func (s *Scheduler) needed() bool {
	xatomic.Peek(&s.mu)
	return !s.gone && s.anyWork()
}

// step makes w active if a place is free, or if it finds a worker that is stuck in native code. It reports whether w is
// active.
//
//go:norace
func (s *Scheduler) step(w *Worker) bool {
	if s.active.Load() >= s.target.Load() && !s.idleProcessor() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.claim(s.target.Load()) {
		if !s.holdOne() {
			return false
		}
	}
	s.enlist(w)
	return true
}

// holdOne holds one active worker that has not switched since its beat was noted. It returns false if there is none.
// The caller holds mu.
//
//go:norace
func (s *Scheduler) holdOne() bool {
	for _, p := range s.places.all() {
		if w := p.Load(); w != nil && w.lingers() && s.hold(w) {
			s.stats.held.Add(1)
			return true
		}
	}
	return false
}

// lingers reports whether the worker has not switched since its beat was noted. In an exploration it returns true,
// because any worker may be held at any time.
//
//go:norace
func (w *Worker) lingers() bool { return xatomic.Instrumented || w.cur != nil && w.beat == w.noted }

// idleProcessor reports whether Go has an idle processor, for longer than a worker usually waits for a lock. It first
// notes the beats of the workers. The worker that stands by calls it.
//
//go:norace
func (s *Scheduler) idleProcessor() bool {
	if xatomic.Instrumented {
		return true
	}
	target := int(s.target.Load())
	if s.spareness.others() >= target {
		return false
	}
	for _, p := range s.places.all() {
		if w := p.Load(); w != nil {
			w.noted = w.beat
		}
	}
	for start := time.Now(); time.Since(start) < lockWait; {
		runtime.Gosched()
		if s.spareness.others() >= target {
			return false
		}
	}
	return true
}

// spareness asks the Go runtime how many goroutines run or are runnable.
type spareness [2]metrics.Sample

// others returns approximately how many goroutines other than the caller run or are runnable.
//
//go:norace
func (c *spareness) others() int {
	c[0].Name = "/sched/goroutines/running:goroutines"
	c[1].Name = "/sched/goroutines/runnable:goroutines"
	race.Enable() // the runtime's own lock must not be hidden; it orders the workers' goroutines, but no fibers
	metrics.Read(c[:])
	race.Disable()
	n := -1
	for i := range c {
		if c[i].Value.Kind() != metrics.KindUint64 {
			return 1 << 30 // unknown: assume that no processor is idle
		}
		n += int(c[i].Value.Uint64())
	}
	return n
}
