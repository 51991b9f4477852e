package channel

import (
	"unsafe"

	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/wait"
)

// Port is a channel as a select sees it, which does not know the type of its values. Its methods are called with the
// lock held, unless they say otherwise.
type Port interface {
	// Send does a send of v, a value of the channel's type, if it need not wait; Recv a receive into *dst. A function
	// that Send returns is to be called after unlocking: it hands over a value that was lost.
	Send(v any) (r park.Reason, ready *park.Parker, rest func())
	Recv(dst unsafe.Pointer) (r park.Reason, ready *park.Parker)
	// Cell returns a cell for a case. It needs no lock.
	Cell(k *wait.Kit) *wait.Node
	// Publish publishes a case with a cell of this channel; a send has the value v.
	Publish(side Side, n *wait.Node, v any, p *park.Parker, t park.Ticket)
	// Finish ends the case that was taken, for r, without the lock. It stores what was received in *dst.
	Finish(side Side, n *wait.Node, r park.Reason, dst unsafe.Pointer)
	// Clear empties a cell that was withdrawn, without the lock.
	Clear(n *wait.Node)
}

// port is Chan as a Port: the same object with other methods.
type port[T any] Chan[T]

//go:norace
func (p *port[T]) Send(v any) (r park.Reason, ready *park.Parker, rest func()) {
	c := (*Chan[T])(p)
	value, _ := v.(T) // it is one; a nil interface is the zero value
	r, ready = c.Put(value)
	if r == park.None && c.over != Wait {
		var lost T
		if lost, r = c.Displace(value); r == park.Data && c.Undelivered != nil {
			rest = func() { c.Undelivered(lost) }
		}
	}
	if r == park.Closed {
		c.count(Sending, r)
	}
	return r, ready, rest
}

//go:norace
func (p *port[T]) Recv(dst unsafe.Pointer) (park.Reason, *park.Parker) {
	c := (*Chan[T])(p)
	v, r, ready := c.Take()
	switch r {
	case park.Data:
		deliver(dst, v)
	case park.Closed:
		c.count(Receiving, r)
	}
	return r, ready
}

//go:norace
func (p *port[T]) Cell(k *wait.Kit) *wait.Node { return &wait.Get[T](k, p.cells).Node }

//go:norace
func (p *port[T]) Publish(side Side, n *wait.Node, v any, by *park.Parker, t park.Ticket) {
	c := (*Chan[T])(p)
	cell := wait.CellOf[T](n)
	if side == Receiving {
		c.PublishRecv(cell, by, t)
		return
	}
	value, _ := v.(T)
	c.PublishSend(cell, value, by, t)
}

//go:norace
func (p *port[T]) Finish(side Side, n *wait.Node, r park.Reason, dst unsafe.Pointer) {
	v := (*Chan[T])(p).Finish(side, wait.CellOf[T](n), r)
	if side == Receiving && r == park.Data {
		deliver(dst, v)
	}
}

//go:norace
func (p *port[T]) Clear(n *wait.Node) {
	var zero T
	wait.CellOf[T](n).Value = zero
}

// deliver stores what a case has received, inside a hidden section.
//
//go:norace
func deliver[T any](dst unsafe.Pointer, v T) {
	if dst != nil {
		race.Wrote(dst, unsafe.Sizeof(v))
		*(*T)(dst) = v
	}
}
