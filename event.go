package coir

import (
	"context"
	"strconv"
	"unsafe"

	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/wait"
	"github.com/coir-go/coir/internal/xatomic"
)

// Event is something that happens once: a service is ready, a file has been loaded, the program must stop. Any number
// of fibers and goroutines may wait for it. The call of Set that makes the event happen is ordered before the return of
// each wait for it.
//
// The zero value is an event that has not happened, and has no name. An Event must not be copied after first use.
type Event struct {
	object
	once happening
	what *policy.Verb // for a Promise: describes a wait for it, if Describe was called
}

// happening is the state of an event. No waiter is missed: set stores done and then removes the waiters under the lock,
// and a waiter is added under the lock only if done is not set.
type happening struct {
	done    xatomic.Bool
	mu      xatomic.Mutex // guards waiters
	waiters wait.Queue
}

var (
	verbSet   = &policy.Verb{Name: "set"}
	verbIsSet = &policy.Verb{Name: "is set"}
	verbAwait = &policy.Verb{Name: "await", Waits: "for the event", Ends: "set"}
)

// NewEvent returns an event that has not happened. Use [WithName] to give it a name, which reports show.
func NewEvent(opts ...NameOption) *Event {
	e := new(Event)
	e.name = nameOf(opts)
	return e
}

// Set makes the event happen and wakes its waiters. It reports whether this call made the event happen.
//
//go:norace
func (e *Event) Set() bool {
	_ = e.name // panics here if the event is nil, before synchronisation is hidden
	var by *Fiber
	if simulating.Load() > 0 {
		by = e.announce(currentFiber(), e.op(verbSet))
	}
	first := e.happen()
	if by != nil {
		by.tellFirst(first)
		by.stepped()
	}
	return first
}

// happen makes the event happen. It reports whether this call made it happen.
//
//go:norace
func (e *Event) happen() bool {
	race.Disable()
	set := e.once.done.Load()
	race.Enable()
	if set {
		return false
	}
	race.Release(unsafe.Pointer(&e.once))
	race.Disable()
	defer race.Enable()
	return e.once.set()
}

// IsSet reports whether the event has happened.
//
//go:norace
func (e *Event) IsSet() bool {
	_ = e.name // panics here if the event is nil, before synchronisation is hidden
	var by *Fiber
	if simulating.Load() > 0 {
		by = e.announce(currentFiber(), e.op(verbIsSet))
	}
	race.Disable()
	set := e.once.done.Load()
	race.Enable()
	if set {
		race.Acquire(unsafe.Pointer(&e.once))
	}
	if by != nil {
		how := policy.No
		if set {
			how = policy.Yes
		}
		by.tell(how, -1)
		by.stepped()
	}
	return set
}

// Wait waits until the event has happened. If ctx has ended, it returns ctx's error, even if the event has happened.
func (e *Event) Wait(ctx context.Context) error { return e.wait(ctx, verbAwait) }

// wait implements Wait. Reports use verb to describe the wait.
//
//go:norace
func (e *Event) wait(ctx context.Context, verb *policy.Verb) error {
	_ = e.name // panics here if the event is nil, before synchronisation is hidden
	f, sc := ownFiber(ctx)
	if f == nil {
		return e.waitAny(ctx, verb)
	}
	if f.simulated {
		e.announce(f, e.op(verb))
	}
	race.Disable()
	r := e.once.begin(f, sc, e.as(verb))
	if r == park.None {
		// Task.Park, inlined by hand: see Task.BeginPark.
		if s := f.task.BeginPark(); s != nil {
			if s.Odd {
				s.Next()
			} else {
				s.Yield(struct{}{})
			}
			f.task.EndPark()
		}
		if r = f.task.Reason(); r != park.Data {
			e.once.withdraw(f.task.Kit().Event())
		}
	}
	race.Enable()
	if r != park.Data {
		f.tellEnding(sc)
		return e.failed(sc.ending(), verb)
	}
	race.Acquire(unsafe.Pointer(&e.once))
	return nil
}

// waitAny implements wait for every kind of caller. The two are separate functions to keep the stack of a waiting fiber
// small: see ownFiber.
//
//go:noinline
//go:norace
func (e *Event) waitAny(ctx context.Context, verb *policy.Verb) error {
	by := resolve(ctx)
	if simulating.Load() > 0 {
		e.announce(by.f, e.op(verb))
	}
	if end := by.refused(); end != nil {
		return e.failed(end, verb)
	}
	race.Disable()
	r := e.once.await(&by, e.as(verb))
	race.Enable()
	if r != park.Data {
		return e.failed(by.cancelled(), verb)
	}
	race.Acquire(unsafe.Pointer(&e.once))
	return nil
}

// DoneCase returns a case that happens when the event has happened.
func (e *Event) DoneCase() Case {
	_ = e.name // panics here if the event is nil, not under a lock
	escapes(e)
	return Case{what: caseEvent, arg: (*eventCase)(e)}
}

// String returns a short description of the event: its name, or its number if it has none, and whether it has happened.
func (e *Event) String() string { return "coir.Event(" + e.describe("set") + ")" }

// describe returns a description of the event. done is the word that it uses for an event that has happened.
//
//go:norace
func (e *Event) describe(done string) string {
	_ = e.name // panics here if the event is nil, before synchronisation is hidden
	race.Disable()
	defer race.Enable()
	if e.once.done.Load() {
		return e.title() + ", " + done
	}
	e.once.mu.Lock()
	n := e.once.waiters.Len()
	e.once.mu.Unlock()
	return e.title() + ", not " + done + ", " + strconv.Itoa(n) + " waiting"
}

// eventCase is an Event used as a case of a select.
type eventCase Event

//go:norace
func (e *eventCase) happened() bool { return e.once.done.Load() }

//go:norace
func (e *eventCase) publish(n *wait.Node, p *park.Parker, t park.Ticket) bool {
	return e.once.publish(n, p, t)
}

//go:norace
func (e *eventCase) withdraw(n *wait.Node) bool { return e.once.withdraw(n) }

//go:norace
func (e *eventCase) subject() *object { return &e.object }

//go:norace
func (e *eventCase) op() policy.Op { return (*Event)(e).object.op(verbAwait) }

func (e *eventCase) result(*Case) { race.Acquire(unsafe.Pointer(&e.once)) }

// set makes the event happen and readies the waiters. It reports whether this call made it happen.
//
//go:norace
func (h *happening) set() bool {
	if h.done.Load() || !h.done.CompareAndSwap(false, true) {
		return false
	}
	var woken wait.Queue
	h.mu.Lock()
	claimAll(&h.waiters, &woken)
	h.mu.Unlock()
	if !woken.Empty() {
		readyAll(&woken)
	}
	return true
}

// begin starts a wait of f for on, under sc. It returns None if f must park, and otherwise the reason not to.
//
//go:noinline
//go:norace
func (h *happening) begin(f *Fiber, sc *scope, on any) park.Reason {
	if sc.done() {
		return park.Cancelled
	}
	if h.done.Load() {
		f.charge()
		return park.Data
	}
	t := f.arm(sc, on)
	n := f.task.Kit().Event()
	if !h.publish(n, &f.task.Parker, t) {
		f.task.Disarm() // even if a cancellation came first, there is no wait
		f.charge()
		return park.Data
	}
	if f.shouldPark(sc) {
		return park.None
	}
	h.withdraw(n)
	return park.Cancelled
}

// await waits for on until the event has happened. The caller may be a fiber or a goroutine.
//
//go:norace
func (h *happening) await(by *caller, on any) park.Reason {
	if h.done.Load() {
		by.charge()
		return park.Data
	}
	w := by.waiter()
	defer w.done()
	t := by.arm(&w, on)
	n := w.kit.Event()
	if !h.publish(n, w.p, t) {
		w.p.Disarm()
		by.charge()
		return park.Data
	}
	r := by.await(&w, t, never)
	if r != park.Data {
		h.withdraw(n)
	}
	return r
}

// publish adds a node whose parker is woken when the event happens. It returns false if the event has already happened.
//
//go:norace
func (h *happening) publish(n *wait.Node, p *park.Parker, t park.Ticket) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.done.Load() {
		return false
	}
	h.waiters.Push(n, p, t)
	return true
}

// withdraw removes the node. It reports whether the node is marked as the one that ended the wait.
//
//go:norace
func (h *happening) withdraw(n *wait.Node) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.waiters.Withdraw(n)
	return n.Won
}
