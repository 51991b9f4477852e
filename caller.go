package coir

import (
	"context"

	"github.com/coir-go/coir/internal/bubble"
	"github.com/coir-go/coir/internal/channel"
	"github.com/coir-go/coir/internal/clock"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/sched"
)

// caller identifies the caller of an operation: a fiber or a goroutine.
//
// A context records the fiber that it was made for, but programs pass contexts on. So the caller is that fiber only if
// the running goroutine is the fiber's own. Otherwise coir looks the goroutine up in the registry of frames. If the
// goroutine runs another fiber, that fiber is the caller. If it runs none, the caller is a plain goroutine, and the
// operation blocks it. It is therefore safe to use the context of another fiber.
type caller struct {
	ctx context.Context
	f   *Fiber // nil for a goroutine
	sc  *scope // the coir scope whose cancellation cancels ctx; nil if ctx does not share a coir scope's Done channel
	own bool   // f may wait under sc without registering

	derived *Runtime // the runtime of the scope that ctx was derived from, if sc is nil although there is one

	done <-chan struct{} // the Done channel of a context that is not a scope; set by ended
}

// Spec: FB-19 (an operation parks the fiber, not the worker)
// Spec: FB-20 (an operation blocks a goroutine as one)
// Spec: FB-21 (the caller's identity is checked)
//
//go:norace
func resolve(ctx context.Context) (c caller) {
	c.ctx = ctx
	if c.f, c.sc = scopeOf(ctx); c.sc == nil {
		c.resolveForeign()
	}
	if c.f == nil || !c.f.task.Here() {
		c.f = currentFiber()
	}
	if race.Enabled && c.f == nil {
		releaseLabels()
	}
	c.own = c.f != nil && c.sc != nil && (c.sc.owner == c.f || c.sc == &c.f.nursery.scope)
	return c
}

// resolveForeign looks for the fiber or scope that a foreign context was derived from. It treats the context as that
// scope only if the two share the Done channel, as after context.WithValue.
//
//go:noinline
func (c *caller) resolveForeign() {
	switch x := c.ctx.Value(contextKey{}).(type) {
	case *fiberContext:
		c.f = (*Fiber)(x)
		c.sc = &c.f.nursery.scope
	case *scopeContext:
		c.sc = (*scope)(x)
		c.f = c.sc.owner
	default:
		return
	}
	if c.ctx.Done() != c.sc.doneChan() { // doneChan polls the context that c.sc is linked to, so c.ctx is up to date
		c.derived = c.sc.rt
		c.sc = nil
	}
}

// ownFiber is a fast form of resolve for the common case, a fiber under a scope of its own. It returns the fiber and
// the scope, or nil.
//
// Operations handle this case separately, and in three parts: one function arms the parker, publishes the wait and
// returns; then the operation calls Task.Park; then another function cleans up. While a fiber waits, only the operation
// itself is on its stack. This keeps the stack of a waiting fiber within its first two kilobytes, and avoids
// mispredicted returns.
//
//go:norace
func ownFiber(ctx context.Context) (*Fiber, *scope) {
	f, sc := scopeOf(ctx)
	if f == nil || !f.task.Here() {
		return nil, nil
	}
	return f, sc
}

// scopeOf returns the scope that ctx is, and the fiber that may wait under the scope without registering. It returns
// nil for both if ctx is not a scope.
//
//go:norace
func scopeOf(ctx context.Context) (f *Fiber, sc *scope) {
	if x, ok := ctx.(*fiberContext); ok { // a switch would compare three hashes first
		f = (*Fiber)(x)
		sc = &f.nursery.scope
	} else if x, ok := ctx.(*scopeContext); ok {
		f, sc = x.owner, (*scope)(x)
	} else if x, ok := ctx.(*timedScope); ok {
		f, sc = x.owner, (*scope)(&x.scopeContext)
	}
	return f, sc
}

// currentFiber returns the fiber that the calling goroutine runs, or nil.
//
//go:norace
func currentFiber() (f *Fiber) {
	race.Disable()
	if t := sched.Current(); t != nil {
		f = fiberOf(t)
	}
	race.Enable()
	return f
}

// currentWorker returns the worker that runs the calling fiber, near which other fibers should be woken. In a goroutine
// it returns nil. The lookup takes time, so call it only if there is a parker to ready.
//
//go:norace
func currentWorker() park.Place {
	if f := currentFiber(); f != nil {
		return f.task.Worker()
	}
	return nil
}

// runtime returns the runtime of the caller's timers and fibers. It is called with the caller's synchronisation
// visible.
func (c *caller) runtime() *Runtime {
	if c.f != nil {
		return c.f.nursery.rt
	}
	if x := c.sc; x != nil && !x.rt.inOtherBubble() {
		return x.rt
	}
	if c.derived != nil && !c.derived.inOtherBubble() {
		return c.derived
	}
	return defaultRuntime()
}

// uses records that the caller has used this side of ch.
//
//go:norace
func (c *caller) uses(ch *channel.Core, side channel.Side) {
	if c.f == nil {
		ch.UsedBy(side, 0)
		return
	}
	ch.UsedBy(side, c.f.id)
}

// worker returns the caller's worker, near which other fibers should be woken, or nil.
//
//go:norace
func (c *caller) worker() park.Place {
	if c.f == nil {
		return nil
	}
	return c.f.task.Worker()
}

// ended returns how the caller's context ended, or nil if it has not ended. An operation calls it before it waits,
// because the methods of a foreign context may panic or call runtime.Goexit, and no wait should be published at that
// time.
//
// Other functions call such methods too. resolveForeign and isPlainGoroutine do so before the operation begins, and
// cancelled does so after its wait has been withdrawn. Only parkForeign does so while the wait is published, to learn
// of the end of the context. A panic there would leave the wait behind.
//
//go:norace
func (c *caller) ended() *ending {
	if c.sc == nil {
		if c.f != nil && c.f.simulated {
			c.f.nursery.rt.tellDeadline(c.ctx)
		}
		c.done = c.ctx.Done()
		return endingOf(c.ctx)
	}
	if c.sc.state.Load() == scopeLive || !c.sc.poll() {
		if c.inOtherBubble() {
			c.sc.checkDone()
			c.done = c.ctx.Done()
		}
		return nil
	}
	return c.sc.ending()
}

// refused is like ended, for an operation that has been announced. If it returns an ending, the operation must return
// without doing anything.
//
//go:norace
func (c *caller) refused() *ending {
	e := c.ended()
	if e != nil {
		c.tellRefused(e)
	}
	return e
}

// tellRefused tells the policy that an operation returns without doing anything, because of e.
//
//go:norace
func (c *caller) tellRefused(e *ending) {
	if c.f != nil && c.f.simulated {
		c.f.tell(outcomeOf(e.reason()), -1)
	}
}

// cancelled returns how the caller's context ended. It is called after a wait that ended with reason Cancelled.
func (c *caller) cancelled() *ending {
	if c.sc != nil {
		return c.sc.ending()
	}
	if e := endingOf(c.ctx); e != nil {
		return e
	}
	return plainCancel // by Interrupt
}

// failureReason returns the reason with which the channel counts an operation under sc that ended with reason r. If the
// scope's time ran out, the operation counts as timed out, not as cancelled.
//
//go:norace
func (sc *scope) failureReason(r park.Reason) park.Reason {
	if r == park.Cancelled {
		if c := sc.rest.Load(); c != nil && c.how != nil { // otherwise Interrupt ended the wait
			return c.how.reason()
		}
	}
	return r
}

// failureReason returns the reason with which the channel counts a wait of the caller that ended with reason r: see
// scope.failureReason. It returns None if only methods of a foreign context tell: see core.countForeign.
//
//go:norace
func (c *caller) failureReason(r park.Reason) park.Reason {
	switch {
	case c.sc != nil:
		return c.sc.failureReason(r)
	case r == park.Cancelled:
		return park.None
	}
	return r
}

// clock returns the clock of the caller's waits. It is called in a hidden section.
//
//go:norace
func (c *caller) clock() clock.Clock {
	race.EnterUser() // a bubble's default runtime must be ordered after its creation
	rt := c.runtime()
	race.LeaveUser()
	return rt.s.Clock()
}

// clockHere returns the clock of the calling fiber or goroutine. It is called with the caller's synchronisation
// visible.
func clockHere() clock.Clock {
	c := caller{f: currentFiber()}
	if c.f == nil {
		c.f = childHere()
	}
	return c.runtime().s.Clock()
}

// inOtherBubble reports whether the caller is a goroutine in a bubble of testing/synctest other than that of its
// context. Such a goroutine must be woken through the context's channel, not by the scope.
//
//go:norace
func (c *caller) inOtherBubble() bool {
	return bubble.Possible && c.f == nil && c.sc != nil && c.sc.rt.inOtherBubble()
}
