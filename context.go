package coir

import (
	"context"
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/clock"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
)

// scopeContext is a scope as seen by the code that runs under it. It is the same object with other methods.
type scopeContext scope

// fiberContext is a fiber as seen by its own code.
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
	return c.nursery.value(key)
}

// String keeps fmt from walking into a running fiber.
func (c *fiberContext) String() string { return "coir.Fiber(" + (*Fiber)(c).Name() + ")" }

// String keeps fmt from walking into a running scope.
func (c *scopeContext) String() string { return "coir.Scope" }

// timedScope is a scope with a deadline on the runtime's clock.
type timedScope struct {
	scopeContext
	cold     coldScope
	deadline time.Time
	timer    clock.Timer
}

func (c *timedScope) Deadline() (time.Time, bool) { return c.deadline, true }

// Expire implements clock.Target. In a race build it cancels the scope on another goroutine. The clock may call from
// inside a hidden section, and the cancel calls package context, whose synchronisation must stay visible.
//
//go:norace
func (c *timedScope) Expire(uint64) {
	if !race.Enabled {
		c.expire()
		return
	}
	done := make(chan struct{})
	go func() {
		c.expire()
		close(done)
	}()
	<-done
}

//go:norace
func (c *timedScope) expire() {
	sc := (*scope)(&c.scopeContext)
	sc.cancel(plainTimeout, nil)
	race.Acquire(unsafe.Pointer(&c.timer)) // detach calls into package context, whose memory WithTimeout has written
	sc.detach()
	if cs := sc.rt.contexts; cs != nil { // derived contexts are done too, and no step may follow to find them
		race.Disable()
		cs.look(sc.rt.policy)
		race.Enable()
	}
}

// WithCancel returns a scope inside ctx and a function that cancels it for a cause. A wait under the scope costs a
// fiber nothing extra, and WithCancel starts no goroutine. Call cancel when the scope is no longer needed: defer
// cancel(nil). A nil cause stands for context.Canceled.
func WithCancel(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	sc := newScope()
	c := resolve(ctx)
	sc.init(ctx, c.runtime(), c.sc, c.f)
	return (*scopeContext)(sc), func(cause error) {
		by := sc.announceCancel()
		sc.cancel(canceledFor(cause), nil)
		sc.end()
		if by != nil {
			by.stepped()
		}
	}
}

// announceCancel announces to the policy, if there is one, that the scope is about to be cancelled, unless it already
// has been. It returns the fiber that must call stepped afterwards, or nil.
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
		ts.deadline = up // only to show it: ctx may use another clock than the runtime
	}
	c := resolve(ctx)
	sc := (*scope)(&ts.scopeContext)
	sc.useCold(&ts.cold)
	sc.init(ctx, c.runtime(), c.sc, c.f)
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

// Shield returns a context that has the values of ctx but is not cancelled when ctx is. It is for work that must be
// finished, such as giving resources back or notifying a peer. Limit it with WithTimeout.
func Shield(ctx context.Context) context.Context {
	// Spec: NU-21 (a shield delays a cancel)
	sc := newScope()
	c := resolve(ctx)
	sc.init(context.WithoutCancel(ctx), c.runtime(), nil, c.f)
	return (*scopeContext)(sc)
}
