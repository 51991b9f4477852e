package coir

import (
	"context"
	"errors"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/stdctx"
)

// The bridge between scopes and package context, in both directions.
//
// Downwards: a scope may be made inside a context of package context. A link ties it to that context. Package context
// reports a cancel on a separate goroutine, some time after cancel() has returned. That is too late for an operation
// that begins after the cancel, so a linked scope polls its context before each operation. That costs a look at a
// channel.
//
// Upwards: contexts that package context derives from a scope are children of a standard context, which ends when the
// scope does. See standard, and internal/stdctx.

// A link ties a scope to the context that it was made inside, if that context is not coir's and can be cancelled. The
// scopes inside that scope share the link.
type link struct {
	sc     *scope // the scope that ends with ctx
	ctx    context.Context
	done   <-chan struct{}
	until  time.Time                // its deadline, for snapshots; zero: none
	err    *atomic.Value            // see stdctx.ErrWord; nil if not known
	behind *scope                   // the scope that ctx was derived from, if that is linked too
	stop   func() bool              // stops the AfterFunc; nil under a policy
	watch  *stdctx.Entry[dependent] // set under a policy
}

// hangOn arranges for the end of ctx to cancel sc.
func (sc *scope) hangOn(ctx context.Context) {
	l := &link{sc: sc, ctx: ctx, done: ctx.Done()}
	l.until, _ = ctx.Deadline()
	up := scopeBehind(ctx)
	if up != nil {
		up.tie() // up has no link before that
	}
	if up != nil && up.cold().link != nil {
		l.behind = up
	} else {
		l.err = stdctx.ErrWord(ctx)
	}
	sc.cold().link = l
	sc.state.Store(scopeLinked)
	if cs := sc.rt.contexts; cs != nil {
		l.watch = cs.Add(ctx, l.done, dependent{sc: sc})
	} else {
		l.stop = context.AfterFunc(ctx, func() { sc.cancel(endingOf(ctx), nil) })
	}
}

func (l *link) detach() {
	if l.watch != nil {
		l.sc.rt.contexts.Remove(l.watch)
	} else {
		l.stop()
	}
}

// mayBeDone reports false if l.ctx has not been cancelled. Every operation under a linked scope calls it, and almost
// every service runs below a context that can be cancelled.
//
//go:norace
func (l *link) mayBeDone() bool { return l.err == nil || l.err.Load() != nil }

// poll reports whether the scope has been cancelled. It first cancels the scope if the context that the scope is linked
// to is done.
//
//go:norace
func (sc *scope) poll() bool {
	sc.tie()
	if sc.state.Load() == scopeLinked {
		l := sc.cold().link
		if l.behind != nil && l.behind.poll() {
			l.behind.standard() // returns once l.done is closed, if that depends on l.behind
		}
		if stdctx.IsClosed(l.done) {
			l.sc.cancel(endingOf(l.ctx), nil) // and sc with it
		}
	}
	return sc.state.Load() == scopeCancelled
}

// scopeBehind returns the scope of coir that ctx was derived from, or nil.
func scopeBehind(ctx context.Context) *scope {
	switch x := ctx.Value(contextKey{}).(type) {
	case *fiberContext:
		return &x.nursery.scope
	case *scopeContext:
		return (*scope)(x)
	}
	return nil
}

// endingOf returns how a context of package context ended, or nil if it has not ended.
func endingOf(ctx context.Context) *ending {
	err := ctx.Err()
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return expiredFor(context.Cause(ctx))
	}
	return canceledFor(context.Cause(ctx))
}

func (sc *scope) doneChan() <-chan struct{} { return sc.standard().Done() }

func (sc *scope) afterFunc(f func()) func() bool { return context.AfterFunc(sc.standard(), f) }

// standard returns the scope as a context of the standard library, which ends when the scope ends. For package context
// the two are one, because Done returns the standard context's channel, and Value answers the key that package context
// uses.
//
// Spec: FB-22 (a derived context still parks the fiber)
// Spec: FB-23 (a fiber's context ends with its nursery)
func (sc *scope) standard() *stdctx.Context {
	c := sc.cold()
	std := c.std.Load()
	if std == nil {
		std = stdctx.New()
		sc.bindDone(std)
		race.Release(unsafe.Pointer(std))
		if !c.std.CompareAndSwap(nil, std) {
			std = c.std.Load()
		}
	}
	if sc.ctxErr() != nil { // otherwise cancel will see std
		e := sc.ending()
		std.End(e.err, e.cause)
	}
	return std
}

// value implements Value of a scope's and a fiber's context, for all keys but our own.
func (sc *scope) value(key any) any {
	if key == stdctx.Key {
		return sc.standard().Value(key)
	}
	return sc.up.Value(key)
}
