package coir

import (
	"reflect"
	"strconv"
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/channel"
	"github.com/coir-go/coir/internal/race"
)

// ChanStats holds the counters of a channel. All of them are read at the same moment.
type ChanStats struct {
	Name       string
	Len        int    // values that the channel holds now
	Cap        int    // see Chan.Cap
	High       int    // the largest Len so far
	Sent       uint64 // sends that succeeded
	Received   uint64 // receives that succeeded
	Dropped    uint64 // values that were sent and will not be delivered
	SentBytes  uint64 // Sent times the size of a value
	Closed     bool
	Send, Recv SideStats

	// When the first and last values were sent, received or dropped; zero unless the channel was made with WithTiming.
	First, Last time.Time
}

// SideStats holds the counters of one side of a channel: its sends or its receives.
type SideStats struct {
	Waiting    int           // operations that are waiting now
	Oldest     time.Duration // how long the longest-waiting of them has waited, if the channel was made WithTiming
	WouldBlock uint64        // Try operations that would have blocked, and sends that OverflowFail refused
	TimedOut   uint64
	Cancelled  uint64
	Closed     uint64 // found the channel closed, or were waiting when it closed
}

// Len returns the number of values that the channel holds. The result may be out of date by the time Len returns.
//
//go:norace
func (c *Chan[T]) Len() int {
	ch := &c.ch // panics here if the channel is nil, before synchronisation is hidden
	race.Disable()
	ch.Lock()
	n := ch.Len()
	ch.Unlock()
	race.Enable()
	return n
}

// Cap returns the number of values that the channel can hold: [Unbounded] if it is unbounded, 1 if it is conflated.
func (c *Chan[T]) Cap() int { return c.ch.Limit() }

// Name returns the name set by [WithName].
func (c *Chan[T]) Name() string { return c.core.name }

// String returns a short description of the channel: its name, or its number if it has none, how full it is, and
// whether it is closed.
func (c *Chan[T]) String() string {
	return "coir.Chan[" + typeName[T]() + "](" + c.core.describe() + ")"
}

// describe returns a short description of the channel.
//
//go:norace
func (c *core) describe() string {
	s := c.title()
	race.Disable()
	c.ch.Lock()
	held, state := c.ch.Len(), c.ch.State()
	c.ch.Unlock()
	race.Enable()
	s += ", " + strconv.Itoa(held) + " of "
	if c.ch.Limit() == channel.NoLimit {
		s += "any number"
	} else {
		s += strconv.Itoa(c.ch.Limit())
	}
	return s + [...]string{"", ", closed", ", aborted"}[state]
}

// title returns the channel's name, or its number if it has none.
//
//go:norace
func (c *core) title() string {
	if c.name != "" {
		return c.name
	}
	return "#" + strconv.FormatUint(c.ch.ID(), 10)
}

func typeName[T any]() string { return reflect.TypeFor[T]().String() }

// Stats returns the channel's counters.
//
//go:norace
func (c *Chan[T]) Stats() ChanStats {
	ch := &c.ch // panics here if the channel is nil, before synchronisation is hidden
	race.Disable()
	x := ch.Stats()
	race.Enable()
	s := ChanStats{
		Name: c.core.name, Cap: c.ch.Limit(),
		Len: x.Len, High: x.High, Sent: x.Sent, Received: x.Received, Dropped: x.Dropped,
		SentBytes: x.Sent * uint64(unsafe.Sizeof(*new(T))),
		Closed:    x.State != channel.Open,
		Send:      sideStats(&x, sending), Recv: sideStats(&x, receiving),
	}
	if x.Used {
		now := time.Now()
		s.First, s.Last = now.Add(time.Duration(x.First-x.Now)), now.Add(time.Duration(x.Last-x.Now))
	}
	return s
}

func sideStats(x *channel.Stats, side channel.Side) SideStats {
	of := &x.Side[side]
	s := SideStats{
		Waiting: of.Waiting, WouldBlock: of.WouldBlock, TimedOut: of.TimedOut, Cancelled: of.Cancelled, Closed: of.Closed,
	}
	if of.Waiting > 0 && x.Timed {
		s.Oldest = time.Duration(x.Now - of.Since)
	}
	return s
}
