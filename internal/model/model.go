// Package model is the simplest possible channel: a slice of values, a list of waiting senders, a list of waiting
// receivers, and loops. One thing happens at a time, and nothing is fast.
//
// Tests compare the real channels with it. It does not import coir, so that it cannot share a mistake with coir. It has
// no fibers, contexts or clocks. The test calls the model for each event, and the model returns the operations that the
// event ends, and how they end:
//
//	if ready := op.Ready(); len(ready) > 0 {
//		done = op.Do(ready[0]) // a fair select may do any of them
//	} else {
//		op.Wait() // until a Do of another, a Close or an Abort returns it as done, or Cancel or Expire ends it
//	}
package model

import (
	"math"
	"slices"
)

// The capacities that are not a number of places. They have the same values as those of coir.
const (
	Unbounded = math.MaxInt
	Conflated = math.MinInt + 0xc0f1
)

// Policy is what a send does when there is no room.
type Policy uint8

// The policies.
const (
	Wait       Policy = iota
	DropOldest        // at capacity 0 there is no oldest value, and the new one is dropped
	DropNewest
	Fail
)

// Chan is a channel of ints.
type Chan struct {
	Stats
	Values      []int // the values that it holds, oldest first
	Undelivered []int // the values that it accepted and did not deliver, in order

	room               int // how many values it may hold; any number if negative
	policy             Policy
	senders, receivers []place
	aborted            bool
}

// Stats holds the counters of a channel.
type Stats struct {
	High                    int // the most values that it held
	Sent, Received, Dropped uint64
	Closed                  bool
	Send, Recv              Failures
}

// Failures counts the operations of one side that did not succeed, by outcome; Aborted counts as Closed. A select fails
// only by its clause: because the channel is closed, or because its policy is Fail.
type Failures [Closed + 1]uint64

// Outcome is how an operation ends.
type Outcome uint8

// The outcomes.
const (
	OK Outcome = iota
	WouldBlock
	TimedOut
	Cancelled
	Closed
	Aborted
)

func (o Outcome) String() string {
	return [...]string{"ok", "would block", "timed out", "cancelled", "closed", "aborted"}[o]
}

// New makes a channel.
func New(capacity int, policy Policy) *Chan {
	switch capacity {
	case Conflated:
		return &Chan{room: 1, policy: DropOldest}
	case Unbounded:
		return &Chan{room: -1}
	}
	return &Chan{room: capacity, policy: policy}
}

// Waiting returns how many operations wait to send and to receive.
func (c *Chan) Waiting() (senders, receivers int) { return len(c.senders), len(c.receivers) }

func (c *Chan) hasRoom() bool { return c.room < 0 || len(c.Values) < c.room }

// Op is an operation: a send or a receive has one clause, a select any number.
type Op struct {
	Clauses []Clause
	Select  bool
}

// Clause is one of the alternatives of an operation.
type Clause struct {
	Kind  Kind
	Chan  *Chan
	Value int // to send
}

// Kind is the kind of a clause.
type Kind uint8

// The kinds.
const (
	Never Kind = iota
	Send
	Recv
	Now   // a time that has been reached
	Later // a time that Expire reaches
)

// Done is an operation that has ended, and how.
type Done struct {
	Op *Op
	Result
}

// Result is the result of an operation. Clause is -1 if no clause of a select was done.
type Result struct {
	Outcome Outcome
	Clause  int
	Value   int // the received value
}

// Ready returns the clauses that need not wait, in their order.
func (op *Op) Ready() (ready []int) {
	for i, cl := range op.Clauses {
		c := cl.Chan
		if cl.Kind == Now ||
			cl.Kind == Send && (c.Closed || len(c.receivers) > 0 || c.hasRoom() || c.policy != Wait) ||
			cl.Kind == Recv && (c.Closed || len(c.senders) > 0 || len(c.Values) > 0) {
			ready = append(ready, i)
		}
	}
	return ready
}

// Do performs clause i, which is ready. It returns the operations that this ends, with op first.
func (op *Op) Do(i int) []Done {
	r := Result{Clause: i}
	var other []Done
	switch cl := op.Clauses[i]; cl.Kind {
	case Send:
		r.Outcome, other = cl.Chan.send(cl.Value)
	case Recv:
		r.Value, r.Outcome, other = cl.Chan.recv()
	}
	return append([]Done{{op, r}}, other...)
}

func (c *Chan) send(v int) (Outcome, []Done) {
	switch {
	case c.Closed:
		c.Send[Closed]++
		return c.end(), nil
	case len(c.receivers) > 0:
		c.Sent++
		c.Received++
		return OK, []Done{c.receivers[0].done(OK, v)}
	case c.hasRoom():
		c.Sent++
		c.Values = append(c.Values, v)
		c.High = max(c.High, len(c.Values))
		return OK, nil
	case c.policy == Fail:
		c.Send[WouldBlock]++
		return WouldBlock, nil
	case c.policy == DropOldest:
		c.Values = append(c.Values, v)
		v, c.Values = c.Values[0], c.Values[1:]
	}
	c.Sent++
	c.drop(v)
	return OK, nil
}

func (c *Chan) recv() (v int, o Outcome, other []Done) {
	if len(c.senders) > 0 { // its value becomes the last one, because the first leaves
		c.Sent++
		c.Values = append(c.Values, c.senders[0].value())
		other = append(other, c.senders[0].done(OK, 0))
	}
	if len(c.Values) == 0 {
		c.Recv[Closed]++
		return 0, c.end(), nil
	}
	c.Received++
	v, c.Values = c.Values[0], c.Values[1:]
	return v, OK, other
}

// end returns the outcome of an operation on a closed channel.
func (c *Chan) end() Outcome {
	if c.aborted {
		return Aborted
	}
	return Closed
}

func (c *Chan) drop(v int) {
	c.Dropped++
	c.Undelivered = append(c.Undelivered, v)
}

// place is an entry of a list: an operation that waits, and one of its clauses.
type place struct {
	op     *Op
	clause int
}

func (p place) value() int { return p.op.Clauses[p.clause].Value }

// done ends the wait that the place is part of.
func (p place) done(o Outcome, v int) Done {
	p.op.leave()
	return Done{p.op, Result{o, p.clause, v}}
}

// Wait starts a wait of op with all its clauses, none of which is ready.
func (op *Op) Wait() {
	for i, cl := range op.Clauses {
		switch c := cl.Chan; cl.Kind {
		case Send:
			c.senders = append(c.senders, place{op, i})
		case Recv:
			c.receivers = append(c.receivers, place{op, i})
		}
	}
}

// leave removes op from every list.
func (op *Op) leave() {
	its := func(p place) bool { return p.op == op }
	for _, cl := range op.Clauses {
		if c := cl.Chan; c != nil {
			c.senders = slices.DeleteFunc(c.senders, its)
			c.receivers = slices.DeleteFunc(c.receivers, its)
		}
	}
}

// Refuse ends an operation that would have to wait but must not.
func (op *Op) Refuse() Done { return op.fail(WouldBlock) }

// Cancel ends an operation, whether it waits or has not begun.
func (op *Op) Cancel() Done { return op.fail(Cancelled) }

// Expire ends an operation because its time has passed. For a select it performs the first clause of kind Later.
func (op *Op) Expire() Done {
	if i := slices.IndexFunc(op.Clauses, func(cl Clause) bool { return cl.Kind == Later }); i >= 0 {
		return place{op, i}.done(OK, 0)
	}
	return op.fail(TimedOut)
}

func (op *Op) fail(why Outcome) Done {
	if op.Select {
		return place{op, -1}.done(why, 0)
	}
	if c := op.Clauses[0].Chan; op.Clauses[0].Kind == Send {
		c.Send[why]++
	} else {
		c.Recv[why]++
	}
	return place{op, 0}.done(why, 0)
}

// Close closes the channel gracefully: it ends the waits of receivers, and senders keep waiting. It reports whether the
// channel was open.
func (c *Chan) Close() (first bool, done []Done) {
	first, c.Closed = !c.Closed, true
	for len(c.receivers) > 0 {
		c.Recv[Closed]++
		done = append(done, c.receivers[0].done(c.end(), 0))
	}
	return first, done
}

// Abort ends the channel immediately: it ends all waits, and delivers nothing that the channel holds.
func (c *Chan) Abort() (first bool, done []Done) {
	c.aborted = true
	first, done = c.Close()
	for len(c.senders) > 0 {
		c.Send[Closed]++
		done = append(done, c.senders[0].done(Aborted, 0))
	}
	for _, v := range c.Values {
		c.drop(v)
	}
	c.Values = nil
	return first, done
}
