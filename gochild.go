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

// Children that run on a goroutine of their own.
//
// Such a child is a Fiber to its nursery: it is counted, named, limited, waited for and cancelled like any other. No
// worker runs its task, and the registry of frames does not know its goroutine. So its operations find no fiber, and
// block as a goroutine's do, under the child's context, where they are guests of the nursery's scope.
//
// Few operations have to know that a goroutine is a child: those that give up its place under a limit, Run, which opens
// a nursery on the child's runtime, Self, and the checks for a fiber that waits for itself or closes its own runtime.
// The context does not identify the child, because a scope inside it does not name the child. So children are listed by
// goroutine. Only those operations read the list, only in a goroutine, and not while the list is empty.
//
// Rejected: a frame in the registry that is not a coroutine. Every operation would then find a fiber, and have to check
// whether it can park.

// OnGoroutine makes the child run on a goroutine of its own, not on a worker of the runtime. It is for code that mostly
// blocks outside of coir, such as in a database driver or in cgo, or that locks its thread. For a single call
// [Blocking] is enough.
//
// In all else the child is like other children: its nursery cancels it, waits for it, and reports its errors and
// panics; it has a name, an index, and a place under [Nursery.Limit]. Its operations on channels and the like block the
// goroutine. Its [Fiber.State] is never [StateWaiting], and an [Observer] does not learn of its waits. It may call
// [Nursery.Go], and [Run], whose function then runs as a fiber of the child's runtime while the goroutine waits.
//
// In a simulation the child is a fiber, and blocks natively like one. In a bubble of testing/synctest its goroutine is
// part of the bubble.
func OnGoroutine() FiberOption { return FiberOption{role: onGoroutine} }

// goChild is a child on a goroutine of its own.
type goChild struct {
	f      Fiber
	labels unsafe.Pointer // the spawner's, for the profiler
	begun  xatomic.Bool

	// The child's own.
	g    uintptr // its goroutine; read by others in the list, under the lock
	lent bool    // its place is used by the main fiber of a Run that it has called
	done bool    // its function has returned

	prev, next *goChild // in its list
}

// newFiber makes the fiber of a child.
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

// goChild returns the goChild that f is part of, or nil if f does not run on a goroutine of its own.
//
//go:norace
func (f *Fiber) goChild() *goChild {
	if f.role&onGoroutine == 0 {
		return nil
	}
	return (*goChild)(unsafe.Pointer(f))
}

var _ [unsafe.Offsetof(goChild{}.f)]struct{} = [0]struct{}{}

// worker returns the worker that runs the fiber, as a place to wake others near. It returns nil if there is none. Only
// the fiber itself may call it.
//
//go:norace
func (f *Fiber) worker() *sched.Worker {
	if f.role&onGoroutine != 0 {
		return nil
	}
	return f.task.Worker()
}

// begin starts a prepared child.
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

// countEnded counts the end of a child on a goroutine, before its nursery does.
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

// goChildren lists the children that run on goroutines, by a hash of the goroutine.
var goChildren struct {
	n     xatomic.Int64
	lists [256]struct {
		mu    xatomic.Mutex
		first *goChild
	}
}

// listOf returns the number of the list for a goroutine. Under coir test it is always the first: see sched.spread.
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
	if coro.Labels() != c.labels { // they are those of a sibling that gave its place to this child
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

// childHere returns the child that the calling goroutine runs, or nil. It may be called in a hidden section or outside.
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
// called. So the place is taken while main runs, and main gives it up while it waits for fibers, as the fiber that
// called Run would.
//
//go:norace
func (c *goChild) lend(main *Fiber) (back func()) {
	if !c.f.place {
		return func() {}
	}
	c.lent, main.place = true, true
	main.nursery.more().opener = &c.f
	return func() { c.lent = false }
}
