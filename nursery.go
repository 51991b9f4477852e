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

// Nursery owns fibers: none outlives the [Run] that opened it.
//
// The first child that fails cancels its siblings, unless it has [WithIsolatedFailure]. Run returns every child's
// error, joined, the first one first; errors that only say that the nursery was cancelled are left out. If there are no
// others, Run returns one of them, or nil if the nursery was stopped on purpose, by [Nursery.Cancel] with a nil cause.
// If a child panics, Run panics.
type Nursery struct {
	scope

	// pending counts children in steps of two: the children that are not counted in spawned, less those that have
	// ended. When the owner joins, it adds those in spawned, and 1. So pending is odd once the owner has joined, and 1
	// when no child is left: then the nursery is closed. The owner counts its children in spawned, which needs no
	// atomic, until spawned is full. pending has 64 bits because a long-lived nursery would overflow 32.
	pending xatomic.Int64

	first Fiber // the first child that the owner starts: most nurseries have one, and this saves it an allocation
}

// coldNursery is the state that a nursery needs once a child waits or fails, or with a limit or a policy.
type coldNursery struct {
	coldScope
	id uint64 // for a policy; 0 without one. Unique among channels and nurseries

	mu       xatomic.Mutex // guards what follows; taken before the scheduler's locks, after those of channels
	children *Fiber        // those that have waited under the nursery's scope: a ring without an anchor; nil if empty
	listed   int           // number of those
	errs     []error
	onlyEcho bool     // errs is one error that only says that the nursery was cancelled
	panics   []error  // each is a *PanicError
	limiter  *limiter // nil: no limit
	opener   *Fiber   // the child whose place the main fiber uses, or nil: see Runtime.run
}

//go:norace
func newNursery() *Nursery {
	n := new(Nursery)
	n.isNursery = true
	return n
}

// more returns the nursery's cold part, and creates it if there is none.
//
//go:norace
func (n *Nursery) more() *coldNursery { return (*coldNursery)(unsafe.Pointer(n.cold())) }

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

// id returns the nursery's number for a policy, or 0 without one.
//
//go:norace
func (n *Nursery) id() uint64 {
	if c := n.ifCold(); c != nil {
		return c.id
	}
	return 0
}

// limits returns the nursery's limiter, or nil.
//
//go:norace
func (n *Nursery) limits() *limiter {
	if c := n.ifCold(); c != nil {
		return c.limiter
	}
	return nil
}

// Go starts a fiber that runs fn. fn gets the fiber's own context, which ends when the nursery is cancelled or has
// ended. Fibers may share a name: errors and reports show it.
//
// Any fiber or goroutine may call Go until the function of the nursery's Run has returned and the last child has ended;
// after that Go panics.
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
		set.role &^= onGoroutine // a simulation runs it as a fiber, to decide the order
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

// notStarted returns the panic text for starting a fiber with a nil nursery or function.
//
//go:noinline
//go:norace
func notStarted(n *Nursery, how, name string) any {
	if n == nil {
		return "coir: " + how + "(" + name + ") on a nil *Nursery: Run opens a nursery"
	}
	return "coir: " + how + "(" + name + ") with a nil function: there is nothing to run"
}

// mustBe panics if the nursery is nil. It is called before synchronisation is hidden.
//
//go:norace
func (n *Nursery) mustBe(what string) {
	if n == nil {
		panic("coir: Nursery." + what + " of a nil *Nursery: Run opens a nursery")
	}
}

// admit counts a child in pending. It reports false if the nursery is closed.
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

// closed reports whether the owner has joined and no child is left. No child can be added then.
//
//go:norace
func (n *Nursery) closed() bool { return n.pending.Load() == 1 }

// live returns how many children have not ended. The result is exact only if the owner calls it.
//
//go:norace
func (n *Nursery) live() int { return int(n.spawned) + int(n.pending.Load()>>1) }

// list puts a child into the ring, where a cancel of the nursery finds it. The child itself calls it, before it arms
// the first wait under the nursery's scope. A cancel marks the scope and then goes through the ring. So either the
// cancel finds the child there, or the child came later and sees the mark when it checks the scope after arming.
//
// Guarded by TestExploreFirstWaitAgainstCancel.
//
//go:norace
func (n *Nursery) list(f *Fiber) {
	f.listed = true
	c := n.more()
	c.mu.Lock()
	c.listed++
	if first := c.children; first == nil {
		f.prev, f.next = f, f
		c.children = f
	} else {
		f.prev, f.next = first.prev, first
		f.prev.next, f.next.prev = f, f
	}
	c.mu.Unlock()
}

// unlist takes a child out of the ring. The caller holds the lock.
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

// prepare initializes the fiber for the scheduler.
//
//go:norace
func (n *Nursery) prepare(f *Fiber, here *sched.Worker) {
	race.Disable()
	f.id = sched.NewID(here)
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
		f.task.Init(n.rt.s) // in a race build this starts the goroutine, ordered after the spawner
	}
	if o := n.rt.observer; o != nil {
		o.tell(func(o Observer) { o.FiberStarted(f) })
	}
}

// labelled returns a function that calls fn with the spawner's profiler labels. A fiber with a goroutine of its own
// inherits them instead.
//
// Spec: FB-34 (labels are inherited and not left behind)
func labelled(labels unsafe.Pointer, fn func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		coro.SetLabels(labels)
		return fn(ctx)
	}
}

// callerWorker returns the worker that the caller runs on, of any runtime, or nil if the caller is not a fiber. owner
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

// Cancel cancels the nursery: every wait under its context or one derived from it, in its fibers and in nurseries
// inside it, ends with an error that is context.Canceled and shows the cause. context.Cause returns the cause. To make
// Run return an error, return it from the function or a fiber. Fibers that have not begun, and those started after the
// cancel, still run, in a cancelled context.
//
// A nil cause means that the nursery is stopped on purpose: Run then returns no error that only says that something was
// cancelled. That includes an error that wraps one, and one of another scope that was cancelled without a cause: to
// have it returned, give that scope a cause, or join it with an error of your own by errors.Join.
func (n *Nursery) Cancel(cause error) {
	n.mustBe("Cancel")
	e := onPurpose
	if cause != nil {
		e = canceledFor(cause)
	}
	n.cancelFor(e)
}

// cancelFor announces the cancel to the policy, if there is one, and cancels the nursery.
func (n *Nursery) cancelFor(e *ending) {
	var by *Fiber
	if n.rt.policy != nil {
		by = announce(n.rt, policy.Op{Kind: policy.Cancel, Object: n.id()})
	}
	here, _ := n.callerWorker()
	n.cancel(e, here)
	by.stepped()
}

// String returns a short description of the nursery: the fiber that opened it, and how many of its fibers have not
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

// remove takes an ended child out of the ring, and passes its place on to the next in line.
//
//go:noinline
//go:norace
func (n *Nursery) remove(f *Fiber, here *sched.Worker) {
	c := n.more()
	c.mu.Lock()
	if f.listed {
		c.unlist(f)
	}
	if f.place && !f.isMain() {
		n.release(here)
	}
	c.mu.Unlock()
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
		n.note(err)
	}
	if !alone {
		n.cancel(canceledFor(err), here)
	}
}

// addPanic keeps a *PanicError for Run. It does not use append or package slices, because the race detector would see
// their memory accesses but not the lock.
//
//go:norace
func (n *Nursery) addPanic(err error, first bool) {
	c := n.more()
	race.Disable()
	c.mu.Lock()
	all, at := c.panics, len(c.panics)
	if at == cap(all) {
		all = make([]error, at, max(4, 2*at))
		for i, e := range c.panics { //nolint:staticcheck // the race detector would see a copy
			all[i] = e
		}
	}
	all = all[:at+1]
	for ; first && at > 0; at-- {
		all[at] = all[at-1]
	}
	all[at] = err
	c.panics = all
	c.mu.Unlock()
	race.Enable()
}

// note keeps an error for Run to return. An error that only says that the nursery was cancelled is kept only if there
// is no other.
//
//go:norace
func (n *Nursery) note(err error) {
	known := false
	n.tie()
	if n.state.Load() == scopeCancelled {
		e := n.ending()
		known = e.echoedBy(err) // calls methods of the user's error, so not under the lock
		if known && err == e.err {
			err = e.op // it has the cause, and is ErrTimeout for a timeout, unlike ctx.Err()
		}
	}
	c := n.more()
	race.Disable()
	c.mu.Lock()
	switch {
	case len(c.errs) == 0:
		c.errs, c.onlyEcho = append(c.errs, err), known
	case known:
	case c.onlyEcho:
		c.errs[0], c.onlyEcho = err, false
	default:
		c.errs = append(c.errs, err)
	}
	c.mu.Unlock()
	race.Enable()
}

// echoedBy reports whether err, in all its parts, only says that a scope ended by e.
func (e *ending) echoedBy(err error) bool {
	switch x := err.(type) {
	case *canceledError: // perhaps of a derived context, which ended for the same cause
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

// cancelWaits wakes every child that waits under the nursery's scope. It does so outside the lock, which children need
// to end. Later arrivals see the scope cancelled.
//
// Spec: NU-08 (cancel wakes each child once)
// Spec: NU-22 (a cancel costs one claim a child)
//
//go:norace
func (n *Nursery) cancelWaits(here *sched.Worker) {
	var few [16]*Fiber
	fs := few[:]
	c := n.more()
	c.mu.Lock()
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
	c.mu.Unlock()
	for _, f := range fs[:i] {
		f.cancelWait(&n.scope, here)
	}
}

// Run opens a nursery, runs fn in it, and returns when fn and every fiber started in the nursery have ended. The
// context given to fn is the nursery's: it ends when the nursery is cancelled.
//
// Called from a goroutine, Run runs fn as a fiber of the default runtime, and the goroutine waits. Called from a fiber,
// Run runs fn in that fiber. The nursery is cancelled with ctx. In a fiber, use the fiber's own context or one derived
// from it: otherwise the cancel of an outer nursery does not reach this one.
//
// Run returns the error of fn and those of the children, joined, the first one first. If the nursery was cancelled, and
// its function and fibers all return nil, Run returns nil. If fn or a child panics, Run panics with a [*PanicError]
// once all have ended. If fn calls runtime.Goexit, so does Run once all have ended, unless a child has panicked. A
// child that calls runtime.Goexit ends only itself: it does not cancel the nursery, and only [Fiber.Wait] reports
// [ErrGoexit].
func Run(ctx context.Context, fn func(ctx context.Context, n *Nursery) error) error {
	return run(ctx, nil, fn)
}

// open creates a nursery that the calling fiber owns. In a goroutine it returns nil.
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
		// This is init, written out: the compiler then knows that it needs no write barriers.
		n = &Nursery{scope: scope{up: ctx, rt: rt, owner: f, parent: sc, isNursery: true}}
	} else {
		n = newNursery()
		n.init(ctx, rt, nil, f)
	}
	if f.simulated {
		n.more().id = channel.NewID()
	}
	return n
}

// run runs body in the nursery n, in the fiber that owns n. If n is nil, run opens a nursery. Run is inlined into its
// callers, so that nested nurseries need one stack frame of coir each, not two: the garbage collector scans stacks, and
// they grow.
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
		n.note(err)
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

// runOutside is Run in a goroutine.
func runOutside(ctx context.Context, fn func(context.Context, *Nursery) error) error {
	c := resolve(ctx)
	if child := childHere(); child != nil {
		return child.nursery.rt.run(&c, fn)
	}
	return defaultRuntime().run(&c, fn)
}

// abandoned ends a nursery whose function has panicked with v, or has called Goexit, in which case v is nil. It waits
// for all children. It panics unless nothing but the Goexit has happened; the Goexit continues when abandoned returns.
func (n *Nursery) abandoned(v any) {
	if v != nil {
		n.addPanic(panicError(n.owner, v, debug.Stack()), true) // the function's own comes first
	}
	n.cancelFor(plainCancel)
	n.join()
	if v != nil {
		panic(n.failure())
	}
	c := n.more()
	if c.onlyEcho { // of the cancel above, or of an outer one that reports its own cause
		c.errs = nil
	}
	// A panic here would be useless: recovering a panic during a Goexit does not stop the Goexit.
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

// stepJoin announces a join to the policy. It is not inlined, to keep join's frame small: that frame is on the stack of
// every fiber that joins.
//
//go:noinline
//go:norace
func (n *Nursery) stepJoin() { n.owner.step(policy.Op{Kind: policy.Join, Object: n.id()}) }

// joinPlaced is the wait of join in a fiber that has a place under a limit. The fiber gives up the place meanwhile.
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

// closeEmpty closes the nursery if no child is left, and returns 0. Otherwise it returns the number that the owner must
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

// beginJoin reports whether the owner must park. The owner arms before it adds own to pending, so the child that brings
// pending to 1 finds the owner armed. If no child is left, the owner itself brings pending to 1.
//
// Guarded by TestExploreJoinAgainstEnd.
//
//go:norace
func (n *Nursery) beginJoin(own int64) bool {
	f := n.owner
	f.arm(noInterrupt, (*toJoin)(n)) // a cancel does not end this wait: it ends the children
	if n.pending.Add(own) == 1 {
		f.task.Disarm()
		return false
	}
	return true
}

// childEnded counts a child that has ended. The last child wakes the owner, if the owner waits. The caller must not
// touch the nursery afterwards.
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

// result returns the result of Run, or panics with it.
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
	c := n.more()
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
