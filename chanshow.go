package coir

import (
	"context"
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/snapshot"
)

// looks is how reports and snapshots show a channel that another type is built on.
type looks struct {
	recv *policy.Verb             // describes a wait to receive; may be nil
	show func(o *snapshot.Object) // set by Show
	also func(o *snapshot.Object) // adds to the whole description of the channel; for types of this package
}

// look returns the looks of the channel, and makes them if necessary.
func (c *core) look() *looks {
	if c.looks == nil {
		c.looks = new(looks)
	}
	return c.looks
}

// Describe sets the words that reports and snapshots use for a wait to receive, in place of "to receive from". It is
// for types that are built on a channel. Call it before the channel is first used.
func (c *Chan[T]) Describe(v *Verb) { c.core.look().recv = (*policy.Verb)(v) }

// Show makes snapshots call f with the object o that describes the channel, so that f can complete the description. It
// is for types that are built on a channel and know more about it, such as a channel to another process. Of the fields
// that describe a channel, o has Kind, Len, Cap, Sent, Received, Dropped and Closed, and all other counters are 0: f
// sets what else is known. Who waits is known in any case. Any goroutine may call f at any time, so it must not wait.
// Call Show before the channel is first used.
func (c *Chan[T]) Show(f func(o *snapshot.Object)) {
	l := c.core.look()
	l.show = f
	race.Release(unsafe.Pointer(l)) // what f reads is ordered before its calls
}

// alsoShow is like Show, but f gets the whole description of the channel.
func (c *core) alsoShow(f func(o *snapshot.Object)) {
	l := c.look()
	l.also = f
	race.Release(unsafe.Pointer(l))
}

// SendScope returns a scope inside ctx for an operation that sends to c without calling Send. Snapshots show each wait
// of the caller in the scope as a wait to send to c, which is described by v and began with the call of SendScope. An
// explanation then cannot tell that a wait such as [Sleep] ends by itself. If the operation has such waits, the
// function passed to Show must set FromOutside and ToOutside. If a goroutine calls SendScope, no other goroutine may
// wait in the scope. Like Show, SendScope is for types that are built on a channel. Call end when the operation is
// done.
func (c *Chan[T]) SendScope(ctx context.Context, v *Verb) (in context.Context, end context.CancelFunc) {
	s := &sendScope{as: sendAs{c: &c.core, verb: (*policy.Verb)(v), since: time.Now()}}
	s.cold.sends = true
	sc := &s.scope
	sc.useCold(&s.cold)
	by := resolve(ctx)
	sc.init(ctx, by.runtime(), by.sc, by.f)
	return (*scopeContext)(sc), func() {
		by := sc.announceCancel()
		sc.end()
		by.stepped()
	}
}

// sendScope is the scope of an operation that sends to a channel: see Chan.SendScope.
type sendScope struct {
	scope // first: see scope.sendAs
	cold  coldScope
	as    sendAs
}

var _ [unsafe.Offsetof(sendScope{}.scope)]struct{} = [0]struct{}{}

// sendAs is what a fiber or goroutine waits for in a sendScope, as a subject.
type sendAs struct {
	c     *core
	verb  *policy.Verb
	since time.Time
}

// sendAs returns the subject of the waits of f in the scope, and the scope that it belongs to, if the scope is in a
// sendScope that f has opened. A goroutine has opened those without an owner.
//
//go:norace
func (sc *scope) sendAs(f *Fiber) (*sendAs, *scope) {
	for ; sc != nil; sc = sc.parent {
		if c := sc.rest.Load(); c != nil && c.sends && sc.owner == f {
			return &(*sendScope)(unsafe.Pointer(sc)).as, sc
		}
	}
	return nil, nil
}

//go:norace
func (s *sendAs) op() policy.Op {
	op := s.c.op(policy.Send)
	op.Verb = s.verb
	return op
}

//go:norace
func (s *sendAs) describe(o *snapshot.Object) { s.c.describeTo(o) }
