package sim

import (
	"io"
	"math"
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
	sent, waiting    []int // sends not received yet; receives that wait
	closed, unlikely bool
}

// messages pairs sends with receives, in the order of each channel. The trace shows which operations began, not how
// they ended, so this is certain only as long as nothing can fail or stay unseen: a select, which does not say what it
// did, a try, a cancel. A receive whose fiber continued before there was a value has failed. If the beginning of the
// trace is missing, so are its sends, and messages returns nothing.
func (r *report) messages() (all []message) {
	if r.before > 0 {
		return nil
	}
	next := make([]int, len(r.trace)) // the step at which the fiber continued
	last := make([]int, len(r.fibers))
	for i, c := range r.fibers {
		if last[i] = len(r.trace); c.waits {
			last[i] = never
		}
	}
	for s := len(r.trace) - 1; s >= 0; s-- {
		i := r.trace[s].fiber
		next[s], last[i] = last[i], s
	}
	sure := true
	flows := map[int32]*flow{}
	for s, e := range r.trace {
		switch e.op.Kind {
		case policy.Select, policy.TrySelect, policy.Cancel:
			sure = false
		}
		if !onChannel(e.op.Kind) {
			continue
		}
		x := flows[e.object]
		if x == nil {
			x = new(flow)
			flows[e.object] = x
		}
		for len(x.waiting) > 0 && next[x.waiting[0]] <= s {
			x.waiting = x.waiting[1:]
		}
		switch k := e.op.Kind; k {
		case policy.Send, policy.TrySend:
			if x.closed {
				break
			}
			if len(x.waiting) > 0 {
				all = append(all, message{s, x.waiting[0], sure && !x.unlikely})
				x.waiting = x.waiting[1:]
				break
			}
			x.unlikely = x.unlikely || k == policy.TrySend // there may have been no room
			x.sent = append(x.sent, s)
		case policy.Recv, policy.TryRecv:
			if len(x.sent) > 0 && next[s] != never {
				all = append(all, message{x.sent[0], s, sure && !x.unlikely})
				x.sent = x.sent[1:]
			} else if k == policy.Recv && next[s] != never {
				x.waiting = append(x.waiting, s)
			}
			x.unlikely = x.unlikely || k == policy.TryRecv // it may have taken more, as RecvMany does
		case policy.Close:
			x.closed, x.waiting = true, nil
		case policy.Abort:
			x.closed, x.waiting, x.sent = true, nil, nil
		}
	}
	return all
}

// never is the step of what does not happen.
const never = math.MaxInt

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
			a.Why, a.Since = "waits "+r.waitsFor(i), fb.step
		}
		c.Of = append(c.Of, a)
	}
	for s := range r.trace {
		e := &r.trace[s]
		kind := chart.Plain
		if onChannel(e.op.Kind) {
			kind = chart.Channel
		}
		if e.op.Kind == opFault {
			kind = chart.Fault
		}
		c.Steps = append(c.Steps, chart.Step{
			Actor: int(e.fiber), Number: r.before + s + 1, Kind: kind, Text: r.did(e), At: e.at,
		})
	}
	for _, m := range r.messages() {
		from := &r.trace[m.send]
		c.Arrows = append(c.Arrows, chart.Arrow{From: m.send, To: m.recv, Text: channel(from.op, from.object), Guess: !m.sure})
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
