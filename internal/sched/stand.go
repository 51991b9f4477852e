package sched

import (
	"runtime"
	"runtime/metrics"
	"time"

	"github.com/coir-go/coir/internal/bubble"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/xatomic"
)

// How a worker that is held up in native code is replaced within microseconds.
//
// While as many workers are active as should be and something is queued, one more worker stands by: it is runnable, as
// far as Go is concerned, and does nothing. Go runs it when a processor has nothing else to do, which is when an active
// worker has blocked. So the Go scheduler notices, and no timer has to be set for it. The worker that stands by then
// makes sure, takes the place of a worker that has not switched since (see hold), takes one task, and sends the next
// worker to stand by: that one may be needed as soon as the task blocks.
//
// A processor also runs it when a worker calls Gosched (see glance) or is preempted. So it asks the Go runtime how many
// goroutines run or could: if they are as many as workers should be active, all compute, and there is nothing to do.
// A worker may also wait for a lock for a moment; so it looks for as long as that may take.
//
// The protocol, which TestExploreStandIn explores:
//
//	The one that queues a task      publishes it; then looks whether a place is free (idle.go), or else whether
//	                                standing is set, and sets it and sends a worker if not.
//	The one that stands by          looks for work; if there is none, clears standing, goes to rest, and so looks again.
//	                                If it takes a place, it clears standing, then looks for a task, and then whether
//	                                there is another.
//
// Either the second look sees the task, or the one that queued it sees that none stands by.
//
// In a bubble of testing/synctest none stands by: time would stand still there while it does. Nor does one where a
// policy decides who runs.

const (
	standTurns  = 8                     // how often it lets all others go first before it naps
	standNap    = 50 * time.Microsecond // its first nap; each is twice as long as the one before, up to standNapMax
	standNapMax = 400 * time.Microsecond
	lockWait    = 20 * time.Microsecond // a worker that waits for a lock goes on within this, as a rule
)

// standBy sends a worker to stand by, if none does.
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
	case len(s.workers) < s.max && !bubble.Abroad(s.home):
		w := s.newWorker()
		w.stands = true
		w.start()
		s.mu.Unlock()
	default:
		s.standing.Store(false) // one that relied on it finds none either, or leaves it to the monitor
		s.mu.Unlock()
		s.stats.atCap.Add(1)
	}
}

// stand is what a worker does that stands by. It reports whether the worker is active now. If not, nothing was queued,
// and rest looks again.
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

// step makes w active if a place is free, or if a worker can be found that is held up in native code.
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

// holdOne holds an active worker that has not switched since its beat was noted, if there is one. The caller holds mu.
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

// lingers reports whether the worker is in the task that it was in when its beat was noted. In an exploration it always
// is: any worker may be held at any time.
//
//go:norace
func (w *Worker) lingers() bool { return xatomic.Instrumented || w.cur != nil && w.beat == w.noted }

// idleProcessor reports whether Go has a processor for another worker, for longer than a worker waits for a lock. It
// notes the beats of the workers first. The worker that stands by calls it.
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

// spareness asks the Go runtime how many goroutines run or could.
type spareness [2]metrics.Sample

// others returns how many goroutines other than the caller run or could, about.
//
//go:norace
func (c *spareness) others() int {
	c[0].Name = "/sched/goroutines/running:goroutines"
	c[1].Name = "/sched/goroutines/runnable:goroutines"
	race.Enable() // the runtime's own lock is not ours to hide. It orders the workers' goroutines, and no fiber
	metrics.Read(c[:])
	race.Disable()
	n := -1
	for i := range c {
		if c[i].Value.Kind() != metrics.KindUint64 {
			return 1 << 30 // not known: no processor is idle
		}
		n += int(c[i].Value.Uint64())
	}
	return n
}
