package sched

import (
	"math/bits"
	"time"

	"github.com/coir-go/coir/internal/bubble"
	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/invariant"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/xatomic"
)

// How workers sleep and are woken. It is the handshake of internal/park again, one floor down, and as easy to get
// wrong; promela/idle.pml has it with its mutants.
//
//	A worker that finds nothing    announces itself idle, under mu; then looks over all queues once more; then sleeps.
//	Whoever queues a task          publishes it; then looks whether somebody should be woken: is anyone searching? are
//	                               fewer than target active?
//
// Either the worker's second look sees the task, or the waker sees the worker. A searcher stops being one before its
// second look, so a waker that relied on it is covered by that look.
//
// At most one worker is woken at a time: it counts as a searcher from the moment it is chosen, and if it finds work while
// there is more, it sends the next one out. So a burst wakes as many as it can use, one after the other, and a single
// task wakes one.
//
// active counts the workers that are neither idle nor held nor blocked. Whoever lowers it for another reason than
// having found nothing (block, the monitor) must look for work afterwards and wake somebody for it: that is yieldPlace.

// hasWork reports whether anything is in the worker's queues.
//
//go:norace
func (w *Worker) hasWork() bool { return !w.next.empty() || w.ring.len() > 0 }

// anyWork looks over all queues once.
//
//go:norace
func (s *Scheduler) anyWork() bool {
	if s.policy != nil {
		return s.policy.Len() > 0
	}
	if s.global.n.Load() > 0 {
		return true
	}
	for _, w := range *s.workers.Load() {
		if w.hasWork() {
			return true
		}
	}
	return false
}

// wake sends one worker out to search, if none is searching and there is a place for one more.
//
//go:norace
func (s *Scheduler) wake() {
	for s.active.Load() < s.target.Load() && s.searchers.Load() == 0 && s.searchers.CompareAndSwap(0, 1) {
		if s.sendOut() {
			return
		}
		// Nobody was sent, but for a moment there seemed to be a searcher, and another waker may have relied on it.
		s.searchers.Add(-1)
		xatomic.Peek(&s.mu)
		if s.gone || !s.anyWork() {
			return
		}
	}
}

// sendOut wakes an idle worker or starts one. The caller has counted it as a searcher.
//
// Spec: SC-36 (the number of workers is capped)
// Spec: SC-44 (a sleeping worker is preferred to a new one)
//
//go:norace
func (s *Scheduler) sendOut() bool {
	s.mu.Lock()
	if s.active.Load() >= s.target.Load() || s.gone {
		s.mu.Unlock()
		return false
	}
	switch w := s.idle; {
	case w != nil:
		s.idle, w.idleNext = w.idleNext, nil
		s.idlers--
		s.active.Add(1)
		w.searching = true
		w.state.Store(running)
		s.mu.Unlock()
		w.sema.Post()
	case bubble.Abroad(s.home): // a worker that is started here would belong to the caller's bubble
		s.searchers.Add(-1)
		stuck := s.active.Load() == 0
		s.mu.Unlock()
		if stuck {
			race.Enable()
			panic("coir: code that runs " + bubble.Here().String() + " has woken a fiber that runs " + s.home.String() +
				", where all workers are blocked: the fiber will run when one comes back; " +
				"make the channel, and what uses it, inside the bubble")
		}
		return true // those that are active look for work before they rest
	case len(*s.workers.Load()) < s.max:
		s.active.Add(1)
		s.start()
		s.mu.Unlock()
	default: // all there may be are held in native code
		s.searchers.Add(-1)
		s.mu.Unlock()
		s.stats.atCap.Add(1)
	}
	s.watch()
	return true
}

// start makes a worker that begins as a searcher. The caller holds mu and has counted it.
//
//go:norace
func (s *Scheduler) start() {
	w := &Worker{s: s, searching: true, sema: xatomic.NewSema()}
	w.slice.Store(s.slice)
	w.every = globalEvery
	w.number = s.newNumber()
	w.rand = uint32(s.stats.workers.Add(1)) * 2654435761
	s.replaceWorkers(nil, w)
	if s.emptied != nil { // Shrink waits for an empty house, but it is in use again
		s.emptied.Open()
		s.emptied = nil
	}
	if !xatomic.Go(w.run) {
		go w.run()
	}
}

// newNumber returns a number that no worker has, as long as there are less than 64. The caller holds mu.
//
//go:norace
func (s *Scheduler) newNumber() uint32 {
	var taken uint64
	for _, w := range *s.workers.Load() {
		taken |= 1 << (w.number % 64)
	}
	return uint32(bits.TrailingZeros64(^taken))
}

// rest is what a worker does that has found nothing: it sleeps until it is woken, or leaves. It reports false if the
// worker has left.
//
// Spec: SC-23 (an idle worker blocks and does not spin)
// Spec: SC-24 (a worker sleeps only after a second look)
// Spec: SC-25 (work pushed at bedtime is found)
//
//go:norace
func (w *Worker) rest() bool {
	s := w.s
	s.mu.Lock()
	if w.state.Load() == running { // else it was held or blocked, and is not counted
		s.active.Add(-1)
	}
	w.announce() // once: from here a waker may choose it, and its token comes
	s.mu.Unlock()
	xatomic.Peek(&s.mu)
	if w.leaving {
		w.leave()
		return false
	}
	if s.anyWork() && s.active.Load() < s.target.Load() {
		s.mu.Lock()
		for p := &s.idle; *p != nil && s.active.Load() < s.target.Load(); p = &(*p).idleNext {
			if *p == w {
				*p, w.idleNext = w.idleNext, nil
				s.idlers--
				s.active.Add(1)
				w.state.Store(running)
				w.searching = true // whoever saw it search before relies on it to send the next one out
				s.searchers.Add(1)
				s.mu.Unlock()
				s.watch()
				return true
			}
		}
		s.mu.Unlock() // a waker has chosen it: the token is on its way
	}
	start := time.Now()
	w.sema.Wait()
	s.stats.slept.Add(int64(time.Since(start)))
	s.watch() // its waker could not, if that was in a bubble
	if w.leaving {
		w.leave()
		return false
	}
	return true
}

// announce makes the worker idle, or lets it leave if there are enough idle ones. The caller holds mu.
//
//go:norace
func (w *Worker) announce() {
	s := w.s
	if invariant.Enabled {
		for x := s.idle; x != nil; x = x.idleNext {
			invariant.Check(x != w, "a worker that is on the idle list was announced idle")
		}
	}
	if w.searching {
		w.searching = false
		s.searchers.Add(-1)
	}
	w.state.Store(idle)
	if s.gone || s.idlers >= int(s.target.Load()) || s.home != 0 && s.users.Load() == 0 {
		w.leaving = true
		return
	}
	w.idleNext, s.idle = s.idle, w
	s.idlers++
}

// leave takes the worker out of the house. Its queues are empty: it found nothing, and nobody else puts anything there.
//
// Spec: SC-37 (a worker above the base number retires)
// Spec: SC-39 (retirement loses no fiber)
//
//go:norace
func (w *Worker) leave() {
	s := w.s
	s.pool.put(w, 0)
	s.mu.Lock()
	left := s.replaceWorkers(w, nil)
	s.stats.retire(w)
	last := left == 0 && s.emptied != nil
	ch := s.emptied
	if last {
		s.emptied = nil
	}
	s.mu.Unlock()
	if left == 0 && s.home != 0 {
		s.pool.trim(0) // or they would keep the bubble from ending
	}
	if last {
		ch.Open()
	}
	s.yieldPlace()
}

// back is called by the base of a worker that was told something while its tasks ran: it has been held, or has
// blocked, and is free again. It reports whether the worker may go on; if its place is taken, it hands its tasks over
// and has to rest. It does not announce the worker idle: rest does, and could not tell a worker that back has
// announced from one that has been woken since. Guarded by TestExploreBackAgainstWake.
//
// Spec: SC-38 (a retiring worker hands its queue over)
// Spec: SC-48 (a replaced worker waits for a place)
//
//go:norace
func (w *Worker) back() bool {
	s := w.s
	s.mu.Lock()
	if s.active.Load() < s.target.Load() {
		s.active.Add(1)
		w.state.Store(running)
		s.mu.Unlock()
		s.watch()
		return true
	}
	s.mu.Unlock()
	w.drain() // before it is announced: nobody looks into the queue of one that has left
	return false
}

// drain moves what the worker has queued to the global queue. Others could steal it, but they do so only when they have
// nothing of their own, and a worker that is held may not come back for long. Anybody may call it.
//
//go:norace
func (w *Worker) drain() {
	if t := w.next.take(); t != nil {
		w.s.global.push(t)
	}
	var some [ringSize / 2]*Task
	for n := w.ring.grab(some[:]); n > 0; n = w.ring.grab(some[:]) {
		w.s.global.push(some[:n]...)
	}
}

// Block runs f, which may block natively, on behalf of the running task t, and lets another worker have this one's
// place meanwhile.
//
//go:norace
func (t *Task) Block(f func()) {
	// Spec: SC-40 (Blocking frees the place at once)
	w := t.frame.w
	s := w.s
	s.mu.Lock()
	if w.state.Load() == running {
		s.active.Add(-1)
	}
	w.state.Store(blocked)
	s.mu.Unlock()
	s.stats.blocks.Add(1)
	if w.hasWork() {
		w.drain()
	}
	s.yieldPlace()
	defer t.unblock()
	f()
}

// unblock takes the worker's place again; if too many run already the task stands in line for one.
//
// Spec: SC-02 (at most twice the base number run fibers)
// Spec: SC-41 (after Blocking the bound holds again)
//
//go:norace
func (t *Task) unblock() {
	fr := t.frame
	w := fr.w // another one, if f has parked meanwhile
	s := w.s
	s.mu.Lock()
	if w.state.Load() != blocked {
		s.mu.Unlock()
		return
	}
	if s.active.Load() < 2*s.target.Load() {
		s.active.Add(1)
		w.state.Store(running)
		s.mu.Unlock()
		w.beat++  // the time in f does not count as running
		s.watch() // the monitor may have stopped meanwhile
		return
	}
	s.mu.Unlock()
	w.prev, w.requeue = t, true
	coro.Transfer(&fr.Coro, w.handTo(&w.base))
	fr.settle()
}

// yieldPlace wakes somebody for the work that there is, after a worker has given its place up.
//
//go:norace
func (s *Scheduler) yieldPlace() {
	if s.anyWork() {
		s.wake()
	}
}
