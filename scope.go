package coir

import (
	"context"
	"errors"
	"sync"
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/clock"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/sched"
	"github.com/coir-go/coir/internal/xatomic"
)

// A scope is what can be cancelled: a nursery, or what WithTimeout, WithCancel and Shield make. It is a
// context.Context, and so is a fiber, whose scope is its nursery's.
//
// How a cancel finds those who wait, without a lock on every wait:
//
// A fiber that waits under its own scope registers nowhere. It notes the scope in Fiber.waiting, arms its word, and then
// looks whether the scope has been cancelled. A cancel marks the scope, and then looks at the word of each fiber that
// may wait under it: the owner, and if the scope is a nursery's, its children. Either the fiber sees the mark, or the
// cancel sees an armed word and wakes it through the ordinary claim. (models/word.pml, the canceller.)
//
// Everybody else registers: a goroutine waits on the Done channel, and a fiber that uses a foreign context, or another
// fiber's, asks that context to call back.
//
// A scope tells the scopes inside it, which it keeps in a list. What package context derives from it hangs on a standard
// context that ends with the scope; see standard.
type scope struct {
	up     context.Context // where values come from, and deadlines
	rt     *Runtime
	owner  *Fiber   // who waits under it without registering; nil if a goroutine made it
	n      *Nursery // whose scope this is, or nil
	parent *scope   // which tells it
	stopUp func() bool

	cancelled xatomic.Bool // set under mu, with err and opErr

	mu    xatomic.Mutex
	err   error                     // context.Canceled or context.DeadlineExceeded
	opErr error                     // what operations return
	std   xatomic.Pointer[standard] // made when somebody asks for Done
	inner *scope                    // the scopes inside this one, through next

	// Under parent.mu.
	prev, next *scope
	linked     bool
}

// scopeContext is a scope as its owner's code sees it. It is the same object: only the methods differ.
type scopeContext scope

// fiberContext is a fiber as its own code sees it.
type fiberContext Fiber

type contextKey struct{}

func (c *scopeContext) Deadline() (time.Time, bool) { return c.up.Deadline() }
func (c *scopeContext) Done() <-chan struct{}       { return (*scope)(c).doneChan() }
func (c *scopeContext) Err() error                  { return (*scope)(c).ctxErr() }

func (c *scopeContext) AfterFunc(f func()) func() bool { return (*scope)(c).afterFunc(f) }

func (c *scopeContext) Value(key any) any {
	if _, ok := key.(contextKey); ok {
		return c
	}
	return (*scope)(c).value(key)
}

func (c *fiberContext) Deadline() (time.Time, bool)    { return c.nursery.up.Deadline() }
func (c *fiberContext) Done() <-chan struct{}          { return c.nursery.doneChan() }
func (c *fiberContext) Err() error                     { return c.nursery.ctxErr() }
func (c *fiberContext) AfterFunc(f func()) func() bool { return c.nursery.afterFunc(f) }

func (c *fiberContext) Value(key any) any {
	if _, ok := key.(contextKey); ok {
		return c
	}
	return c.nursery.value(key)
}

// String keeps fmt from walking into a running fiber.
func (c *fiberContext) String() string { return "coir.Fiber(" + (*Fiber)(c).Name() + ")" }

// String keeps fmt from walking into a running scope.
func (c *scopeContext) String() string { return "coir.Scope" }

// init places the scope under ctx. parent is the coir scope that ctx stands for, if it stands for one.
//
//go:norace
func (sc *scope) init(ctx context.Context, rt *Runtime, parent *scope, owner *Fiber) {
	sc.rt, sc.up, sc.owner = rt, ctx, owner
	switch {
	case parent != nil:
		sc.parent = parent
		if !parent.add(sc) {
			race.Acquire(unsafe.Pointer(parent))
			sc.cancel(parent.err, parent.opErr, nil)
		}
	case ctx.Done() != nil:
		if ctx.Err() != nil {
			sc.cancelFrom(ctx) // AfterFunc would, but later
			return
		}
		sc.stopUp = context.AfterFunc(ctx, func() { sc.rt.strayCancel(); sc.cancelFrom(ctx) })
	}
}

// cancelFrom passes a foreign context's end on.
func (sc *scope) cancelFrom(ctx context.Context) {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		sc.cancel(context.DeadlineExceeded, ErrTimeout, nil)
	} else {
		sc.cancel(context.Canceled, canceled(context.Cause(ctx)), nil)
	}
}

// canceled is the error of operations in a scope that was cancelled for cause.
func canceled(cause error) error {
	if cause == nil || cause == context.Canceled {
		return context.Canceled
	}
	return &canceledError{cause}
}

// end takes the scope out of its parent. Whoever still holds its context finds it cancelled.
//
//go:norace
func (sc *scope) end() {
	sc.leave()
	sc.cancel(context.Canceled, context.Canceled, nil)
}

// leave takes the scope out of its parent, which need not tell it any more.
//
//go:norace
func (sc *scope) leave() {
	if sc.parent != nil {
		sc.parent.drop(sc)
	}
	if sc.stopUp != nil {
		sc.stopUp()
	}
}

// cancel marks the scope, wakes those who wait under it and tells those inside it. Only the first call does. It is called
// with the caller's synchronisation visible.
//
// Spec: NU-06, NU-09, NU-10
//
//go:norace
func (sc *scope) cancel(err, opErr error, near *sched.Worker) {
	race.Disable()
	sc.mu.Lock()
	if sc.cancelled.Load() {
		sc.mu.Unlock()
		race.Enable()
		return
	}
	race.Enable()
	race.Release(unsafe.Pointer(sc)) // here, because a cancel that comes too late orders nobody
	race.Disable()
	sc.err, sc.opErr = err, opErr
	sc.cancelled.Store(true) // from here a fiber that arms sees it
	inner, std := sc.inner != nil, sc.std.Load()
	sc.mu.Unlock()
	if std != nil { // first: who is woken by the cancel may ask for the cause
		race.Enable()
		race.Acquire(unsafe.Pointer(std))
		std.finish(err, opErr) // whoever receives from Done is ordered after the cancel
		race.Disable()
	}
	if sc.owner != nil {
		sc.owner.cancelWait(sc, near)
	}
	if sc.n != nil && !sc.n.closed { // closed means that nobody is left in it; an old value costs a look
		sc.n.cancelWaits(near)
	}
	race.Enable()
	if inner { // and none can have come since
		sc.tell(err, opErr, near)
	}
}

// tell passes a cancel on to the scopes inside this one.
//
//go:norace
func (sc *scope) tell(err, opErr error, near *sched.Worker) {
	for {
		race.Disable()
		sc.mu.Lock()
		in := sc.inner
		if in != nil {
			sc.unlink(in)
		}
		sc.mu.Unlock()
		race.Enable()
		if in == nil {
			return
		}
		in.cancel(err, opErr, near)
	}
}

func (sc *scope) doneChan() <-chan struct{} { return sc.standard().Done() }

// standard is the scope as a context of the standard library, and ends with it. Package context knows its own kind
// through any number of WithValues: what is derived registers there, starts no goroutine, and finds the cause. All that
// it takes is that Done is that context's channel, and that Value answers the key by which package context asks.
type standard struct {
	context.Context
	cancel context.CancelCauseFunc
	once   sync.Once
	err    error
	pass   func() // ends the context with err
}

// Spec: FB-22, FB-23
func (sc *scope) standard() *standard {
	if std := sc.std.Load(); std != nil {
		return std
	}
	std := new(standard)
	std.Context, std.cancel = context.WithCancelCause((*standardParent)(std))
	race.Release(unsafe.Pointer(std))
	if !sc.std.CompareAndSwap(nil, std) {
		return sc.std.Load()
	}
	if err := sc.ctxErr(); err != nil { // else cancel will see std
		std.finish(err, sc.operationErr())
	}
	return std
}

// finish ends the context as its scope has ended.
func (std *standard) finish(err, opErr error) {
	std.once.Do(func() {
		if err == context.Canceled {
			if ce, ok := opErr.(*canceledError); ok {
				opErr = ce.cause
			}
			std.cancel(opErr)
			return
		}
		std.err = err
		std.pass()
	})
}

// standardParent is what the standard context is derived from. It lets the scope choose the error that it ends with.
type standardParent standard

func (*standardParent) Deadline() (time.Time, bool) { return time.Time{}, false }
func (*standardParent) Done() <-chan struct{}       { return neverDone }
func (p *standardParent) Err() error                { return p.err }
func (*standardParent) Value(any) any               { return nil }
func (p *standardParent) AfterFunc(f func()) func() bool {
	p.pass = f
	return func() bool { return false }
}

var neverDone = make(chan struct{})

// causeKey is the key by which package context asks a context for the one of its own that it was derived from.
var causeKey = func() (key any) {
	_ = context.Cause(keyProbe{context.Background(), &key})
	return key
}()

type keyProbe struct {
	context.Context
	key *any
}

func (p keyProbe) Value(key any) any { *p.key = key; return nil }
func (keyProbe) Err() error          { return context.Canceled }

// value is what Value of a scope's or a fiber's context gives for all but our own key.
func (sc *scope) value(key any) any {
	if key == causeKey {
		return sc.standard().Value(key)
	}
	return sc.up.Value(key)
}

//go:norace
func (sc *scope) ctxErr() error {
	if !sc.cancelled.Load() {
		sc.ask()
		if !sc.cancelled.Load() {
			return nil
		}
	}
	race.Acquire(unsafe.Pointer(sc))
	return sc.err
}

// ask passes on at once that a foreign context which the scope is inside of has ended. It would be told by and by, on a goroutine of
// package context; but whoever has cancelled a context expects to see it in what was derived from it.
func (sc *scope) ask() {
	for sc.parent != nil {
		sc = sc.parent
	}
	if sc.stopUp != nil && sc.up.Err() != nil {
		sc.cancelFrom(sc.up)
	}
}

// operationErr is what an operation returns that the scope's cancel has ended.
//
//go:norace
func (sc *scope) operationErr() error {
	race.Acquire(unsafe.Pointer(sc))
	if sc.opErr == nil {
		return context.Canceled // by Interrupt
	}
	return sc.opErr
}

func (sc *scope) afterFunc(f func()) func() bool { return context.AfterFunc(sc.standard(), f) }

// add puts a scope inside this one. It reports false if this one has been cancelled: then nobody will tell it.
//
//go:norace
func (sc *scope) add(in *scope) bool {
	race.Disable()
	sc.mu.Lock()
	ok := !sc.cancelled.Load()
	if ok {
		in.linked, in.next = true, sc.inner
		if in.next != nil {
			in.next.prev = in
		}
		sc.inner = in
	}
	sc.mu.Unlock()
	race.Enable()
	return ok
}

//go:norace
func (sc *scope) drop(in *scope) {
	race.Disable()
	sc.mu.Lock()
	if in.linked {
		sc.unlink(in)
	}
	sc.mu.Unlock()
	race.Enable()
}

// unlink takes a scope out of the list that it is in. The caller holds mu.
//
//go:norace
func (sc *scope) unlink(in *scope) {
	if in.prev == nil {
		sc.inner = in.next
	} else {
		in.prev.next = in.next
	}
	if in.next != nil {
		in.next.prev = in.prev
	}
	in.linked, in.prev, in.next = false, nil, nil
}

// timedScope is a scope with a deadline on the runtime's clock.
type timedScope struct {
	scopeContext
	deadline time.Time
	timer    clock.Timer
}

func (c *timedScope) Deadline() (time.Time, bool) { return c.deadline, true }

// Expire implements clock.Target.
func (c *timedScope) Expire(uint64) {
	sc := (*scope)(&c.scopeContext)
	sc.cancel(context.DeadlineExceeded, ErrTimeout, nil)
	race.Acquire(unsafe.Pointer(&c.timer)) // leave calls into package context, whose memory WithTimeout has written
	sc.leave()
}

// WithCancel returns a scope inside ctx that can be cancelled for a cause. Waits under it cost a fiber nothing extra, and
// no goroutine is started. Call cancel when the scope is over: defer cancel(nil). A nil cause is context.Canceled.
func WithCancel(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	sc := new(scope)
	c := resolve(ctx)
	sc.init(ctx, c.runtime(), c.sc, c.f)
	return (*scopeContext)(sc), func(cause error) {
		by := sc.announceCancel()
		sc.cancel(context.Canceled, canceled(cause), nil)
		sc.end()
		if by != nil {
			by.stepped()
		}
	}
}

// announceCancel announces that the scope is about to be cancelled, unless it has been, if anybody wants to know. It
// returns the fiber that has to call stepped, if one has.
func (sc *scope) announceCancel() *Fiber {
	if sc.rt.policy != nil && !sc.cancelled.Load() {
		return announce(sc.rt, Op{Kind: OpCancel})
	}
	return nil
}

// giveUp is the cancel of a scope that has no timer.
func (sc *scope) giveUp() {
	by := sc.announceCancel()
	sc.end()
	if by != nil {
		by.stepped()
	}
}

// WithTimeout returns a scope inside ctx that ends after d, by the runtime's clock: operations under it then return
// [ErrTimeout]. Call cancel when the scope is over.
func WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return withTimeout(ctx, time.Now().Add(d), d)
}

// WithDeadline is WithTimeout with a point in time. A deadline of ctx that comes earlier stays in force.
func WithDeadline(ctx context.Context, at time.Time) (context.Context, context.CancelFunc) {
	return withTimeout(ctx, at, time.Until(at))
}

func withTimeout(ctx context.Context, at time.Time, d time.Duration) (context.Context, context.CancelFunc) {
	ts := &timedScope{deadline: at}
	c := resolve(ctx)
	sc := (*scope)(&ts.scopeContext)
	sc.init(ctx, c.runtime(), c.sc, c.f)
	if up, ok := ctx.Deadline(); ok && up.Before(at) {
		ts.deadline = up // which ctx sees to
		return ts, sc.giveUp
	}
	if d <= 0 {
		ts.Expire(0)
		return ts, sc.end
	}
	clk := sc.rt.s.Clock()
	race.Release(unsafe.Pointer(&ts.timer)) // for Expire
	race.Disable()
	clk.Arm(&ts.timer, after(clk, d), ts, 0)
	race.Enable()
	return ts, func() {
		by := sc.announceCancel()
		race.Disable()
		clk.Stop(&ts.timer)
		race.Enable()
		sc.end()
		if by != nil {
			by.stepped()
		}
	}
}

// Shield returns a context with the values of ctx that is not cancelled when ctx is, for work that must be finished:
// giving things back, telling a peer. Put a deadline on it with WithTimeout.
//
// Spec: NU-21
func Shield(ctx context.Context) context.Context {
	sc := new(scope)
	c := resolve(ctx)
	sc.init(context.WithoutCancel(ctx), c.runtime(), nil, c.f)
	return (*scopeContext)(sc)
}
