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
// Downwards: a scope may be made inside a context of package context. It hangs on that context by a link. Package context tells
// of a cancel on a goroutine of its own, some time after cancel() has returned. That is too late for an operation which
// begins after it, so scopes that are linked look for themselves before each operation: poll. It costs a look at a channel.
//
// Upwards: contexts that package context derives from a scope hang on a standard context, which ends when the scope does: standard.

// A link ties a scope to the context that it was made inside, if that is none of ours and can be cancelled. The scopes inside that
// scope share the link.
type link struct {
	sc     *scope // which hangs on ctx
	ctx    context.Context
	done   <-chan struct{}
	err    *atomic.Value // set before done is closed; nil if that is not known. See mayBeDone
	behind *scope        // a scope that ctx was derived from, if that one is linked too
	stop   func() bool   // stops the call back; nil under a policy
	watch  *watched      // under a policy
}

// hangOn has the end of ctx cancel sc.
func (sc *scope) hangOn(ctx context.Context) {
	l := &link{sc: sc, ctx: ctx, done: ctx.Done()}
	up := scopeBehind(ctx)
	if up != nil {
		up.tie() // else its link is not known
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

// mayBeDone reports false if l.ctx has not been cancelled. Every operation under a linked scope asks, and almost every service
// runs below a context that can be cancelled. A receive from done or a call of Err takes ten times as long as this look at
// the word that Err reads.
//
//go:norace
func (l *link) mayBeDone() bool { return l.err == nil || l.err.Load() != nil }

// errOf returns where the context that closes ctx's Done channel keeps its error, if it is one of package context's own.
func errOf(ctx context.Context) *atomic.Value {
	std, ok := ctx.Value(causeKey).(context.Context)
	if !ok || errField == nil || reflect.TypeOf(std) != errType || std.Done() != ctx.Done() {
		return nil
	}
	return (*atomic.Value)(unsafe.Add(reflect.ValueOf(std).UnsafePointer(), errField.Offset))
}

// errField is the field of package context's own type that errOf looks for. It is nil if there is none of that name and type
// in this release of Go: then links look at the channel.
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

// poll reports whether the scope has been cancelled, and cancels it first if the context that it hangs on is done.
//
//go:norace
func (sc *scope) poll() bool {
	sc.tie()
	if sc.state.Load() == scopeLinked {
		l := sc.cold().link
		if l.behind != nil && l.behind.poll() {
			l.behind.standard() // waits until l.done is closed, if that depends on it
		}
		if isClosed(l.done) {
			l.sc.cancel(endingOf(l.ctx), nil) // and sc with it
		}
	}
	return sc.state.Load() == scopeCancelled
}

// scopeBehind returns the scope of ours that ctx was derived from, or nil.
func scopeBehind(ctx context.Context) *scope {
	switch x := ctx.Value(contextKey{}).(type) {
	case *fiberContext:
		return &x.nursery.scope
	case *scopeContext:
		return (*scope)(x)
	}
	return nil
}

// endingOf returns how a context of package context ended, or nil if it has not.
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

// standard is the scope as a context of the standard library, and ends with it. Package context knows its own kind
// through any number of WithValues: what is derived registers there, starts no goroutine, and finds the cause. All that
// it takes is that Done is that context's channel, and that Value answers the key by which package context asks.
type standard struct {
	context.Context
	cancel context.CancelCauseFunc
	once   sync.Once
	err    error
	why    context.Context // has ended for the cause, if that is not err
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
	if sc.ctxErr() != nil { // else cancel will see std
		std.finish(sc.ending())
	}
	return std
}

// finish ends the context as its scope has ended.
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

// standardParent is what the standard context is derived from. It lets the scope choose the error that it ends with, and
// the cause.
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
