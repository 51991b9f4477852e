package channel

import (
	"unsafe"

	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/wait"
)

// Port is a channel as a select sees it: without the type of its values. The caller of a method holds the lock, unless
// the method says otherwise.
type Port interface {
	// Send sends v, a value of the channel's type, if that is possible without waiting. Recv likewise receives into
	// *dst. If Send returns a function, the caller must call it after unlocking: it passes a dropped value to
	// Undelivered.
	Send(v any) (r park.Reason, ready *park.Parker, rest func())
	Recv(dst unsafe.Pointer) (r park.Reason, ready *park.Parker)
	// Cell returns a cell for a case. It needs no lock.
	Cell(k *wait.Kit) *wait.Node
	// Publish publishes a case with a cell of this channel. v is the value of a send.
	Publish(side Side, n *wait.Node, v any, p *park.Parker, t park.Ticket)
	// Finish completes the chosen case, which ended with reason r. It stores a received value in *dst. The caller does
	// not hold the lock.
	Finish(side Side, n *wait.Node, r park.Reason, dst unsafe.Pointer)
	// Clear clears the value in a cell that WithdrawCase has withdrawn. It needs no lock.
	Clear(n *wait.Node)
}

// port is Chan as a Port: the same object with other methods.
type port[T any] Chan[T]

//go:norace
func (p *port[T]) Send(v any) (r park.Reason, ready *park.Parker, rest func()) {
	c := (*Chan[T])(p)
	value, _ := v.(T) // v is a T; a nil interface is the zero value
	r, ready = c.Put(value)
	if r == park.None && c.over != Wait {
		var lost T
		if lost, r = c.Displace(value); r == park.Data && c.Undelivered != nil {
			rest = func() { c.Undelivered(lost) }
		}
	}
	if r == park.Closed {
		c.Count(Sending, r)
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
		c.Count(Receiving, r)
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
	c, cell := (*Chan[T])(p), wait.CellOf[T](n)
	if r != park.Data {
		c.Finish(side, cell, r)
		return
	}
	if v := c.Took(cell); side == Receiving {
		deliver(dst, v)
	}
}

//go:norace
func (p *port[T]) Clear(n *wait.Node) {
	var zero T
	wait.CellOf[T](n).Value = zero
}

// deliver stores the value that a case received. It runs inside a hidden section.
//
//go:norace
func deliver[T any](dst unsafe.Pointer, v T) {
	if dst != nil {
		race.Wrote(dst, unsafe.Sizeof(v))
		*(*T)(dst) = v
	}
}
