package coir

import (
	"fmt"

	"github.com/coir-go/coir/internal/channel"
	"github.com/coir-go/coir/internal/flavor"
)

// The capacities that are not a number of places.
const (
	// Unlimited makes a channel that keeps any number of values: a send never waits. It gives memory back after a burst.
	Unlimited = -1
	// Conflated makes a channel that keeps the newest value alone: a send never waits, and replaces a value that nobody has
	// received yet. The value that it replaced goes to [OnUndelivered]. As on every channel, one receiver gets a value.
	Conflated = -2
)

// kindOf returns what makes a kind of channel: how many values it may hold, what it keeps them in if that is not a ring,
// and its overflow policy. Each kind is one row here. A store of its own is one file of internal/flavor.
//
// Spec: CH-01 (one channel type, four kinds)
// Spec: CH-04 (rendezvous hands over directly)
// Spec: CH-12 (a conflated send never waits)
// Spec: CH-13 (a conflated receive empties the channel)
// Spec: CH-14 (conflated is bounded 1 that drops the oldest)
func kindOf[T any](capacity int, over OverflowPolicy) (limit int, store flavor.Store[T], _ OverflowPolicy) {
	switch {
	case capacity >= 0: // rendezvous and bounded
		return capacity, nil, over
	case capacity == Unlimited:
		return channel.NoLimit, new(flavor.List[T]), over
	case capacity == Conflated && over <= DropOldest:
		return 1, nil, DropOldest
	case capacity == Conflated:
		panic(fmt.Sprintf("coir: NewChan(coir.Conflated) with the overflow policy %q: a conflated channel replaces "+
			"the value that it holds; for another policy use a capacity of 1", over))
	}
	panic(fmt.Sprintf("coir: NewChan(%d): the capacity is 0 or more, coir.Unlimited or coir.Conflated", capacity))
}

// OverflowPolicy says what a send does when the channel is full.
type OverflowPolicy uint8

// The policies. See [Overflow].
const (
	Wait       = OverflowPolicy(channel.Wait)       // the send waits for room: the default
	DropOldest = OverflowPolicy(channel.DropOldest) // the oldest value makes room. Without any (capacity 0) the new one is dropped
	DropNewest = OverflowPolicy(channel.DropNewest) // the new value is dropped
	Fail       = OverflowPolicy(channel.Fail)       // the send returns ErrWouldBlock
)

func (p OverflowPolicy) String() string {
	if p > Fail {
		return "no such policy"
	}
	return [...]string{"wait", "drop oldest", "drop newest", "fail"}[p]
}

// ChanOption is an option of [NewChan] and of whatever is built on a channel.
type ChanOption func(*chanSettings)

type chanSettings struct {
	name        string
	over        OverflowPolicy
	undelivered any // func(T)
	timed       bool
}

// settingsOf is what the options come to.
func settingsOf(opts []ChanOption) *chanSettings {
	s := new(chanSettings)
	for _, o := range opts {
		o(s)
	}
	return s
}

// Name gives the channel a name, for errors and for whoever looks inside.
func Name(name string) ChanOption { return func(s *chanSettings) { s.name = name } }

// Overflow sets what a send does when the channel is full. A channel that drops never makes a sender wait; every value that
// it drops is counted, and handed to [OnUndelivered]. A channel that is never full needs none. A conflated one has its
// own: NewChan panics if it is given DropNewest or Fail.
func Overflow(p OverflowPolicy) ChanOption {
	// Spec: CH-17 (the overflow policy decides a full send)
	if p > Fail {
		panic("coir: Overflow: no such policy")
	}
	return func(s *chanSettings) { s.over = p }
}

// OnUndelivered has f called with every value that the channel took over and does not deliver: dropped by its policy,
// replaced in a conflated channel, or left in it when it was aborted. A value whose send returned an error is still the
// sender's, and is not handed over. f is called by whoever caused it, outside of the channel's lock. If it panics where
// several values are handed over, such as in [Chan.Abort], it is still called with the others; then the first panic
// goes on. T is the channel's: if it is not, NewChan panics.
func OnUndelivered[T any](f func(T)) ChanOption {
	// Spec: CH-18 (dropped values are counted and handed over)
	// Spec: CH-40 (no value is lost silently)
	return func(s *chanSettings) { s.undelivered = f }
}

// Timed has the channel note when things happen, for [Chan.Stats]: its first and last operation, and since when the oldest
// waiter waits. It costs a look at the clock for each operation.
func Timed() ChanOption { return func(s *chanSettings) { s.timed = true } }

// handler is the OnUndelivered that the options have set.
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

// toEnd calls step, which calls the user's code, until it reports false. A panic or a Goexit in step goes on to the
// caller, but only once the steps that are left have been made; panics of those are dropped, because one is on its way
// already. The first is not recovered, so its stack is intact for the caller that does recover it.
func toEnd(step func() bool) {
	more := true
	defer func() {
		for more {
			more = goOn(step)
		}
	}()
	for more {
		more = step()
	}
}

// goOn makes the steps that are left while a panic or a Goexit is on its way. It reports whether a panic has stopped it
// again.
func goOn(step func() bool) (stopped bool) {
	more := true
	defer func() {
		stopped = more && recover() != nil
		for more && !stopped { // a Goexit: it cannot be stopped, but this call can go on
			more = goOn(step)
		}
	}()
	for more {
		more = step()
	}
	return false
}
