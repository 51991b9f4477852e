package coir

import (
	"context"
	"errors"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/race"
)

// The bridge between scopes and package context, in both directions.
//
// Downwards: a scope may be made inside a context of package context. A link ties it to that context. Package context
// reports a cancel on a separate goroutine, some time after cancel() has returned. That is too late for an operation
// that begins after the cancel, so a linked scope polls its context before each operation. That costs a look at a
// channel.
//
// Upwards: contexts that package context derives from a scope are children of a standard context, which ends when the
// scope does. See standard.

// A link ties a scope to the context that it was made inside, if that context is not coir's and can be cancelled. The
// scopes inside that scope share the link.
type link struct {
	sc     *scope // the scope that ends with ctx
	ctx    context.Context
	done   <-chan struct{}
	err    *atomic.Value // the word where ctx keeps its error, or nil if not known; see mayBeDone
	behind *scope        // the scope that ctx was derived from, if that is linked too
	stop   func() bool   // stops the AfterFunc; nil under a policy
	watch  *watched      // set under a policy
}

// hangOn arranges for the end of ctx to cancel sc.
func (sc *scope) hangOn(ctx context.Context) {
	l := &link{sc: sc, ctx: ctx, done: ctx.Done()}
	up := scopeBehind(ctx)
	if up != nil {
		up.tie() // its link is not known before that
	}
	if up != nil && up.cold().link != nil {
		l.behind = up
	} else {
		l.err = errOf(ctx)
	}
	sc.cold().link = l
	sc.state.Store(scopeLinked)
	if cs := sc.rt.contexts; cs != nil {
		l.watch = &watched{ctx: ctx, done: l.done, sc: sc}
		cs.add(l.watch)
	} else {
		l.stop = context.AfterFunc(ctx, func() { sc.cancel(endingOf(ctx), nil) })
	}
}

func (l *link) detach() {
	if l.watch != nil {
		l.sc.rt.contexts.remove(l.watch)
	} else {
		l.stop()
	}
}

// mayBeDone reports false if l.ctx has not been cancelled. Every operation under a linked scope calls it, and almost
// every service runs below a context that can be cancelled. A receive from done, or a call of Err, takes ten times as
// long as this load of the word that Err reads.
//
//go:norace
func (l *link) mayBeDone() bool { return l.err == nil || l.err.Load() != nil }

// errOf returns the address where the context that closes ctx's Done channel keeps its error, if that context is one of
// package context's own. Otherwise it returns nil.
func errOf(ctx context.Context) *atomic.Value {
	std, ok := ctx.Value(causeKey).(context.Context)
	if !ok || errField == nil || reflect.TypeOf(std) != errType || std.Done() != ctx.Done() {
		return nil
	}
	return (*atomic.Value)(unsafe.Add(reflect.ValueOf(std).UnsafePointer(), errField.Offset))
}

// errField is the field of package context's own type that errOf looks for. It is nil if this release of Go has no
// field of that name and type: then links look at the channel.
var errType, errField = func() (reflect.Type, *reflect.StructField) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	std := reflect.TypeOf(ctx.Value(causeKey))
	if std == nil || std.Kind() != reflect.Pointer || std.Elem().Kind() != reflect.Struct {
		return nil, nil
	}
	f, ok := std.Elem().FieldByName("err")
	if !ok || f.Type != reflect.TypeFor[atomic.Value]() || len(f.Index) != 1 {
		return nil, nil
	}
	return std, &f
}()

//go:norace
func isClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

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
		if isClosed(l.done) {
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

// standard is a scope as a context of the standard library. It ends when the scope ends. Package context recognises its
// own contexts through any number of WithValues: a derived context registers with the standard context, starts no
// goroutine, and finds the cause. For that, Done must return the standard context's channel, and Value must answer the
// key that package context uses.
type standard struct {
	context.Context
	cancel context.CancelCauseFunc
	once   sync.Once
	err    error
	why    context.Context // a context that has ended with the cause, if that differs from err
	pass   func()          // ends the context with err
}

func (sc *scope) doneChan() <-chan struct{} { return sc.standard().Done() }

func (sc *scope) afterFunc(f func()) func() bool { return context.AfterFunc(sc.standard(), f) }

// Spec: FB-22 (a derived context still parks the fiber)
// Spec: FB-23 (a fiber's context ends with its nursery)
func (sc *scope) standard() *standard {
	c := sc.cold()
	std := c.std.Load()
	if std == nil {
		std = new(standard)
		std.Context, std.cancel = context.WithCancelCause((*standardParent)(std))
		sc.bindDone(std)
		race.Release(unsafe.Pointer(std))
		if !c.std.CompareAndSwap(nil, std) {
			std = c.std.Load()
		}
	}
	if sc.ctxErr() != nil { // otherwise cancel will see std
		std.finish(sc.ending())
	}
	return std
}

// finish ends the context with e, the ending of its scope.
func (std *standard) finish(e *ending) {
	std.once.Do(func() {
		if e.err == context.Canceled {
			std.cancel(e.cause)
			return
		}
		if e.cause != nil {
			why, cancel := context.WithCancelCause(context.Background())
			cancel(e.cause)
			std.why = why
		}
		std.err = e.err
		std.pass()
	})
}

// standardParent is the parent of a standard context. Through it the scope chooses the error and the cause that the
// context ends with.
type standardParent standard

func (*standardParent) Deadline() (time.Time, bool) { return time.Time{}, false }
func (*standardParent) Done() <-chan struct{}       { return neverDone }
func (p *standardParent) Err() error                { return p.err }

func (p *standardParent) Value(key any) any {
	if key == causeKey && p.why != nil {
		return p.why.Value(key)
	}
	return nil
}

func (p *standardParent) AfterFunc(f func()) func() bool {
	p.pass = f
	return func() bool { return false }
}

var neverDone = make(chan struct{})

// causeKey is the key that package context uses to ask a context for the nearest context of its own types.
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

// value implements Value of a scope's and a fiber's context, for all keys but our own.
func (sc *scope) value(key any) any {
	if key == causeKey {
		return sc.standard().Value(key)
	}
	return sc.up.Value(key)
}
