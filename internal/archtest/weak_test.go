package archtest

import (
	"slices"
	"strings"
	"testing"
)

// TestWeakRulesDoNotGrow checks that all rules that no test checks are listed in Weak.
func TestWeakRulesDoNotGrow(t *testing.T) {
	citations, _ := citationsHere(t)
	defended := Defended(citations)
	for rule, kind := range defended {
		if kind != Test && !slices.Contains(Weak[kind], rule) {
			t.Errorf("%s is cited, and defended by %s: cite it in a test that fails if it is broken, "+
				"or list it in internal/archtest/weak.go", rule, strings.Trim(marks[kind], "*"))
		}
	}
	for kind, rules := range Weak {
		for _, rule := range rules {
			if defended[rule] != kind {
				t.Errorf("internal/archtest/weak.go lists %s under %s, and that is no longer so: remove it from there",
					rule, strings.Trim(marks[kind], "*"))
			}
		}
		if !slices.IsSorted(rules) {
			t.Errorf("the rules listed under %s are not sorted", strings.Trim(marks[kind], "*"))
		}
	}
}

// TestDefended checks that the strongest place counts, and that prose does not.
func TestDefended(t *testing.T) {
	got := Defended([]Citation{
		{Rule: "AA-01", File: "a.go", In: "F"},
		{Rule: "AA-01", File: "a_test.go", In: "TestF"},
		{Rule: "AA-01", File: "promela/word.pml"},
		{Rule: "AA-02", File: "a.go", In: "F"},
		{Rule: "AA-02", File: "promela/word.pml"},
		{Rule: "AA-03", File: "bench/ratios/round.go", In: "round"},
		{Rule: "AA-04", File: "a_test.go", In: "BenchmarkF"},
		{Rule: "AA-05", File: "docs/HACKING.md"},
		{Rule: "AA-06", File: "a.go", In: "F"},
	})
	want := map[string]Kind{"AA-01": Test, "AA-02": Model, "AA-03": Benchmark, "AA-04": Benchmark, "AA-06": Code}
	for _, rule := range []string{"AA-01", "AA-02", "AA-03", "AA-04", "AA-05", "AA-06"} {
		if got[rule] != want[rule] {
			t.Errorf("%s is defended by kind %d, want %d", rule, got[rule], want[rule])
		}
	}
}
