package coir

import (
	"context"
	"unsafe"

	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/wait"
	"github.com/coir-go/coir/internal/xatomic"
)

// Promise is a result that will be available later: a value, or an error. Any fiber or goroutine may complete it, once,
// by [Promise.Resolve] or [Promise.Reject]; any number may wait for it. The call that completes it is ordered before
// the return of each wait for it.
//
// The zero value is a promise that has not been completed, and has no name. A Promise must not be copied after first
// use.
type Promise[T any] struct {
	taken xatomic.Bool // a call is completing the promise, or has completed it
	ev    Event        // set when value and err have been written
	value T
	err   error
	last  *callback[T] // the last function passed to OnDone, in a ring; under the lock of ev
}

// callback is a function passed to OnDone.
type callback[T any] struct {
	f    func(T, error)
	next *callback[T] // the next of the last is the first
}

var (
	verbResolve = &policy.Verb{Name: "resolve"}
	verbReject  = &policy.Verb{Name: "reject"}
	verbOnDone  = &policy.Verb{Name: "on done"}
	verbResult  = &policy.Verb{Name: "await", Waits: "for the promise", Ends: "complete"}
)

// NewPromise returns a promise that has not been completed. Use [WithName] to give it a name, which reports show.
func NewPromise[T any](opts ...NameOption) *Promise[T] {
	p := new(Promise[T])
	p.ev.name = nameOf(opts)
	return p
}

// Init sets the name of a promise that is a field of another object. Call it before the promise is first used.
func (p *Promise[T]) Init(opts ...NameOption) { p.ev.name = nameOf(opts) }

// Describe sets the words that reports and snapshots use for a wait for the promise, in place of "for the promise".
// Call it before the promise is first used.
func (p *Promise[T]) Describe(v *Verb) { p.ev.what = (*policy.Verb)(v) }

// Name returns the name passed to NewPromise or Init.
func (p *Promise[T]) Name() string { return p.ev.name }

// Resolve completes the promise with v. It reports whether this call completed it; if the promise was completed before,
// Resolve changes nothing.
func (p *Promise[T]) Resolve(v T) bool { return p.complete(v, nil, verbResolve, false) }

// Reject completes the promise with err, which must not be nil. Like [Promise.Resolve], it reports whether this call
// completed the promise.
func (p *Promise[T]) Reject(err error) bool {
	if err == nil {
		panic("coir: Promise.Reject(nil): a promise that has a value is completed by Resolve")
	}
	var none T
	return p.complete(none, err, verbReject, false)
}

// complete completes the promise if this call is the first. If owned is true, the caller has already called take, so no
// other call can complete the promise.
func (p *Promise[T]) complete(v T, err error, verb *policy.Verb, owned bool) bool {
	var by *Fiber
	if simulating.Load() > 0 {
		by = p.ev.announce(currentFiber(), p.ev.op(verb))
	}
	first := owned || p.take()
	if first {
		p.value, p.err = v, err
		p.ev.happen()
		p.callOnDone()
	}
	if by != nil {
		by.tellFirst(first)
		by.stepped()
	}
	return first
}

// take returns true to the first caller, and false to all others.
//
//go:norace
func (p *Promise[T]) take() bool {
	race.Disable()
	defer race.Enable()
	return p.taken.CompareAndSwap(false, true)
}

// callOnDone calls the functions passed to OnDone, in order. If one panics, the others are called before the panic
// continues.
func (p *Promise[T]) callOnDone() {
	b := p.takeOnDone()
	if b == nil {
		return
	}
	race.Acquire(unsafe.Pointer(&p.last))
	callAll(func() bool {
		if b == nil { // the last one panicked
			return false
		}
		f := b.f
		b = b.next
		f(p.value, p.err)
		return true
	})
}

// Wait waits until the promise has been completed, and returns its value and error. If ctx ends first, Wait returns
// ctx's error. If ctx has already ended, Wait returns ctx's error even if the promise has been completed.
func (p *Promise[T]) Wait(ctx context.Context) (T, error) {
	if err := p.ev.wait(ctx, p.ev.resultVerb()); err != nil {
		var none T
		return none, err
	}
	return p.value, p.err
}

// resultVerb returns the verb that describes a wait for the result of the promise that e is part of.
//
//go:norace
func (e *Event) resultVerb() *policy.Verb {
	if e.what != nil {
		return e.what
	}
	return verbResult
}

// DoneCase returns a case that happens when the promise has been completed. It stores the value in *v and the error in
// *err; either may be nil.
func (p *Promise[T]) DoneCase(v *T, err *error) Case {
	_ = p.ev.name // panics here if the promise is nil, not under a lock
	escapes(p)
	return Case{what: caseEvent, arg: (*promiseCase[T])(p), ptr: unsafe.Pointer(v), err: err}
}

// OnDone makes the promise call f with its result, once. The call that completes the promise calls f before it returns.
// If the promise has already been completed, OnDone calls f. Because f runs in the fiber or goroutine of that call, it
// should be short, and must not wait. If f panics, the panic continues in that call.
func (p *Promise[T]) OnDone(f func(v T, err error)) {
	if f == nil {
		panic("coir: Promise.OnDone(nil): there is nothing to call")
	}
	var by *Fiber
	if simulating.Load() > 0 {
		by = p.ev.announce(currentFiber(), p.ev.op(verbOnDone))
	}
	b := &callback[T]{f: f}
	race.Release(unsafe.Pointer(&p.last))
	if !p.addOnDone(b) {
		race.Acquire(unsafe.Pointer(&p.ev.once))
		f(p.value, p.err)
	}
	by.stepped()
}

// addOnDone keeps b for callOnDone. It returns false if the promise has been completed.
//
//go:norace
func (p *Promise[T]) addOnDone(b *callback[T]) bool {
	race.Disable()
	defer race.Enable()
	h := &p.ev.once
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.done.Load() {
		return false
	}
	if p.last == nil {
		b.next = b
	} else {
		b.next, p.last.next = p.last.next, b
	}
	p.last = b
	return true
}

// takeOnDone returns the first of the functions that addOnDone kept, and clears the list. The caller has completed the
// promise under the lock, after which addOnDone adds no more functions, so takeOnDone needs no lock.
//
//go:norace
func (p *Promise[T]) takeOnDone() *callback[T] {
	last := p.last
	if last == nil {
		return nil
	}
	first := last.next
	last.next, p.last = nil, nil
	return first
}

// String returns a short description of the promise: its name, or its number if it has none, and whether it has been
// completed.
func (p *Promise[T]) String() string {
	return "coir.Promise[" + typeName[T]() + "](" + p.ev.describe("completed") + ")"
}

// promiseCase is a Promise used as a case of a select.
type promiseCase[T any] Promise[T]

//go:norace
func (p *promiseCase[T]) happened() bool { return p.ev.once.done.Load() }

//go:norace
func (p *promiseCase[T]) publish(n *wait.Node, w *park.Parker, t park.Ticket) bool {
	return p.ev.once.publish(n, w, t)
}

//go:norace
func (p *promiseCase[T]) withdraw(n *wait.Node) bool { return p.ev.once.withdraw(n) }

//go:norace
func (p *promiseCase[T]) subject() *object { return &p.ev.object }

//go:norace
func (p *promiseCase[T]) op() policy.Op { return p.ev.object.op(p.ev.resultVerb()) }

func (p *promiseCase[T]) result(c *Case) {
	race.Acquire(unsafe.Pointer(&p.ev.once))
	if c.ptr != nil {
		*(*T)(c.ptr) = p.value
	}
	if c.err != nil {
		*c.err = p.err
	}
}
