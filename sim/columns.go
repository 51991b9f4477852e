package sim

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/report"
)

// This file finds the facts that the text of a report needs in addition to the chart.

const (
	mostSaid    = 60 // characters of a text of Errorf, or of a panic
	mostDecided = 12 // decisions that each give their fibers a column
	mostCut     = 3  // fibers with cancelled operations that each have a column
)

// traced returns the failure in the form that package report writes.
//
// Guarded by TestLongTraces, TestColumnsAreOfTheFibersThatMatter.
func (r *findings) traced() *report.Trace {
	t := r.told
	if r.whole {
		return t
	}
	r.whole = true
	t.Total, t.FailedAt, t.Forked, t.Long = r.Steps, r.failedAt(), r.forked, r.index
	if r.dataRace() != nil {
		t.Total = t.FailedAt // the program went on, which no longer matters
	}
	t.Done, t.Inside = true, "steps that the library takes within the call above, or in a fiber of its own"
	r.drawing()
	t.Failing, t.Stuck = r.failing(), r.Kind == KindDeadlock
	t.Twin, t.Broken, t.Ended = r.passing(), r.broken(), r.cancels()
	if r.Switches <= mostDecided {
		for _, b := range slices.Backward(r.branches) {
			if b.chosen != 0 && b.to < 0 {
				t.Decided = append(t.Decided, int(b.by))
			} else if b.chosen != 0 {
				t.Decided = append(t.Decided, int(b.to))
			}
		}
	}
	return t
}

// broken returns the rows of operations that were cut short before the failure. First come those that lost a value,
// because that value may be the one that is missing in the end: operations of the program, and then those of fibers of
// the library. Then come other operations that were cancelled, if only a few fibers had such operations. In each group,
// the last operations come first.
func (r *findings) broken() (rows []int) {
	var inside, others, of []int
	for s := range slices.Backward(r.trace) {
		e := &r.trace[s]
		row := r.told.Events[s].Row
		if row < 0 || r.before+s+1 > r.failedAt() && r.failedAt() > 0 {
			continue
		}
		switch {
		case r.loses(s) && r.siteOf(s).file == "":
			inside = append(inside, row)
		case r.loses(s):
			rows = append(rows, row)
		case e.how == policy.Cancelled:
			if others = append(others, row); !slices.Contains(of, int(e.fiber)) {
				of = append(of, int(e.fiber))
			}
		}
	}
	if rows = append(rows, inside...); len(of) > mostCut {
		return rows
	}
	return append(rows, others...)
}

// cancels returns, for the row of each operation that was cancelled, the row of the operation that did it: the one that
// ended its wait. If it found its context cancelled, that is the last operation before it that cancelled anything,
// because the trace does not show which context an operation used.
func (r *findings) cancels() map[int]int {
	rows, last := map[int]int{}, -1
	for s := range r.trace {
		e, row := &r.trace[s], r.told.Events[s].Row
		if e.how == policy.Cancelled && row >= 0 {
			by := last
			if served := r.siteOf(s).served; served > 0 {
				by = served - r.before - 1
			}
			if by >= 0 {
				rows[row] = r.told.Events[by].Row
				r.sayError(by)
			}
		}
		failed := r.fibers[e.fiber].failed
		if e.op.Kind == policy.Cancel ||
			e.op.Kind == policy.End && failed != nil && !errors.Is(failed, context.Canceled) {
			last = s
		}
	}
	return rows
}

// sayError adds to the row of operation s, if that is the end of a fiber, the error by which the fiber cancelled
// others.
func (r *findings) sayError(s int) {
	c, row := &r.fibers[r.trace[s].fiber], r.told.Events[s].Row
	if r.trace[s].op.Kind != policy.End || row < 0 || c.failed == nil || c.panics {
		return
	}
	text, _ := beginning(c.failed.Error())
	r.told.Steps[row].Text = "end: error: " + shown(text)
}

// failing returns the fibers that fail: in a deadlock the fibers of a cycle, and those that hold what other fibers wait
// for; the fibers that reported errors, or that ran when the detector reported a data race; and the fiber that panicked
// or is blocked.
func (r *findings) failing() (fibers []int) {
	switch r.Kind {
	case KindDeadlock:
		fibers = append(slices.Clone(r.told.FindCycle()), r.told.Holders()...)
	case KindBlocked:
		for i := range r.fibers {
			if r.native != nil && r.fibers[i].f == r.native.fiber {
				fibers = append(fibers, i)
			}
		}
		fibers = append(fibers, r.mayHold()...)
	case KindPanic:
		for i, name := range r.names {
			if strings.HasPrefix(r.Text, "panic in fiber "+name+": ") {
				fibers = append(fibers, i)
			}
		}
	}
	for _, m := range r.marks {
		if m.fails() {
			fibers = append(fibers, int(m.fiber))
		}
	}
	return fibers
}
