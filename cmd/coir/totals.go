package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
	"github.com/coir-go/coir/internal/chart"
	"github.com/coir-go/coir/internal/report"
)

// totals counts the tests of a package, for its last line.
type totals struct {
	tests, seeds int // the tests, and the fuzz tests whose seeds were run
	missing      int // the tests that were interrupted
	failed       int

	schedules int  // that searched for a failure
	racing    int  // that searched for a failure as on a slow machine
	beside    int  // that shrank one, or found one that passes to compare it with
	shrank    bool // some of them shrank one
	all       int  // of the tests that ran all their schedules

	skipped, left, outside, simulated int // tests

	uncontrolled, once, slow, noSlow []string // the names of tests
}

// totalsOf counts the results of a package. The result of a test that was interrupted is nil.
func totalsOf(results []*result) (n totals) {
	for _, r := range results {
		if r == nil {
			n.missing++
			continue
		}
		n.add(r)
	}
	return n
}

// add adds the result of a test.
func (n *totals) add(r *result) {
	if r.seeds {
		n.seeds++
	} else {
		n.tests++
	}
	if r.failed {
		n.failed++
	}
	explored := r.explored()
	n.schedules += explored
	n.racing += r.racing
	n.beside += r.schedules - explored
	n.shrank = n.shrank || r.toShrink > 0
	n.all += r.all
	if r.outcome == coir.VerdictPass {
		n.addPassed(r)
	}
	switch {
	case r.outcome == coir.VerdictSkip:
		n.skipped++
	case r.outcome == coir.VerdictUncontrolled || r.outcome == coir.VerdictLong || r.uncontrolled > 0 ||
		r.stopped && r.outcome == coir.VerdictPass:
		n.uncontrolled = append(n.uncontrolled, r.test)
	case r.outcome == coir.VerdictSimulates:
		n.simulated++
	}
}

// addPassed adds what a test that passes shows.
func (n *totals) addPassed(r *result) {
	if r.left > 0 {
		n.left++
	}
	if r.outside > 0 {
		n.outside++
	}
	if r.once != nil {
		n.once = append(n.once, r.test)
	}
	if r.slow != nil {
		n.slow = append(n.slow, r.test)
	}
	if r.noSlow && r.racing == 0 {
		n.noSlow = append(n.noSlow, r.test)
	}
}

// fails reports whether the package fails.
func (n *totals) fails() bool { return n.failed > 0 || n.missing > 0 }

// text returns the end of the last line of the package. within describes the schedules of the exhaustive strategy.
func (n *totals) text(within string, took time.Duration) string {
	if n.tests+n.seeds == 0 && !n.fails() {
		return "[no tests to run]"
	}
	text := n.counts(within)
	for _, of := range []struct {
		n    int
		what string
	}{
		{n.skipped, "skipped"}, {n.left, "with goroutines left behind"}, {n.outside, "passed with something from outside"},
		{len(n.uncontrolled), "not controlled (" + report.Names(n.uncontrolled, 3) + ")"},
		{n.simulated, "explored by sim"},
		{len(n.once), "failed once, not again in a process of its own (" + report.Names(n.once, 3) + ")"},
		{len(n.slow), "may fail on a slow machine (" + slowNames(n.slow) + ")"},
		{len(n.noSlow), "not run as on a slow machine (" + report.Names(n.noSlow, 3) + ")"},
	} {
		if of.n > 0 {
			text += fmt.Sprintf(", %d %s", of.n, of.what)
		}
	}
	if n.missing > 0 {
		text = "interrupted, " + text
	}
	return text + fmt.Sprintf(", %.1f s", took.Seconds())
}

// slowNames names at most three of the tests that may fail on a slow machine, and the flags that show how.
func slowNames(names []string) string {
	pattern := strings.Join(names[:min(len(names), 3)], "|")
	switch {
	case len(names) == 0:
		return ""
	case len(names) > 1:
		pattern = "(" + pattern + ")"
	}
	return report.Names(names, 3) + "; -racing -run '^" + pattern + "$' shows how"
}

// counts says how many tests and schedules there are.
func (n *totals) counts(within string) string {
	if n.seeds > 0 && n.tests == 0 {
		return "the seeds of " + report.Count(n.seeds, "fuzz test")
	}
	text := report.Count(n.tests, "test") + ", " + report.Count(n.schedules, "schedule")
	if n.schedules > 0 && n.all == n.schedules {
		text = report.Count(n.tests, "test") + ", all " + report.Count(n.schedules, "schedule") + within
	}
	if n.racing > 0 {
		text += ", and " + chart.Grouped(n.racing) + " as on a slow machine"
	}
	switch {
	case n.beside == 0:
	case n.shrank:
		text += ", and " + chart.Grouped(n.beside) + " to shrink failures"
	default:
		text += ", and " + chart.Grouped(n.beside) + " to find a similar one that passes"
	}
	if n.seeds > 0 {
		text += ", the seeds of " + report.Count(n.seeds, "fuzz test")
	}
	return text
}

// explored returns the number of schedules that searched for a failure. If the test failed, the others shrank the
// failure. But after a leak, and after an error of a test on a slow machine, the search continues.
func (r *result) explored() int {
	f := r.failure
	if r.outcome != coir.VerdictFail || f == nil || f.kind == coir.KindLeak || f.schedule == 0 {
		return r.schedules
	}
	n := min(r.schedules, f.schedule)
	if h, _ := readToken(f.token); h.Racing > 0 && f.kind == coir.KindFail && !f.replayed {
		n = max(n, r.schedules-r.repeated)
	}
	return n
}
