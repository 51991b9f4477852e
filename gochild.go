package coir

import (
	"runtime/debug"
	"unsafe"

	"github.com/coir-go/coir/internal/bubble"
	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/sched"
	"github.com/coir-go/coir/internal/xatomic"
)

// Children that run on their own goroutines.
//
// To its nursery, such a child is a Fiber: it is counted, named, limited, waited for and cancelled like any other. But
// no worker runs its task, and its goroutine is not in the registry of frames. So its operations find no fiber and
// block the goroutine, as those of any goroutine do. They wait under the child's context, as guests of the nursery's
// scope.
//
// Few operations need to know that a goroutine runs a child: those that give up its place under a limit; Run, which
// opens a nursery on the child's runtime; Self; and the checks that a fiber does not wait for itself or close its own
// runtime. The context cannot identify the child, because a scope made inside the context does not refer to it. So
// children are listed by goroutine. Only those operations read the list, only in a goroutine, and only while the list
// is not empty.
//
// Rejected: an entry in the registry of frames that is not a coroutine. Every operation would find a fiber, and would
// have to check whether that fiber can park.

// WithGoroutine makes the child run on its own goroutine, not on a worker of the runtime. Use it for code that mostly
// blocks outside of coir, such as in a database driver or in cgo, or that locks its thread. For a single call,
// [Blocking] is enough.
//
// In all other respects the child is like other children: its nursery cancels it, waits for it, and reports its errors
// and panics; it has a name, an index, and a place under [Nursery.Limit]. Its operations on channels and other objects
// block the goroutine. Its [Fiber.State] is never [StateWaiting], and an [Observer] is not notified of its waits. It
// may call [Nursery.Go], and it may call [Run], which runs its function as a fiber of the child's runtime while the
// goroutine waits.
//
// In a simulation the child is a fiber, and blocks natively like a fiber. In a bubble of testing/synctest its goroutine
// is part of the bubble.
func WithGoroutine() FiberOption { return FiberOption{role: onGoroutine} }

// goChild is a child that runs on its own goroutine.
type goChild struct {
	f      Fiber
	labels unsafe.Pointer // the spawner's, for the profiler
	begun  xatomic.Bool

	// Used only by the child, except g.
	g    uintptr // the child's goroutine; others read it in the list, under the lock
	lent bool    // the main fiber of a Run that the child has called uses its place
	done bool    // its function has returned

	prev, next *goChild // in its list
}

// newFiber allocates a fiber for a child.
//
//go:norace
func newFiber(set *FiberOption) *Fiber {
	switch {
	case set.role&onGoroutine != 0:
		return &new(goChild).f
	case set.fiber != nil:
		return set.fiber
	}
	return new(Fiber)
}

// goChild returns the goChild that f is part of, or nil if f does not run on its own goroutine.
//
//go:norace
func (f *Fiber) goChild() *goChild {
	if f.role&onGoroutine == 0 {
		return nil
	}
	return (*goChild)(unsafe.Pointer(f))
}

var _ [unsafe.Offsetof(goChild{}.f)]struct{} = [0]struct{}{}

// worker returns the worker that runs the fiber, near which other fibers should be woken, or nil if there is none. Only
// the fiber itself may call it.
//
//go:norace
func (f *Fiber) worker() *sched.Worker {
	if f.role&onGoroutine != 0 {
		return nil
	}
	return f.task.Worker()
}

// begin starts a child that has been prepared.
//
//go:norace
func (f *Fiber) begin(here *sched.Worker) {
	if f.role&(onGoroutine|bornWaiting) == 0 {
		f.nursery.rt.s.Go(&f.task, here)
		return
	}
	if c := f.goChild(); c != nil {
		f.nursery.rt.native.begun.Add(1)
		go c.run()
		return
	}
	f.nursery.rt.s.GoWaiting(&f.task, here)
}

// run is the body of the child's goroutine.
//
// Spec: FB-35 (a child on a goroutine is a child like any other)
func (c *goChild) run() {
	c.enlist()
	defer c.delist()
	defer c.unwound()
	(*thunk)(&c.f).RunThunk()
	c.done = true
}

// unwound ends a child whose function has panicked, or has called Goexit.
func (c *goChild) unwound() {
	if c.done {
		return
	}
	if v := recover(); v != nil {
		(*thunk)(&c.f).Panicked(v, debug.Stack())
	} else {
		(*thunk)(&c.f).Exited()
	}
}

// countEnded counts the end of a child that ran on a goroutine. It is called before the nursery counts it.
//
//go:norace
func (rt *Runtime) countEnded() {
	race.Disable()
	rt.native.ended.Add(1)
	race.Enable()
}

//go:norace
func (c *goChild) state() State {
	if c.begun.Load() {
		return StateActive
	}
	return StatePending
}

// goChildren lists the children that run on goroutines, hashed by goroutine.
var goChildren struct {
	n     xatomic.Int64
	lists [256]struct {
		mu    xatomic.Mutex
		first *goChild
	}
}

// listOf returns the index of the list for a goroutine. Under coir test it is always 0: see sched.spread.
//
//go:norace
func listOf(g uintptr) int {
	if bubble.Explored != nil {
		return 0
	}
	return int(uint64(g) * 0x9E3779B97F4A7C15 >> 56)
}

//go:norace
func (c *goChild) enlist() {
	if coro.Labels() != c.labels { // the goroutine has the labels of the sibling that gave its place to this child
		coro.SetLabels(c.labels)
	}
	race.Disable()
	c.g = coro.G()
	l := &goChildren.lists[listOf(c.g)]
	l.mu.Lock()
	if c.next = l.first; c.next != nil {
		c.next.prev = c
	}
	l.first = c
	l.mu.Unlock()
	goChildren.n.Add(1)
	c.begun.Store(true)
	race.Enable()
}

//go:norace
func (c *goChild) delist() {
	race.Disable()
	goChildren.n.Add(-1)
	l := &goChildren.lists[listOf(c.g)]
	l.mu.Lock()
	if c.prev == nil {
		l.first = c.next
	} else {
		c.prev.next = c.next
	}
	if c.next != nil {
		c.next.prev = c.prev
	}
	c.prev, c.next = nil, nil
	l.mu.Unlock()
	race.Enable()
}

// childHere returns the child that runs on the calling goroutine, or nil. It may be called inside or outside a hidden
// section.
//
//go:norace
func childHere() *Fiber {
	race.Disable()
	defer race.Enable()
	if goChildren.n.Load() == 0 && bubble.Explored == nil {
		return nil
	}
	g := coro.G()
	l := &goChildren.lists[listOf(g)]
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := l.first; c != nil; c = c.next {
		if c.g == g {
			return &c.f
		}
	}
	return nil
}

// lend lets main, the main fiber of a Run that the child has called, use the child's place under a limit until back is
// called. The place stays taken while main runs, and main gives it up while it waits for fibers, just as a fiber that
// called Run would.
//
//go:norace
func (c *goChild) lend(main *Fiber) (back func()) {
	if !c.f.place {
		return func() {}
	}
	c.lent, main.place = true, true
	main.nursery.coldPart().opener = &c.f
	return func() { c.lent = false }
}
