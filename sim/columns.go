package sim

import (
	"slices"
	"strings"

	"github.com/coir-go/coir/internal/report"
)

// What the text of a report needs to know of a failure, beside what is drawn of it.

const (
	mostSaid    = 60 // letters of a text of Errorf
	mostDecided = 12 // decisions that each give their fibers a column
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
	r.drawing()
	t.Failing = r.failing()
	t.Twin = r.passing()
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

// failing returns the fibers that fail: in a deadlock those of a cycle, and those that hold what others wait for; those
// that reported errors; and the one that panicked or is blocked.
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
		if m.kind == errorMark {
			fibers = append(fibers, int(m.fiber))
		}
	}
	return fibers
}
