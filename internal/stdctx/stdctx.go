// Package stdctx extends package context for coir. It has a [Context] that ends on demand, with any error and cause;
// access to the word where a context keeps its error ([ErrWord]); and a [List] of contexts with values that depend on
// them. It does not know scopes or fibers.
//
// This package uses two things that package context does not document: the key by which it finds a context of its own
// types, and the field in which such a context keeps its error. Both are looked up when the program starts. If a
// release of Go does not have them, a derived context costs a goroutine, and checking a context costs a receive.
package stdctx

import (
	"context"
	"reflect"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"
)

// Context is a context of the standard library that ends when End is called. Package context recognises it through any
// number of WithValues: a context derived from it registers with it, starts no goroutine, and finds the cause.
type Context struct {
	context.Context
	cancel context.CancelCauseFunc
	once   sync.Once
	err    error
	why    context.Context // a context that has ended with the cause, if the cause is not err
	pass   func()          // ends the context with err
}

// New returns a context that has not ended.
func New() *Context {
	c := new(Context)
	c.Context, c.cancel = context.WithCancelCause((*parent)(c))
	return c
}

// End ends the context with err, which is context.Canceled or context.DeadlineExceeded. A nil cause means that the
// cause is err. Only the first call has an effect.
func (c *Context) End(err, cause error) {
	c.once.Do(func() {
		if err == context.Canceled {
			c.cancel(cause)
			return
		}
		if cause != nil {
			why, cancel := context.WithCancelCause(context.Background())
			cancel(cause)
			c.why = why
		}
		c.err = err
		c.pass()
	})
}

// parent is the parent of a Context. Through it End chooses the error and the cause that the context ends with.
type parent Context

func (*parent) Deadline() (time.Time, bool) { return time.Time{}, false }
func (*parent) Done() <-chan struct{}       { return neverDone }
func (p *parent) Err() error                { return p.err }

func (p *parent) Value(key any) any {
	if key == Key && p.why != nil {
		return p.why.Value(key)
	}
	return nil
}

func (p *parent) AfterFunc(f func()) func() bool {
	p.pass = f
	return func() bool { return false }
}

var neverDone = make(chan struct{})

// Key is the key that package context uses to ask a context for the nearest context of its own types. If a context
// answers the key as a [Context] does, and returns the same Done channel, package context treats it as one of its own.
var Key = func() (key any) {
	_ = context.Cause(keyProbe{context.Background(), &key})
	return key
}()

type keyProbe struct {
	context.Context
	key *any
}

func (p keyProbe) Value(key any) any { *p.key = key; return nil }
func (keyProbe) Err() error          { return context.Canceled }

// ErrWord returns the address where the context that closes ctx's Done channel keeps its error, if that context is one
// of package context's own types. Otherwise it returns nil. The word holds nil until the context has ended. Loading it
// takes a tenth of the time of a receive from Done or a call of Err.
func ErrWord(ctx context.Context) *atomic.Value {
	std, ok := ctx.Value(Key).(context.Context)
	if !ok || errField == nil || reflect.TypeOf(std) != errType || std.Done() != ctx.Done() {
		return nil
	}
	return (*atomic.Value)(unsafe.Add(reflect.ValueOf(std).UnsafePointer(), errField.Offset))
}

// errField is the field of package context's own type in which ErrWord is interested. It is nil if this release of Go
// has no field of that name and type.
var errType, errField = func() (reflect.Type, *reflect.StructField) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	std := reflect.TypeOf(ctx.Value(Key))
	if std == nil || std.Kind() != reflect.Pointer || std.Elem().Kind() != reflect.Struct {
		return nil, nil
	}
	f, ok := std.Elem().FieldByName("err")
	if !ok || f.Type != reflect.TypeFor[atomic.Value]() || len(f.Index) != 1 {
		return nil, nil
	}
	return std, &f
}()

// IsClosed reports whether a Done channel is closed. A nil channel is not.
//
//go:norace
func IsClosed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}
