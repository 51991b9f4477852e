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
// program may keep it. After the fiber has ended, the Fiber keeps its result, the context in which its nursery was
// opened, and the errors of the nursery's other fibers, but not the variables that their functions captured.
type Fiber struct {
	task      sched.Task
	nursery   *Nursery
	waitScope xatomic.Pointer[scope] // the scope whose cancellation ends the fiber's wait: see scope

	fn     func(context.Context) error
	name   string
	id     uint64
	pc     uintptr // where it was spawned
	index  int32   // the index plus 1; 0: none
	budget int32   // operations without a wait that are left until the fiber yields

	outcome   xatomic.Uint32 // an outcome; addJoiner sets awaited, under mu; finish sets how it ended, after failed
	role      role           // never changes
	place     bool           // the fiber counts against its nursery's limit
	listed    bool           // the fiber is in its nursery's ring, because it has waited under the nursery's scope
	simulated bool           // the fiber's runtime has a policy, which sees each operation
	failed    *error         // the fiber's error, if not nil; until it ends, errors not yet reported: see unreported

	prev, next *Fiber // under coldNursery.childMu

	mu      xatomic.Mutex // guards joiners; no other lock is taken under it
	joiners wait.Ring
}

// outcome tells whether and how a fiber has ended.
//
//	running --addJoiner--> awaited
//	   |                      |
//	   +-------finish---------+--> returned, panicked or exited
type outcome uint32

const (
	running  outcome = iota
	awaited          // running, and has had joiners: finish must look for them
	returned         // its function returned
	panicked         // err is a *PanicError
	exited           // its function called runtime.Goexit
)

// ended reports whether the fiber has ended. If it has, err returns its error.
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

// role is a set of bits that say how a fiber differs from an ordinary one, which is a child that a worker runs.
type role uint8

const (
	mainRole    role = 1 << iota // runs the body of its nursery, and is not a child of it
	onGoroutine                  // runs on its own goroutine, and is the first field of a goChild
	isolated                     // its failure does not cancel its siblings
	bornWaiting                  // its spawner makes it wait before it has run: see async
)

//go:norace
func (f *Fiber) isMain() bool { return f.role&mainRole != 0 }

// FiberOption is an option of [Nursery.Go] and of the functions that call it.
type FiberOption struct {
	fiber *Fiber  // the memory for the fiber, unless it runs on a goroutine
	pc    uintptr // where the fiber was spawned, if not at the call of Go
	index int32   // the index plus 1; 0: none
	role  role
}

// WithIsolatedFailure prevents the failure of a child from cancelling its siblings. The failure is still reported:
// [Fiber.Wait] returns the error, and Run returns or panics with it when all fibers have ended. In a nursery whose
// children all have this option, each child runs to its end.
func WithIsolatedFailure() FiberOption { return FiberOption{role: isolated} }

// WithIndex numbers fibers that share a name. The fiber's name then includes the number, which must be at least 0 and
// less than 1<<31 - 1.
func WithIndex(i int) FiberOption {
	if i < 0 || i >= math.MaxInt32 {
		panic("coir: WithIndex(" + strconv.Itoa(i) + ") is negative or too large")
	}
	return FiberOption{index: int32(i) + 1}
}

// WithSpawnSite sets the place where the fiber was spawned, in place of the call of Go. pc is a program counter of
// [runtime.Callers]. It is for types that start fibers for their users: reports and snapshots then show the user's
// line.
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

// State tells what a fiber is doing.
type State int

// The states of a fiber.
const (
	StatePending State = iota // has not started
	StateActive               // running, or waiting for a free worker
	StateWaiting              // waiting for something
	StateEnded
)

func (s State) String() string { return [...]string{"pending", "active", "waiting", "ended"}[s] }

// State returns what the fiber is doing now.
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

// ID returns a number that is unique among the fibers of the process. It differs from run to run, and under package sim
// from schedule to schedule, so a program must not base decisions on it.
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

// Self returns the calling fiber, or nil in a goroutine that is not a child of a nursery: see [WithGoroutine].
func Self(ctx context.Context) *Fiber {
	if f := resolve(ctx).f; f != nil {
		return f
	}
	return childHere()
}

// Wait waits until the fiber has ended and returns its error: the error that its function returned, a [*PanicError], or
// [ErrGoexit]. If ctx ends first, Wait returns ctx's error. If ctx has already ended, Wait returns that error
// immediately, even if the fiber has ended too.
//
// An error that is [ErrTimeout] may therefore come from ctx, under [WithTimeout], or from the fiber. To tell them
// apart, use the index that a select returns: 0 for the end of the fiber, 1 for the time limit, -1 for the end of ctx.
//
//	i, err := coir.Select(ctx, f.DoneCase(&failed), coir.After(d))
//
// While a fiber waits for another fiber, it gives up its place under [Nursery.Limit]. If a fiber waits for itself, Wait
// returns an error.
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
		_ = f.nursery // panics here if the fiber is nil, before synchronisation is hidden
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

// beginWait starts a wait of self for f under sc. If there is nothing to wait for, it returns the reason and false.
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

// addJoiner registers a wait for the end of the fiber. It returns false if the fiber has ended. Under mu, it marks the
// fiber as awaited before it adds the node. So if finish sees the mark, it finds the node when it has taken the lock.
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

// removeJoiner removes a joiner that has stopped waiting.
//
//go:norace
func (f *Fiber) removeJoiner(node *wait.Node) {
	f.mu.Lock()
	f.joiners.Withdraw(node)
	f.mu.Unlock()
}

// waited returns the result of a wait for f under sc that ended with reason r.
//
//go:norace
func (f *Fiber) waited(r park.Reason, sc *scope) error {
	if r == park.Data {
		race.Acquire(unsafe.Pointer(f))
		return f.err()
	}
	return sc.ending().op
}

// waitSlow implements Wait for all other callers.
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

// join waits for the end of the fiber. It serves every kind of caller.
//
//go:norace
func (f *Fiber) join(c *caller) park.Reason {
	w := c.waiter()
	defer w.done()
	t := c.arm(&w, (*fiberEnd)(f))
	if !f.addJoiner(w.kit.Event(), w.p, t) {
		w.p.Disarm() // even if a cancellation came first, there is no wait
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
	if f.waitScope.Load() == sc {
		f.task.Wake(t, park.Cancelled, here)
	}
}

// thunk is a Fiber with the methods that the scheduler uses. It is the same object.
type thunk Fiber

// thunkOf returns the fiber of a task, as a thunk.
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
	f.fn = nil // so that a program that keeps the fiber does not keep the variables that its function captured
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

// unreported holds failures in a fiber's nurseries that Run could not return because of a Goexit. It becomes the
// fiber's error when the fiber ends. Panics and errors are separate because a function may also return a *PanicError as
// an error.
type unreported struct {
	panics []error // each is a *PanicError
	errs   []error
}

func (u *unreported) Error() string   { return joined(u.Unwrap()).Error() }
func (u *unreported) Unwrap() []error { return append([]error{ErrGoexit}, u.errs...) }

// reportLater keeps failures until the end of f, which is unwinding for a Goexit.
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

// finish ends the fiber. It passes a failure to the nursery, then wakes the joiners, and last counts the fiber as
// ended. From then on the nursery may close.
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
	onlyExit := how == exited && err == ErrGoexit // a Goexit without other failures fails no other fiber
	if err != nil && !f.isMain() && !onlyExit {
		n.childFailed(how, err, f.role&isolated != 0, here)
	}
	race.Release(unsafe.Pointer(f))
	race.Release(unsafe.Pointer(&n.pending))
	race.Disable()
	if sc := f.waitScope.Load(); sc != nil && sc != &n.scope {
		f.waitUnder(nil) // so that f does not keep the memory of that scope alive
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

// wakeJoiners wakes the fiber's joiners. During the call, joiners may leave, but no joiner is added.
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
