package report

import (
	"maps"
	"slices"

	"github.com/coir-go/coir/internal/chart"
)

// This file finds the steps that closed or cancelled what other steps then found closed or cancelled: a reader asks who
// did that.

// mostEndings is the number of such steps that a table keeps, the last ones.
const mostEndings = 8

// endings returns, for each row that found something closed or cancelled, the row that closed or cancelled it, as far
// as both have a row.
func (t *Trace) endings() map[int]int {
	if t.ends != nil {
		return t.ends
	}
	t.ends = map[int]int{}
	maps.Copy(t.ends, t.Ended)
	shut := map[int]*Event{} // the operation that closed each channel
	for i := range t.Events {
		e := &t.Events[i]
		if e.Did < 0 || e.Out != Done {
			continue
		}
		switch u := e.Uses[e.Did]; {
		case u.What == chart.Shut && shut[u.Object] == nil:
			shut[u.Object] = e
		case u.What == chart.Put && shut[u.Object] != nil: // it panics
			t.ends[e.Row] = shut[u.Object].Row
		}
	}
	for i := range t.Events {
		if e := &t.Events[i]; e.Did >= 0 && e.Out == Closed && shut[e.Uses[e.Did].Object] != nil {
			t.ends[e.Row] = shut[e.Uses[e.Did].Object].Row
		}
	}
	for _, a := range t.Arrows {
		if a.Kind == chart.Closing {
			t.ends[a.To] = a.From
		}
	}
	maps.DeleteFunc(t.ends, func(row, by int) bool { return row < 0 || by < 0 || row == by })
	return t.ends
}

// findEnds finds the rows that closed or cancelled what the chosen rows found closed or cancelled. It reports whether
// one of them is not among the chosen rows.
func (c *table) findEnds() (more bool) {
	var all []int
	for _, row := range c.rows {
		by, ok := c.endings()[row.Step]
		if ok && row.Left == 0 && row.Again == 0 && by < len(c.all) && !slices.Contains(all, by) {
			all = append(all, by)
		}
	}
	slices.Sort(all)
	c.ended = map[int]bool{}
	for _, i := range all[max(len(all)-mostEndings, 0):] {
		c.ended[i] = true
		shown := func(r chart.Row) bool { return r.Step == i && r.Left == 0 && r.Again == 0 }
		more = more || !slices.ContainsFunc(c.rows, shown)
	}
	return more
}
