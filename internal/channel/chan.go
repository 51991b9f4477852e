package channel

import (
	"unsafe"

	"github.com/coir-go/coir/internal/clock"
	"github.com/coir-go/coir/internal/flavor"
	"github.com/coir-go/coir/internal/invariant"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/wait"
)

// Chan is a channel of values of type T. It does not know its callers. The caller of a method holds the lock, unless
// the method says otherwise.
type Chan[T any] struct {
	Core
	ring  flavor.Ring[T]  // the values of a bounded channel
	other flavor.Store[T] // the values of any other kind; nil if they are in ring

	// Undelivered is called, without the lock, with each value that is not delivered. It may be nil.
	Undelivered func(T)
}

// Init makes c a channel that holds up to limit values in store, or in a ring if store is nil. With a clock, the
// channel records when operations happen.
//
//go:norace
func (c *Chan[T]) Init(limit int, store flavor.Store[T], over Overflow, clk clock.Clock) {
	// Spec: CH-54 (channel ids order their locks)
	c.id = NewObjectID()
	c.limit, c.other, c.over = limit, store, over
	if store == nil {
		c.ring.Init(limit)
	}
	c.cells = wait.KindOf[T]()
	c.port = (*port[T])(c)
	if c.plain = clk == nil; !c.plain {
		c.times = &times{clock: clk}
	}
}

// Put gives v to a receiver or to the store, and returns Data. It returns None if the sender must wait, and Closed if
// the channel is closed. The caller readies the parker, if not nil, after unlocking.
//
//go:norace
func (c *Chan[T]) Put(v T) (r park.Reason, ready *park.Parker) {
	// Spec: CH-05 (a taken value resumes one sender)
	// Spec: CH-09 (a send prefers a waiting receiver)
	// Spec: CH-20 (a waiting operation beats a passing one)
	// Spec: CH-30 (a send that is not admitted transfers nothing)
	// Spec: PK-31 (a lost claim takes its value back)
	if c.state != Open {
		return park.Closed, nil
	}
	q := &c.waiting[Receiving]
	for n := q.Shift(); n != nil; n = q.Shift() {
		cell := wait.CellOf[T](n)
		noteWrite(n)
		cell.Value = v
		won, asleep := true, n.ClaimParked(park.Data)
		if asleep == nil {
			won, asleep = n.Claim(park.Data)
		}
		if won {
			c.transferred()
			if race.Enabled {
				c.passed()
			}
			return park.Data, asleep
		}
		var zero T
		cell.Value = zero
	}
	if c.held == c.limit {
		return park.None, nil
	}
	c.held++
	if c.other == nil {
		c.ring.Put(v)
	} else {
		c.other.Put(v)
	}
	c.Sent++
	if c.High < c.held {
		c.High = c.held
	}
	if !c.plain {
		c.changed(Receiving)
	}
	return park.Data, nil
}

// Take takes the oldest value, and returns Data. If there is no value, Take returns None, or Closed if the channel is
// closed. The value of a waiting sender moves into the room that Take makes. The caller readies the parker, if not nil,
// after unlocking.
//
//go:norace
func (c *Chan[T]) Take() (v T, r park.Reason, ready *park.Parker) {
	// Spec: CH-05 (a taken value resumes one sender)
	// Spec: CH-10 (room goes to the longest-waiting sender)
	// Spec: CH-19 (waiters are served in order)
	// Spec: CH-20 (a waiting operation beats a passing one)
	// Spec: CH-33 (a receive on a drained closed channel fails at once)
	// Spec: CH-42 (closed and count are one state)
	if c.state == Aborted {
		return v, park.Closed, nil
	}
	stored := c.held > 0
	if stored {
		c.held--
		if c.other == nil {
			v = c.ring.Take()
		} else {
			v = c.other.Take()
		}
	}
	q := &c.waiting[Sending]
	for n := q.Shift(); n != nil; n = q.Shift() {
		cell := wait.CellOf[T](n)
		noteRead(n)
		next := cell.Value
		won, asleep := true, n.ClaimParked(park.Data)
		if asleep == nil {
			won, asleep = n.Claim(park.Data)
		}
		if won {
			c.transferred()
			if stored {
				c.keep(next)
				return v, park.Data, asleep
			}
			return next, park.Data, asleep
		}
	}
	switch {
	case stored:
		c.Received++
		if !c.plain {
			c.changed(Sending)
		}
		return v, park.Data, nil
	case c.state == Closed:
		return v, park.Closed, nil
	}
	return v, park.None, nil
}

// keep puts v in the store, which has room.
//
//go:norace
func (c *Chan[T]) keep(v T) {
	c.held++
	if c.other == nil {
		c.ring.Put(v)
	} else {
		c.other.Put(v)
	}
}

// oldest takes the oldest value out of the store, which has one.
//
//go:norace
func (c *Chan[T]) oldest() T {
	c.held--
	if c.other == nil {
		return c.ring.Take()
	}
	return c.other.Take()
}

// passed tells the ring that a value passed directly from a sender to a receiver.
//
//go:norace
func (c *Chan[T]) passed() {
	if c.other == nil && c.limit > 0 {
		c.ring.Passed()
	}
}

// PublishSend publishes the wait of a sender of v, for which Put has returned None.
//
//go:norace
func (c *Chan[T]) PublishSend(cell *wait.Cell[T], v T, p *park.Parker, t park.Ticket) {
	// Spec: CH-29 (a send is admitted if it sees the channel open)
	// Spec: CH-31 (an admitted send transfers or waits)
	// Spec: CH-50 (waiters are reached under the lock alone)
	// Spec: CH-57 (a cancelled context never waits)
	cell.Value = v
	c.Publish(Sending, &cell.Node, p, t)
	if !c.plain {
		c.waits(Receiving, &cell.Node)
	}
}

// PublishRecv publishes the wait of a receiver, for which Take has returned None.
//
//go:norace
func (c *Chan[T]) PublishRecv(cell *wait.Cell[T], p *park.Parker, t park.Ticket) {
	// Spec: CH-32 (how a receive is admitted)
	// Spec: CH-50 (waiters are reached under the lock alone)
	c.Publish(Receiving, &cell.Node, p, t)
	if !c.plain {
		c.waits(Sending, &cell.Node)
	}
}

// Took returns the value of a wait that ended with Data, and clears the cell.
//
//go:norace
func (c *Chan[T]) Took(cell *wait.Cell[T]) (v T) {
	noteTake(&cell.Node) // the other side is done with the cell
	var zero T
	v, cell.Value, cell.Parker = cell.Value, zero, nil
	return v
}

// Finish completes a published wait that ended with reason r. It returns the value that a receiver received. If r is
// not Data, it counts the wait, as Withdraw does. The caller does not hold the lock: Finish locks the channel if the
// cell may still be in its queue.
//
//go:norace
func (c *Chan[T]) Finish(side Side, cell *wait.Cell[T], r park.Reason) (v T) {
	// Spec: CH-55 (a value that was claimed is reported)
	if r == park.Data {
		v = c.Took(cell)
		if side == Receiving {
			return v
		}
	} else {
		c.Withdraw(side, &cell.Node, r)
	}
	var zero T
	cell.Value = zero
	return zero
}

// Len returns how many values can be received from the store.
//
//go:norace
func (c *Chan[T]) Len() int {
	if invariant.Enabled && c.other == nil {
		invariant.Check(c.ring.Holds(c.held), "the channel counts %d values and its ring does not hold as many", c.held)
	}
	return c.Core.Len()
}

// Displace applies the overflow policy to v: it drops either the oldest value or v, and returns the dropped value. It
// returns Refused if the policy is Fail.
//
//go:norace
func (c *Chan[T]) Displace(v T) (lost T, r park.Reason) {
	// Spec: CH-17 (the overflow policy decides a full send)
	// Spec: CH-18 (dropped values are counted and handed over)
	// Spec: CH-58 (a failing overflow is ErrWouldBlock)
	if c.over == Fail {
		c.Count(Sending, park.None)
		return lost, park.Refused
	}
	lost = v
	if c.over == DropOldest && c.held > 0 {
		lost = c.oldest()
		c.keep(v)
	}
	c.Sent++
	c.Dropped++
	if !c.plain {
		c.times.note()
	}
	return lost, park.Data
}

// Discard takes a value out of an aborted channel. It returns false if there is none.
//
//go:norace
func (c *Chan[T]) Discard() (v T, ok bool) {
	if c.held == 0 {
		return v, false
	}
	c.Dropped++
	return c.oldest(), true
}

// AdmitWaiting moves the values of waiting senders into the store, even beyond its limit, until no sender waits or the
// batch is full. The store must be a List, like that of coir.Ordered.
//
//go:norace
func (c *Chan[T]) AdmitWaiting(batch *Wakes) {
	q := &c.waiting[Sending]
	for !batch.Full() {
		n := q.Shift()
		if n == nil {
			return
		}
		noteRead(n)
		v := wait.CellOf[T](n).Value
		if won, asleep := n.Claim(park.Data); won {
			c.keep(v)
			c.Sent++
			c.High = max(c.High, c.held)
			batch.Add(asleep)
		}
	}
}

// noteRead tells the race detector that the caller is about to read the value of a waiting sender's cell.
//
//go:norace
func noteRead(n *wait.Node) { race.Meet(unsafe.Pointer(n)) }
