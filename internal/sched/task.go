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

// Thunk is what a task runs and tells of its end. Exactly one of the three is the last call for a task: RunThunk
// returned, or it did not and Panicked or Exited follows. Config.Thunk finds that of a task.
type Thunk interface {
	RunThunk()
	Panicked(value any, stack []byte)
	Exited() // by runtime.Goexit
}

// Task is the scheduler's part of a fiber. It is used for one thunk and never again.
type Task struct {
	park.Parker
	queued invariant.Flag // is in a queue
	frame  *Frame         // what runs it, or ran it; nil before it has started. See Here
	link   *Task          // the next in the global queue
}

// Init readies a task for Go. Where every thunk needs a frame of its own (see coro.Fresh) it makes one; elsewhere the
// worker that runs the task finds it a frame. It is called by the spawner, with its synchronisation visible.
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

// Here reports whether the calling goroutine is the one that runs this task. If it is, the task stays on it while the
// caller runs.
//
// Anybody may ask, and frame is read without order: it is written when a worker takes the task up, and an atomic store
// there would be paid by every spawn. A word read in a race is still some word that was written. The task's own goroutine
// wrote it itself, or was resumed after it was. Everybody else sees nil or a frame whose g is 0 or another goroutine's;
// and a goroutine that came to have the g of a frame that is gone finds another task in it, or none.
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
	return fr != nil && fr.g != 0 // a frame that was made with the task has not begun
}

// Worker returns the worker that runs the task, as a place to wake others near. Only the task itself may ask.
//
//go:norace
func (t *Task) Worker() *Worker { return t.frame.w }

// Timer is the task's timer node, to be armed by the worker that runs the task. Only the task itself may use it, for
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

// Armed is the timer that the task has armed, to be stopped on whatever worker.
//
//go:norace
func (t *Task) Armed() *clock.Timer { return t.frame.timer }

// Kit is what the task waits with. Only the task itself may use it, for one wait at a time.
//
//go:norace
func (t *Task) Kit() *wait.Kit { return &t.frame.kit }

// Park suspends the task, which must be armed, until its wait has ended. A wait that has ended already costs no switch.
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

// ParkFor is Park of a task that waits for the end of other, or of all tasks of a group: see pickFor. Either may be
// nil.
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

// beginParkFor is BeginPark of ParkFor. A task that has been readied here comes first, as in pickFor.
//
//go:norace
func (t *Task) beginParkFor(other *Task, group unsafe.Pointer) *coro.Slot {
	fr := t.frame
	w := fr.w
	if xatomic.Instrumented && w == nil || !w.next.empty() || t.State() != park.Parking {
		return t.BeginPark()
	}
	if w.s.observer != nil {
		w.s.observer.Parked(t)
	}
	w.prev = t
	return fr.Via(fr.Enter(w.handTo(w.frameFor(w.pickFor(other, group)))))
}

// BeginPark is the first part of Park, up to the swap, which the caller makes as Park does, followed by EndPark. It
// returns nil if the wait has ended already. Operations that do it themselves have one frame less between their caller
// and the swap: see coro.Enter.
//
//go:norace
func (t *Task) BeginPark() *coro.Slot {
	if t.State() != park.Parking { // it was armed: so it has been woken
		return nil
	}
	if xatomic.Instrumented && parkBare(t) {
		return nil
	}
	fr := t.frame
	w := fr.w
	w.prev = t
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

// parkBare parks a task that no worker runs, and reports whether t is one. Explorations set it.
var parkBare func(t *Task) bool

// EndPark is what follows the swap.
//
//go:norace
func (t *Task) EndPark() { t.frame.settle() }

// Yield lets the others go first, if there are any.
//
//go:norace
func (t *Task) Yield() {
	if s := t.BeginYield(); s != nil {
		if s.Odd {
			s.Next()
		} else {
			s.Yield(struct{}{})
		}
		t.EndPark()
	}
}

// BeginYield is the first part of Yield, up to the swap: see BeginPark. It returns nil if there are no others.
//
//go:norace
func (t *Task) BeginYield() *coro.Slot {
	// Spec: SC-21 (a yield goes to the tail)
	if bubble.Explored != nil {
		runtime.Gosched() // fibers that yield to each other would go on for good: a switch between them is no point
	}
	fr := t.frame
	w := fr.w
	var next *Task
	// The usual successor is the oldest in the ring. What follows is pick for that case.
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

// goschedEvery is how many yields of a task that is alone make one call of Gosched, which costs ten times as much as
// the rest of the yield.
const goschedEvery = 8

// yieldAlone is a yield of the only task of the worker: what it waits for may be a goroutine.
//
//go:norace
func (w *Worker) yieldAlone() {
	w.beat++ // alone, but alive
	if w.lone++; w.lone%goschedEvery == 0 {
		runtime.Gosched()
	}
}

// Ready implements park.Owner: a scheduler is the owner of its tasks.
//
//go:norace
func (s *Scheduler) Ready(p *park.Parker, near park.Place) {
	t := taskOf(p)
	if s.observer != nil {
		s.observer.Readied(t)
	}
	if w, ok := near.(*Worker); ok && s.Has(w) {
		w.tally.woken++
		w.push(t)
	} else {
		s.stats.woken.Add(1)
		s.inject(t)
	}
}

// Late implements park.Owner: it counts a wake that came when the wait had ended.
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

// Frame is a coroutine that runs tasks one after the other. What a task needs only while it runs or waits is here, not
// in the task, because frames are used again and tasks are not.
type Frame struct {
	coro.Coro
	w       *Worker // who runs it; set by the one that passes control to it
	task    *Task
	g       uintptr
	timer   *clock.Timer // made for the first wait that needs one
	kit     wait.Kit
	free    *Frame // next in a pool
	chain   *Frame // next in the registry
	exits   int32  // Goexits that it serves on from the inside of
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

// run is a coro.Body: the whole life of the frame's goroutine.
//
//go:norace
func (fr *Frame) run(yield func(struct{}) bool) {
	fr.Begin(yield)
	race.Disable()
	if !coro.Fresh {
		coro.Reset() // the worker that made it has labels of its own, perhaps
	}
	fr.g = coro.G()
	register(fr)
	fr.settle()
	defer fr.unwound()
	for !fr.serve() {
	}
}

// unwound is deferred by run. A panic that is recovered while a Goexit is under way does not stop the Goexit: after caught has
// dealt with such a panic, the Goexit goes on to end the goroutine. So the frame serves from in here until it is to leave, as
// caught does for a plain Goexit.
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

// serve runs tasks until the frame is to leave: then it reports true. It reports false after a panic, which caught has
// dealt with.
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
			} else if s := fr.Enter(to); s.Odd { // it is not locked to its thread: rest has looked
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
	fr.task.frame = nil // a task may be kept for long, and need not keep what ran it
	fr.task = nil
	fr.w.tally.ended++
	if !coro.Fresh {
		coro.Reset()
	}
}

// rest takes the next task, on this coroutine if the task is new. Otherwise it puts the frame aside and returns whom to
// pass control to.
//
// A frame whose task has ended with its thread locked is not used again, and its goroutine stays where it is for
// good. Go would end the thread, which the task may have changed in ways that no other may meet (a namespace,
// credentials); but a coroutine cannot end while it is locked. Guarded by TestLockedEndKeepsTheThread.
//
// Spec: FB-03 (a coroutine is reused for the next thunk)
// Spec: FB-30 (a locked thread that parks is stopped with a sentence)
//
//go:norace
func (fr *Frame) rest() *coro.Coro {
	w := fr.w
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
		coro.Transfer(&fr.Coro, to) // and control does not come back
	}
	w.putFrame(fr)
	fr.resting = true
	return to
}

// resumed is what a resting frame does when control is back. It reports true if the frame is to leave; otherwise the
// frame has been given a task.
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

// caught is deferred by serve. A panic in a thunk ends the thunk, and serve begins anew. A Goexit cannot be stopped, but
// the deferred call may go on for as long as it likes: so it serves from in here until the frame is to leave.
//
// Spec: FB-25 (Goexit ends one fiber alone)
//
//go:norace
func (fr *Frame) caught() {
	if fr.left {
		return
	}
	if !fr.resting { // else it is the Goexit of another frame that left, passed on by coro.Release
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
	fr.exits++ // each is a level of the stack that does not come back
	for !fr.serve() {
	}
}

// leave is the last thing that the frame's goroutine does here.
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

// handTo readies another frame of this worker for control, which the caller passes to it next. The caller must settle
// first thing when control is back.
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

// settle does what had to wait until the stack of the one that ran before was quiet.
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
		t.Rouse(w) // woken on its way to sleep
	}
}
