package sim

import (
	"io"
	"strings"

	"github.com/coir-go/coir/internal/chart"
	"github.com/coir-go/coir/internal/policy"
)

// The chart is the table of the report, drawn by package chart. This file finds out what a reader of the table would
// have to count: which send each received value is from, and which fiber started which.

// message is a value that went from a send to a receive, as steps of the trace.
type message struct {
	send, recv int
	sure       bool
}

// flow is the state of a channel while its messages are counted.
type flow struct {
	sent, waiting []int // sends not received yet; receives that wait
	unlikely      bool
}

// effect returns what an operation has done to which channel: of a select, its case. The object is -1 if it has done
// nothing, or that is not known.
func (r *report) effect(e *event) (k policy.Kind, object int32) {
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

// messages pairs sends with receives that were done, in the order of each channel. That is certain unless a Selector is
// involved, whose operation comes later than its step, or a send that may have been dropped. If the beginning of the
// trace is missing, so are its sends, and messages returns nothing.
//
// Guarded by TestMessagesOnlyOfWhatWasDone.
func (r *report) messages() (all []message) {
	if r.before > 0 {
		return nil
	}
	flows := map[int32]*flow{}
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
			for range max(1, e.which) {
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
	return all
}

// passed returns the name of the channel that an operation has sent to.
func (r *report) passed(e *event) string {
	if c, ok := r.chosen(e); ok {
		return r.channel(c.op, c.object)
	}
	return r.channel(e.op, e.object)
}

// WriteHTML writes the failure as a sequence chart: one HTML file that needs no other file and no network. It draws
// messages from the send to the receive that took them, in the order of the channel; dashed where the trace leaves that
// open.
func (f *Failure) WriteHTML(w io.Writer) error { return newReport(f).chart().Write(w) }

// chart returns the table of the report as a chart: fibers from left to right, operations from top to bottom.
func (r *report) chart() *chart.Chart {
	var head, causes strings.Builder
	r.head(&head)
	r.said(&causes)
	r.outside(&causes)
	r.waits(&causes)
	r.causes(&causes)
	var table strings.Builder
	r.table(&table)
	causes.WriteString(r.legend(causes.String() + table.String()))
	title, rest, _ := strings.Cut(head.String(), "\n")
	verdict, _, _ := strings.Cut(r.Text, "\n")
	c := &chart.Chart{
		Title: title, Text: rest + causes.String(), Verdict: string(r.Kind) + ": " + verdict, Replay: r.replayLine(),
		Actors: "fibers", Before: r.before, Starts: r.starts(),
	}
	if r.unsure {
		c.Notes = unsureText
	}
	for i := range r.fibers {
		fb := &r.fibers[i]
		a := chart.Actor{Name: r.labels[i], Title: fb.f.SpawnSite(), Ended: fb.ended}
		if fb.waits {
			a.Why, a.Since = "waits "+r.waitsFor(i)+fb.site.at(), fb.step
		}
		c.Of = append(c.Of, a)
	}
	rows, rowOf := r.rows()
	c.Steps = rows
	for i := range c.Of { // steps of the trace are rows now
		if a := &c.Of[i]; a.Why != "" && a.Since >= 0 && a.Since < len(rowOf) {
			a.Since = rowOf[a.Since]
		}
	}
	for i := range c.Starts {
		c.Starts[i].Step = rowOf[c.Starts[i].Step]
	}
	for _, m := range r.messages() {
		from, to := rowOf[m.send], rowOf[m.recv]
		if from >= 0 && to >= 0 {
			c.Arrows = append(c.Arrows, chart.Arrow{From: from, To: to, Text: r.passed(&r.trace[m.send]), Guess: !m.sure})
		}
	}
	if r.Kind == KindDeadlock {
		c.Cycle, _ = r.cycle()
	}
	return c
}

// starts returns which operation started which fiber. Fibers are numbered as they become able to run, which is the
// order of the calls of Go except under a limit; differing names reveal that.
func (r *report) starts() (all []chart.Start) {
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
