package sched

import (
	"runtime"
	"unsafe"

	"github.com/coir-go/coir/internal/bubble"
	"github.com/coir-go/coir/internal/clock"
	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/invariant"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/wait"
	"github.com/coir-go/coir/internal/xatomic"
)

// Thunk is the function that a task runs, with callbacks for its end. If RunThunk does not return, Panicked or Exited
// is called, exactly once. Config.Thunk returns a task's Thunk.
type Thunk interface {
	RunThunk()
	Panicked(value any, stack []byte)
	Exited() // by runtime.Goexit
}

// Task is the scheduler's part of a fiber. It is used for one thunk and never again.
type Task struct {
	park.Parker
	queued invariant.Flag // the task is in a queue
	frame  *Frame         // the frame that runs it; nil before it has started and after it has ended. See Here
	link   *Task          // the next in the global queue
}

// Init prepares a task for Go. If every thunk needs a new frame (see coro.Fresh), Init makes the frame. Otherwise the
// worker that runs the task provides it. The spawner calls Init, with its synchronisation visible.
//
//go:norace
func (t *Task) Init(s *Scheduler) {
	t.Parker.InitShared(&s.owner)
	if coro.Fresh {
		fr := newFrame(s)
		fr.task = t
		t.frame = fr
	}
}

// taskOf returns the task of a parker, which is its first field.
//
//go:norace
func taskOf(p *park.Parker) *Task { return (*Task)(unsafe.Pointer(p)) }

var _ [unsafe.Offsetof(Task{}.Parker)]struct{} = [0]struct{}{}

// Here reports whether the calling goroutine runs this task. If so, the answer holds until the caller lets the task
// park, yield or end.
//
// Any goroutine may call Here, and it reads frame without synchronisation. A worker writes frame when it starts the
// task, and an atomic store there would slow down every spawn. A racy read still returns a value that was written. The
// task's own goroutine wrote frame itself, or was resumed after the write. Any other goroutine sees nil, or a frame
// whose g is 0 or belongs to another goroutine. A goroutine that has the g of a released frame finds another task in
// that frame, or none.
//
//go:norace
func (t *Task) Here() bool {
	// Spec: FB-21 (the caller's identity is checked)
	fr := t.frame
	return fr != nil && fr.g == coro.G() && fr.task == t
}

// Started reports whether the task has been given a frame.
//
//go:norace
func (t *Task) Started() bool {
	fr := t.frame
	return fr != nil && fr.g != 0 // a frame that Init made has no g before it runs
}

// Worker returns the worker that runs the task, as a Place for wakes. Only the task itself may call it.
//
//go:norace
func (t *Task) Worker() *Worker { return t.frame.w }

// Timer returns the task's timer, to be armed by the worker that runs the task. Only the task itself may use it, for
// one wait at a time.
//
//go:norace
func (t *Task) Timer() *clock.Timer {
	fr := t.frame
	if fr.timer == nil {
		fr.timer = new(clock.Timer)
	}
	fr.timer.Near(fr.w.number)
	return fr.timer
}

// Armed returns the timer that the task has armed. It may be stopped on any worker.
//
//go:norace
func (t *Task) Armed() *clock.Timer { return t.frame.timer }

// Kit returns the task's kit for waits. Only the task itself may use it, for one wait at a time.
//
//go:norace
func (t *Task) Kit() *wait.Kit { return &t.frame.kit }

// Park suspends the task, which must be armed, until its wait has ended. A wait that has already ended costs no switch.
//
//go:norace
func (t *Task) Park() park.Reason {
	// Spec: PK-22 (a wait that has ended costs no switch)
	// Spec: PK-39 (waitables know only try, publish and unpublish)
	if s := t.BeginPark(); s != nil {
		if s.Odd {
			s.Next()
		} else {
			s.Yield(struct{}{})
		}
		t.EndPark()
	}
	return t.Reason()
}

// ParkFor is Park for a task that waits until other has ended, or all tasks of a group: see pickFor. Either may be nil.
//
//go:norace
func (t *Task) ParkFor(other *Task, group unsafe.Pointer) park.Reason {
	if s := t.beginParkFor(other, group); s != nil {
		if s.Odd {
			s.Next()
		} else {
			s.Yield(struct{}{})
		}
		t.EndPark()
	}
	return t.Reason()
}

// beginParkFor is to ParkFor what BeginPark is to Park. A task that was readied on this worker comes first, as in
// pickFor.
//
//go:norace
func (t *Task) beginParkFor(other *Task, group unsafe.Pointer) *coro.Slot {
	fr := t.frame
	w := fr.w
	if xatomic.Instrumented && w == nil || !w.next.empty() || t.State() != park.Parking {
		return t.BeginPark()
	}
	w.prev = t
	fr.since = w.s.now.Load()
	if w.s.observer != nil {
		w.s.observer.Parked(t)
	}
	return fr.Via(fr.Enter(w.handTo(w.frameFor(w.pickFor(other, group)))))
}

// BeginPark is the first part of Park, up to the swap. The caller swaps as Park does, and then calls EndPark. BeginPark
// returns nil if the wait has already ended. An operation that makes the swap itself has one frame less between its
// caller and the swap: see coro.Enter. internal/archtest checks that all copies of the swap are the same
// (TestSwapsAreTheSame).
//
//go:norace
func (t *Task) BeginPark() *coro.Slot {
	if t.State() != park.Parking { // it was armed, so a waker has ended the wait
		return nil
	}
	if xatomic.Instrumented && parkBare(t) {
		return nil
	}
	fr := t.frame
	w := fr.w
	w.prev = t
	fr.since = w.s.now.Load()
	// The usual successor is the task that has just been readied. What follows is pick and frameFor for that case.
	if w.s.plain && w.picks < w.every-1 {
		if w.state.Load() == running {
			if streak := w.streak; streak < nextCap || w.ring.len() == 0 {
				if next := w.next.take(); next != nil {
					next.dequeue()
					w.picks++
					if streak++; streak > nextCap {
						streak = 0
					}
					w.streak = streak
					to := next.frame
					if to == nil {
						to = w.frameFor(next)
					}
					return fr.Via(fr.Enter(w.handTo(to)))
				}
			}
		}
	}
	if w.s.observer != nil {
		w.s.observer.Parked(t)
	}
	return fr.Via(fr.Enter(w.handTo(w.successor())))
}

// parkBare parks t if no worker runs it, and reports whether it did. Explorations set it.
var parkBare func(t *Task) bool

// EndPark is the last part of Park, after the swap.
//
//go:norace
func (t *Task) EndPark() {
	t.frame.kit.On = nil // the fiber may run for a long time, and must not keep alive what it waited for
	t.frame.settle()
}

// Yield runs other tasks first, if there are any.
//
//go:norace
func (t *Task) Yield() {
	if s := t.BeginYield(); s != nil {
		if s.Odd {
			s.Next()
		} else {
			s.Yield(struct{}{})
		}
		t.frame.settle() // not EndPark, because a Cond yields in the middle of a wait
	}
}

// BeginYield is the first part of Yield, up to the swap: see BeginPark. It returns nil if there is no other task to
// run.
//
//go:norace
func (t *Task) BeginYield() *coro.Slot {
	// Spec: SC-21 (a yield goes to the tail)
	if bubble.Explored != nil {
		runtime.Gosched() // coir test does not see switches: fibers that yield to each other would run forever
	}
	fr := t.frame
	w := fr.w
	var next *Task
	// The usual successor is the oldest task in the ring. What follows is pick for that case.
	if w.s.plain && w.picks < w.every-1 && w.state.Load() == running && w.next.empty() {
		if next = w.ring.pop(); next != nil {
			next.dequeue()
			w.picks++
			w.streak = 0
		}
	}
	if next == nil {
		if next = w.pick(); next == nil && w.state.Load() == running {
			if next = w.s.global.pop(); next == nil {
				w.yieldAlone()
				return nil
			}
		}
	}
	w.prev, w.requeue = t, true
	return fr.Via(fr.Enter(w.handTo(w.frameFor(next))))
}

// goschedEvery is the number of yields of a lone task for each call of Gosched, which costs ten times as much as the
// rest of a yield.
const goschedEvery = 8

// yieldAlone yields for the worker's only task, which may be waiting for a goroutine.
//
//go:norace
func (w *Worker) yieldAlone() {
	w.beat++ // tells the monitor that the task makes progress
	if w.loneYields++; w.loneYields%goschedEvery == 0 {
		runtime.Gosched()
	}
}

// Ready implements park.Owner. A scheduler is the owner of its tasks.
//
//go:norace
func (s *Scheduler) Ready(p *park.Parker, here park.Place) {
	t := taskOf(p)
	w, _ := here.(*Worker)
	if s.observer != nil {
		var by *Task
		if w != nil {
			by = w.cur
		}
		s.observer.Readied(t, by)
	}
	s.ready(t, w)
}

// ready queues a task whose wait has ended, on the worker w if that belongs to this scheduler.
//
//go:norace
func (s *Scheduler) ready(t *Task, w *Worker) {
	if s.Has(w) {
		w.tally.woken++
		w.push(t)
	} else {
		s.stats.woken.Add(1)
		s.inject(t)
	}
}

// readyLate readies a task that was woken on its way to sleep. It names no waker, because the task that runs now did
// not wake it.
//
//go:noinline
//go:norace
func (w *Worker) readyLate(t *Task) {
	if w.s.observer != nil {
		w.s.observer.Readied(t, nil)
	}
	w.s.ready(t, w)
}

// Late implements park.Owner: it counts a wake that came after the wait had ended.
//
//go:norace
func (s *Scheduler) Late(*park.Parker) { s.stats.late.Add(1) }

// enqueue and dequeue check the invariant one-place in checked builds.
//
// Spec: PK-46 (checked builds panic at an illegal transition)
// Spec: SC-08 (a fiber is enqueued once for each wake)
//
//go:norace
func (t *Task) enqueue() {
	if invariant.Enabled {
		invariant.Check(!t.queued.Swap(true), "a task was put in a queue twice")
		s := t.State()
		invariant.Check(s != park.Parked && s != park.Parking, "a task that is %v was put in a queue", s)
	}
}

//go:norace
func (t *Task) dequeue() *Task {
	if invariant.Enabled {
		invariant.Check(t.queued.Swap(false), "a task came out of a queue that it was not in")
	}
	return t
}

// Frame is a coroutine that runs tasks one after the other. It holds the state that a task needs only while it runs or
// waits, because frames are reused and tasks are not.
type Frame struct {
	coro.Coro
	w       *Worker // the worker that runs it; set before the worker passes control to the frame
	task    *Task
	g       uintptr
	timer   *clock.Timer // made for the first wait that needs one
	kit     wait.Kit
	free    *Frame // next in a pool
	chain   *Frame // next in the registry
	since   uint32 // when its task last parked or called Block, by Scheduler.now
	exits   int32  // the number of Goexits on its stack, inside which it serves
	resting bool
	left    bool
}

//go:norace
func newFrame(s *Scheduler) *Frame {
	fr := new(Frame)
	fr.Init(fr.run)
	race.Disable()
	s.stats.frames.Add(1)
	race.Enable()
	return fr
}

// run is a coro.Body: the function of the frame's goroutine.
//
//go:norace
func (fr *Frame) run(yield func(struct{}) bool) {
	fr.Begin(yield)
	race.Disable()
	if !coro.Fresh {
		coro.Reset() // the goroutine that made the frame may have profiler labels
	}
	fr.g = coro.G()
	register(fr)
	fr.settle()
	defer fr.unwound()
	for !fr.serve() {
	}
}

// unwound is deferred by run. If a panic is recovered during a Goexit, the Goexit continues: after caught has handled
// such a panic, the goroutine is still about to end. So unwound serves until the frame must leave, as caught does for a
// plain Goexit.
//
// Guarded by TestPanicDuringGoexit.
//
//go:norace
func (fr *Frame) unwound() {
	if fr.left {
		return
	}
	defer fr.unwound()
	fr.exits++
	for !fr.serve() {
	}
}

// serve runs tasks until the frame must leave, and then returns true. It returns false after a panic, which caught has
// handled.
//
//go:norace
func (fr *Frame) serve() (left bool) {
	defer fr.caught()
	for {
		if fr.task == nil && !fr.resting {
			if to := fr.rest(); to == nil {
				// It has a task already.
			} else if coro.Fresh {
				fr.Rest(to)
			} else if s := fr.Enter(to); s.Odd { // not locked to its thread: rest has checked that
				s.Next()
			} else {
				s.Yield(struct{}{})
			}
		}
		if fr.resting && fr.resumed() {
			fr.leave()
			return true
		}
		th := fr.w.s.thunk(fr.task)
		race.Enable()
		th.RunThunk()
		race.Disable()
		fr.ended()
	}
}

//go:norace
func (fr *Frame) ended() {
	fr.task.frame = nil // a task may be kept for a long time, and must not keep its frame alive
	fr.task = nil
	if fr.timer != nil {
		fr.timer.Forget()
	}
	fr.w.tally.ended++
	if !coro.Fresh {
		coro.Reset()
	}
}

// rest takes the next task. If that task is new, the frame adopts it, and rest returns nil. Otherwise rest puts the
// frame into a pool, and returns the coroutine to which control must pass.
//
// A frame whose task ended while locked to its thread is not reused, and its goroutine stays suspended forever. Go
// would end the thread, which the task may have changed in ways that must not affect other code (a namespace,
// credentials). But a coroutine cannot end while it is locked. Guarded by TestLockedEndKeepsTheThread.
//
// Spec: FB-03 (a coroutine is reused for the next thunk)
// Spec: FB-30 (a locked fiber keeps its thread)
//
//go:norace
func (fr *Frame) rest() *coro.Coro {
	w := fr.w
	if w.s.policy != nil {
		w.picker = fr
	}
	t := w.pick()
	lost := fr.Bound()
	if t != nil && !coro.Fresh && t.frame == nil && !lost {
		fr.adopt(t)
		w.cur = t
		w.beat++
		return nil
	}
	to := w.handTo(w.frameFor(t))
	if lost {
		unregister(fr)
		coro.Transfer(&fr.Coro, to) // control never comes back
	}
	w.putFrame(fr)
	fr.resting = true
	return to
}

// resumed is called by a resting frame when it is resumed. It returns true if the frame must leave; otherwise the frame
// has been given a task.
//
//go:norace
func (fr *Frame) resumed() (leave bool) {
	if fr.Leaving() {
		return true
	}
	fr.resting = false
	fr.settle()
	return false
}

// caught is deferred by serve. A panic in a thunk ends the thunk, and serve starts over. A Goexit cannot be stopped,
// but a deferred call may run for any length of time, so caught serves until the frame must leave.
//
// Spec: FB-25 (Goexit ends one fiber alone)
//
//go:norace
func (fr *Frame) caught() {
	if fr.left {
		return
	}
	if !fr.resting { // otherwise coro.Release has passed on the Goexit of another frame that left
		th := fr.w.s.thunk(fr.task)
		if r := recover(); r != nil {
			th.Panicked(r, stack())
			race.Disable()
			fr.ended()
			return
		}
		th.Exited()
		race.Disable()
		fr.ended()
	}
	fr.exits++ // each Goexit adds a level to the stack for good
	for !fr.serve() {
	}
}

// leave is the last call of the frame's goroutine.
//
//go:norace
func (fr *Frame) leave() {
	fr.left = true
	unregister(fr)
	race.Enable()
}

// adopt makes t this frame's task.
//
//go:norace
func (fr *Frame) adopt(t *Task) {
	fr.task = t
	t.frame = fr
}

// handTo prepares another frame of this worker to run. The caller then passes control to it. When the caller is
// resumed, it must call settle first.
//
//go:norace
func (w *Worker) handTo(to *Frame) *coro.Coro {
	if to.w != w {
		to.w = w
	}
	w.cur = to.task
	w.beat++
	return &to.Coro
}

// settle does the work that had to wait until the stack of the previous task was quiet.
//
//go:norace
func (fr *Frame) settle() {
	if w := fr.w; w.prev != nil {
		w.settle()
	}
}

// Spec: FB-05 (the resumed side does what needs a quiet stack)
// Spec: PK-14 (a wake between arm and commit is not lost)
// Spec: PK-16 (PARKED is published after the switch)
//
//go:norace
func (w *Worker) settle() {
	t := w.prev
	w.prev = nil
	if w.requeue {
		w.requeue = false
		if invariant.Enabled || !w.s.plain || !w.ring.push(t) {
			w.putBack(t)
		}
	} else if !t.Commit() {
		w.readyLate(t)
	}
}
