package coir

import (
	"math"
	"reflect"
	"strconv"
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/clock"
	"github.com/coir-go/coir/internal/invariant"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/wait"
)

// ChanStats is what a channel has counted, all of one moment.
type ChanStats struct {
	Name       string
	Len        int    // values that it holds
	Cap        int    // see Chan.Cap
	High       int    // the most that it has held
	Sent       uint64 // sends that succeeded
	Received   uint64 // receives that succeeded
	Dropped    uint64 // values that were sent and are not delivered
	SentBytes  uint64 // Sent, times the size of a value
	Closed     bool
	Send, Recv SideStats

	First, Last time.Time // the first and the last operation, if the channel is Timed
}

// SideStats is about the operations of one side of a channel: its sends or its receives.
type SideStats struct {
	Waiting    int           // wait at this moment
	Oldest     time.Duration // for how long the first of them has waited, if the channel is Timed
	WouldBlock uint64        // had to wait and must not
	TimedOut   uint64
	Cancelled  uint64
	Closed     uint64 // came to a closed channel, or were waiting when it closed
}

// chanTimes is what a Timed channel notes, by the clock of the runtime that it was made on.
type chanTimes struct {
	clock       clock.Clock
	any         bool // there has been an operation
	first, last int64
}

// noteTransfer notes the time of an operation that succeeded.
//
//go:norace
func (c *core) noteTransfer() {
	if c.times != nil {
		c.times.note()
	}
}

//go:noinline
//go:norace
func (t *chanTimes) note() {
	t.last = t.clock.Now()
	if !t.any {
		t.any, t.first = true, t.last
	}
}

// noteWait notes when a wait began.
//
//go:norace
func (c *core) noteWait(n *wait.Node) {
	if c.times != nil {
		n.Since = c.times.clock.Now()
	}
}

// countFailure counts an operation that has ended for r. The caller has the lock.
//
//go:norace
func (c *core) countFailure(side int, r park.Reason) {
	f := &c.failed[side]
	switch r.Kind() {
	case park.None:
		f.wouldBlock++
	case park.TimedOut:
		f.timedOut++
	case park.Cancelled:
		f.cancelled++
	case park.Closed:
		f.closed++
	}
}

// Len returns how many values the channel holds. It was true at some moment of the call, and need not be any more.
//
//go:norace
func (c *Chan[T]) Len() int {
	if race.Enabled {
		c.exists()
	}
	race.Disable()
	c.mu.Lock()
	if invariant.Enabled {
		invariant.Check(c.held == c.store.Len(), "%d values are counted and %d are kept", c.held, c.store.Len())
	}
	n := c.held
	if c.state == aborted {
		n = 0
	}
	c.mu.Unlock()
	race.Enable()
	return n
}

// Cap returns how many values the channel can hold: math.MaxInt if it is unlimited, 1 if it is conflated.
func (c *Chan[T]) Cap() int { return c.limit }

// Name returns the name that the channel was given.
func (c *Chan[T]) Name() string { return c.name }

// String describes the channel in a few words: its name, or its number if it has none, how full it is, and whether it is
// closed.
func (c *Chan[T]) String() string { return "coir.Chan[" + typeName[T]() + "](" + c.describe() + ")" }

// describe is the channel in a few words.
//
//go:norace
func (c *core) describe() string {
	s := c.name
	if s == "" {
		s = "#" + strconv.FormatUint(c.id, 10)
	}
	race.Disable()
	c.mu.Lock()
	held, state := c.held, c.state
	c.mu.Unlock()
	race.Enable()
	if state == aborted {
		held = 0 // as Len says
	}
	s += ", " + strconv.Itoa(held) + " of "
	if c.limit == math.MaxInt {
		s += "any number"
	} else {
		s += strconv.Itoa(c.limit)
	}
	return s + [...]string{"", ", closed", ", aborted"}[state]
}

func typeName[T any]() string { return reflect.TypeFor[T]().String() }

// Stats returns what the channel has counted.
//
//go:norace
func (c *Chan[T]) Stats() ChanStats {
	var v T
	s := ChanStats{Name: c.name, Cap: c.limit}
	race.Disable()
	c.mu.Lock()
	s.Len, s.High, s.Closed = c.held, c.high, c.state != open
	s.Sent, s.Received, s.Dropped = c.sent, c.received, c.dropped
	if c.state == aborted { // what it still holds is on its way to OnUndelivered
		s.Len, s.Dropped = 0, s.Dropped+uint64(c.held)
	}
	s.SentBytes = c.sent * uint64(unsafe.Sizeof(v))
	s.Send, s.Recv = c.side(sending), c.side(receiving)
	if t := c.times; t != nil && t.any {
		now, date := t.clock.Now(), time.Now()
		s.First, s.Last = date.Add(time.Duration(t.first-now)), date.Add(time.Duration(t.last-now))
	}
	c.mu.Unlock()
	race.Enable()
	return s
}

//go:norace
func (c *core) side(side int) SideStats {
	f, q := &c.failed[side], c.queue(side)
	s := SideStats{
		Waiting:    q.Len(),
		WouldBlock: f.wouldBlock, TimedOut: f.timedOut, Cancelled: f.cancelled, Closed: f.closed,
	}
	if n := q.First(); n != nil && c.times != nil {
		s.Oldest = time.Duration(c.times.clock.Now() - n.Since)
	}
	return s
}
