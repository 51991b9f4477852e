package coir

import (
	"context"
	"errors"
	"math"
	"runtime/debug"
	"slices"
	"strconv"
	"unsafe"

	"github.com/coir-go/coir/internal/bubble"
	"github.com/coir-go/coir/internal/channel"
	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/invariant"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/sched"
	"github.com/coir-go/coir/internal/xatomic"
)

// Nursery owns fibers. No fiber outlives the [Run] that opened its nursery.
//
// The first child that fails cancels its siblings, unless it has [WithIsolatedFailure]. Run returns the errors of all
// children, joined, with the first failure first. It omits errors that only report that the nursery was cancelled. If
// there are no other errors, Run returns one of these, or nil if the nursery was stopped on purpose, by
// [Nursery.Cancel] with a nil cause. If a child panics, Run panics.
type Nursery struct {
	scope

	// pending counts children in steps of two: the children not counted in spawned, minus those that have ended. When
	// the owner joins, it adds twice spawned, plus 1. So pending is odd once the owner has joined. It is 1 when, in
	// addition, no child is left: the nursery is then closed. The owner counts the children that it starts in spawned,
	// which needs no atomic operation, until spawned is full. pending has 64 bits because 32 would overflow in a
	// long-lived nursery.
	pending xatomic.Int64

	first Fiber // the first child that the owner starts; most nurseries have only one, and this saves an allocation
}

// coldNursery is the state that a nursery needs only when a child waits or fails, or when the nursery has a limit or
// its runtime has a policy.
type coldNursery struct {
	coldScope
	id uint64 // for a policy, otherwise 0; unique among channels and nurseries

	childMu  xatomic.Mutex // guards the following fields; taken after channels' locks, and before the scheduler's
	children *Fiber        // the children that have waited under the nursery's scope; a ring without an anchor, or nil
	listed   int           // length of children
	errs     []error
	onlyEcho bool     // errs has one error, which only reports that the nursery was cancelled
	panics   []error  // each is a *PanicError
	limiter  *limiter // nil if there is no limit
	opener   *Fiber   // the child whose place the main fiber uses, or nil; see Runtime.run
}

//go:norace
func newNursery() *Nursery {
	n := new(Nursery)
	n.isNursery = true
	return n
}

// coldPart returns the nursery's cold part, and creates it if necessary.
//
//go:norace
func (n *Nursery) coldPart() *coldNursery { return (*coldNursery)(unsafe.Pointer(n.cold())) }

// ifCold returns the nursery's cold part, or nil if there is none.
//
//go:norace
func (n *Nursery) ifCold() *coldNursery {
	race.Disable()
	c := n.rest.Load()
	race.Enable()
	return (*coldNursery)(unsafe.Pointer(c))
}

var _ [unsafe.Offsetof(coldNursery{}.coldScope)]struct{} = [0]struct{}{}

// id returns the nursery's number for a policy, or 0 if there is no policy.
//
//go:norace
func (n *Nursery) id() uint64 {
	if c := n.ifCold(); c != nil {
		return c.id
	}
	return 0
}

// limits returns the nursery's limiter, or nil if there is no limit.
//
//go:norace
func (n *Nursery) limits() *limiter {
	if c := n.ifCold(); c != nil {
		return c.limiter
	}
	return nil
}

// Go starts a fiber that runs fn. It passes fn the fiber's own context, which ends when the nursery is cancelled or has
// ended. Errors and reports show name; several fibers may have the same name.
//
// Any fiber or goroutine may call Go until the function passed to Run has returned and the last child has ended. After
// that, Go panics.
//
//go:noinline
//go:norace
func (n *Nursery) Go(name string, fn func(ctx context.Context) error, opts ...FiberOption) *Fiber {
	// Spec: NU-04 (a child is counted before it runs)
	// Spec: NU-05 (a completed nursery takes no child)
	// Spec: FB-11 (a fiber's function is published before the fiber)
	// Spec: FB-12 (a fiber is counted before it is runnable)
	if n == nil || fn == nil {
		panic(notStarted(n, "Nursery.Go", name))
	}
	here, owner := n.callerWorker()
	if !n.rt.s.Has(here) && n.rt.inOtherBubble() {
		panic("coir: Nursery.Go(" + name + ") was called " + bubble.Here().String() + " on a nursery that was opened " +
			n.rt.s.Home().String() + ": start fibers from where the nursery is")
	}
	var by *Fiber
	if n.rt.policy != nil {
		by = n.announceGo(name)
	}
	set := FiberOption{pc: coro.CallerPC()}
	set.add(opts)
	if n.rt.policy != nil {
		set.role &^= onGoroutine // in a simulation it runs as a fiber, so that the policy decides the order
	}
	var f *Fiber
	switch {
	case !owner || n.joined || n.spawned == math.MaxUint16:
		if !n.admit() {
			panic("coir: Nursery.Go(" + name + ") after the Run that opened the nursery has returned")
		}
		f = newFiber(&set)
	case n.spawned > 0 || set.role&onGoroutine != 0 || set.fiber != nil:
		n.spawned++
		f = newFiber(&set)
	default:
		n.spawned++
		f = &n.first
	}
	f.nursery, f.fn, f.name, f.budget, f.pc = n, fn, name, budget, set.pc
	f.index, f.role = set.index, set.role
	n.prepare(f, here)
	race.Disable()
	if n.limits() == nil || f.role&bornWaiting != 0 || n.takeFirstPlace(f) {
		f.begin(here)
	}
	race.Enable()
	by.stepped()
	return f
}

// notStarted returns the text of the panic for starting a fiber with a nil nursery or a nil function.
//
//go:noinline
//go:norace
func notStarted(n *Nursery, how, name string) any {
	if n == nil {
		return "coir: " + how + "(" + name + ") on a nil *Nursery: Run opens a nursery"
	}
	return "coir: " + how + "(" + name + ") with a nil function: there is nothing to run"
}

// mustNotBeNil panics if the nursery is nil. It must be called while synchronisation is not hidden.
//
//go:norace
func (n *Nursery) mustNotBeNil(what string) {
	if n == nil {
		panic("coir: Nursery." + what + " of a nil *Nursery: Run opens a nursery")
	}
}

// admit counts a child in pending. It returns false if the nursery is closed.
//
//go:noinline
//go:norace
func (n *Nursery) admit() bool {
	race.Disable()
	defer race.Enable()
	for {
		p := n.pending.Load()
		if p == 1 {
			return false
		}
		if n.pending.CompareAndSwap(p, p+2) {
			return true
		}
	}
}

// closed reports whether the owner has joined and no child is left. After that, no child can be added.
//
//go:norace
func (n *Nursery) closed() bool { return n.pending.Load() == 1 }

// live returns the number of children that have not ended. The result is exact only if the owner calls live.
//
//go:norace
func (n *Nursery) live() int { return int(n.spawned) + int(n.pending.Load()>>1) }

// list puts the child f into the ring, where a cancellation of the nursery finds it. The child calls list before it
// arms its word for its first wait under the nursery's scope. A canceller marks the scope and then goes through the
// ring. So either the canceller finds the child in the ring, or the child entered the ring later and sees the mark when
// it checks the scope after arming.
//
// Guarded by TestExploreFirstWaitAgainstCancel.
//
//go:norace
func (n *Nursery) list(f *Fiber) {
	f.listed = true
	c := n.coldPart()
	c.childMu.Lock()
	c.listed++
	if first := c.children; first == nil {
		f.prev, f.next = f, f
		c.children = f
	} else {
		f.prev, f.next = first.prev, first
		f.prev.next, f.next.prev = f, f
	}
	c.childMu.Unlock()
}

// unlist removes a child from the ring. The caller holds the lock.
//
//go:norace
func (c *coldNursery) unlist(f *Fiber) {
	c.listed--
	if f.next == f {
		c.children = nil
	} else {
		f.prev.next, f.next.prev = f.next, f.prev
		if c.children == f {
			c.children = f.next
		}
	}
	f.prev, f.next = nil, nil
}

// prepare initialises the fiber for the scheduler.
//
//go:norace
func (n *Nursery) prepare(f *Fiber, here *sched.Worker) {
	race.Disable()
	f.id = sched.NewTaskID(here)
	race.Enable()
	f.simulated = n.rt.policy != nil
	if n.rt.labels {
		f.fn = withNames(f, f.fn)
	}
	if c := f.goChild(); c != nil {
		c.labels = coro.Labels()
	} else if !coro.Fresh {
		if labels := coro.Labels(); labels != nil {
			f.fn = labelled(labels, f.fn)
		}
	}
	race.Release(unsafe.Pointer(&f.fn))
	if f.role&onGoroutine == 0 {
		f.task.Init(n.rt.s) // in a race build, Init starts the goroutine, which is then ordered after the spawner
	}
	if o := n.rt.observer; o != nil {
		o.tell(func(o Observer) { o.FiberStarted(f) })
	}
}

// labelled returns a function that calls fn with the spawner's profiler labels. A child that runs on its own goroutine
// does not need it, because a new goroutine inherits the labels.
//
// Spec: FB-34 (labels are inherited and not left behind)
func labelled(labels unsafe.Pointer, fn func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		coro.SetLabels(labels)
		return fn(ctx)
	}
}

// callerWorker returns the worker, of any runtime, that the caller runs on, or nil if the caller is not a fiber. owner
// reports whether the caller is the fiber that opened the nursery.
//
//go:norace
func (n *Nursery) callerWorker() (w *sched.Worker, owner bool) {
	f := n.owner
	if owner = f.task.Here(); !owner {
		if f = currentFiber(); f == nil {
			return nil, false
		}
	}
	return f.task.Worker(), owner
}

// Cancel cancels the nursery: each wait under its context, or under a context derived from it, ends with an error that
// is context.Canceled and includes the cause. This includes waits in nurseries inside it. context.Cause returns the
// cause. Cancel does not make Run return an error; to do that, return one from the function or from a fiber. Fibers
// that have not started, and those started after Cancel, still run, in a cancelled context.
//
// A nil cause means that the nursery is stopped on purpose: Run then omits errors that only report a cancellation.
// These include an error that wraps one, and the error of another scope that was cancelled without a cause. To make Run
// return such an error, give that scope a cause, or join the error with one of your own by errors.Join.
func (n *Nursery) Cancel(cause error) {
	n.mustNotBeNil("Cancel")
	e := onPurpose
	if cause != nil {
		e = canceledFor(cause)
	}
	n.cancelFor(e)
}

// cancelFor announces the cancellation to the policy, if there is one, and cancels the nursery.
func (n *Nursery) cancelFor(e *ending) {
	var by *Fiber
	if n.rt.policy != nil {
		by = announce(n.rt, policy.Op{Kind: policy.Cancel, Object: n.id()})
	}
	here, _ := n.callerWorker()
	n.cancel(e, here)
	by.stepped()
}

// String returns a short description of the nursery: the fiber that opened it, and how many of its children have not
// ended.
//
//go:norace
func (n *Nursery) String() string {
	owner := n.owner.Name()
	race.Disable()
	live := n.live()
	race.Enable()
	return "coir.Nursery(of " + owner + ", fibers: " + strconv.Itoa(live) + ")"
}

// remove takes an ended child out of the ring, and passes its place on to the next child in line.
//
//go:noinline
//go:norace
func (n *Nursery) remove(f *Fiber, here *sched.Worker) {
	c := n.coldPart()
	c.childMu.Lock()
	if f.listed {
		c.unlist(f)
	}
	if f.place && !f.isMain() {
		n.release(here)
	}
	c.childMu.Unlock()
}

// childFailed records the error of a child that has ended, and cancels its siblings unless its failure is isolated.
//
// Spec: NU-11 (a child's error cancels its siblings)
// Spec: NU-23 (an isolated failure cancels no sibling)
//
//go:norace
func (n *Nursery) childFailed(how outcome, err error, alone bool, here *sched.Worker) {
	if how == panicked {
		n.addPanic(err, false)
	} else {
		n.addError(err)
	}
	if !alone {
		n.cancel(canceledFor(err), here)
	}
}

// addPanic keeps a *PanicError for Run. It uses neither append nor package slices, because the race detector would see
// their memory accesses but not the lock.
//
//go:norace
func (n *Nursery) addPanic(err error, first bool) {
	c := n.coldPart()
	race.Disable()
	c.childMu.Lock()
	all, at := c.panics, len(c.panics)
	if at == cap(all) {
		all = make([]error, at, max(4, 2*at))
		for i, e := range c.panics { //nolint:staticcheck // the race detector would see the accesses of copy
			all[i] = e
		}
	}
	all = all[:at+1]
	for ; first && at > 0; at-- {
		all[at] = all[at-1]
	}
	all[at] = err
	c.panics = all
	c.childMu.Unlock()
	race.Enable()
}

// addError keeps an error for Run to return. If err only reports the cancellation of the nursery, any other error
// replaces it.
//
//go:norace
func (n *Nursery) addError(err error) {
	known := false
	n.tie()
	if n.state.Load() == scopeCancelled {
		e := n.ending()
		known = e.echoedBy(err) // not under the lock, because it calls methods of the user's error
		if known && err == e.err {
			err = e.op // e.op includes the cause, and is ErrTimeout for a timeout, unlike ctx.Err()
		}
	}
	c := n.coldPart()
	race.Disable()
	c.childMu.Lock()
	switch {
	case len(c.errs) == 0:
		c.errs, c.onlyEcho = append(c.errs, err), known
	case known:
	case c.onlyEcho:
		c.errs[0], c.onlyEcho = err, false
	default:
		c.errs = append(c.errs, err)
	}
	c.childMu.Unlock()
	race.Enable()
}

// echoedBy reports whether every part of err only reports that a scope ended because of e.
func (e *ending) echoedBy(err error) bool {
	switch x := err.(type) {
	case *canceledError: // perhaps the error of a derived context, which ended for the same cause
		return e.err == context.Canceled && (x.cause == nil || e.cause != nil && errors.Is(x.cause, e.cause))
	case *timeoutError:
		return e.err == context.DeadlineExceeded
	case *PanicError:
		return false
	case interface{ Unwrap() error }:
		in := x.Unwrap()
		return in != nil && e.echoedBy(in)
	case interface{ Unwrap() []error }:
		all := x.Unwrap()
		return len(all) > 0 && !slices.ContainsFunc(all, func(in error) bool { return !e.echoedBy(in) })
	case interface{ Is(error) bool }: // like some errors of package net
		return x.Is(context.Canceled)
	}
	return err == context.Canceled || err == e.err
}

// cancelWaits wakes every child that waits under the nursery's scope. It does so without the lock, because children
// need the lock in order to end. A child that waits later sees that the scope is cancelled.
//
// Spec: NU-08 (cancel wakes each child once)
// Spec: NU-22 (a cancel costs one claim a child)
//
//go:norace
func (n *Nursery) cancelWaits(here *sched.Worker) {
	var few [16]*Fiber
	fs := few[:]
	c := n.coldPart()
	c.childMu.Lock()
	if c.listed > len(fs) {
		fs = make([]*Fiber, c.listed)
	}
	i := 0
	if f := c.children; f != nil {
		for {
			fs[i] = f
			i++
			if f = f.next; f == c.children {
				break
			}
		}
	}
	c.childMu.Unlock()
	for _, f := range fs[:i] {
		f.cancelWait(&n.scope, here)
	}
}

// Run opens a nursery, calls fn, and returns when fn and every fiber started in the nursery have ended. The context
// passed to fn is the nursery's: it ends when the nursery is cancelled.
//
// If a goroutine calls Run, fn runs as a fiber of the default runtime, and the goroutine waits. If a fiber calls Run,
// fn runs in that fiber. When ctx ends, the nursery is cancelled. In a fiber, pass the fiber's own context or one
// derived from it: otherwise the cancellation of an outer nursery does not reach this one.
//
// Run returns the error of fn and those of the children, joined, with the first failure first. If the nursery was
// cancelled, but fn and all fibers return nil, Run returns nil. If fn or a child panics, Run panics with a
// [*PanicError] once all fibers have ended. If fn calls runtime.Goexit, Run calls it too once all fibers have ended,
// unless a child has panicked. If a child calls runtime.Goexit, only that child ends: the nursery is not cancelled, and
// only [Fiber.Wait] reports [ErrGoexit].
func Run(ctx context.Context, fn func(ctx context.Context, n *Nursery) error) error {
	return run(ctx, nil, fn)
}

// open creates a nursery owned by the calling fiber. In a goroutine it returns nil.
//
//go:norace
func open(ctx context.Context) *Nursery {
	f, sc := ownFiber(ctx)
	if f == nil {
		c := resolve(ctx)
		if c.f == nil {
			return nil
		}
		f, sc = c.f, c.sc
	}
	var n *Nursery
	if rt := f.nursery.rt; sc != nil {
		// This is init, inlined by hand: the compiler then knows that no write barriers are needed.
		n = &Nursery{scope: scope{up: ctx, rt: rt, owner: f, parent: sc, isNursery: true}}
	} else {
		n = newNursery()
		n.init(ctx, rt, nil, f)
	}
	if f.simulated {
		n.coldPart().id = channel.NewObjectID()
	}
	return n
}

// run runs body in the nursery n, in the fiber that owns n. If n is nil, run opens a nursery. Run is inlined into its
// callers, so that each nested nursery needs one stack frame of coir, not two: the garbage collector scans stacks, and
// large stacks have to grow.
func run(ctx context.Context, n *Nursery, body func(context.Context, *Nursery) error) error {
	// Spec: NU-02 (Run returns when its nursery is complete)
	// Spec: NU-03 (a child lives within its parent)
	if body == nil {
		panic(noFunction("Run"))
	}
	if n == nil {
		if n = open(ctx); n == nil {
			return runOutside(ctx, body)
		}
	}
	returned := false
	defer func() {
		if !returned { // fn panicked, or called Goexit
			n.abandoned(recover())
		}
	}()
	err := body((*scopeContext)(&n.scope), n)
	returned = true
	if err != nil {
		n.addError(err)
		n.cancelFor(canceledFor(err))
	}
	n.join()
	return n.result()
}

// noFunction returns the panic text for a nil function argument.
//
//go:noinline
func noFunction(of string) any {
	return "coir: " + of + " with a nil function: there is nothing to call"
}

// runOutside implements Run for a goroutine.
func runOutside(ctx context.Context, fn func(context.Context, *Nursery) error) error {
	c := resolve(ctx)
	if child := childHere(); child != nil {
		return child.nursery.rt.run(&c, fn)
	}
	return defaultRuntime().run(&c, fn)
}

// abandoned ends a nursery whose function has panicked with v, or has called Goexit, in which case v is nil. It waits
// for all children. After a panic, of the function or of a child, abandoned panics. After a Goexit without a panic it
// returns, and the Goexit continues.
func (n *Nursery) abandoned(v any) {
	if v != nil {
		n.addPanic(panicError(n.owner, v, debug.Stack()), true) // the function's own panic comes first
	}
	n.cancelFor(plainCancel)
	n.join()
	if v != nil {
		panic(n.failure())
	}
	c := n.coldPart()
	if c.onlyEcho { // the echo of the cancellation above, or of an outer one that reports its own cause
		c.errs = nil
	}
	// A panic here would be lost: its recovery does not stop the Goexit.
	n.owner.reportLater(c.panics, c.errs)
}

// join waits until every child has ended, and closes the nursery.
//
// Spec: NU-01 (a nursery completes after every child)
//
//go:norace
func (n *Nursery) join() {
	f := n.owner
	if f.simulated {
		n.stepJoin()
	}
	race.Disable()
	if own := n.closeEmpty(); own == 0 {
		// No child is left.
	} else if f.place {
		n.joinPlaced(own)
	} else if n.beginJoin(own) {
		f.task.ParkFor(nil, unsafe.Pointer(n)) // the last child closes the nursery
	}
	race.Enable()
	race.Acquire(unsafe.Pointer(&n.pending))
	n.endJoined()
}

// stepJoin announces a join to the policy. It is not inlined, because the frame of join must stay small: it is on the
// stack of every fiber that joins.
//
//go:noinline
//go:norace
func (n *Nursery) stepJoin() { n.owner.step(policy.Op{Kind: policy.Join, Object: n.id()}) }

// joinPlaced waits for the children on behalf of join, in a fiber that has a place under a limit. The fiber gives up
// that place while it waits.
//
//go:noinline
//go:norace
func (n *Nursery) joinPlaced(own int64) {
	f := n.owner
	f.leavePlace()
	defer f.regainPlace()
	if n.beginJoin(own) {
		f.task.ParkFor(nil, unsafe.Pointer(n))
	}
}

// closeEmpty closes the nursery and returns 0 if no child is left. Otherwise it returns the number that the owner must
// add to pending.
//
//go:norace
func (n *Nursery) closeEmpty() int64 {
	own := 2*int64(n.spawned) + 1
	n.spawned, n.joined = 0, true
	if p := n.pending.Load(); p+own == 1 && n.pending.CompareAndSwap(p, 1) {
		return 0
	}
	return own
}

// beginJoin reports whether the owner must park. The owner arms its parker before it adds own to pending, so the child
// that brings pending to 1 finds the owner armed. If no child is left, the owner's own addition brings pending to 1,
// and the owner need not park.
//
// Guarded by TestExploreJoinAgainstEnd.
//
//go:norace
func (n *Nursery) beginJoin(own int64) bool {
	f := n.owner
	f.arm(noInterrupt, (*toJoin)(n)) // a cancellation does not end this wait: it makes the children end
	if n.pending.Add(own) == 1 {
		f.task.Disarm()
		return false
	}
	return true
}

// childEnded counts a child that has ended. The last child wakes the owner if it is waiting. The caller must not touch
// the nursery afterwards.
//
//go:norace
func (n *Nursery) childEnded(here *sched.Worker) {
	if n.pending.Add(-2) == 1 {
		p := &n.owner.task.Parker
		t, waits := p.Waiting()
		if invariant.Enabled {
			invariant.Check(waits, "the last child of a nursery has ended, and its owner does not wait")
		}
		switch {
		case p.Claim(t, park.Data) != park.Asleep:
		case here == nil:
			p.MakeReady(nil)
		default:
			here.Ready(p)
		}
	}
}

// result returns Run's result, or panics with it.
//
//go:norace
func (n *Nursery) result() error {
	// Spec: NU-12 (Run returns every child's error)
	// Spec: NU-13 (a child's panic is raised from Run)
	c := n.ifCold()
	if c == nil || len(c.errs)+len(c.panics) == 0 {
		return nil
	}
	err := n.failure()
	if len(c.panics) > 0 {
		panic(err)
	}
	return err
}

// failure returns the failures of a nursery that has ended: a *PanicError if there was a panic, otherwise the errors,
// joined.
//
//go:norace
func (n *Nursery) failure() error {
	c := n.coldPart()
	errs, panics := c.errs, c.panics
	if c.onlyEcho && (c.how == onPurpose || len(panics) > 0) {
		errs = nil
	}
	if len(panics) > 0 {
		return panics[0].(*PanicError).with(slices.Concat(panics[1:], errs))
	}
	return joined(errs)
}

// joined is errors.Join, except that it returns a single error unchanged.
func joined(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
