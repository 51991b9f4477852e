package channel

import (
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/coir-go/coir/internal/invariant"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/wait"
	"github.com/coir-go/coir/internal/xatomic"
)

// Side is one side of a channel.
type Side uint8

// The sides.
const (
	Sending Side = iota
	Receiving
)

// State is how far a channel has been closed.
type State uint8

// The states.
const (
	Open    State = iota
	Closed        // accepts no values, but still delivers those that it holds
	Aborted       // delivers no values
)

// Overflow is what a send does when there is no room.
type Overflow uint8

// The overflow policies.
const (
	Wait Overflow = iota
	DropOldest
	DropNewest
	Fail
)

// NoLimit is the limit of a channel that holds any number of values.
const NoLimit = math.MaxInt

// Core is the part of a channel that does not depend on the type of its values. The caller of a method holds the lock,
// unless the method says otherwise.
//
// The lock guards all fields, with two exceptions. Init sets id, limit, over, port and cells, which then never change:
// ID, Limit, Overflows, Displaces, Port and Cells need no lock. Without the lock, a select reads plain, and the fields
// that Ready reads, for a guess that it checks again under the lock; and an operation that failed reads state for its
// error.
type Core struct {
	mu      xatomic.Mutex
	waiting [2]wait.Queue // by side
	state   State
	over    Overflow
	plain   bool // neither timed nor watched: a transfer takes no extra steps; false before Init
	held    int  // values in the store
	limit   int  // the most values that the store may hold

	by, was [2]uintptr // see UsedBy

	counters

	id    uint64
	port  Port
	cells wait.Kind // the type of its cells
	watch *watchers // nil if no Selector ever watched it
	times *times    // nil unless it is timed
}

var lastObjectID atomic.Uint64

// NewObjectID returns a number that no other object has.
//
//go:norace
func NewObjectID() uint64 {
	race.Disable() // making a channel synchronises nothing
	defer race.Enable()
	return lastObjectID.Add(1)
}

// Unknown stands for a fiber's number if the caller does not say which fiber or goroutine uses a side. A Try operation
// does not, because it would take longer than the operation to find out.
const Unknown = uint64(^uintptr(0))

// UsedBy records, for snapshots, the number of the fiber that uses a side, or 0 for a goroutine, and the number that
// was recorded before it. It stores only changes: a store each time would make the buffered-64 comparison in
// bench/ratios take 1.02 times as long.
//
//go:norace
func (c *Core) UsedBy(side Side, fiber uint64) {
	if c.by[side] != uintptr(fiber) {
		c.was[side] = c.by[side]
		c.by[side] = uintptr(fiber)
	}
}

// Lock locks the channel.
//
//go:norace
func (c *Core) Lock() { c.mu.Lock() }

// Unlock unlocks the channel.
//
//go:norace
func (c *Core) Unlock() { c.mu.Unlock() }

// Peek tells explorations that the caller is about to read the channel without its lock, for a guess.
//
//go:norace
func (c *Core) Peek() { xatomic.Peek(&c.mu) }

// ID returns the channel's number. Channels are locked in the order of their numbers.
//
//go:norace
func (c *Core) ID() uint64 { return c.id }

// Port returns the channel as a select sees it.
//
//go:norace
func (c *Core) Port() Port { return c.port }

// Cells names the type of the channel's cells.
//
//go:norace
func (c *Core) Cells() wait.Kind { return c.cells }

// Limit returns how many values the channel may hold.
//
//go:norace
func (c *Core) Limit() int { return c.limit }

// State returns how far the channel has been closed.
//
//go:norace
func (c *Core) State() State { return c.state }

// Drained reports whether the channel was closed and has delivered all its values. It locks the channel.
//
//go:norace
func (c *Core) Drained() bool {
	race.Disable()
	defer race.Enable()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state == Closed && c.held == 0 && c.waiting[Sending].Empty()
}

// Plain reports whether the channel is neither timed nor watched. It returns false before Init. So the fast paths,
// which are for plain channels, need not check whether Init was called.
//
//go:norace
func (c *Core) Plain() bool { return c.plain }

// Overflows reports whether a send on a full channel does not wait.
//
//go:norace
func (c *Core) Overflows() bool { return c.over != Wait }

// Displaces reports whether a send that finds no room drops the oldest value to make room.
//
//go:norace
func (c *Core) Displaces() bool { return c.over == DropOldest && c.limit > 0 }

// Len returns how many values can still be received from the store.
//
//go:norace
func (c *Core) Len() int {
	if c.state == Aborted {
		return 0 // Discard is removing the values that it holds
	}
	return c.held
}

// Ready reports whether an operation of that side can proceed without waiting. Without the lock the answer is a guess,
// because Ready reads words that other goroutines may be writing.
//
//go:norace
func (c *Core) Ready(side Side) bool {
	if side == Sending {
		return c.held < c.limit || c.waiting[Receiving].First() != nil || c.state != Open || c.over != Wait
	}
	return c.held > 0 || c.waiting[Sending].First() != nil || c.state != Open
}

// Publish adds a wait to the end of its queue. It is only for a Plain channel; for others see PublishSend and
// PublishRecv.
//
//go:norace
func (c *Core) Publish(side Side, n *wait.Node, p *park.Parker, t park.Ticket) {
	if invariant.Enabled {
		invariant.Check(c.state == Open, "a wait is published on a channel that is closed")
	}
	race.Offer(unsafe.Pointer(n)) // later users of the cell are ordered after the caller
	c.waiting[side].Push(n, p, t)
}

// noteWrite tells the race detector and explorations that the caller is about to write the value of a cell.
//
//go:norace
func noteWrite(n *wait.Node) {
	race.Meet(unsafe.Pointer(n))
	xatomic.Writes(unsafe.Pointer(n))
}

// noteTake tells the race detector and explorations that the cell's owner takes the value.
//
//go:norace
func noteTake(n *wait.Node) {
	race.Meet(unsafe.Pointer(n))
	xatomic.Reads(unsafe.Pointer(n))
}

// Withdraw removes a wait that ended with reason r from its queue, and counts it. If r is None, the caller does not
// know yet how to count the wait, and calls Fail later. Withdraw locks the channel itself.
//
//go:norace
func (c *Core) Withdraw(side Side, n *wait.Node, r park.Reason) {
	// Spec: CH-28 (an ended wait is unlinked before it returns)
	// Spec: CH-56 (a cancelled wait takes no value and no place)
	c.mu.Lock()
	c.waiting[side].Withdraw(n)
	if r != park.None {
		c.Count(side, r)
	}
	c.mu.Unlock()
}

// WithdrawCase removes the node of a published case from its queue. It reports whether the node is marked as the one
// that ended the select: see wait.Node.Won. It locks the channel itself.
//
//go:norace
func (c *Core) WithdrawCase(side Side, n *wait.Node) (won bool) {
	c.mu.Lock()
	c.waiting[side].Withdraw(n)
	won = n.Won
	c.mu.Unlock()
	return won
}

// Close changes the channel's state to a later one. The caller then calls EndWaits, which claims the waits that this
// ends.
//
//go:norace
func (c *Core) Close(to State) {
	// Spec: CH-34 (close is one step)
	if invariant.Enabled {
		invariant.Check(c.state < to, "a channel in state %d is closed to state %d", c.state, to)
	}
	c.state = to
}

// EndWaits claims the waits that the channel's state has ended, until none is left or the batch is full.
//
//go:norace
func (c *Core) EndWaits(batch *Wakes) {
	// Spec: CH-35 (close is graceful)
	// Spec: CH-37 (abort is the hard close)
	// Spec: CH-39 (close claims waiters as any waker does)
	batch.Claim(&c.waiting[Receiving], park.Closed)
	if c.state == Aborted {
		batch.Claim(&c.waiting[Sending], park.Closed)
	}
}

// Waits reports whether an operation is waiting on either side.
//
//go:norace
func (c *Core) Waits() bool {
	return c.waiting[Sending].First() != nil || c.waiting[Receiving].First() != nil
}

// Wakes is a batch of parkers that were claimed under a lock, to be readied after unlocking.
type Wakes struct {
	n  int
	ps [32]*park.Parker
}

// Full reports whether there is no room for another parker.
//
//go:norace
func (w *Wakes) Full() bool { return w.n == len(w.ps) }

// Add adds a parker, unless it is nil.
//
//go:norace
func (w *Wakes) Add(p *park.Parker) {
	if p != nil {
		w.ps[w.n] = p
		w.n++
	}
}

// Any reports whether the batch has a parker.
//
//go:norace
func (w *Wakes) Any() bool { return w.n > 0 }

// All returns the parkers.
//
//go:norace
func (w *Wakes) All() []*park.Parker { return w.ps[:w.n] }

// Claim ends waits in the queue with reason r, until the queue is empty or the batch is full.
//
//go:norace
func (w *Wakes) Claim(q *wait.Queue, r park.Reason) {
	for !w.Full() {
		n := q.Shift()
		if n == nil {
			return
		}
		_, asleep := n.Claim(r)
		w.Add(asleep)
	}
}
