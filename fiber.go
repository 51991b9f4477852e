package coir

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"unsafe"

	"github.com/coir-go/coir/internal/bubble"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/sched"
	"github.com/coir-go/coir/internal/wait"
	"github.com/coir-go/coir/internal/xatomic"
)

// Fiber is a function that runs concurrently with others, started by [Nursery.Go]. A Fiber is never reused, so a
// program may keep it. After its end it keeps its result, the context that its nursery was opened in, and the errors of
// the nursery's other fibers, but no variables that their functions captured.
type Fiber struct {
	task    sched.Task
	nursery *Nursery
	waiting xatomic.Pointer[scope] // the scope whose cancel ends the fiber's wait. See scope

	fn     func(context.Context) error
	name   string
	id     uint64
	pc     uintptr // where it was spawned
	index  int32   // the index plus 1; 0: none
	budget int32   // operations left that need not wait, before it yields

	outcome   xatomic.Uint32 // an outcome: set to awaited under mu, and by the fiber itself when it ends, after failed
	role      role           // never changes
	place     bool           // counts against its nursery's limit
	listed    bool           // is in its nursery's ring: has waited under the nursery's scope
	simulated bool           // its runtime has a policy, which sees each operation
	failed    *error         // its error, if not nil; before the end, errors that could not be reported: see unreported

	prev, next *Fiber // under nursery.mu

	mu      xatomic.Mutex // guards joiners; no other lock is taken under it
	joiners wait.Ring
}

// outcome says how a fiber ended, or that it has not.
//
//	running --addJoiner--> awaited
//	   |                      |
//	   +-------finish---------+--> returned, panicked or exited
type outcome uint32

const (
	running  outcome = iota
	awaited          // running, and has had joiners, which finish must look for
	returned         // its function returned
	panicked         // err is a *PanicError
	exited           // by runtime.Goexit
)

// ended reports whether the fiber has ended. Then err returns its error.
//
//go:norace
func (f *Fiber) ended() bool { return outcome(f.outcome.Load()) > awaited }

//go:norace
func (f *Fiber) err() error {
	if f.failed == nil {
		return nil
	}
	return *f.failed
}

// role says how a fiber differs from the usual one, a child that a worker runs. It is a set of bits.
type role uint8

const (
	mainRole    role = 1 << iota // runs the body of its nursery; is not a child of it
	onGoroutine                  // runs on a goroutine of its own: it is the first field of a goChild
	isolated                     // its failure does not cancel its siblings
	bornWaiting                  // its spawner makes it wait before it has run: see async
)

//go:norace
func (f *Fiber) isMain() bool { return f.role&mainRole != 0 }

// FiberOption is an option of [Nursery.Go] and of the functions that call it.
type FiberOption struct {
	fiber *Fiber  // the memory for it, unless it runs on a goroutine
	pc    uintptr // where the fiber was spawned, if not at the call of Go
	index int32   // the index plus 1; 0: none
	role  role
}

// WithIsolatedFailure keeps the failure of a child from cancelling its siblings. The failure is still reported:
// [Fiber.Wait] returns the error, and Run returns or panics with it when all fibers have ended. A nursery whose
// children all have the option runs each of them to its end.
func WithIsolatedFailure() FiberOption { return FiberOption{role: isolated} }

// WithIndex numbers fibers that share a name. The name of the fiber includes the number, which must not be negative and
// must fit in 31 bits.
func WithIndex(i int) FiberOption {
	if i < 0 || i >= math.MaxInt32 {
		panic("coir: WithIndex(" + strconv.Itoa(i) + ") is negative or too large")
	}
	return FiberOption{index: int32(i) + 1}
}

// WithSpawnSite says where the fiber was spawned, if not at the call of Go: pc is a program counter of
// [runtime.Callers]. It is for authors of types that start fibers for their users. Then reports and snapshots show the
// line of the user.
func WithSpawnSite(pc uintptr) FiberOption { return FiberOption{pc: pc} }

// add applies opts to s.
//
//go:norace
func (s *FiberOption) add(opts []FiberOption) {
	for _, o := range opts {
		if o.index != 0 {
			s.index = o.index
		}
		if o.pc != 0 {
			s.pc, s.fiber = o.pc, o.fiber
		}
		s.role |= o.role
	}
}

// State says what a fiber is doing.
type State int

// The states of a fiber.
const (
	StatePending State = iota // has not begun
	StateActive               // runs, or would if there were a free worker
	StateWaiting              // waits for something
	StateEnded
)

func (s State) String() string { return [...]string{"pending", "active", "waiting", "ended"}[s] }

// State returns what the fiber is doing at this moment.
//
//go:norace
func (f *Fiber) State() State {
	race.Disable()
	defer race.Enable()
	if f.ended() {
		return StateEnded
	}
	if c := f.goChild(); c != nil {
		return c.state()
	}
	switch f.task.State() {
	case park.Parked, park.Parking:
		return StateWaiting
	}
	if !f.task.Started() {
		return StatePending
	}
	return StateActive
}

// ID returns a number that no other fiber of the process has. It differs from run to run, and under package sim from
// schedule to schedule, so a program must not make decisions by it.
//
//go:norace
func (f *Fiber) ID() uint64 { return f.id }

// Name returns the fiber's name, with its index if it has one.
//
//go:norace
func (f *Fiber) Name() string {
	// Spec: FB-09 (a fiber has a name, a nursery and a state)
	if f.index == 0 {
		return f.name
	}
	return f.name + "[" + strconv.Itoa(int(f.index)-1) + "]"
}

// String returns a short description of the fiber: its name, its number and what it is doing. It may be called at any
// time.
//
//go:norace
func (f *Fiber) String() string {
	return "coir.Fiber(" + f.Name() + ", #" + strconv.FormatUint(f.id, 10) + ", " + f.State().String() + ")"
}

// SpawnSite returns where the fiber was spawned, as file:line. It is empty for the fiber that runs the body of a Run.
//
//go:norace
func (f *Fiber) SpawnSite() string {
	if f.pc == 0 {
		return "" // the body of a Run
	}
	frame, _ := runtime.CallersFrames([]uintptr{f.pc}).Next()
	return fmt.Sprintf("%s:%d", frame.File, frame.Line)
}

// Self returns the fiber that calls it, or nil in a goroutine that is no child of a nursery: see [OnGoroutine].
func Self(ctx context.Context) *Fiber {
	if f := resolve(ctx).f; f != nil {
		return f
	}
	return childHere()
}

// Wait waits until the fiber has ended and returns its error: that of its function, a [*PanicError], or [ErrGoexit]. It
// returns earlier with an error of ctx if ctx ends. If ctx has already ended, Wait returns that error immediately, even
// if the fiber has ended too.
//
// So an error that is [ErrTimeout] may be that of ctx, under [WithTimeout], or the fiber's own. To tell them apart, use
// the index of a select: 0 is the fiber's end, 1 the time, -1 the end of ctx.
//
//	i, err := coir.Select(ctx, f.DoneCase(&failed), coir.After(d))
//
// While it waits for another fiber, a fiber gives up its place under [Nursery.Limit]. A fiber that waits for itself
// gets an error.
//
//go:norace
func (f *Fiber) Wait(ctx context.Context) error {
	// Spec: FB-17 (a join is a wait like any other)
	// Spec: NU-19 (every joiner gets the same error)
	// Spec: NU-20 (a join cut short leaves the fiber running)
	self, sc := ownFiber(ctx)
	if self == nil || self == f {
		return f.waitSlow(ctx)
	}
	if self.simulated {
		self.step(policy.Op{Kind: policy.Wait, Object: f.id, Name: f.name})
	}
	if race.Enabled {
		_ = f.nursery // a nil fiber fails here, before synchronisation is hidden
	}
	race.Disable()
	r, parks := f.beginWait(self, sc)
	if parks {
		r = self.task.ParkFor(&f.task, nil)
		f.endWait(self, r)
	}
	race.Enable()
	if r != park.Data {
		self.tellEnding(sc)
	}
	return f.waited(r, sc)
}

// beginWait begins a wait of self for f under sc. If there is nothing to wait for, it returns the reason and false.
//
//go:noinline
//go:norace
func (f *Fiber) beginWait(self *Fiber, sc *scope) (park.Reason, bool) {
	if sc.done() {
		return park.Cancelled, false
	}
	t := self.arm(sc, (*fiberEnd)(f))
	if !f.addJoiner(self.task.Kit().Event(), &self.task.Parker, t) {
		self.task.Disarm()
		self.charge()
		return park.Data, false
	}
	if !self.shouldPark(sc) {
		f.removeJoiner(self.task.Kit().Event())
		return park.Cancelled, false
	}
	self.leavePlace()
	return park.None, true
}

//go:noinline
//go:norace
func (f *Fiber) endWait(self *Fiber, r park.Reason) {
	if r != park.Data {
		f.removeJoiner(self.task.Kit().Event())
	}
	self.takePlace(r == park.Data)
}

// addJoiner registers a wait for the fiber's end. It reports false if the fiber has ended. It marks the fiber as
// awaited under mu, before it pushes the node. So if finish sees the mark, it finds the node once it has the lock.
//
// Guarded by TestExploreWaitAgainstEnd.
//
//go:norace
func (f *Fiber) addJoiner(node *wait.Node, p *park.Parker, t park.Ticket) bool {
	f.mu.Lock()
	ok := f.outcome.CompareAndSwap(uint32(running), uint32(awaited)) || !f.ended()
	if ok {
		f.joiners.Push(node, p, t)
	}
	f.mu.Unlock()
	return ok
}

// removeJoiner removes a joiner that no longer waits.
//
//go:norace
func (f *Fiber) removeJoiner(node *wait.Node) {
	f.mu.Lock()
	f.joiners.Withdraw(node)
	f.mu.Unlock()
}

// waited returns the result of a wait for f that ended for r.
//
//go:norace
func (f *Fiber) waited(r park.Reason, sc *scope) error {
	if r == park.Data {
		race.Acquire(unsafe.Pointer(f))
		return f.err()
	}
	return sc.ending().op
}

// waitSlow is Wait for every other caller.
//
//go:noinline
//go:norace
func (f *Fiber) waitSlow(ctx context.Context) error {
	c := resolve(ctx)
	if c.f == f || c.f == nil && childHere() == f {
		return fmt.Errorf("coir: fiber %s waits for itself", f.Name())
	}
	c.announce(policy.Op{Kind: policy.Wait, Object: f.id, Name: f.name})
	if e := c.refused(); e != nil {
		return e.op
	}
	race.Disable()
	r := f.join(&c)
	race.Enable()
	if r == park.Data {
		race.Acquire(unsafe.Pointer(f))
		return f.err()
	}
	return c.cancelled().op
}

// join waits for the fiber's end. It serves every caller.
//
//go:norace
func (f *Fiber) join(c *caller) park.Reason {
	w := c.waiter()
	defer w.done()
	t := c.arm(&w, (*fiberEnd)(f))
	if !f.addJoiner(w.kit.Event(), w.p, t) {
		w.p.Disarm() // even if a cancel came first: there is no wait
		return park.Data
	}
	c.f.leavePlace()
	r := c.await(&w, t, never)
	if r != park.Data {
		f.removeJoiner(w.kit.Event())
	}
	c.f.takePlace(r == park.Data)
	return r
}

// cancelWait wakes the fiber if it waits under sc.
//
// Spec: FB-16 (a cancelled fiber is woken by the ordinary claim)
// Spec: PK-34 (cancellation is a wake like any other)
//
//go:norace
func (f *Fiber) cancelWait(sc *scope, here *sched.Worker) {
	t, waits := f.task.Waiting()
	if !waits {
		return
	}
	if f.waiting.Load() == sc {
		f.task.Wake(t, park.Cancelled, here)
	}
}

// thunk is a fiber as the scheduler sees it. It is the same object: only the methods differ.
type thunk Fiber

// thunkOf finds the fiber of a task.
func thunkOf(t *sched.Task) sched.Thunk { return (*thunk)(fiberOf(t)) }

// groupOf returns the group of a fiber, which is its nursery: see sched.Task.ParkFor.
//
//go:norace
func groupOf(t *sched.Task) unsafe.Pointer { return unsafe.Pointer(fiberOf(t).nursery) }

// RunThunk implements sched.Thunk.
func (th *thunk) RunThunk() {
	f := (*Fiber)(th)
	race.Acquire(unsafe.Pointer(&f.fn))
	if f.simulated {
		f.step(policy.Op{Kind: policy.Start, Object: f.id, Name: f.name, In: f.nursery.id()})
	}
	if bubble.Explored != nil {
		bubble.Explored.CoirFiber(f.Name(), f.id, f.said)
	}
	fn := f.fn
	f.fn = nil // a program that keeps the fiber need not keep what its function captured
	err := fn((*fiberContext)(f))
	f.finish(returned, err)
}

// Panicked implements sched.Thunk.
//
// Spec: FB-24 (a panic is recovered in its fiber)
func (th *thunk) Panicked(value any, stack []byte) {
	f := (*Fiber)(th)
	pe := panicError(f, value, stack)
	if u, ok := f.err().(*unreported); ok { // in a deferred function, during a Goexit
		pe = pe.with(slices.Concat(u.panics, u.errs))
	}
	f.finish(panicked, pe)
}

// Exited implements sched.Thunk.
func (th *thunk) Exited() {
	f := (*Fiber)(th)
	u, _ := f.err().(*unreported)
	switch {
	case u == nil:
		f.finish(exited, ErrGoexit)
	case len(u.panics) > 0:
		f.finish(panicked, u.panics[0].(*PanicError).with(slices.Concat(u.panics[1:], u.errs)))
	default:
		f.finish(exited, u)
	}
}

// unreported holds the failures in nurseries of a fiber whose Goexit keeps their Run from returning. It becomes the
// fiber's error when the fiber ends. Panics and errors are kept apart because a function may return a *PanicError as an
// error.
type unreported struct {
	panics []error // each is a *PanicError
	errs   []error
}

func (u *unreported) Error() string   { return joined(u.Unwrap()).Error() }
func (u *unreported) Unwrap() []error { return append([]error{ErrGoexit}, u.errs...) }

// reportLater keeps failures until the end of f, which is in a Goexit.
func (f *Fiber) reportLater(panics, errs []error) {
	if len(panics)+len(errs) == 0 {
		return
	}
	u, ok := f.err().(*unreported)
	if !ok {
		u = new(unreported)
		f.failed = new(error(u))
	}
	u.panics = append(u.panics, panics...)
	u.errs = append(u.errs, errs...)
}

// finish ends the fiber: it notifies the nursery, then the joiners.
//
// Spec: FB-14 (a thunk completes once, before its coroutine is free)
//
//go:norace
func (f *Fiber) finish(how outcome, err error) {
	n := f.nursery
	here := f.worker()
	if f.simulated {
		f.step(policy.Op{Kind: policy.End, Object: f.id, Name: f.name, In: n.id()})
	}
	if f.role&onGoroutine != 0 {
		n.rt.countEnded()
	}
	if o := n.rt.observer; o != nil {
		o.tell(func(o Observer) { o.FiberEnded(f, err) })
	}
	onlyExit := how == exited && err == ErrGoexit // which ends no other fiber
	if err != nil && !f.isMain() && !onlyExit {
		n.childFailed(how, err, f.role&isolated != 0, here)
	}
	race.Release(unsafe.Pointer(f))
	race.Release(unsafe.Pointer(&n.pending))
	race.Disable()
	if sc := f.waiting.Load(); sc != nil && sc != &n.scope {
		f.waitUnder(nil) // it may keep much memory alive
	}
	if err != nil {
		f.failed = new(err)
	}
	if outcome(f.outcome.Swap(uint32(how))) == awaited {
		f.wakeJoiners(here)
	}
	if f.listed || f.place {
		n.remove(f, here)
	}
	if !f.isMain() {
		n.childEnded(here)
	}
	race.Enable()
}

// wakeJoiners wakes the fiber's joiners. Joiners may leave meanwhile, but none is added.
//
//go:noinline
//go:norace
func (f *Fiber) wakeJoiners(here *sched.Worker) {
	for more := true; more; {
		var asleep *park.Parker
		f.mu.Lock()
		if n := f.joiners.Shift(); n != nil {
			_, asleep = n.Claim(park.Data)
		}
		more = !f.joiners.Empty()
		f.mu.Unlock()
		asleep.MakeReady(here)
	}
}
