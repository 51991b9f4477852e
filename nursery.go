package coir

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"strconv"
	"unsafe"

	"github.com/coir-go/coir/internal/bubble"
	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/sched"
	"github.com/coir-go/coir/internal/xatomic"
)

// Nursery is where fibers live: none outlives the [Run] that opened it.
//
// The first child that fails cancels its siblings. Run returns every child's error, joined, the first one first; errors
// that only say that the nursery was cancelled are left out, unless there is no other: then Run returns one of them, or nil if
// the nursery was stopped on purpose, by [Nursery.Cancel] with a nil cause. A child's panic comes out of Run.
type Nursery struct {
	scope
	body func(context.Context, *Nursery) error
	id   uint64 // for a policy; 0 without one. Counted with the channels: no channel has the same

	mu       xatomic.Mutex // guards what follows; taken before the scheduler's locks, after those of channels
	children *Fiber        // a ring without an anchor; nil if there are none
	live     int           // children that have not ended
	joining  park.Ticket
	closed   bool
	errs     []error
	onlyEcho bool     // errs is one error that says no more than that the nursery was cancelled
	panics   *[]error // each is a *PanicError; nil if there is none. It keeps the nursery within 256 bytes
	limiter  *limiter // nil: no limit
}

// Go starts a fiber that runs fn. The context that fn is given is the fiber's own: it is over when the nursery is
// cancelled or has ended. The name is for people; fibers may share one.
//
// Go may be called by anyone until the function of the nursery's Run has returned and the last child has ended; after
// that it panics.
//
//go:noinline
//go:norace
func (n *Nursery) Go(name string, fn func(ctx context.Context) error, opts ...FiberOption) *Fiber {
	// Spec: NU-04 (a child is counted before it runs)
	// Spec: NU-05 (a completed nursery takes no child)
	// Spec: FB-11 (a fiber's function is published before the fiber)
	// Spec: FB-12 (a fiber is counted before it is runnable)
	f := &Fiber{nursery: n, fn: fn, name: name, budget: budget, pc: coro.CallerPC()}
	for _, o := range opts {
		f.index = o.index
	}
	near := n.near()
	if !n.rt.s.Has(near) && n.rt.abroad() {
		panic("coir: Nursery.Go(" + name + ") was called " + bubble.Here().String() + " on a nursery that was opened " +
			n.rt.s.Home().String() + ": start fibers from where the nursery is")
	}
	var by *Fiber
	if n.rt.policy != nil {
		by = n.announceGo(name)
	}
	ok := !n.closed // a hint: admit looks under the lock, but the observer would have been told by then
	if ok {
		n.prepare(f, near)
		race.Disable()
		var start bool
		if start, ok = n.admit(f); start {
			n.rt.s.Go(&f.task, near)
		}
		race.Enable()
	}
	if !ok {
		panic("coir: Nursery.Go(" + name + ") after the Run that opened the nursery has returned")
	}
	if by != nil {
		by.stepped()
	}
	return f
}

// admit makes f a child. It reports whether f may begin, and false if the nursery is closed.
//
//go:norace
func (n *Nursery) admit(f *Fiber) (start, ok bool) {
	n.mu.Lock()
	if ok = !n.closed; ok {
		n.live++
		if start = n.limiter == nil || n.limiter.admit(f); start {
			n.link(f)
		}
	}
	n.mu.Unlock()
	return start, ok
}

// link puts a child that begins into the ring. The caller holds the lock.
//
//go:norace
func (n *Nursery) link(f *Fiber) {
	if c := n.children; c == nil {
		f.prev, f.next = f, f
		n.children = f
	} else {
		f.prev, f.next = c.prev, c
		f.prev.next, f.next.prev = f, f
	}
}

// prepare readies the fiber for the scheduler.
//
//go:norace
func (n *Nursery) prepare(f *Fiber, near *sched.Worker) {
	race.Disable()
	f.id = sched.NewID(near)
	race.Enable()
	f.simulated = n.rt.policy != nil
	f.task.Init(n.rt.s, (*thunk)(f))
	race.Release(unsafe.Pointer(&f.fn))
	f.task.Spawn() // in a race build the goroutine is made here, ordered after what the spawner has done
	if o := n.rt.observer; o != nil {
		o.tell(func(o Observer) { o.FiberStarted(f) })
	}
}

// near is the worker that the caller runs on, of whichever runtime, or nil if the caller is not a fiber.
//
//go:norace
func (n *Nursery) near() *sched.Worker {
	f := n.owner
	if !f.task.Here() {
		if f = currentFiber(); f == nil {
			return nil
		}
	}
	return f.task.Worker()
}

// Cancel cancels the nursery: every wait under its context, in its fibers and in nurseries inside it, ends with an error that
// is context.Canceled and shows the cause. context.Cause returns the cause. To have Run return an error, return it from the
// function or a fiber. Fibers that have not begun, and those started after the cancel, still run, and find it.
//
// A nil cause means that the nursery is stopped on purpose: if its function and its fibers then return nothing but that cancel,
// Run returns nil.
func (n *Nursery) Cancel(cause error) {
	e := onPurpose
	if cause != nil {
		e = canceledFor(cause)
	}
	n.cancelFor(e)
}

// cancelFor cancels the nursery, and tells a policy before.
func (n *Nursery) cancelFor(e *ending) {
	var by *Fiber
	if n.rt.policy != nil {
		by = announce(n.rt, Op{Kind: OpCancel, Object: n.id})
	}
	n.cancel(e, n.near())
	if by != nil {
		by.stepped()
	}
}

// String describes the nursery in a few words: who has opened it, and how many of its fibers have not ended.
//
//go:norace
func (n *Nursery) String() string {
	owner := n.owner.Name()
	race.Disable()
	n.mu.Lock()
	live := n.live
	n.mu.Unlock()
	race.Enable()
	return "coir.Nursery(of " + owner + ", fibers: " + strconv.Itoa(live) + ")"
}

// remove takes an ended child out. It returns the ticket of whoever waits for the last one, if this was it. The caller
// holds the lock.
//
//go:norace
func (n *Nursery) remove(f *Fiber, near *sched.Worker) (last park.Ticket) {
	if f.next == f {
		n.children = nil
	} else {
		f.prev.next, f.next.prev = f.next, f.prev
		if n.children == f {
			n.children = f.next
		}
	}
	f.prev, f.next = nil, nil
	if n.limiter != nil {
		n.release(near)
	}
	n.live--
	if n.live == 0 && n.joining != 0 {
		n.closed = true
		last = n.joining
	}
	return last
}

// childFailed notes the error of a child that has ended, and cancels its siblings.
//
// Spec: NU-11 (a child's error cancels its siblings)
//
//go:norace
func (n *Nursery) childFailed(how end, err error, near *sched.Worker) {
	if how == panicked {
		n.addPanic(err, false)
	} else {
		n.note(err)
	}
	n.cancel(canceledFor(err), near)
}

// addPanic keeps a *PanicError for Run. It is written out because the race detector would see what package slices and append
// do, and not the lock.
//
//go:norace
func (n *Nursery) addPanic(err error, first bool) {
	race.Disable()
	n.mu.Lock()
	var was []error
	if n.panics != nil {
		was = *n.panics
	}
	all := make([]error, len(was)+1)
	own, rest := len(was), 0
	if first {
		own, rest = 0, 1
	}
	all[own] = err
	for i, e := range was {
		all[rest+i] = e //nolint:gosimple,staticcheck // the race detector would see a copy
	}
	n.panics = &all
	n.mu.Unlock()
	race.Enable()
}

// note keeps an error for Run to return, unless there is one already and this only says that the nursery was cancelled.
//
//go:norace
func (n *Nursery) note(err error) {
	known := false
	n.tie()
	if n.state.Load() == scopeCancelled {
		e := n.ending()
		known = e.echoedBy(err) // asks the error, which is the user's: not under the lock
		if known && err == e.err {
			err = e.op // what ctx.Err() cannot say: the cause, and that a timeout is ErrTimeout
		}
	}
	race.Disable()
	n.mu.Lock()
	switch {
	case len(n.errs) == 0:
		n.errs, n.onlyEcho = append(n.errs, err), known
	case known:
	case n.onlyEcho:
		n.errs[0], n.onlyEcho = err, false
	default:
		n.errs = append(n.errs, err)
	}
	n.mu.Unlock()
	race.Enable()
}

// echoedBy reports whether err, in all its parts, says no more than that a scope ended by e.
func (e *ending) echoedBy(err error) bool {
	switch x := err.(type) {
	case *canceledError: // perhaps of a context derived from the scope's, which ended for the same cause
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
	case interface{ Is(error) bool }: // as package net has it
		return x.Is(context.Canceled)
	}
	return err == context.Canceled || err == e.err
}

// cancelWaits wakes every child that waits under the nursery's scope. It does so outside the lock, which children need
// to end. Who comes later sees the scope cancelled.
//
// Spec: NU-08 (cancel wakes each child once)
// Spec: NU-22 (a cancel costs one claim a child)
//
//go:norace
func (n *Nursery) cancelWaits(near *sched.Worker) {
	var few [16]*Fiber
	fs := few[:]
	n.mu.Lock()
	if n.live > len(fs) {
		fs = make([]*Fiber, n.live)
	}
	i := 0
	if f := n.children; f != nil {
		for {
			fs[i] = f
			i++
			if f = f.next; f == n.children {
				break
			}
		}
	}
	n.mu.Unlock()
	for _, f := range fs[:i] {
		f.cancelWait(&n.scope, near)
	}
}

// Run opens a nursery, runs fn in it, and returns when fn and every fiber started in the nursery have ended. The
// context given to fn is the nursery's: it is over when the nursery is cancelled.
//
// Called from a goroutine, it runs fn as a fiber of the default runtime, and the goroutine waits. Called from a fiber,
// fn runs in that fiber. The nursery is cancelled with ctx, which in a fiber is best the fiber's own.
//
// Run returns the error of fn and those of the children, joined, the first one first. A nursery that was cancelled, and
// whose function and fibers all return nil, has not failed: Run returns nil. If fn or a child has panicked, Run panics with a
// [*PanicError] once all have ended. If fn calls runtime.Goexit, so does Run once all have ended, unless a child has panicked.
func Run(ctx context.Context, fn func(ctx context.Context, n *Nursery) error) error {
	// Spec: NU-02 (Run returns when its nursery is complete)
	// Spec: NU-03 (a child lives within its parent)
	c := resolve(ctx)
	if c.f == nil {
		return defaultRuntime().run(&c, fn)
	}
	n := &Nursery{body: fn}
	n.n = n
	if c.f.simulated {
		race.Disable() // to open a nursery orders nobody
		n.id = lastChan.Add(1)
		race.Enable()
	}
	n.init(ctx, c.f.nursery.rt, c.sc, c.f)
	return n.run()
}

// run is the life of a nursery, in the fiber that owns it.
func (n *Nursery) run() error {
	returned := false
	defer func() {
		if !returned { // fn panicked, or called Goexit
			n.abandoned(recover())
		}
	}()
	body := n.body
	n.body = nil // a fiber or a context of the nursery may be kept for long; what its body holds need not be
	err := body((*scopeContext)(&n.scope), n)
	returned = true
	if err != nil {
		n.note(err)
		n.cancelFor(canceledFor(err))
	}
	n.join()
	return n.result()
}

// abandoned ends a nursery whose function has panicked with v, or has called Goexit: then v is nil. No child is left behind. It
// panics, unless all that has happened is the Goexit, which goes on when it returns.
func (n *Nursery) abandoned(v any) {
	if v != nil {
		n.addPanic(panicError(n.owner, v, debug.Stack()), true) // the function's own comes first
	}
	n.cancelFor(plainCancel)
	n.join()
	if v != nil {
		panic(n.failure())
	}
	if n.onlyEcho { // of the cancel above, or of another's, who knows its cause
		n.errs = nil
	}
	// Here a panic would be of no use: one that is recovered while a Goexit is under way does not stop the Goexit.
	n.owner.reportLater(n.panicked(), n.errs)
}

// join waits until every child has ended, and closes the nursery.
//
// Spec: NU-01 (a nursery completes after every child)
//
//go:norace
func (n *Nursery) join() {
	f := n.owner
	if f.simulated {
		f.step(Op{Kind: OpJoin, Object: n.id})
	}
	race.Disable()
	if f.place {
		n.mu.Lock()
		alone := n.live == 0
		n.mu.Unlock()
		if !alone {
			f.leavePlace()
			defer f.regainPlace()
		}
	}
	n.mu.Lock()
	if n.live == 0 {
		n.closed = true
		n.mu.Unlock()
	} else {
		n.joining = f.arm(uncut) // a cancel does not end this wait: it ends the children
		n.mu.Unlock()
		f.task.Park() // the last child closes the nursery
	}
	race.Enable()
	race.Acquire(unsafe.Pointer(&n.mu))
	n.endJoined()
}

// result is what Run returns, or panics with.
//
//go:norace
func (n *Nursery) result() error {
	// Spec: NU-12 (Run returns every child's error)
	// Spec: NU-13 (a child's panic is raised from Run)
	if len(n.errs) == 0 && n.panics == nil {
		return nil
	}
	err := n.failure()
	if n.panics != nil {
		panic(err)
	}
	return err
}

// failure returns what has failed in a nursery that has ended: a *PanicError if there was a panic, otherwise the errors, joined.
//
//go:norace
func (n *Nursery) failure() error {
	errs := n.errs
	panics := n.panicked()
	if n.onlyEcho && (n.how == onPurpose || len(panics) > 0) {
		errs = nil
	}
	if len(panics) > 0 {
		return panics[0].(*PanicError).with(slices.Concat(panics[1:], errs))
	}
	return joined(errs)
}

// panicked returns the panics of the nursery's function and its fibers.
//
//go:norace
func (n *Nursery) panicked() []error {
	if n.panics == nil {
		return nil
	}
	return *n.panics
}

// joined is errors.Join, but for a single error that one itself.
func joined(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
