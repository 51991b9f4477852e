package coir

import (
	"unsafe"

	"github.com/coir-go/coir/internal/channel"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/snapshot"
)

// subject is what a fiber waits for, as a snapshot sees it. Each wait of a fiber has one: see Fiber.arm. Most of the
// types below are object types with other methods, so that the subject is a pointer that the wait has anyway.
//
// The methods are called by another goroutine, while the fiber waits or just after. The wait keeps the object alive,
// and the methods take the object's locks where they need them.
type subject interface {
	op() policy.Op
}

// described is a subject that appears in a snapshot as an object.
type described interface {
	subject
	describe(o *snapshot.Object)
}

type (
	toSend   core
	toRecv   core
	toSignal Cond
	toResult Event // of a Promise
	toTick   Timer
	toChoose Selector
	toJoin   Nursery
	toEnter  Nursery  // a place in the nursery
	toCancel struct{} // of a context
	toSleep  struct{}
)

// on returns the subject of a wait on one side of the channel.
//
//go:norace
func (c *core) on(side channel.Side) any {
	if side == sending {
		return (*toSend)(c)
	}
	return (*toRecv)(c)
}

// as returns the event as the subject of a wait that reports describe by verb.
//
//go:norace
func (e *Event) as(verb *policy.Verb) any {
	if verb != verbAwait {
		return (*toResult)(e)
	}
	return (*eventCase)(e)
}

//go:norace
func (c *toSend) op() policy.Op { return (*core)(c).op(policy.Send) }

//go:norace
func (c *toRecv) op() policy.Op { return (*core)(c).op(policy.Recv) }

//go:norace
func (c *toSignal) op() policy.Op { return (*Cond)(c).waitOp() }

//go:norace
func (e *toResult) op() policy.Op { return e.object.op((*Event)(e).resultVerb()) }

//go:norace
func (t *toTick) op() policy.Op { return (*Timer)(t).op(1) }

//go:norace
func (w *want) op() policy.Op { return w.q.op(w.r, w.n) }

//go:norace
func (n *toJoin) op() policy.Op { return policy.Op{Kind: policy.Join, Object: (*Nursery)(n).number()} }

//go:norace
func (n *toEnter) op() policy.Op { return policy.Op{Kind: policy.Go, Object: (*Nursery)(n).number()} }

//go:norace
func (toCancel) op() policy.Op { return policy.Op{Kind: policy.Use, Verb: verbCancel} }

//go:norace
func (toSleep) op() policy.Op { return policy.Op{Kind: policy.Sleep} }

//go:norace
func (*toChoose) op() policy.Op { return policy.Op{Kind: policy.Select} }

//go:norace
func (c *toSend) describe(o *snapshot.Object) { (*core)(c).describeTo(o) }

//go:norace
func (c *toRecv) describe(o *snapshot.Object) { (*core)(c).describeTo(o) }

//go:norace
func (c *toSignal) describe(o *snapshot.Object) { o.Kind = kindOr(c.what, "condition") }

//go:norace
func (e *toResult) describe(o *snapshot.Object) { o.Kind = kindOr(e.what, "promise") }

//go:norace
func (e *eventCase) describe(o *snapshot.Object) { o.Kind = "event" }

//go:norace
func (t *toTick) describe(o *snapshot.Object) { o.Kind = "timer" }

//go:norace
func (p *promiseCase[T]) describe(o *snapshot.Object) { o.Kind = kindOr(p.ev.what, "promise") }

// kindOr returns the kind of object that the verb v names, or kind if it names none.
//
//go:norace
func kindOr(v *policy.Verb, kind string) string {
	if v != nil && v.Of != "" {
		return v.Of
	}
	return kind
}

//go:norace
func (w *want) describe(o *snapshot.Object) {
	o.Kind = kindOr((*policy.Verb)(w.r.Verb(w.n)), "lock")
	if by := w.q.holder(); by != 0 {
		o.Holders = []uint64{by}
	}
	o.GaveUp = w.q.lost()
}

// known returns by, the number of a fiber that has used a channel, or 0 if the fiber is not known.
//
//go:norace
func known(by uint64) uint64 {
	if by == channel.Unknown {
		return 0
	}
	return by
}

//go:norace
func (c *core) describeTo(o *snapshot.Object) {
	race.Disable()
	x := c.ch.Stats()
	race.Enable()
	o.Kind, o.Len, o.Cap, o.Closed = "channel", x.Len, c.ch.Limit(), x.State != channel.Open
	o.Sent, o.Received, o.Dropped = x.Sent, x.Received, x.Dropped
	if c.ch.Limit() == channel.NoLimit {
		o.Cap = -1
	}
	l := c.looks
	if l != nil {
		o.Kind = kindOr(l.recv, o.Kind)
	}
	if l != nil && l.show != nil { // o has what Chan.Show promises, and the function passed to it sets the rest
		race.Alone(func() {
			race.Acquire(unsafe.Pointer(l))
			l.show(o)
		})
		return
	}
	o.High = x.High
	from, to := &x.Side[sending], &x.Side[receiving]
	o.Sender, o.SenderBefore, o.FromOutside = known(from.By), known(from.Was), from.By == 0 && x.Sent > 0
	o.Receiver, o.ReceiverBefore, o.ToOutside = known(to.By), known(to.Was), to.By == 0 && x.Received > 0
	if l != nil && l.also != nil {
		race.Alone(func() {
			race.Acquire(unsafe.Pointer(l))
			l.also(o)
		})
	}
}
