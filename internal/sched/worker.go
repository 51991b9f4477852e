package sched

import (
	"runtime"
	"sync/atomic"
	"unsafe"

	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/xatomic"
)

const (
	nextCap     = 3  // the most run-next picks in a row before the ring's head gets its turn (tokio#5686)
	globalEvery = 61 // after at most this many picks the global queue is checked first
	ageEvery    = 16 // every so many picks, the ring's head goes before its newest task: see pickFor
	keepFrames  = 32 // idle frames a worker keeps for itself
	maxExits    = 16 // a frame is retired after this many Goexits
)

// The states of a worker. They are read without synchronisation.
const (
	running uint32 = iota
	idle           // on the idle list, or on its way to or from it
	blocked        // runs a task that declared a native blocking call
	held           // runs a task that the monitor found stuck; another worker has taken its place
)

// Worker is a chain of goroutines of which exactly one runs at any time: the goroutine of a frame, or the worker's own,
// which is called its base. A field that is not described as shared belongs to the goroutine that runs.
type Worker struct {
	// The fields that every switch and every native call uses come first, in one cache line, because the memory of a
	// thousand workers in native calls is not in the cache.
	s     *Scheduler
	prev  *Task          // the task that settle must commit or put back
	cur   *Task          // the running task; nil for the base
	beat  uint64         // grows with every switch
	place *place         // in Scheduler.places: its place while it is active, otherwise its last place
	picks int            // since the global queue was last checked first
	every int            // after this many picks the global queue is checked first again: see glance
	state xatomic.Uint32 // see Scheduler.discharge

	requeue    bool // prev must be put back in a queue
	searching  bool
	stands     bool // woken from idle to stand by; guarded by Scheduler.mu, like the next field
	leaving    bool
	loneYields uint8 // counts yields when no other task could run

	// Shared: any worker may take from these.
	next runNext // runs before the ring
	ring ring

	streak       int   // how many picks in a row were of next
	sinceGosched int64 // nanoseconds since the worker last let Go's scheduler run
	rand         uint32
	number       uint32 // names its part of the clock: see newNumber

	base    Frame
	first   *Task              // a task that waits until the base makes a frame for it
	frames  [keepFrames]*Frame // the first nframes are idle; the others are not cleared, to save pointer writes
	nframes int
	extra   int    // how many extra frames it takes from the pool next time: see pool.get
	spent   *Frame // the last frame that must not be reused
	picker  *Frame // with a policy, the frame of the task that ended last, in which the policy picks the next task

	// The monitor reads these, and beat and cur, without synchronisation. It may see old values and hold a worker that
	// has just switched; the worker notices at its next switch. An atomic store would slow down every switch.
	tally tally        // for Stats
	slice atomic.Int64 // recent nanoseconds between two beats, as seen by the monitor

	// Guarded by Scheduler.mu.
	idleNext *Worker
	index    int          // in Scheduler.workers
	sema     xatomic.Sema // woken from idle

	seen  watch  // used only by the monitor
	noted uint64 // the beat that the worker that stands by last saw; only that worker uses this field

	ids, idsEnd uint64 // task numbers not given out yet
}

const idBatch = 1 << 10

var lastTaskID atomic.Uint64

// NewTaskID returns a task number that is unique in the process. Workers take numbers in batches, so that they do not
// contend for one counter. The worker w may be nil.
//
//go:norace
func NewTaskID(w *Worker) uint64 {
	// Spec: FB-08 (a fiber id is never reused)
	if w == nil {
		return lastTaskID.Add(1)
	}
	if w.ids == w.idsEnd {
		w.idsEnd = lastTaskID.Add(idBatch)
		w.ids = w.idsEnd - idBatch
	}
	w.ids++
	return w.ids
}

// push makes t the next task to run on this worker. The task that was next goes to the end of the ring. Only the
// worker's own chain calls push.
//
//go:norace
func (w *Worker) push(t *Task) {
	if w.state.Load() != running { // it may not come back to its queues for long
		w.s.inject(t)
		return
	}
	if p := w.s.policy; p != nil {
		p.Push(t)
		return
	}
	t.enqueue()
	if old := w.next.put(t); old != nil {
		w.toRing(old)
	}
	w.offer()
}

// Ready readies a parker that a task of this worker claimed Asleep.
//
//go:norace
func (w *Worker) Ready(p *park.Parker) {
	if xatomic.Instrumented && w == nil { // the caller is a task of an exploration: see Bare
		p.MakeReady(nil)
		return
	}
	s := w.s
	if !p.HasOwner(&s.owner) || !s.plain || w.state.Load() != running {
		p.MakeReady(w)
		return
	}
	w.tally.woken++
	t := taskOf(p)
	t.enqueue()
	if old := w.next.put(t); old != nil {
		w.toRing(old)
	}
	if s.active.Load() < s.target.Load() || w.slice.Load() >= wakeWorth {
		w.offer()
	}
}

// putBack puts a yielding task at the end of the ring. It wakes no worker, because there is no more work than before.
//
//go:norace
func (w *Worker) putBack(t *Task) {
	if p := w.s.policy; p != nil {
		p.Push(t)
		return
	}
	t.enqueue()
	w.toRing(t)
}

// toRing puts t in the ring. If the ring is full, half of it and t go to the global queue.
//
//go:norace
func (w *Worker) toRing(t *Task) {
	if w.ring.push(t) {
		return
	}
	w.overflow(t)
}

// Spec: SC-05 (a full local queue spills half, and loses nothing)
//
//go:noinline
//go:norace
func (w *Worker) overflow(t *Task) {
	var half [ringSize/2 + 1]*Task
	n := w.ring.grab(half[:ringSize/2])
	half[n] = t
	w.s.global.push(half[:n+1]...)
	w.s.stats.overflows.Add(1)
	w.s.wake()
}

// wakeWorth is the shortest expected wait of a task for which waking another worker pays: about the cost of a wake for
// both sides.
const wakeWorth = 10_000 // nanoseconds

// offer wakes another worker for a task that was just queued here, if the queue is likely to last longer than a wake
// takes. Otherwise every hand-over between two fibers would wake a worker that comes too late, because workers do not
// spin. If the guess is wrong, the monitor wakes a worker later. If all workers are active and tasks are long, offer
// makes a worker stand by. If tasks are short, glance does that.
//
//go:norace
func (w *Worker) offer() {
	s := w.s
	if s.active.Load() < s.target.Load() {
		if int64(w.ring.len()+1)*w.slice.Load() >= wakeWorth {
			s.wake()
		}
	} else if w.slice.Load() >= wakeWorth && !s.standing.Load() {
		s.wake()
	}
}

// pick takes the next task to run from this worker's own queues.
//
// Spec: SC-07 (the order in which a worker looks for work)
// Spec: SC-11 (run-next is served three times in a row at most)
// Spec: SC-13 (every 61st pick is global)
//
//go:norace
func (w *Worker) pick() *Task {
	if w.state.Load() != running {
		return nil // the base has work to do
	}
	if p := w.s.policy; p != nil {
		return p.Pick()
	}
	if w.picks++; w.picks >= w.every {
		if t := w.glance(); t != nil {
			return t
		}
	}
	if w.streak < nextCap {
		if t := w.takeNext(); t != nil {
			w.streak++
			return t
		}
	}
	w.streak = 0
	if t := w.ring.pop(); t != nil {
		return t.dequeue()
	}
	return w.takeNext()
}

// glanceWithin is the longest time that a task in the global queue waits for a busy worker whose tasks are short.
const glanceWithin = 200_000 // nanoseconds

// glance takes a task from the global queue. pick calls it after globalEvery picks, or after fewer if tasks are long,
// so that a task readied by a timer or a goroutine does not have to wait for 61 long ones.
//
// If every worker is busy, Go's own scheduler has no processor left. Goroutines, and Go's timers, on which coir's
// depend, would wait up to 10 ms, until the Go runtime preempts a worker. So glance calls Gosched, at most once for
// each glanceWithin of work. If a worker is idle, its processor can run them, and Gosched would only move this worker
// to that processor. A worker that searches does not count as busy. It may have been woken, and still wait for a
// processor behind other goroutines of the program; Gosched would put this worker behind them too (netio-busy-p50 of
// bench/ratios).
//
// Guarded by the comparisons wake-p99, wake-timer-p99 and wake-outside-p99 of bench/ratios.
//
//go:noinline
//go:norace
func (w *Worker) glance() *Task {
	slice := max(w.slice.Load(), 1)
	w.sinceGosched += slice * int64(w.picks)
	w.picks = 0
	w.every = int(min(max(glanceWithin/slice, 1), globalEvery))
	s := w.s
	busy := s.active.Load()-s.searchers.Load() >= s.target.Load()
	if w.sinceGosched >= glanceWithin && busy && !xatomic.Instrumented {
		w.sinceGosched = 0
		if w.hasWork() {
			s.standBy()
		}
		runtime.Gosched()
	}
	return s.global.pop()
}

// pickFor is pick for a task that waits for the end of other, or of all tasks of a group. If run-next is empty and the
// ring's newest task is other or belongs to the group, pickFor returns that task. So a tree of forks is traversed depth
// first, and needs as many stacks as it is deep, not as it is wide. Once in ageEvery picks, pickFor takes the ring's
// head instead.
//
// Guarded by TestJoinRunsTheNewest and TestJoinsDoNotStarve.
//
// Spec: SC-07 (the order in which a worker looks for work)
//
//go:norace
func (w *Worker) pickFor(other *Task, group unsafe.Pointer) *Task {
	picks := w.picks + 1
	if w.state.Load() != running || w.s.policy != nil || picks%ageEvery == 0 || picks >= w.every || !w.next.empty() {
		return w.pick()
	}
	t := w.ring.newest()
	if t == nil || t != other && (group == nil || w.s.group(t) != group) || !w.ring.unpush(t) {
		return w.pick()
	}
	w.picks = picks
	return t.dequeue()
}

//go:norace
func (w *Worker) takeNext() *Task {
	if t := w.next.take(); t != nil {
		return t.dequeue()
	}
	return nil
}

// successor returns the frame to switch to when a task stops.
//
//go:norace
func (w *Worker) successor() *Frame { return w.frameFor(w.pick()) }

// frameFor returns t's frame. A new task gets one from the worker's own pool. If t is nil, frameFor returns the base.
// It also does so if no frame is idle: the base then makes one. If frameFor made it, the stack of the task that is
// about to park would grow, for as long as that task lives.
//
//go:norace
func (w *Worker) frameFor(t *Task) *Frame {
	if t == nil {
		return &w.base
	}
	if fr := t.frame; fr != nil {
		return fr
	}
	if w.nframes == 0 {
		w.first = t
		return &w.base
	}
	w.nframes--
	fr := w.frames[w.nframes]
	fr.adopt(t)
	return fr
}

// moreFrames fetches idle frames from the common pool, or makes one.
//
//go:norace
func (w *Worker) moreFrames() {
	fr := w.s.pool.get(w)
	if fr == nil {
		fr = newFrame(w.s)
	}
	w.keep(fr)
}

// keep puts an idle frame into the worker's own pool, which has room for it.
//
//go:norace
func (w *Worker) keep(fr *Frame) {
	if at := &w.frames[w.nframes]; *at != fr {
		*at = fr
	}
	w.nframes++
}

// putFrame puts a frame that is about to rest into the worker's own pool. The frame's stack is not quiet yet, but only
// this worker takes from that pool, and not before control has left the frame.
//
// Spec: FB-04 (only a quiet coroutine goes to the idle pool)
//
//go:norace
func (w *Worker) putFrame(fr *Frame) {
	if coro.Fresh {
		return
	}
	if fr.exits > maxExits { // its stack is deep, so it is not reused, and the monitor releases it
		if w.spent != nil {
			w.s.pool.putSpent(w.spent) // quiet by now
		}
		w.spent = fr
		return
	}
	if w.nframes == keepFrames {
		w.s.pool.put(w, keepFrames/2)
	}
	w.keep(fr)
}

// run is the base's loop.
//
//go:norace
func (w *Worker) run() {
	race.Acquire(unsafe.Pointer(w.s)) // the only order for a goroutine that was started in a hidden section
	race.Disable()
	defer race.Enable()
	coro.Reset() // the goroutine that started it may have profiler labels
	w.base.w, w.base.g = w, coro.G()
	for {
		t := w.first
		if t != nil {
			w.first = nil
		} else if t = w.find(); t == nil {
			if !w.rest() {
				return
			}
			continue
		}
		if t.frame == nil && w.nframes == 0 {
			w.moreFrames()
		}
		coro.Transfer(&w.base.Coro, w.handTo(w.frameFor(t)))
		w.base.settle()
	}
}

// find searches each queue once for a task.
//
// Spec: SC-19 (the last searcher sends the next)
//
//go:norace
func (w *Worker) find() *Task {
	s := w.s
	fresh := w.stands
	if fresh {
		if !w.stand() {
			return nil
		}
	} else if w.state.Load() != running && !w.back() {
		return nil
	}
	t := w.pick()
	if t == nil && fresh {
		t = s.global.pop() // only one task, because the task may block this worker
	}
	if t == nil && s.policy == nil {
		if t = s.global.share(&w.ring, int(s.target.Load())); t == nil {
			t = w.steal()
		} else if w.ring.len() > 0 {
			s.wake() // no worker could see the tasks while share was moving them
		}
		if w.state.Load() != running && w.hasWork() { // it became held, and was drained before it had these tasks
			w.drain()
			s.wake()
		}
	}
	if t != nil && w.searching {
		w.searching = false
		if s.searchers.Add(-1) == 0 && s.anyWork() {
			s.wake() // the last searcher that finds a task wakes the next one
		}
	} else if t != nil && fresh && s.anyWork() {
		s.wake() // or makes the next worker stand by
	}
	return t
}

// steal takes half of another worker's ring, or its run-next task. It tries each worker once.
//
// Spec: SC-12 (a run-next slot can be stolen)
// Spec: SC-15 (a thief takes half)
// Spec: SC-18 (one wake of a searcher at a time)
//
//go:norace
func (w *Worker) steal() *Task {
	s := w.s
	if s.active.Load() < 2 {
		return nil
	}
	if !w.searching {
		if 2*s.searchers.Load() >= s.active.Load() {
			return nil // enough workers search
		}
		w.searching = true
		s.searchers.Add(1)
	}
	var loot [ringSize / 2]*Task // grab takes at most this many
	w.rand = w.rand*1664525 + 1013904223
	ps := s.places.all()
	start := int(w.rand>>8) % len(ps)
	for i := range ps {
		v := ps[(start+i)%len(ps)].Load()
		if v == nil || v == w {
			continue
		}
		if n := v.ring.grab(loot[:]); n > 0 {
			s.stats.stolen.Add(int64(n))
			for _, t := range loot[1:n] {
				w.toRing(t)
			}
			return loot[0].dequeue()
		}
		if t := v.takeNext(); t != nil {
			s.stats.stolen.Add(1)
			return t
		}
	}
	return nil
}
