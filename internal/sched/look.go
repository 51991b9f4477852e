package sched

import (
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/wait"
)

// This file reads running tasks for a snapshot. It holds no lock for long, and it costs the tasks nothing, except that
// each wait records what it waits for (wait.Kit.On) and when it began.

// piece is the number of frames that a walk visits under one hold of a lock.
const piece = 64

// Walk calls visit for each task of the process that has begun and has not ended, until visit returns false. It holds
// no lock while it calls visit. It visits a task that lives during the whole walk exactly once.
//
// Each such task has a frame, and each frame is registered. The tables of the registry only grow, by doubling. So if a
// shard had n buckets when the walk over it began, the frames that were in bucket r are now in buckets whose numbers
// are r modulo n.
//
//go:norace
func Walk(visit func(*Task) bool) {
	var found finds
	for i := range registry {
		s := &registry[i]
		s.mu.Lock()
		n := len(s.buckets)
		s.mu.Unlock()
		for r := 0; r < n; {
			found.n = 0
			r = s.look(&found, r, n)
			if !found.each(visit) {
				return
			}
		}
	}
}

// finds is a list of tasks, which only its owner uses. It does not use append, because the race detector sees the
// accesses of append.
type finds struct {
	list []*Task
	n    int
}

//go:norace
func (ts *finds) add(t *Task) {
	if ts.n == len(ts.list) {
		list := make([]*Task, max(2*piece, 2*ts.n))
		for i, old := range ts.list { //nolint:staticcheck // the race detector would see a copy
			list[i] = old
		}
		ts.list = list
	}
	ts.list[ts.n] = t
	ts.n++
}

// each calls visit for each task until visit returns false, and reports whether visit never did.
//
//go:norace
func (ts *finds) each(visit func(*Task) bool) bool {
	for _, t := range ts.list[:ts.n] {
		if !visit(t) {
			return false
		}
	}
	return true
}

// look adds to found the tasks of some of n buckets, starting with bucket r. It returns the bucket to continue with.
//
//go:norace
func (s *shard) look(found *finds, r, n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for looked := 0; r < n && looked < piece; r++ {
		for b := r; b < len(s.buckets); b += n {
			looked++
			for fr := s.buckets[b]; fr != nil; fr = fr.chain {
				looked++
				if t := loadTask(&fr.task); t != nil {
					found.add(t)
				}
			}
		}
	}
	return r
}

//go:norace
func loadTask(p **Task) *Task {
	return (*Task)(atomic.LoadPointer((*unsafe.Pointer)(unsafe.Pointer(p))))
}

// Queued calls visit for tasks in the scheduler's queues that have not begun, until visit returns false. From the
// global queue it visits at most most tasks. It may miss tasks that move between queues during the call.
//
//go:norace
func (s *Scheduler) Queued(most int, visit func(*Task) bool) {
	var found finds
	s.mu.Lock()
	for _, w := range s.workers {
		if t := w.next.look(); t != nil {
			found.add(t)
		}
		w.ring.look(&found)
	}
	s.mu.Unlock()
	s.global.look(&found, most)
	for _, t := range found.list[:found.n] {
		if !t.Started() && !visit(t) {
			return
		}
	}
}

// look returns the task, or nil if there is none or another worker is taking it.
//
//go:norace
func (n *runNext) look() *Task {
	seq := n.seq.Load()
	t := loadTask(&n.task)
	if seq&1 == 0 || n.seq.Load() != seq {
		return nil
	}
	return t
}

// look adds the tasks of the ring to found. It gives up if workers take from the ring all the time.
//
//go:norace
func (r *ring) look(found *finds) {
	from := found.n
	for range 3 {
		word := r.word.Load()
		head, tail := ends(word)
		for at := head; at != tail; at++ {
			if t := loadTask(&r.place[at%ringSize]); t != nil {
				found.add(t)
			}
		}
		if r.word.Load() == word {
			return
		}
		found.n = from // some of these places may have held other tasks
	}
}

// Wait is a wait that a snapshot has found.
type Wait struct {
	On     any       // what the task waits for; see wait.Kit
	Number uint64    // the number of the wait, unique among those of its task
	Since  time.Time // when it began, to about a tick; zero if unknown
	Due    int64     // when its timer ends it, on the scheduler's clock; 0 if never
}

// Look returns the wait of a task that another goroutine runs. It reports whether the task was in a wait. Look reads
// the task's word, which includes the ticket, before and after it reads the rest. If ok, both words were equal, so the
// task was in that wait all the time.
//
//go:norace
func (t *Task) Look() (w Wait, ok bool) {
	word := t.Word()
	if !word.Parked() {
		return w, false
	}
	fr := (*Frame)(atomic.LoadPointer((*unsafe.Pointer)(unsafe.Pointer(&t.frame))))
	if fr == nil {
		return w, false // the task began with a wait, so it has not run and has no frame
	}
	w.On, w.Number, w.Since = wait.LookAt(&fr.kit.On), uint64(word.Ticket()), t.began(atomic.LoadUint32(&fr.since))
	if timer := fr.timer; timer != nil {
		w.Due = timer.Look(uint64(word.Ticket()))
	}
	return w, t.Word() == word
}

// Parks returns what the task is about to wait for, and whether it is about to park. Only the task itself may call it,
// in a call of the observer.
//
//go:norace
func (t *Task) Parks() (on any, ok bool) {
	fr := t.frame
	if fr.w == nil || fr.w.prev != t {
		return nil, false
	}
	return fr.kit.On, true
}

// Place is where a task is: on a worker or not.
type Place uint8

// The places of a task.
const (
	Nowhere  Place = iota // no worker runs it
	OnWorker              // a worker runs it
	Held                  // the same, and the worker has not switched for a tick, and another worker stands in
	InCall                // a worker runs it in Block
)

// Place returns where t runs. If t is in Block, since is when that began, to about a tick, or zero if unknown.
//
//go:norace
func (t *Task) Place() (p Place, since time.Time) {
	fr := (*Frame)(atomic.LoadPointer((*unsafe.Pointer)(unsafe.Pointer(&t.frame))))
	if fr == nil {
		return Nowhere, since
	}
	w := (*Worker)(atomic.LoadPointer((*unsafe.Pointer)(unsafe.Pointer(&fr.w))))
	if w == nil || loadTask(&w.cur) != t {
		return Nowhere, since
	}
	switch w.state.Load() {
	case running:
		return OnWorker, since
	case blocked:
		return InCall, t.began(atomic.LoadUint32(&fr.since))
	}
	return Held, since
}

// Activity returns what the goroutine that runs the task does, or coro.Unknown.
//
//go:norace
func (t *Task) Activity() coro.Activity {
	fr := (*Frame)(atomic.LoadPointer((*unsafe.Pointer)(unsafe.Pointer(&t.frame))))
	if fr == nil {
		return coro.Unknown
	}
	return coro.ActivityOf(atomic.LoadUintptr(&fr.g))
}

// WorkerState is a worker as a snapshot sees it.
type WorkerState struct {
	State string // running, idle, blocking or held
	Queue int    // tasks in its own queues
	Task  *Task  // the task that it runs, or nil
	Beats uint64
	Since time.Time // since when the task has run without a switch, to about a tick; zero if unknown
}

// Workers returns the state of each worker.
//
//go:norace
func (s *Scheduler) Workers() []WorkerState {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]WorkerState, len(s.workers))
	for i, w := range s.workers {
		x := WorkerState{
			State: [...]string{"running", "idle", "blocking", "held"}[w.state.Load()],
			Queue: w.ring.len(), Task: loadTask(&w.cur), Beats: w.beat,
		}
		if !w.next.empty() {
			x.Queue++
		}
		if x.Task != nil && w.seen.beat == x.Beats && s.policy == nil {
			x.Since = w.seen.since
		}
		all[i] = x
	}
	return all
}

// setNow sets the time that tasks record when they park. The time is not exact, because reading the clock takes longer
// than a switch.
//
//go:norace
func (s *Scheduler) setNow(now time.Time) { s.now.Store(uint32(max(0, now.Sub(s.epoch)/tick) + 1)) }

// began returns the time of a park that was recorded as at, or the zero time if a policy controls time.
//
//go:norace
func (t *Task) began(at uint32) time.Time {
	s := t.Owner().(*Scheduler)
	if at == 0 || s.policy != nil {
		return time.Time{}
	}
	return s.epoch.Add(time.Duration(at-1) * tick)
}

// Goroutine returns the number of the goroutine that runs the task, or 0 if it has none.
//
//go:norace
func (t *Task) Goroutine() uint64 {
	fr := (*Frame)(atomic.LoadPointer((*unsafe.Pointer)(unsafe.Pointer(&t.frame))))
	if fr == nil {
		return 0
	}
	g := atomic.LoadUintptr(&fr.g)
	if g == 0 {
		return 0
	}
	return coro.NumberOf(g)
}
