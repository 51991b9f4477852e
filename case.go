package coir

import (
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/channel"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/wait"
)

// Case is one of the events that a select waits for. The zero Case never happens: use it to disable a case.
type Case struct {
	// Spec: SE-18 (a case can wait for anything)

	core *core // the channel of a send or a receive
	arg  any   // arg, ptr and num depend on the kind: see caseKind
	ptr  unsafe.Pointer
	num  int64
	err  *error // where to store the error of an event; may be nil
	what caseKind
	join bool // the event is the end of a fiber
}

// caseKind is the kind of a Case. It determines what the fields arg, ptr and num hold. The fields that are not listed
// for a kind are zero. The kinds share fields so that a Case is small.
type caseKind uint8

const (
	caseNever  caseKind = iota
	caseSend            // arg: the value. See Case.side
	caseRecv            // ptr: where to store the value, or nil
	caseAfter           // num: the delay. Of a Timer also arg: the *Timer; ptr: where to store an int, or nil
	caseEvent           // arg: the event; ptr: where to store its result, or nil
	caseTake            // arg: the Resource; ptr: the *Queue; num: how much to take
	caseSignal          // ptr: the *Cond; num: the number of its changes when the case was made
)

// event is something that happens once.
type event interface {
	// happened reports whether the event has happened.
	happened() bool
	// publish adds a node whose parker is woken when the event happens. It returns false if the event has happened.
	publish(n *wait.Node, p *park.Parker, t park.Ticket) bool
	// withdraw removes the node. It reports whether the node is marked as the one that ended the wait.
	withdraw(n *wait.Node) bool
	// result is called for the chosen case. It may store a result.
	result(c *Case)
	// op returns the Op of a wait for the event.
	op() policy.Op
}

// SendCase returns a case that sends v.
func (c *Chan[T]) SendCase(v T) Case {
	if escape.alwaysFalse { // see escapes
		escape.sink = v
	}
	return Case{what: caseSend, core: &c.core, arg: v}
}

// escapes makes the compiler allocate what v points to on the heap. The compiler cannot see that a case needs this,
// because noescape hides the cases. SendCase cannot call escapes: its v may be of any type, and passing it
// as an argument would allocate a copy of it at each call.
func escapes(v any) {
	if escape.alwaysFalse {
		escape.sink = v
	}
}

var escape struct {
	alwaysFalse bool
	sink        any
}

// RecvCase returns a case that receives into *dst. If dst is nil, the value is discarded.
func (c *Chan[T]) RecvCase(dst *T) Case {
	return Case{what: caseRecv, core: &c.core, ptr: unsafe.Pointer(dst)}
}

// After returns a case that happens when d has passed since the start of the select. The select then returns the index
// of the case and a nil error. If a select has several such cases, only the earliest counts.
func After(d time.Duration) Case {
	// Spec: TM-14 (After is a case)
	return Case{what: caseAfter, num: int64(d)}
}

// DoneCase returns a case that happens when the fiber has ended. If err is not nil, the case stores in *err the fiber's
// error, as [Fiber.Wait] returns it.
func (f *Fiber) DoneCase(err *error) Case {
	_ = f.nursery // panics here if the fiber is nil, not under a lock
	return Case{what: caseEvent, arg: (*fiberEnd)(f), err: err, join: true}
}

// fiberEnd is the event that a fiber has ended.
type fiberEnd Fiber

//go:norace
func (e *fiberEnd) happened() bool { return (*Fiber)(e).ended() }

//go:norace
func (e *fiberEnd) publish(n *wait.Node, p *park.Parker, t park.Ticket) bool {
	return (*Fiber)(e).addJoiner(n, p, t)
}

//go:norace
func (e *fiberEnd) withdraw(n *wait.Node) bool {
	(*Fiber)(e).removeJoiner(n)
	return n.Won // the node is no longer in a queue
}

//go:norace
func (e *fiberEnd) op() policy.Op { return policy.Op{Kind: policy.Wait, Object: e.id, Name: e.name} }

//go:norace
func (e *fiberEnd) result(c *Case) {
	f := (*Fiber)(e)
	race.Acquire(unsafe.Pointer(f))
	if c.err != nil {
		race.Disable()
		race.Wrote(unsafe.Pointer(c.err), unsafe.Sizeof(*c.err))
		race.Enable()
		*c.err = f.err()
	}
}

// side returns the side of the channel that a case waits on.
//
//go:norace
func (c *Case) side() channel.Side { return channel.Side(c.what - caseSend) }

// usedBy records that f, or a goroutine if f is nil, uses the case.
//
//go:norace
func (c *Case) usedBy(f *Fiber) {
	if c.core != nil && f != nil {
		c.core.ch.UsedBy(c.side(), f.id)
	}
}

// event returns the event of a case that waits for an event.
//
//go:norace
func (c *Case) event() event {
	switch c.what {
	case caseTake:
		return (*takeCase)(c)
	case caseSignal:
		return (*signalCase)(c)
	}
	return c.arg.(event)
}

// delay returns the delay of a caseAfter.
//
//go:norace
func (c *Case) delay() time.Duration { return time.Duration(c.num) }

// happened reports whether a case that is not on a channel can proceed now.
//
//go:norace
func (c *Case) happened() bool {
	if c.what == caseAfter {
		return c.delay() <= 0
	}
	return c.what >= caseEvent && c.event().happened()
}

// try completes the case if it is ready. Otherwise it returns None. For a case on a channel the caller holds the lock,
// and calls rest.do with the parker after unlocking.
//
//go:norace
func (c *Case) try() (r park.Reason, ready *park.Parker, rest aftermath) {
	switch c.what {
	case caseRecv:
		r, ready = c.core.ch.Port().Recv(c.ptr)
	case caseSend:
		r, ready, rest.lost = c.core.ch.Port().Send(c.arg)
	case caseTake:
		if (*takeCase)(c).try() {
			r = park.Data
		}
		return r, nil, rest
	default:
		return park.Data, nil, rest
	}
	if r != park.None && !c.core.ch.Plain() {
		rest.woken = c.core.ch.TakeWoken()
	}
	return r, ready, rest
}

// aftermath is work that some cases leave to be done after unlocking.
type aftermath struct {
	woken *channel.Watch // the Selectors that have been notified
	lost  func()         // passes a dropped value to OnUndelivered
}

//go:norace
func (a *aftermath) any() bool { return a.woken != nil || a.lost != nil }

// do readies p and the notified Selectors, and then passes the dropped value to OnUndelivered.
//
//go:noinline
//go:norace
func (a aftermath) do(p *park.Parker, here park.Place) {
	p.MakeReady(here)
	readySelectors(a.woken, here)
	if a.lost != nil {
		race.EnterUser()
		a.lost()
		race.LeaveUser()
	}
}

// done returns Select's results for the chosen case.
//
//go:norace
func (c *Case) done(i int, r park.Reason) (int, error) {
	switch c.what {
	case caseSend, caseRecv:
		if r != park.Data {
			return i, c.core.resultErr(c.side(), r)
		}
	case caseEvent, caseTake, caseSignal:
		c.event().result(c)
	case caseAfter:
		if t, ok := c.arg.(*Timer); ok {
			t.take(c)
		}
	}
	return i, nil
}
