package coir

import (
	"fmt"
	"math"
	"strconv"

	"github.com/coir-go/coir/internal/channel"
	"github.com/coir-go/coir/internal/flavor"
)

// Capacities with a special meaning. Neither is close to 0, so a computed capacity, such as len(x)-1 for an empty x,
// cannot be one of them by accident.
const (
	// Unbounded makes a channel that holds any number of values: a send never waits. The channel releases memory after
	// a burst.
	Unbounded = math.MaxInt
	// Conflated makes a channel that keeps only the newest value. A send never waits, and replaces a value that has not
	// been received yet. The replaced value is passed to [OnUndelivered]. As on every channel, only one receiver gets
	// each value.
	Conflated = math.MinInt + 0xc0f1 // not MinInt, which is Unbounded+1
)

// kindOf returns the parts that make up a kind of channel: how many values it can hold, the store that keeps them (nil
// for a ring), and the overflow policy. Each kind is one case of the switch. A new kind that needs another store adds a
// file to internal/flavor.
//
// Spec: CH-01 (one channel type, four kinds)
// Spec: CH-04 (rendezvous hands over directly)
// Spec: CH-12 (a conflated send never waits)
// Spec: CH-13 (a conflated receive empties the channel)
// Spec: CH-14 (conflated is bounded 1 that drops the oldest)
func kindOf[T any](capacity int, over OverflowPolicy) (limit int, store flavor.Store[T], _ OverflowPolicy) {
	switch {
	case capacity == Unbounded:
		return channel.NoLimit, new(flavor.List[T]), over
	case capacity >= 0: // rendezvous and bounded
		return capacity, nil, over
	case capacity == Conflated && over <= OverflowDropOldest:
		return 1, nil, OverflowDropOldest
	case capacity == Conflated:
		panic(fmt.Sprintf("coir: NewChan(coir.Conflated) with the overflow policy %q: a conflated channel replaces "+
			"the value that it holds; for another policy use a capacity of 1", over))
	}
	panic(fmt.Sprintf("coir: NewChan(%d): a capacity is 0 or more; write coir.Unbounded for a channel that holds any "+
		"number of values, or coir.Conflated for one that keeps the newest", capacity))
}

// number formats a capacity as it is written in source code.
func number(n int) string {
	switch n {
	case Unbounded:
		return "coir.Unbounded"
	case Conflated:
		return "coir.Conflated"
	}
	return strconv.Itoa(n)
}

// OverflowPolicy says what a send does when the channel is full.
type OverflowPolicy uint8

// The policies. See [WithOverflow].
const (
	OverflowWait       = OverflowPolicy(channel.Wait)       // the send waits for room; this is the default
	OverflowDropOldest = OverflowPolicy(channel.DropOldest) // the oldest value is dropped; with capacity 0, the new one
	OverflowDropNewest = OverflowPolicy(channel.DropNewest) // the new value is dropped
	OverflowFail       = OverflowPolicy(channel.Fail)       // the send returns ErrWouldBlock
)

func (p OverflowPolicy) String() string {
	if p > OverflowFail {
		return "no such policy"
	}
	return [...]string{"wait", "drop oldest", "drop newest", "fail"}[p]
}

// ChanOption is an option of [NewChan] and of the types that are built on a channel.
type ChanOption interface{ set(*chanSettings) }

type chanOption func(*chanSettings)

func (o chanOption) set(s *chanSettings) { o(s) }

type chanSettings struct {
	name        string
	over        OverflowPolicy
	undelivered any // func(T)
	timed       bool
}

// settingsOf applies the options and returns the settings.
func settingsOf(opts []ChanOption) *chanSettings {
	s := new(chanSettings)
	for _, o := range opts {
		o.set(s)
	}
	return s
}

// WithName sets the name of a channel, an event or another object. Errors, reports and debugging tools show the name.
func WithName(name string) NameOption { return NameOption{name: name} }

// NameOption is the option that [WithName] returns. It is a [ChanOption], a [TimerOption], and an option of every other
// type that can have a name.
type NameOption struct{ name string }

// Name returns the name. It is for types of other packages that have this option.
func (n NameOption) Name() string { return n.name }

func (n NameOption) set(s *chanSettings) { s.name = n.name }

func (n NameOption) setTimer(t *Timer) { t.name = n.name }

// nameOf returns the name set by the options.
func nameOf(opts []NameOption) (name string) {
	for _, o := range opts {
		name = o.name
	}
	return name
}

// WithOverflow sets what a send does when the channel is full. On a channel that drops values, a send never waits; each
// dropped value is counted, and passed to [OnUndelivered]. A conflated channel always replaces its value: NewChan
// panics if it is also given [OverflowDropNewest] or [OverflowFail].
func WithOverflow(p OverflowPolicy) ChanOption {
	// Spec: CH-17 (the overflow policy decides a full send)
	if p > OverflowFail {
		panic("coir: WithOverflow(" + strconv.Itoa(int(p)) + "): no such policy")
	}
	return chanOption(func(s *chanSettings) { s.over = p })
}

// OnUndelivered makes the channel call f with each value that it accepted and will not deliver: dropped by the overflow
// policy, replaced in a conflated channel, or left when the channel was aborted. If a send returned an error, its value
// still belongs to the sender, and f is not called with it. The operation that caused the loss calls f, without holding
// the channel's lock. If f panics while several values are being handed over, as in [Chan.Abort], f is still called
// with the others, and then the first panic continues. NewChan panics if T is not the channel's element type.
func OnUndelivered[T any](f func(T)) ChanOption {
	// Spec: CH-18 (dropped values are counted and handed over)
	// Spec: CH-40 (no value is lost silently)
	return chanOption(func(s *chanSettings) { s.undelivered = f })
}

// WithTiming makes the channel record, for [Chan.Stats], the times of its first and last operation, and when its
// longest-waiting operation began to wait. Each operation then reads the clock.
func WithTiming() ChanOption { return chanOption(func(s *chanSettings) { s.timed = true }) }

// handler returns the function passed to OnUndelivered, or nil.
func handler[T any](s *chanSettings) func(T) {
	if s.undelivered == nil {
		return nil
	}
	f, ok := s.undelivered.(func(T))
	if !ok {
		var want func(T)
		panic(fmt.Sprintf("coir: OnUndelivered was given a %T for a channel that needs a %T", s.undelivered, want))
	}
	return f
}
