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
// From package context to scopes: a scope may be made inside a context of package context. A link connects the scope
// with that context. Package context reports a cancellation on a separate goroutine, some time after cancel() has
// returned. That is too late for an operation that starts after the cancellation, so a linked scope polls its context
// before each operation. A poll is a non-blocking receive from a channel.
//
// From scopes to package context: contexts that package context derives from a scope are children of a standard context
// that ends when the scope does. See the method standard, and internal/stdctx.

// A link connects a scope with the context that the scope was made inside, if that context is not one of coir's and can
// be cancelled. Scopes inside that scope share the link.
type link struct {
	sc     *scope // the scope to cancel when ctx ends
	ctx    context.Context
	done   <-chan struct{}
	until  time.Time                // ctx's deadline, for snapshots; zero if there is none
	err    *atomic.Value            // see stdctx.ErrWord; nil if unknown
	behind *scope                   // the scope that ctx was derived from, if that scope is linked too
	stop   func() bool              // stops the AfterFunc; nil under a policy
	watch  *stdctx.Entry[dependent] // set under a policy
}

// hangOn links sc to ctx, so that the end of ctx cancels sc.
func (sc *scope) hangOn(ctx context.Context) {
	l := &link{sc: sc, ctx: ctx, done: ctx.Done()}
	l.until, _ = ctx.Deadline()
	up := scopeBehind(ctx)
	if up != nil {
		up.tie() // a scope that is not tied has no link yet
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

// mayBeDone reports whether l.ctx may have been cancelled. If it returns false, l.ctx was certainly alive. It must be
// fast: every operation under a linked scope calls it, and almost every service runs under a context that can be
// cancelled.
//
//go:norace
func (l *link) mayBeDone() bool { return l.err == nil || l.err.Load() != nil }

// poll reports whether the scope has been cancelled. If the scope is linked to a context that is done, poll first
// cancels the scope.
//
//go:norace
func (sc *scope) poll() bool {
	sc.tie()
	if sc.state.Load() == scopeLinked {
		l := sc.cold().link
		if l.behind != nil && l.behind.poll() {
			l.behind.standard() // l.behind has ended: if that is to close l.done, it has done so when standard returns
		}
		if stdctx.IsClosed(l.done) {
			l.sc.cancel(endingOf(l.ctx), nil) // this also cancels sc
		}
	}
	return sc.state.Load() == scopeCancelled
}

// scopeBehind returns the scope that ctx is or was derived from, or nil if there is none.
func scopeBehind(ctx context.Context) *scope {
	switch x := ctx.Value(contextKey{}).(type) {
	case *fiberContext:
		return &x.nursery.scope
	case *scopeContext:
		return (*scope)(x)
	}
	return nil
}

// endingOf returns how ctx, a context of package context, ended, or nil if it has not ended.
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

// standard returns a context of the standard library that ends when the scope ends. Package context cannot tell the
// scope from this context, because the scope's Done returns the standard context's channel, and its Value answers the
// key that package context uses to find its own contexts.
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
	if sc.ctxErr() != nil { // otherwise cancel will find std
		e := sc.ending()
		std.End(e.err, e.cause)
	}
	return std
}

// value implements the Value method of the contexts of scopes and fibers, for all keys except coir's own.
func (sc *scope) value(key any) any {
	if key == stdctx.Key {
		return sc.standard().Value(key)
	}
	return sc.up.Value(key)
}
