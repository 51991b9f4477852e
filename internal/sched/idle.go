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

// How workers sleep and are woken. The handshake is the same as in internal/park, one level below, and as easy to get
// wrong. promela/idle.pml models it, with mutants.
//
//	A worker that finds nothing    announces itself idle, under mu; then looks over all queues once more; then sleeps.
//	A waker that queues a task     publishes it; then decides whether to wake a worker: does none search, and are fewer
//	                               than target active?
//
// Either the worker's second look sees the task, or the waker sees the worker. A searching worker stops counting as a
// searcher before its second look. So the second look also sees the task of a waker that woke nobody because this
// worker was searching.
//
// At most one worker is woken at a time: it counts as a searcher from the moment it is chosen. If it finds work and
// there is more, it wakes the next one. So a burst wakes as many workers as it can use, one after the other, and a
// single task wakes one.
//
// active counts the workers that are neither idle nor held nor blocked. Block and the monitor lower it although the
// worker has not run out of work. Such code must look for work afterwards, and wake another worker for it: see
// yieldPlace.
//
// If target workers are active already, a waker makes one more stand by instead: see stand.go.
//
// Except for short moments, only active workers have tasks in their queues, so only those are searched. There may be
// thousands of others in native calls: see places.

// hasWork reports whether anything is in the worker's queues.
//
//go:norace
func (w *Worker) hasWork() bool { return !w.next.empty() || w.ring.len() > 0 }

// anyWork reports whether a queue holds a task. It checks each queue once.
//
//go:norace
func (s *Scheduler) anyWork() bool {
	if s.policy != nil {
		return s.policy.Len() > 0
	}
	if s.global.n.Load() > 0 {
		return true
	}
	for _, p := range s.places.all() {
		if w := p.Load(); w != nil && w.hasWork() {
			return true
		}
	}
	return false
}

// wake wakes one worker to search, if none is searching and there is a place for it. If there is no place, it makes a
// worker stand by.
//
//go:norace
func (s *Scheduler) wake() {
	for s.searchers.Load() == 0 {
		if s.active.Load() >= s.target.Load() {
			s.standBy()
			return
		}
		if !s.searchers.CompareAndSwap(0, 1) || s.sendOut() {
			return
		}
		// No worker was woken. But for a moment there seemed to be a searcher, on which another waker may have relied.
		s.searchers.Add(-1)
		xatomic.Peek(&s.mu)
		if s.gone || !s.anyWork() {
			return
		}
	}
}

// sendOut wakes an idle worker, or starts one, to search. The caller has counted it as a searcher. If it returns false,
// the caller must decrement searchers.
//
// Spec: SC-36 (the number of workers is capped)
// Spec: SC-44 (a sleeping worker is preferred to a new one)
// Spec: TK-12 (only a sleeping worker is woken)
//
//go:norace
func (s *Scheduler) sendOut() bool {
	s.mu.Lock()
	if s.active.Load() >= s.target.Load() || s.gone {
		s.mu.Unlock()
		return false
	}
	switch w := s.idle; {
	case w == nil && bubble.Outside(s.home): // a worker started here would belong to the caller's bubble
		s.searchers.Add(-1)
		stuck := s.active.Load() == 0
		s.mu.Unlock()
		if stuck {
			race.Enable()
			panic("coir: code that runs " + bubble.Here().String() + " has woken a fiber that runs " + s.home.String() +
				", where all workers are blocked: the fiber will run when one comes back; " +
				"make the channel, and what uses it, inside the bubble")
		}
		return true // the active workers will look for work before they rest
	case w == nil && len(s.workers) >= s.max: // as many workers as allowed exist, all held in native code
		s.searchers.Add(-1)
		s.mu.Unlock()
		s.stats.atCap.Add(1)
	case !s.claim(s.target.Load()):
		s.mu.Unlock()
		return false
	case w != nil:
		s.takeIdle()
		w.searching = true
		s.enlist(w)
		s.mu.Unlock()
		w.sema.Post()
	default:
		w = s.newWorker()
		w.searching = true
		s.enlist(w)
		w.start()
		s.mu.Unlock()
	}
	s.watch()
	return true
}

// takeIdle removes a worker from the idle list, which is not empty. The caller holds mu.
//
//go:norace
func (s *Scheduler) takeIdle() *Worker {
	w := s.idle
	s.idle, w.idleNext = w.idleNext, nil
	s.idlers--
	s.low = min(s.low, s.idlers)
	return w
}

// newWorker creates a worker, which is idle and does not run yet. The caller holds mu.
//
//go:norace
func (s *Scheduler) newWorker() *Worker {
	w := &Worker{s: s, sema: xatomic.NewSema()}
	w.state.Store(idle)
	w.slice.Store(s.slice.Load())
	w.every = globalEvery
	w.number = s.newNumber()
	w.rand = uint32(s.stats.workers.Add(1)) * 2654435761
	s.add(w)
	if s.emptied != nil { // Shrink waits until all workers have left, but the scheduler is in use again
		s.emptied.Open()
		s.emptied = nil
	}
	return w
}

// start starts a new worker's goroutine. The caller holds mu.
//
//go:norace
func (w *Worker) start() {
	if !xatomic.Go(w.run) {
		go w.run()
	}
}

// claim counts one more worker as active if fewer than most are, and reports whether it did. If it did, the caller then
// calls enlist.
//
//go:norace
func (s *Scheduler) claim(most int32) bool {
	for n := s.active.Load(); n < most; n = s.active.Load() {
		if s.active.CompareAndSwap(n, n+1) {
			return true
		}
	}
	return false
}

// enlist makes w active; claim has counted it. The caller is the worker itself, or holds mu.
//
//go:norace
func (s *Scheduler) enlist(w *Worker) {
	s.places.take(w)
	w.state.Store(running)
}

// discharge makes w idle, blocked or held, and returns false if it is not running. The caller is the worker itself, or
// holds mu. A worker for which discharge returns false must take mu, in order to wait until another worker has finished
// with it. Unless the worker is out of work, the caller must then drain its queues, and wake a worker for those tasks.
//
//go:norace
func (s *Scheduler) discharge(w *Worker, state uint32) bool {
	if !w.state.CompareAndSwap(running, state) {
		return false
	}
	w.place.Store(nil)
	s.active.Add(-1)
	return true
}

// hold marks a worker that is stuck in native code as held. This frees the worker's place. It returns false if the
// worker is not running. The caller holds mu, and wakes another worker.
//
//go:norace
func (s *Scheduler) hold(w *Worker) bool {
	if !s.discharge(w, held) {
		return false
	}
	w.drain()
	return true
}

// newNumber returns the smallest number below 64 that no worker has, or 64 if there is none. The caller holds mu.
//
//go:norace
func (s *Scheduler) newNumber() uint32 {
	var taken uint64
	for _, w := range s.workers {
		if taken |= 1 << (w.number % 64); taken == 1<<64-1 {
			break
		}
	}
	return uint32(bits.TrailingZeros64(^taken))
}

// rest is called by a worker that has found no task. The worker sleeps until it is woken, or leaves. rest returns false
// if the worker has left.
//
// Spec: SC-23 (an idle worker blocks and does not spin)
// Spec: SC-24 (a worker sleeps only after a second look)
// Spec: SC-25 (work pushed at bedtime is found)
//
//go:norace
func (w *Worker) rest() bool {
	s := w.s
	s.mu.Lock()
	s.discharge(w, idle) // unless it was held or blocked, and is not counted
	w.announce()         // once: from here on a waker may choose it, and post its token
	surplus := s.idlers > int(s.target.Load())
	s.mu.Unlock()
	xatomic.Peek(&s.mu)
	if w.leaving {
		w.leave()
		return false
	}
	for s.anyWork() {
		if s.active.Load() >= s.target.Load() {
			s.standBy() // perhaps this one
			break
		}
		s.mu.Lock()
		if !s.unlist(w) {
			s.mu.Unlock() // a waker has chosen it: the token is on its way
			break
		}
		if !s.claim(s.target.Load()) {
			s.list(w)
			s.mu.Unlock()
			continue
		}
		s.enlist(w)
		w.searching = true // a waker that saw it search relies on it to wake the next worker
		s.searchers.Add(1)
		s.mu.Unlock()
		s.watch()
		return true
	}
	if surplus {
		s.pool.put(w, 0) // it may sleep for a long time, and other workers may need the frames
		w.extra = 0
	}
	start := time.Now()
	w.sema.Wait()
	slept := time.Since(start)
	s.setNow(start.Add(slept)) // the monitor may have been stopped
	s.stats.slept.Add(int64(slept))
	s.watch() // a waker in another bubble could not arm the monitor
	if w.leaving {
		w.leave()
		return false
	}
	return true
}

// list puts w on the idle list. The caller holds mu.
//
//go:norace
func (s *Scheduler) list(w *Worker) {
	w.idleNext, s.idle = s.idle, w
	s.idlers++
}

// unlist removes w from the idle list, and returns false if it is not on the list. The caller holds mu.
//
//go:norace
func (s *Scheduler) unlist(w *Worker) bool {
	for p := &s.idle; *p != nil; p = &(*p).idleNext {
		if *p == w {
			*p, w.idleNext = w.idleNext, nil
			s.idlers--
			s.low = min(s.low, s.idlers)
			return true
		}
	}
	return false
}

// announce makes the worker idle. If the worker is not needed, announce makes it leave instead: if the scheduler is
// closed, and in a bubble also if the worker is surplus. Outside bubbles, the monitor makes surplus workers leave: see
// thin. The caller holds mu.
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
	if s.gone || s.home != 0 && (s.users.Load() == 0 || s.idlers >= int(s.target.Load())) {
		w.leaving = true
		return
	}
	s.list(w)
}

// leave removes the worker from the scheduler. Its queues are empty, because it found no task, and only the worker
// itself adds tasks.
//
// Spec: SC-37 (a worker above the base number retires)
// Spec: SC-39 (retirement loses no fiber)
//
//go:norace
func (w *Worker) leave() {
	s := w.s
	s.pool.put(w, 0)
	s.mu.Lock()
	left := s.remove(w)
	s.stats.retire(w)
	last := left == 0 && s.emptied != nil
	ch := s.emptied
	if last {
		s.emptied = nil
	}
	s.mu.Unlock()
	if left == 0 && s.home != 0 {
		s.pool.trim(0) // otherwise the frames would keep the bubble from ending
	}
	if last {
		ch.Open()
	}
	s.yieldPlace()
}

// back is called by the base of a worker that was held or blocked, and is free again. It reports whether the worker may
// continue. If all places are taken, back drains its queues, and the worker must rest. back leaves it to rest to
// announce the worker idle. If back announced it too, rest could not tell whether the worker is still on the idle list
// or has been woken since. Guarded by TestExploreBackAgainstWake.
//
// Spec: SC-38 (a retiring worker hands its queue over)
// Spec: SC-48 (a replaced worker waits for a place)
//
//go:norace
func (w *Worker) back() bool {
	s := w.s
	s.mu.Lock()
	ok := s.claim(s.target.Load())
	if ok {
		s.enlist(w)
	}
	s.mu.Unlock()
	if ok {
		s.watch()
		return true
	}
	w.drain() // before it is announced: the queues of a worker that has left are not searched
	return false
}

// drain moves the tasks in the worker's queues to the global queue. Other workers could steal them, but only when they
// have no tasks of their own, and a held worker may not come back for long. Any goroutine may call drain.
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

// Block calls f, which may block natively, on behalf of the running task t. Meanwhile another worker may take the place
// of this one.
//
//go:norace
func (t *Task) Block(f func()) {
	// Spec: SC-40 (Blocking frees the place at once)
	w := t.frame.w
	s := w.s
	if w.state.Load() == blocked { // inside another Block, which unblocks for both
		f()
		return
	}
	if !s.discharge(w, blocked) {
		s.mu.Lock()
		w.state.Store(blocked)
		s.mu.Unlock()
	}
	t.frame.since = s.now.Load()
	w.tally.blocks++
	if w.hasWork() {
		w.drain()
	}
	s.yieldPlace()
	defer t.unblock()
	f()
}

// unblock takes a place for the worker again. If none is free, it queues the task.
//
// Spec: SC-02 (at most twice the base number run fibers)
// Spec: SC-41 (after Blocking the bound holds again)
//
//go:norace
func (t *Task) unblock() {
	fr := t.frame
	w := fr.w // perhaps another worker, if f has parked
	s := w.s
	if w.state.Load() != blocked {
		return
	}
	if s.claim(2 * s.target.Load()) {
		s.enlist(w)
		w.beat++  // the time in f does not count as running
		s.watch() // the monitor may have stopped meanwhile
		return
	}
	w.prev, w.requeue = t, true
	coro.Transfer(&fr.Coro, w.handTo(&w.base))
	fr.settle()
}

// yieldPlace wakes a worker, if there is work. It is called after another worker has given up its place.
//
//go:norace
func (s *Scheduler) yieldPlace() {
	if s.anyWork() {
		s.wake()
	}
}
