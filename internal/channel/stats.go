package channel

import (
	"github.com/coir-go/coir/internal/clock"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/wait"
)

// counters are the counters of a channel.
type counters struct {
	Counts
	failed [2]Failures // by side
}

// Counts counts the values of a channel.
type Counts struct {
	Sent, Received uint64
	Dropped        uint64
	High           int // the most values held at one time so far
}

// Failures counts the operations of one side that failed, by reason.
type Failures struct{ WouldBlock, TimedOut, Cancelled, Closed uint64 }

// times records when operations happened on a timed channel.
type times struct {
	clock       clock.Clock
	any         bool // there has been a transfer
	first, last int64
}

// note records the time of a transfer. t is nil for a channel that is watched but not timed.
//
//go:norace
func (t *times) note() {
	if t == nil {
		return
	}
	t.last = t.clock.Now()
	if !t.any {
		t.any, t.first = true, t.last
	}
}

// transferred counts a value that passed directly from a sender to a receiver.
//
//go:norace
func (c *Core) transferred() {
	c.Sent++
	c.Received++
	if !c.plain {
		c.times.note()
	}
}

// changed records a transfer to or from the store, and tells the watchers of a side that the side may have become
// ready.
//
//go:noinline
//go:norace
func (c *Core) changed(side Side) {
	c.times.note()
	c.tell(side)
}

// waits records when the wait of n began, and tells the watchers of the other side that their side may have become
// ready.
//
//go:noinline
//go:norace
func (c *Core) waits(other Side, n *wait.Node) {
	if c.times != nil {
		n.Since = c.times.clock.Now()
	}
	c.tell(other)
}

// Fail counts an operation that ended with reason r. It locks the channel itself.
//
//go:norace
func (c *Core) Fail(side Side, r park.Reason) {
	c.mu.Lock()
	c.Count(side, r)
	c.mu.Unlock()
}

// Count is like Fail, for a caller that holds the lock.
//
//go:norace
func (c *Core) Count(side Side, r park.Reason) {
	f := &c.failed[side]
	switch r.Kind() {
	case park.None:
		f.WouldBlock++
	case park.TimedOut:
		f.TimedOut++
	case park.Cancelled:
		f.Cancelled++
	case park.Closed:
		f.Closed++
	}
}

// Stats is a snapshot of a channel's counters.
type Stats struct {
	State State
	Len   int
	Counts
	Side [2]SideStats

	// Only for a timed channel, by its clock.
	Timed, Used      bool
	Now, First, Last int64
}

// SideStats holds the counters of one side of a channel.
type SideStats struct {
	Failures
	Waiting int
	Since   int64  // when the first waiting operation began to wait, if the channel is timed
	By      uint64 // the fiber that used the side last; 0 for a goroutine or none, or Unknown: see Core.UsedBy
	Was     uint64 // the fiber recorded before By
}

// Stats returns a snapshot of the counters. It locks the channel itself.
//
//go:norace
func (c *Core) Stats() (s Stats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s.State, s.Len, s.Counts = c.state, c.held, c.Counts
	if c.state == Aborted { // Discard is removing the values that it still holds
		s.Len, s.Dropped = 0, s.Dropped+uint64(c.held)
	}
	for side := range s.Side {
		q := &c.waiting[side]
		s.Side[side] = SideStats{
			Failures: c.failed[side], Waiting: q.Len(), By: uint64(c.by[side]), Was: uint64(c.was[side]),
		}
		if n := q.First(); n != nil {
			s.Side[side].Since = n.Since
		}
	}
	if t := c.times; t != nil {
		s.Timed, s.Used = true, t.any
		s.Now, s.First, s.Last = t.clock.Now(), t.first, t.last
	}
	return s
}
