package sim

import (
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/coir-go/coir/internal/chart"
	"github.com/coir-go/coir/internal/policy"
)

// The chart is the table of the report, drawn by package chart. This file finds out what a reader of the table would
// have to count: which send each received value is from, which fiber started which, how long each one waited, and what
// each operation did to its channel or lock.

// message is a value that went from a send to a receive, as steps of the trace.
type message struct {
	send, recv int
	sure       bool
}

// flow is the state of a channel while its messages are counted.
type flow struct {
	sent, waiting []int // sends not received yet; receives that wait
	unlikely      bool
	unknown       bool // it is not known how many values the channel holds
}

// effect returns what an operation has done to which channel: of a select, its case. The object is -1 if it has done
// nothing, or that is not known.
func (r *findings) effect(e *event) (k policy.Kind, object int32) {
	switch e.how {
	case policy.Done, policy.Dropped, policy.Displaced:
	default:
		return e.op.Kind, -1
	}
	if c, ok := r.chosen(e); ok {
		return c.op.Kind, c.object
	}
	return e.op.Kind, e.object
}

// taken returns how many values a receive has taken.
func taken(e *event) int {
	if e.op.Kind == policy.TryRecv {
		return max(1, int(e.which))
	}
	return 1
}

// messages pairs sends with receives that were done, in the order of each channel. That is certain unless a Selector is
// involved, whose operation comes later than its step, or a send that may have been dropped. If the beginning of the
// trace is missing, so are its sends, and messages returns nothing.
//
// Guarded by TestMessagesOnlyOfWhatWasDone.
func (r *findings) messages() (all []message, flows map[int32]*flow) {
	flows = map[int32]*flow{}
	if r.before > 0 {
		return nil, flows
	}
	for s := range r.trace {
		e := &r.trace[s]
		k, object := r.effect(e)
		if object < 0 || !onChannel(k) {
			continue
		}
		x := flows[object]
		if x == nil {
			x = new(flow)
			flows[object] = x
		}
		x.unlikely = x.unlikely || e.op.Kind == policy.Select && e.object >= 0 || e.how == policy.Dropped
		x.unknown = x.unknown || x.unlikely || k == policy.SendAsync || k == policy.RecvAsync || k == policy.Abort
		switch k {
		case policy.Send, policy.TrySend:
			if len(x.waiting) > 0 {
				all = append(all, message{s, x.waiting[0], !x.unlikely})
				x.waiting = x.waiting[1:]
				break
			}
			if e.how == policy.Displaced && len(x.sent) > 0 {
				x.sent = x.sent[1:]
			}
			x.sent = append(x.sent, s)
		case policy.Recv, policy.TryRecv:
			for range taken(e) {
				if k == policy.TryRecv && len(x.sent) == 0 {
					break
				}
				if len(x.sent) == 0 {
					x.waiting = append(x.waiting, s)
					break
				}
				all = append(all, message{x.sent[0], s, !x.unlikely})
				x.sent = x.sent[1:]
			}
		}
	}
	return all, flows
}

// filled returns how many values a channel holds at the end; false if that is not certain.
func (r *findings) filled(t *thing) (n int, ok bool) {
	if r.flows == nil {
		_, r.flows = r.messages()
	}
	x := r.flows[t.object]
	if x == nil || x.unknown || len(r.strays) > 0 || len(x.sent) > t.room {
		return 0, false
	}
	return len(x.sent), true
}

// passed returns the name of the channel that an operation has sent to.
func (r *findings) passed(e *event) string {
	if c, ok := r.chosen(e); ok {
		return r.channel(c.op, c.object)
	}
	return r.channel(e.op, e.object)
}

// WriteHTML writes the failure as a page to work in: one HTML file that needs no other file and no network. It has the
// operations in order, a column for each fiber, and the state of each fiber, channel and lock at the chosen one. The
// key ? lists its keys. Arrows lead from each send to the receive that took the value, in the order of the channel;
// they are dashed where the trace leaves that open.
func (f *Failure) WriteHTML(w io.Writer) error { return newReport(f).chart().Write(w) }

// chart returns the table of the report as a chart: fibers from left to right, operations from top to bottom.
func (r *findings) chart() *chart.Chart {
	var head, causes strings.Builder
	r.head(&head)
	r.explain(&causes)
	var table strings.Builder
	r.traced().Table(&table)
	causes.WriteString(r.legend(causes.String() + table.String()))
	title, rest, _ := strings.Cut(head.String(), "\n")
	verdict, _, _ := strings.Cut(r.Text, "\n")
	c := r.told.Chart
	c.Title, c.Text, c.Verdict, c.Replay = title, rest+causes.String(), string(r.Kind)+": "+verdict, r.replayLine()
	if r.unsure {
		c.Notes = unsureText
	}
	return c
}

// drawing adds what is drawn of a schedule, without what is said about it.
func (r *findings) drawing() *chart.Chart {
	c := r.told.Chart
	if c.Steps != nil {
		return c
	}
	c.Starts = r.starts()
	rows, rowOf := r.rows()
	c.Steps, c.Objects = rows, r.uses(rows, rowOf)
	for i := range c.Of { // steps of the trace are rows now
		if a := &c.Of[i]; a.Why != "" && a.Since >= 0 && a.Since < len(rowOf) {
			a.Since = rowOf[a.Since]
		}
	}
	for i := range c.Starts {
		c.Starts[i].Step = rowOf[c.Starts[i].Step]
	}
	messages, _ := r.messages()
	for _, m := range messages {
		from, to := rowOf[m.send], rowOf[m.recv]
		if from >= 0 && to >= 0 {
			c.Arrows = append(c.Arrows, chart.Arrow{From: from, To: to, Text: r.passed(&r.trace[m.send]), Guess: !m.sure})
		}
	}
	return c
}

// starts returns which operation started which fiber. Fibers are numbered as they become able to run, which is the
// order of the calls of Go except under a limit; differing names reveal that.
func (r *findings) starts() (all []chart.Start) {
	child := 0
	if r.before > 0 {
		return nil // the first is not known
	}
	for s, e := range r.trace {
		if e.op.Kind != policy.Go {
			continue
		}
		if child++; child >= len(r.fibers) {
			return all
		}
		if name := r.names[child]; name != e.op.Name && !strings.HasPrefix(name, e.op.Name+"[") {
			return all
		}
		all = append(all, chart.Start{Step: s, Actor: child})
	}
	return all
}

// uses adds to the rows how long each wait lasted, and what was done to which channel, lock or the like. It returns
// those. What the library uses inside of its own functions is not among them.
func (r *findings) uses(rows []chart.Step, rowOf []int) (all []chart.Object) {
	index := map[int32]int{}
	for _, object := range slices.Sorted(maps.Keys(r.things)) {
		if t := r.things[object]; !t.inside {
			index[object] = len(all)
			o := chart.Object{Name: t.label, Room: -1}
			if t.channel {
				o.Sort = "channel"
			}
			if t.made.file != "" {
				o.Made = "made" + strings.TrimPrefix(t.made.at(), ",")
			}
			all = append(all, o)
		}
	}
	for _, m := range r.made {
		if i, ok := index[m.object]; ok && m.room <= mostKept {
			all[i].Room = m.room
		}
	}
	use := func(op policy.Op, object int32, n int) (u chart.Use, ok bool) {
		i, ok := index[object]
		if u = (chart.Use{Object: i, N: n}); !ok || !isThing(op.Kind) {
			return u, false
		}
		switch op.Kind {
		case policy.Send, policy.TrySend:
			u.What = chart.Put
		case policy.Recv, policy.TryRecv:
			u.What = chart.Get
		case policy.Close, policy.Abort:
			u.What = chart.Shut
		case policy.Use:
			if op.Take > 0 {
				all[i].Sort = "lock"
				u.What, u.N = chart.Hold, op.Take
				if op.Undo {
					u.What = chart.Release
				}
			}
		}
		return u, true
	}
	for s := range r.trace {
		e, row := &r.trace[s], rowOf[s]
		if row < 0 {
			continue
		}
		step := &rows[row]
		if until := r.until(s, rowOf, len(rows)); until > row {
			step.Until = until
			wanted, known := r.casesOf(e.cases)
			if e.op.Kind != policy.Select || !known {
				wanted = []choice{{e.op, e.object}}
			}
			for _, c := range wanted {
				if u, ok := use(c.op, c.object, 1); ok {
					step.Wants = append(step.Wants, u)
				}
			}
		}
		op, object := e.op, e.object
		if c, ok := r.chosen(e); ok {
			op, object = c.op, c.object
		}
		u, ok := use(op, object, taken(e))
		if e.how != policy.Done && u.What != chart.Release && u.What != chart.Shut {
			u.What = chart.Touch
		}
		if ok && (e.how != policy.Unknown || !r.waitsIn(s)) {
			step.Did = append(step.Did, u)
		}
	}
	return all
}

// until returns the row of the operation that ended the wait in operation s, or none if it waits at the end. If it did
// not wait, it returns 0.
func (r *findings) until(s int, rowOf []int, none int) int {
	served := r.siteOf(s).served - r.before
	switch {
	case r.waitsIn(s):
		return none
	case served <= 0:
		return 0
	}
	by := served - 1
	if e := &r.trace[s]; e.how == policy.TimedOut || r.timed(e) {
		by++ // time passed after that one
	}
	for ; by < len(rowOf); by++ {
		if rowOf[by] >= 0 {
			return rowOf[by]
		}
	}
	return none
}
