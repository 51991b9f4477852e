package main

import (
	"os"
	"strings"
	"testing"
)

// TestSmoke is the only test that make quick runs when the command changes, apart from the short ones. coir test finds
// the deadlock of a small package and reports it as in the guide, and the token repeats that. The plain order passes.
func TestSmoke(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	guide, err := os.ReadFile("../../docs/guide/reports.md")
	if err != nil {
		t.Fatal(err)
	}
	const test, dir = "TestTransfer", "./testdata/three"
	found := explored(t, "-run=^"+test+"$", "-schedules=200", dir)[test]
	if found.Failure == nil {
		t.Fatalf("%s: %s\n%s", test, found.Action, found.Output)
	}
	report := "    " + found.Failure.Headline + "\n" + indent(found.Failure.Report)
	if !strings.Contains(string(guide), report) {
		t.Errorf("the guide has not this report:\n%s", report)
	}
	again := explored(t, "-run=^"+test+"$", "-replay="+found.Failure.Token, dir)[test]
	if again.Failure == nil || again.Failure.Token != found.Failure.Token {
		t.Errorf("replayed, it is\n%s", again.Output)
	}
	if o := explored(t, "-run=^"+test+"$", "-schedules=1", dir)[test]; o.Action != "pass" || o.Schedules != 1 {
		t.Errorf("in the plain order it is %s after %d schedules\n%s", o.Action, o.Schedules, o.Output)
	}
}
