package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
	"github.com/coir-go/coir/cmd/coir/internal/events"
)

// The last line of a package counts its tests and schedules.
func TestTotals(t *testing.T) {
	of := func(name string, outcome coir.Verdict, schedules int, more ...func(*result)) *result {
		r := &result{record: record{tested: &tested{test: name}}, outcome: outcome, tally: tally{schedules: schedules}}
		for _, set := range more {
			set(r)
		}
		return r
	}
	pass := func(name string, schedules int, more ...func(*result)) *result {
		return of(name, coir.VerdictPass, schedules, more...)
	}
	failed := func(r *result) {
		r.failed, r.failure = true, &failure{kind: coir.KindDeadlock, schedule: 7}
	}
	shrunk := func(r *result) { r.toShrink = 900 }
	seeds := func(r *result) { r.seeds = true }
	for _, c := range []struct {
		results []*result
		fails   bool
		want    string
	}{
		{nil, false, "[no tests to run]"},
		{[]*result{pass("TestA", 1)}, false, "1 test, 1 schedule, 2.5 s"},
		{[]*result{pass("TestA", 10, func(r *result) { r.all = 10 }), pass("TestB", 20, func(r *result) { r.all = 20 })}, false,
			"2 tests, all 30 schedules within, 2.5 s"},
		{[]*result{of("TestA", coir.VerdictFail, 1300, failed, shrunk)}, true,
			"1 test, 7 schedules, and 1,293 to shrink failures, 2.5 s"},
		{[]*result{of("TestA", coir.VerdictFail, 1300, failed)}, true, "1 test, 7 schedules, and 1,293 to find a similar one that passes, 2.5 s"},
		{[]*result{pass("TestA", 800, func(r *result) { r.racing = 200 })}, false,
			"1 test, 800 schedules, and 200 as on a slow machine, 2.5 s"},
		{[]*result{pass("TestA", 800, func(r *result) { r.noSlow = true })}, false,
			"1 test, 800 schedules, 1 not run as on a slow machine (TestA), 2.5 s"},
		{[]*result{nil}, true, "interrupted, 0 tests, 0 schedules, 2.5 s"},
		{[]*result{pass("FuzzA", 0, seeds)}, false, "the seeds of 1 fuzz test, 2.5 s"},
		{[]*result{pass("FuzzA", 0, seeds), pass("TestA", 3)}, false, "1 test, 3 schedules, the seeds of 1 fuzz test, 2.5 s"},
		{[]*result{
			of("TestA", coir.VerdictSkip, 1), of("TestB", coir.VerdictLong, 1), of("TestC", coir.VerdictSimulates, 0),
			pass("TestD", 4, func(r *result) { r.left, r.outside, r.once, r.slow = 1, 1, &r.record, &r.record }),
		}, false, "4 tests, 6 schedules, 1 skipped, 1 with goroutines left behind, 1 passed with something from outside, " +
			"1 not controlled (TestB), 1 explored by sim, 1 failed once, not again in a process of its own (TestD), " +
			"1 may fail on a slow machine (TestD; -racing -run '^TestD$' shows how), 2.5 s"},
	} {
		n := totalsOf(c.results)
		if got := n.text(" within", 2500*time.Millisecond); got != c.want || n.fails() != c.fails {
			t.Errorf("%q, fails %v; want %q, fails %v", got, n.fails(), c.want, c.fails)
		}
	}
}

// The last line has the flags for the tests that it names.
func TestSlowNames(t *testing.T) {
	for want, names := range map[string][]string{
		"A; -racing -run '^A$' shows how":                        {"A"},
		"A, B; -racing -run '^(A|B)$' shows how":                 {"A", "B"},
		"A, B, C and 2 more; -racing -run '^(A|B|C)$' shows how": {"A", "B", "C", "D", "E"},
	} {
		if got := slowNames(names); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The note about a failure on a slow machine leaves out a long token of a schedule that was not shrunk.
func TestSlowNote(t *testing.T) {
	long := strings.Repeat("A", mostToken+1)
	for _, c := range []struct{ headline, token, want string }{
		{"with 2 switches, not shrunk", "c1.AA", "coir test -replay c1.AA"},
		{"shrunk to 90 switches", long, "coir test -replay " + long},
		{"with 375 switches, not shrunk", long, "coir test -racing, which fails with a report"},
	} {
		got := slowNote(&events.Failure{Headline: c.headline, Replay: "coir test -replay " + c.token})
		if want := "note: " + c.headline + "\nto see how: " + c.want + "\n"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// The note about tests with few schedules begins with the test whose command it has.
func TestFewNote(t *testing.T) {
	w := newWriter(io.Discard, &options{budget: time.Second, schedules: 10000, strategy: strategies[0].name})
	var results []*result
	for i, n := range []int{30, 800, 20, 40, 10, 20} {
		results = append(results, &result{record: record{tested: &tested{test: "Test" + string(rune('A'+i))}},
			outcome: coir.VerdictPass, decided: true, timeUp: true, tally: tally{schedules: n}})
	}
	const want = "1s was enough for few of 10,000 schedules: TestE (10), TestC (20), TestF (20) and 2 more; " +
		"to search longer: coir test m -run '^TestE$' -budget 2m"
	if got := w.fewNote(&pkg{ImportPath: "m"}, append(results, nil)); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := w.fewNote(&pkg{ImportPath: "m"}, results[1:2]); got != "" {
		t.Errorf("a test with many schedules has the note %q", got)
	}
}

// The flags decide about the verdict: -strict about what was not controlled, -replay about what passes.
func TestVerdicts(t *testing.T) {
	for _, c := range []struct {
		flags []string
		r     result
		want  coir.Verdict
	}{
		{nil, result{outcome: coir.VerdictLong}, coir.VerdictLong},
		{nil, result{outcome: coir.VerdictPass, stopped: true}, coir.VerdictPass},
		{[]string{"-strict"}, result{outcome: coir.VerdictPass}, coir.VerdictPass},
		{[]string{"-strict"}, result{outcome: coir.VerdictLong}, coir.VerdictStrict},
		{[]string{"-strict"}, result{outcome: coir.VerdictUncontrolled}, coir.VerdictStrict},
		{[]string{"-strict"}, result{outcome: coir.VerdictPass, stopped: true}, coir.VerdictStrict},
		{[]string{"-strict"}, result{outcome: coir.VerdictPass, tally: tally{uncontrolled: 1}}, coir.VerdictStrict},
		{[]string{"-strict"}, result{outcome: coir.VerdictPass, once: &record{}}, coir.VerdictStrict},
		{[]string{"-strict"}, result{outcome: coir.VerdictFail, stopped: true}, coir.VerdictFail},
	} {
		o, err := parse(c.flags)
		if err != nil {
			t.Fatal(err)
		}
		if got := newWriter(io.Discard, o).verdict(&c.r); got != c.want {
			t.Errorf("%q: %s of %+v, want %s", c.flags, got, c.r, c.want)
		}
	}
	replay := newWriter(io.Discard, &options{replay: "c1.AA"})
	if got := replay.verdict(&result{outcome: coir.VerdictPass}); got != coir.VerdictHealed {
		t.Errorf("a replay that passes is %s", got)
	}
}
