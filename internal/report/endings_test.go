package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/coir-go/coir/internal/chart"
)

// many returns a trace of 400 steps of 12 fibers, whose last one fails. It shows few of the steps.
func many() *Trace {
	t := traceOf(12)
	t.Named = func(int) string { return "jobs" }
	t.Total, t.FailedAt, t.Failing = 400, 400, []int{11}
	for i := range 400 {
		t.Steps = append(t.Steps, chart.Step{Number: i + 1, Actor: i % 11, Text: fmt.Sprint("send c", i)})
	}
	t.Steps[399].Actor = 11
	return t
}

// The step that closed or cancelled what a row found closed or cancelled has a row, even if it is far from the end and
// its fiber has no column.
func TestTheTableShowsWhoClosedAndCancelled(t *testing.T) {
	const by, found = 70, 398
	use := func(what chart.Effect) []chart.Use { return []chart.Use{{Object: channel, What: what, N: 1}} }
	closed := Event{Row: by, Uses: use(chart.Shut), Out: Done}
	for name, c := range map[string]func(tr *Trace){
		"receive": func(tr *Trace) {
			tr.Events = []Event{closed, {Row: found, Uses: use(chart.Get), Out: Closed}}
		},
		"receive that waited": func(tr *Trace) {
			tr.Events = []Event{{Row: found, Uses: use(chart.Get), Out: Closed}, closed}
		},
		"send": func(tr *Trace) {
			tr.Events = []Event{closed, {Row: found, Uses: use(chart.Put), Out: Closed}}
		},
		"send that panics": func(tr *Trace) {
			tr.Events = []Event{closed, {Row: found, Uses: use(chart.Put), Out: Done}}
		},
		"receive of an unknown result": func(tr *Trace) {
			tr.Events = []Event{closed, {Row: found, Uses: use(chart.Get), Out: Done}}
			tr.Link()
		},
		"cancel": func(tr *Trace) { tr.Ended = map[int]int{found: by} },
	} {
		t.Run(name, func(t *testing.T) {
			for _, shown := range []bool{false, true} {
				tr := many()
				if shown {
					c(tr)
				}
				var b strings.Builder
				tr.Table(&b)
				if row := "   71 | e send c70\n"; strings.Contains(b.String(), row) != shown {
					t.Errorf("the row is shown: %v:\n%s", !shown, b.String())
				}
			}
		})
	}
	// What no row shows needs no row.
	tr := many()
	tr.Ended = map[int]int{100: by}
	var b strings.Builder
	if tr.Table(&b); strings.Contains(b.String(), "   71 |") {
		t.Errorf("a row that ended what is not shown:\n%s", b.String())
	}
}

// The number of values that a channel held when it was closed is known only if each of its operations is certain.
func TestDiscarded(t *testing.T) {
	for _, c := range []struct {
		puts, gets int
		unsure     bool
		want       int
	}{{3, 1, false, 2}, {2, 2, false, 0}, {3, 1, true, 0}} {
		tr := traceOf(2)
		for range c.puts {
			tr.did(0, chart.Put)
		}
		for range c.gets {
			tr.did(1, chart.Get)
		}
		if c.unsure {
			tr.Events[0].Out = Dropped
		}
		tr.did(1, chart.Shut)
		end := &tr.Events[len(tr.Events)-1]
		end.Guess = true // as an abort, which drops the values
		if got := tr.Discarded(end); got != c.want {
			t.Errorf("of %v: %d", c, got)
		}
		if got := tr.Discarded(&tr.Events[0]); got != 0 {
			t.Errorf("a send discards %d", got)
		}
	}
}
