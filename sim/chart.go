package sim

import (
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/coir-go/coir/internal/chart"
	"github.com/coir-go/coir/internal/policy"
)

// The chart is the table of the report, drawn by package chart. This file finds out which fiber started which, and how
// long each one waited.

// WriteHTML writes the failure as an interactive page: one HTML file that needs no other file and no network. It shows
// the operations in order, a column for each fiber, and the state of each fiber, channel and lock at the chosen
// operation. The key ? lists the keys. Arrows lead from each send to the receive that took the value, in the order of
// the channel; they are dashed if the trace does not determine that.
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

// drawing adds the drawing of a schedule, without its texts.
func (r *findings) drawing() *chart.Chart {
	c := r.told.Chart
	if c.Steps != nil {
		return c
	}
	c.Starts = r.starts()
	rows, rowOf := r.rows()
	c.Steps = rows
	r.turns(rowOf)
	for s := range r.told.Events {
		x := &r.told.Events[s]
		if x.Row = rowOf[s]; x.Row >= 0 {
			if until := r.until(s, rowOf, len(rows)); until > x.Row {
				rows[x.Row].Until, x.Waited = until, true
			}
		}
	}
	r.objects()
	for i := range c.Of { // convert steps of the trace to rows
		if a := &c.Of[i]; a.Why != "" && a.Since >= 0 && a.Since < len(rowOf) {
			a.Since = rowOf[a.Since]
		}
	}
	for i := range c.Starts {
		c.Starts[i].Step = rowOf[c.Starts[i].Step]
	}
	r.told.Link()
	return c
}

// starts finds the operation that started each fiber. Fibers are numbered as they become able to run. That is the order
// of the calls of Go except under a limit, which differing names reveal.
func (r *findings) starts() (all []chart.Start) {
	child := 0
	if r.before > 0 {
		return nil // the first calls of Go are unknown
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

// objects adds the channels, locks and other objects, and the operations on them. It leaves out objects that the
// library uses inside its own functions.
func (r *findings) objects() {
	c, index := r.told.Chart, map[int]int{}
	for _, object := range slices.Sorted(maps.Keys(r.things)) {
		if t := r.things[object]; !t.inside {
			index[int(object)] = len(c.Objects)
			o := chart.Object{Name: t.label, Room: -1}
			if t.channel {
				o.Sort = "channel"
			}
			if t.made.file != "" {
				o.Made = "made" + strings.TrimPrefix(t.made.at(), ",")
			}
			if t.room <= mostKept {
				o.Room = t.room
			}
			c.Objects = append(c.Objects, o)
		}
	}
	place := func(object int) (i int, ok bool) {
		i, ok = index[object]
		return i, ok
	}
	for _, e := range r.told.Events {
		for _, u := range e.Uses {
			if i, ok := place(u.Object); ok && (u.What == chart.Hold || u.What == chart.Release) {
				c.Objects[i].Sort = "lock"
			}
		}
	}
	r.told.Touch(place)
}

// until returns the row of the operation that ended the wait in operation s, or none if the fiber waits at the end. If
// s did not wait, it returns 0.
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
