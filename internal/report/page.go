package report

import "github.com/coir-go/coir/internal/chart"

// This file computes what the page shows, and what a reader of the table would have to work out: the send of each
// received value, and the effect of each operation on its channel or lock.

// Event is an operation of an actor. Events are in the order in which the operations were done.
type Event struct {
	Actor  int
	Step   int         // its number
	Row    int         // its row in the chart; negative: it has none
	Uses   []chart.Use // its possible effects on objects; a select has one for each case
	Did    int         // the index in Uses of its effect; negative: it had none, or the effect is unknown
	Out    Outcome
	Try    bool // it does not wait
	Waited bool // it waited, or waits at the end
	Guess  bool // its place in the order is a guess
}

// Outcome is the outcome of an operation.
type Outcome int

// The outcomes of operations.
const (
	Open      Outcome = iota // it has not ended
	Failed                   // it changed nothing, or its effect is unknown
	Closed                   // a receive found the channel closed
	Done                     // it succeeded
	Dropped                  // a send succeeded, but the value may have been dropped
	Displaced                // a send succeeded, and the oldest value was dropped
)

// flow counts the messages of a channel.
type flow struct {
	object        int
	sent, waiting []*Event // sends not received yet; receives that wait
	closed        []*Event // receives that found it closed
	shut          *Event   // the operation that closed it
	left          int      // how many values it held then; 0 if that is uncertain
	unsure        bool
	messages      []message
}

// message is a value that was sent and received.
type message struct {
	from, to *Event
	guess    bool
}

// add adds a message.
func (f *flow) add(from, to *Event) { f.messages = append(f.messages, message{from, to, f.unsure}) }

// arrow adds an arrow between the rows of two events, if they have any.
func (t *Trace) arrow(f *flow, m message, kind chart.Relation) {
	if m.from.Row >= 0 && m.to.Row >= 0 {
		t.Arrows = append(t.Arrows, chart.Arrow{From: m.from.Row, To: m.to.Row, Kind: kind, Text: t.Named(f.object),
			Guess: m.guess})
	}
}

// flowOf returns the channel with a number, after all events.
func (t *Trace) flowOf(object int) *flow {
	if t.flows == nil {
		t.flows = map[int]*flow{}
		for i := range t.Events {
			t.pass(&t.Events[i])
		}
	}
	return t.flows[object]
}

// pass counts the effect of an operation on a channel. It pairs the sends and the receives of a channel in order.
// The pairs are certain unless an operation takes effect after its step, or a value may have been dropped.
func (t *Trace) pass(e *Event) {
	if e.Did < 0 || e.Out < Closed && !e.Guess || e.Out == Closed && e.Uses[e.Did].What != chart.Get {
		return
	}
	u := e.Uses[e.Did]
	f := t.flows[u.Object]
	if f == nil {
		f = &flow{object: u.Object}
		t.flows[u.Object], t.flowing = f, append(t.flowing, f)
	}
	if u.What == chart.Shut && !f.unsure {
		f.left = len(f.sent)
	}
	f.unsure = f.unsure || e.Guess || e.Out == Dropped
	if e.Out < Closed {
		return
	}
	switch u.What {
	case chart.Put:
		switch {
		case len(f.waiting) > 0:
			f.add(e, f.waiting[0])
			f.waiting = f.waiting[1:]
			return
		case e.Out == Displaced && len(f.sent) > 0:
			f.sent = f.sent[1:]
		}
		f.sent = append(f.sent, e)
	case chart.Get:
		if e.Out == Closed {
			f.closed = append(f.closed, e)
			return
		}
		for range max(u.N, 1) {
			switch {
			case len(f.sent) > 0:
				f.add(f.sent[0], e)
				f.sent = f.sent[1:]
			case !e.Try:
				f.waiting = append(f.waiting, e)
				return
			}
		}
	case chart.Shut:
		f.shut = e
	}
}

// Link adds the arrows of messages to the chart. If a receive has no send, it has found the channel closed, or some
// sends have no step. If the beginning of the trace is missing, its sends are missing too, and there are no arrows.
func (t *Trace) Link() {
	if !t.Complete {
		return
	}
	t.flowOf(0)
	for _, f := range t.flowing {
		for _, m := range f.messages {
			m.guess = m.guess || f.shut == nil && len(f.waiting) > 0
			t.arrow(f, m, chart.Message)
		}
		if f.shut != nil {
			for _, to := range append(f.closed, f.waiting...) {
				t.arrow(f, message{f.shut, to, false}, chart.Closing)
			}
		}
	}
}

// Discarded returns the number of values that a channel held when an operation closed it, or 0 if that is uncertain or
// the operation closed none.
func (t *Trace) Discarded(e *Event) int {
	if e.Did < 0 || e.Uses[e.Did].What != chart.Shut || t.Outside || !t.Complete {
		return 0
	}
	if f := t.flowOf(e.Uses[e.Did].Object); f != nil && f.shut == e {
		return f.left
	}
	return 0
}

// Left returns the number of values that a channel holds at the end, or false if that is uncertain.
func (t *Trace) Left(object int) (n int, ok bool) {
	f := t.flowOf(object)
	if f == nil || f.unsure || t.Outside || !t.Complete {
		return 0, false
	}
	return len(f.sent), true
}

// Touch adds to the rows the effects of the events on objects, and what the events waited for. place returns the index
// of an object in the chart, if it has one.
func (t *Trace) Touch(place func(object int) (i int, ok bool)) {
	for _, e := range t.Events {
		if e.Row < 0 {
			continue
		}
		row := &t.Steps[e.Row]
		for k, u := range e.Uses {
			i, ok := place(u.Object)
			if !ok {
				continue
			}
			if e.Waited {
				row.Wants = append(row.Wants, chart.Use{Object: i, What: u.What, N: 1})
			}
			if k != e.Did || e.Out == Open {
				continue
			}
			if e.Out != Done && u.What != chart.Release && u.What != chart.Shut {
				u.What = chart.Touch
			}
			row.Did = append(row.Did, chart.Use{Object: i, What: u.What, N: max(u.N, 1)})
		}
	}
}
