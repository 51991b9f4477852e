package coir

import (
	"context"
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/clock"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
)

// scopeContext is a scope as its owner's code sees it. It is the same object: only the methods differ.
type scopeContext scope

// fiberContext is a fiber as its own code sees it.
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

// Expire implements clock.Target. In a race build the scope is cancelled on a goroutine of its own, because the clock may
// call from inside a hidden section, and package context, which is told, must be seen to synchronise.
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
	if cs := sc.rt.contexts; cs != nil { // contexts derived from it are done too, and no step may follow that would look
		race.Disable()
		cs.look(sc.rt.policy)
		race.Enable()
	}
}

// WithCancel returns a scope inside ctx that can be cancelled for a cause. Waits under it cost a fiber nothing extra, and
// no goroutine is started. Call cancel when the scope is no longer needed: defer cancel(nil). A nil cause is
// context.Canceled.
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

// announceCancel announces to a policy that the scope is about to be cancelled, unless it has been. It returns the fiber that has
// to call stepped, if one has.
func (sc *scope) announceCancel() *Fiber {
	if sc.rt.policy != nil && sc.state.Load() != scopeCancelled {
		return announce(sc.rt, policy.Op{Kind: policy.Cancel})
	}
	return nil
}

// WithTimeout returns a scope inside ctx that ends after d, by the runtime's clock: operations under it then return an error
// that is [ErrTimeout]. An earlier deadline of ctx stays in force. Call cancel when the scope is no longer needed.
func WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return withTimeout(ctx, time.Now().Add(d), d)
}

// WithDeadline is WithTimeout with a point in time.
func WithDeadline(ctx context.Context, at time.Time) (context.Context, context.CancelFunc) {
	return withTimeout(ctx, at, time.Until(at))
}

func withTimeout(ctx context.Context, at time.Time, d time.Duration) (context.Context, context.CancelFunc) {
	ts := &timedScope{deadline: at}
	if up, ok := ctx.Deadline(); ok && up.Before(at) {
		ts.deadline = up // only to be shown: the runtime's clock may be another one than that of ctx
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

// Shield returns a context with the values of ctx that is not cancelled when ctx is, for work that must be finished:
// giving things back, telling a peer. Put a deadline on it with WithTimeout.
func Shield(ctx context.Context) context.Context {
	// Spec: NU-21 (a shield delays a cancel)
	sc := newScope()
	c := resolve(ctx)
	sc.init(context.WithoutCancel(ctx), c.runtime(), nil, c.f)
	return (*scopeContext)(sc)
}
