package desk

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/coir-go/coir"
)

// Ticket is a wait for an answer. It ends once: with the value or error that completes it, at its deadline, when the
// context in which it was opened ends, or by Cancel or [Desk.FailAll]. Then it leaves the desk, and its result does not
// change. Any number of fibers and goroutines may wait for it.
type Ticket[T any] struct {
	// Spec: TK-01 (anything may complete a ticket, once)
	// Spec: TK-02 (a ticket never goes back)

	promise    coir.Promise[T]
	group      *group[T]
	prev, next *Ticket[T] // neighbours in the ring of the group
	alarm      *coir.Alarm
	id         ID
	calls      atomic.Uint32 // the state shared by OnDone and ended
}

var answerVerb = &coir.Verb{Name: "await", Waits: "for the answer of ticket", Ends: "complete", Of: "ticket"}

// The values of Ticket.calls. A canceller or a clock that ends a ticket must not call a function of OnDone itself,
// because the function may call runtime.Goexit, which would stop the clock.
const (
	callsNone  = iota // there are no functions to call yet
	callsSome         // there are functions: ended starts a goroutine that calls them
	callsEnded        // ended has checked, but the promise may not be completed yet: a new function needs a goroutine
	callsOver         // ended has returned: OnDone calls its function itself
)

// timedTicket is a Ticket with a deadline. It is one object, so that a deadline needs no second allocation and a ticket
// without a deadline needs no memory for it.
type timedTicket[T any] struct {
	Ticket[T]
	clock coir.Alarm
}

// ID returns the ticket's ID, which completes it at its desk.
func (t *Ticket[T]) ID() ID { return t.id }

// Name returns the name of the ticket, or that of the desk if the ticket has none.
func (t *Ticket[T]) Name() string { return t.promise.Name() }

// Wait waits until the ticket has ended, and returns the value or the error with which it was completed. If the ticket
// timed out, the error matches [coir.ErrTimeout] and has the ticket's name. If the ticket was cancelled, the error is
// [context.Canceled]. If its context was cancelled, the error is the one that an operation in that context returns. If
// ctx ends first, Wait returns ctx's error, and the ticket stays open.
//
// A ticket ends with the context in which it was opened, so a goroutine may wait in [context.Background], which is
// faster than a context that can end.
func (t *Ticket[T]) Wait(ctx context.Context) (T, error) {
	// Spec: TK-03 (the payload comes before the waiter runs)
	// Spec: TK-18 (tickets end with a channel's errors)
	return t.promise.Wait(ctx)
}

// DoneCase returns a case that happens when the ticket has ended. It stores the value in *v and the error in *err;
// either may be nil.
func (t *Ticket[T]) DoneCase(v *T, err *error) coir.Case {
	// Spec: TK-21 (a ticket is a case)
	return t.promise.DoneCase(v, err)
}

// OnDone registers f, which is called once with the ticket's result. A call of Resolve, Reject, Cancel or FailAll that
// ends the ticket calls f before it returns, and a panic in f continues in its caller. If the ticket ends with its
// context or at its deadline, f is called in a new goroutine, and a panic in f ends the program; the canceller or the
// clock waits until f returns. If the ticket has already ended, OnDone calls f itself. f must be short and must not
// wait.
func (t *Ticket[T]) OnDone(f func(v T, err error)) {
	// Spec: TK-20 (OnDone runs once)
	if f == nil {
		panic("desk: Ticket.OnDone(nil): there is nothing to call")
	}
	if !t.calls.CompareAndSwap(callsNone, callsSome) && t.calls.Load() == callsEnded {
		g := f
		f = func(v T, err error) { apart(func() { g(v, err) }) }
	}
	t.promise.OnDone(f)
}

// Cancel ends the ticket with [context.Canceled] and reports whether it did. It returns false if the ticket or its
// context has ended. A deferred Cancel ensures that the ticket is not open when the caller returns.
func (t *Ticket[T]) Cancel() bool {
	// Spec: TK-09 (cancelling removes a waiting ticket)
	ctx := t.openIn()
	if ctx == nil {
		return false
	}
	if err := coir.Ended(ctx); err != nil {
		// A caller whose wait ended with the context may get here before the desk has ended the ticket. Then the ticket
		// counts as ended by its context.
		if t.takeOut(endingFor(err)) {
			t.ended(err)
		}
		return false
	}
	return t.end(cancelled, context.Canceled)
}

// openIn returns the context that ends the ticket, or nil if the ticket is not open.
func (t *Ticket[T]) openIn() context.Context {
	s := t.group.shard
	s.lock.Lock()
	defer s.lock.Unlock()
	if s.at(t.id.slot()).ticket != t {
		return nil
	}
	return t.group.ctx
}

// String returns a short description of the ticket, without its ID.
func (t *Ticket[T]) String() string {
	_, what, _ := strings.Cut(t.promise.String(), "(")
	return "desk.Ticket(" + what
}

// end ends the ticket without an answer. It returns false if the ticket has already ended.
func (t *Ticket[T]) end(how ending, err error) bool {
	if !t.takeOut(how) {
		return false
	}
	t.leave()
	t.promise.Reject(err)
	return true
}

// takeOut removes the ticket from its slot, unless it has ended.
func (t *Ticket[T]) takeOut(how ending) bool {
	// Spec: TK-10 (cancel and completion share one claim)
	s := t.group.shard
	s.lock.Lock()
	open := s.at(t.id.slot()).ticket == t
	if open {
		s.take(t.id.slot(), how)
	}
	s.lock.Unlock()
	return open
}

// leave releases the place of a ticket that was removed from its slot, and stops its timer.
func (t *Ticket[T]) leave() {
	if t.alarm != nil {
		t.alarm.Stop()
	}
	if p := t.group.shard.desk.places; p != nil {
		p.Release(1)
	}
}

// ended completes a ticket that was removed from its slot because its context ended or its deadline passed. Its caller
// is cancelling a scope or running a callback of the clock, which no function of OnDone may stop by a panic or by
// runtime.Goexit. So if there are such functions, another goroutine completes the ticket, and ended waits for it. Under
// package sim that is part of the caller's step.
func (t *Ticket[T]) ended(err error) {
	if errors.Is(err, coir.ErrTimeout) && t.Name() != "" {
		err = &timeoutError{t.Name(), err}
	}
	t.leave()
	if t.calls.Swap(callsEnded) == callsSome {
		apart(func() { t.promise.Reject(err) })
	} else {
		t.promise.Reject(err)
	}
	t.calls.Store(callsOver)
}

// timeoutError is the error of a named ticket that timed out.
type timeoutError struct {
	name string
	err  error
}

func (e *timeoutError) Error() string { return "desk: " + e.name + ": " + e.err.Error() }

func (e *timeoutError) Unwrap() error { return e.err }

// apart calls f in a goroutine, and returns when f has returned or called runtime.Goexit. A panic in f ends the
// program.
//
// It waits for a mutex and not for a channel, because package sim would take a wait for a channel for one of the
// program's waits.
func apart(f func()) {
	var done sync.Mutex
	done.Lock()
	go func() {
		defer done.Unlock()
		f()
	}()
	done.Lock()
}

// Ended implements coir.Watcher for the deadline of the ticket.
func (t *timedTicket[T]) Ended(err error) {
	if t.takeOut(timedOut) {
		t.ended(err)
	}
}

func endingFor(err error) ending {
	if errors.Is(err, coir.ErrTimeout) {
		return timedOut
	}
	return cancelled
}
