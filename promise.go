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

// Promise is a result that comes later: a value, or an error. Any fiber or goroutine may complete it, once; any number
// may wait for it. What comes before the call that completes it is ordered before what comes after a wait for it.
//
// The zero value is a promise that has not been completed, and has no name. A Promise must not be copied after first
// use.
type Promise[T any] struct {
	taken xatomic.Bool // a call completes it, or has
	ev    Event        // it is completed: value and err are there
	value T
	err   error
	last  *callBack[T] // of those that OnDone was given, which are a ring; under the lock of ev
}

// callBack is a function that OnDone was given.
type callBack[T any] struct {
	f    func(T, error)
	next *callBack[T] // that of the last is the first
}

var (
	verbResolve = &policy.Verb{Name: "resolve"}
	verbReject  = &policy.Verb{Name: "reject"}
	verbResult  = &policy.Verb{Name: "await", Waits: "for the promise", Ends: "complete"}
)

// NewPromise returns a promise that has not been completed. [WithName] gives it a name, which reports show.
func NewPromise[T any](opts ...NameOption) *Promise[T] {
	p := new(Promise[T])
	p.ev.name = nameOf(opts)
	return p
}

// Init gives a promise that is a part of another object the name that [WithName] says. It is called before first use.
func (p *Promise[T]) Init(opts ...NameOption) { p.ev.name = nameOf(opts) }

// Name returns the name that NewPromise or Init was given.
func (p *Promise[T]) Name() string { return p.ev.name }

// Resolve completes the promise with v. It reports whether it did: the first call completes it, and the others change
// nothing.
func (p *Promise[T]) Resolve(v T) bool { return p.complete(v, nil, verbResolve) }

// Reject completes the promise with an error, which is not nil. It reports whether it did, as [Promise.Resolve] does.
func (p *Promise[T]) Reject(err error) bool {
	if err == nil {
		panic("coir: Promise.Reject(nil): a promise that has a value is completed by Resolve")
	}
	var none T
	return p.complete(none, err, verbReject)
}

func (p *Promise[T]) complete(v T, err error, verb *policy.Verb) bool {
	var by *Fiber
	if simulating.Load() > 0 {
		by = p.ev.announce(currentFiber(), p.ev.op(verb))
	}
	first := p.take()
	if first {
		p.value, p.err = v, err
		p.ev.happen()
		p.callThen()
	}
	if by != nil {
		by.tellFirst(first)
		by.stepped()
	}
	return first
}

// take reports true to one caller.
//
//go:norace
func (p *Promise[T]) take() bool {
	race.Disable()
	defer race.Enable()
	return p.taken.CompareAndSwap(false, true)
}

// callThen calls the functions that OnDone was given, in order. If one panics, the others are called before the panic
// goes on.
func (p *Promise[T]) callThen() {
	b := p.takeThen()
	if b == nil {
		return
	}
	race.Acquire(unsafe.Pointer(&p.last))
	toEnd(func() bool {
		if b == nil { // the last one panicked
			return false
		}
		f := b.f
		b = b.next
		f(p.value, p.err)
		return true
	})
}

// Wait waits until the promise has been completed, and returns what with. It returns earlier with an error of ctx; in a
// context that has ended, also if the promise has been completed.
func (p *Promise[T]) Wait(ctx context.Context) (T, error) {
	if err := p.ev.wait(ctx, verbResult); err != nil {
		var none T
		return none, err
	}
	return p.value, p.err
}

// DoneCase is a case that happens when the promise has been completed. It stores the value in *v and the error in *err;
// either may be nil.
func (p *Promise[T]) DoneCase(v *T, err *error) Case {
	escapes(p)
	return Case{what: caseEvent, arg: (*promiseCase[T])(p), dst: unsafe.Pointer(v), err: err}
}

// OnDone makes the promise call f with its result, once. The call that completes the promise calls f before it returns;
// if the promise has been completed already, OnDone does. f should be short, and must not wait: it runs in whatever
// fiber or goroutine that is. A panic in f goes on to that caller.
func (p *Promise[T]) OnDone(f func(v T, err error)) {
	if f == nil {
		panic("coir: Promise.OnDone(nil): there is nothing to call")
	}
	b := &callBack[T]{f: f}
	race.Release(unsafe.Pointer(&p.last))
	if !p.later(b) {
		race.Acquire(unsafe.Pointer(&p.ev.once))
		f(p.value, p.err)
	}
}

// later keeps b for callThen. It reports false if the promise has been completed.
//
//go:norace
func (p *Promise[T]) later(b *callBack[T]) bool {
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

// takeThen returns the first of the functions that were kept, and keeps none. The caller has completed the promise, and
// locked it for that: later adds none any more, so takeThen needs no lock.
//
//go:norace
func (p *Promise[T]) takeThen() *callBack[T] {
	last := p.last
	if last == nil {
		return nil
	}
	first := last.next
	last.next, p.last = nil, nil
	return first
}

// String describes the promise in a few words: its name, or its number if it has none, and whether it has been
// completed.
func (p *Promise[T]) String() string {
	return "coir.Promise[" + typeName[T]() + "](" + p.ev.describe("completed") + ")"
}

// promiseCase is a Promise as a case of a select.
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
func (p *promiseCase[T]) op() policy.Op { return p.ev.object.op(verbResult) }

func (p *promiseCase[T]) result(cs *Case) {
	race.Acquire(unsafe.Pointer(&p.ev.once))
	if cs.dst != nil {
		*(*T)(cs.dst) = p.value
	}
	if cs.err != nil {
		*cs.err = p.err
	}
}
