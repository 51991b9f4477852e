package coir

import (
	"context"
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/clock"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
)

// scopeContext is a scope as its code sees it, as a context. It is the same object as the scope, with other methods.
type scopeContext scope

// fiberContext is a fiber as its own code sees it, as a context.
type fiberContext Fiber

type contextKey struct{}

func (c *scopeContext) Deadline() (time.Time, bool) { return c.up.Deadline() }

func (c *scopeContext) Done() <-chan struct{} { return (*scope)(c).doneChan() }

func (c *scopeContext) Err() error { return (*scope)(c).ctxErr() }

func (c *scopeContext) AfterFunc(f func()) func() bool { return (*scope)(c).afterFunc(f) }

func (c *scopeContext) Value(key any) any {
	if _, ok := key.(contextKey); ok {
		return c
	}
	return (*scope)(c).value(key)
}

func (c *fiberContext) Deadline() (time.Time, bool) { return c.nursery.up.Deadline() }

func (c *fiberContext) Done() <-chan struct{} { return c.nursery.doneChan() }

func (c *fiberContext) Err() error { return c.nursery.ctxErr() }

func (c *fiberContext) AfterFunc(f func()) func() bool { return c.nursery.afterFunc(f) }

func (c *fiberContext) Value(key any) any {
	if _, ok := key.(contextKey); ok {
		return c
	}
	v := c.nursery.value(key)
	if c.nursery.rt.labels {
		return (*Fiber)(c).addLabels(key, v)
	}
	return v
}

// String is defined so that fmt does not read the fields of a running fiber.
func (c *fiberContext) String() string { return "coir.Fiber(" + (*Fiber)(c).Name() + ")" }

// String is defined so that fmt does not read the fields of a scope in use.
func (c *scopeContext) String() string { return "coir.Scope" }

// timedScope is a scope with a deadline on the runtime's clock.
type timedScope struct {
	scopeContext // first: see scope.until
	cold         coldScope
	deadline     time.Time
	at           int64 // deadline on the runtime's clock, ignoring deadlines of outer contexts
	timer        clock.Timer
}

func (c *timedScope) Deadline() (time.Time, bool) { return c.deadline, true }

// Expire implements clock.Target. The clock may call it from a hidden section. The cancellation calls package context,
// whose synchronisation must stay visible.
//
//go:norace
func (c *timedScope) Expire(uint64) { race.Alone(c.expire) }

//go:norace
func (c *timedScope) expire() { (*scope)(&c.scopeContext).expire(unsafe.Pointer(&c.timer)) }

// expire cancels a scope whose time has run out. armed is what was released when its timer was armed.
//
//go:norace
func (sc *scope) expire(armed unsafe.Pointer) {
	sc.cancel(plainTimeout, nil)
	race.Acquire(armed) // detach calls into package context, whose memory WithTimeout has written
	sc.detach()
	if sc.rt.contexts != nil { // contexts derived from sc are done too, and perhaps no later step would notice that
		race.Disable()
		sc.rt.lookAtContexts()
		race.Enable()
	}
}

// Ended returns the error that an operation in ctx returns because ctx has ended, or nil if ctx has not ended. It is
// for types whose operations wait: they check ctx before they do anything else.
func Ended(ctx context.Context) error {
	by := resolve(ctx)
	if e := by.ended(); e != nil {
		return e.op
	}
	return nil
}

// WithCancel returns a scope inside ctx and a function that cancels it. It starts no goroutine, and a fiber's waits
// under the scope cost nothing extra. Call cancel when the scope is no longer needed.
func WithCancel(ctx context.Context) (context.Context, context.CancelFunc) {
	in, cancel := WithCancelCause(ctx)
	return in, func() { cancel(nil) }
}

// WithCancelCause is like [WithCancel], but cancel takes a cause. A nil cause stands for context.Canceled.
func WithCancelCause(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	sc := newScope()
	c := resolve(ctx)
	sc.init(ctx, c.runtime(), c.sc, c.f)
	return (*scopeContext)(sc), func(cause error) {
		by := sc.announceCancel()
		sc.cancel(canceledFor(cause), nil)
		sc.end()
		by.stepped()
	}
}

// WaitCancel waits until ctx ends, and returns its error. It waits for nothing else, and uses no timer. If ctx never
// ends, as [context.Background] does not, WaitCancel never returns.
//
//go:norace
func WaitCancel(ctx context.Context) error {
	f, sc := ownFiber(ctx)
	if f == nil {
		return waitCancelAny(ctx)
	}
	if f.simulated {
		f.step(policy.Op{Kind: policy.Use, Verb: verbCancel})
	}
	race.Disable()
	if !sc.done() {
		if f.arm(sc, toCancel{}); f.shouldPark(sc) {
			f.task.Park()
		}
	}
	race.Enable()
	f.tellEnding(sc)
	return sc.ending().op
}

var verbCancel = &policy.Verb{Name: "wait for a cancel", Waits: "for a cancel"}

// waitCancelAny implements WaitCancel for every kind of caller. The two are separate functions to keep the stack of a
// waiting fiber small: see ownFiber.
//
//go:noinline
//go:norace
func waitCancelAny(ctx context.Context) error {
	by := resolve(ctx)
	by.announce(policy.Op{Kind: policy.Use, Verb: verbCancel})
	if e := by.refused(); e != nil {
		return e.op
	}
	race.Disable()
	w := by.waiter()
	by.await(&w, by.arm(&w, toCancel{}), never)
	w.done()
	race.Enable()
	return by.cancelled().op
}

// announceCancel announces to the policy, if there is one, that the scope is about to be cancelled, unless it already
// is. It returns the fiber that must call stepped afterwards, or nil.
func (sc *scope) announceCancel() *Fiber {
	if sc.rt.policy != nil && sc.state.Load() != scopeCancelled {
		return announce(sc.rt, policy.Op{Kind: policy.Cancel})
	}
	return nil
}

// WithTimeout returns a scope inside ctx that ends after d, by the runtime's clock. Operations under it then return an
// error that is [ErrTimeout]. An earlier deadline of ctx stays in force. Call cancel when the scope is no longer
// needed.
func WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return withTimeout(ctx, time.Now().Add(d), d)
}

// WithDeadline is like WithTimeout, but takes a point in time.
func WithDeadline(ctx context.Context, at time.Time) (context.Context, context.CancelFunc) {
	return withTimeout(ctx, at, time.Until(at))
}

func withTimeout(ctx context.Context, at time.Time, d time.Duration) (context.Context, context.CancelFunc) {
	ts := &timedScope{deadline: at}
	if up, ok := ctx.Deadline(); ok && up.Before(at) {
		ts.deadline = up // for display only: ctx may use a clock other than the runtime's
	}
	c := resolve(ctx)
	sc := (*scope)(&ts.scopeContext)
	ts.cold.timed = true
	sc.useCold(&ts.cold)
	sc.init(ctx, c.runtime(), c.sc, c.f)
	if d <= 0 {
		ts.Expire(0)
		return ts, sc.end
	}
	clk := sc.rt.s.Clock()
	ts.at = after(clk, d)
	race.Release(unsafe.Pointer(&ts.timer)) // for Expire
	race.Disable()
	clk.Arm(&ts.timer, ts.at, ts, 0)
	race.Enable()
	return ts, func() {
		by := sc.announceCancel()
		race.Disable()
		clk.Stop(&ts.timer)
		race.Enable()
		sc.end()
		by.stepped()
	}
}

// Shield returns a context that has the values of ctx but is not cancelled when ctx is. It is for work that must be
// finished after a cancellation, such as releasing resources or notifying a peer. Limit its duration with WithTimeout.
func Shield(ctx context.Context) context.Context {
	// Spec: NU-21 (a shield delays a cancel)
	sc := newScope()
	c := resolve(ctx)
	sc.init(context.WithoutCancel(ctx), c.runtime(), nil, c.f)
	return (*scopeContext)(sc)
}
