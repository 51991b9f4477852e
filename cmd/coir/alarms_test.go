package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/coir-go/coir/cmd/coir/internal/coirtest"
)

// These tests once caused false alarms, because of earlier schedules or of objects that the tool itself kept. Others
// got verdicts that depended on the speed of the machine: now the number of steps limits a schedule.
func TestAlarms(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	want := coirtest.Expected(t, "testdata/alarms")
	delete(want, "TestTooManySteps")
	got := explored(t, "-v", "-schedules=20", "./testdata/alarms")
	coirtest.Compare(t, got, want)
	const sentence = "not controlled: a schedule has 5,0"
	if o := got["TestTooManySteps"]; o.Action != "skip" || !strings.Contains(o.Output, sentence) || o.Schedules != 1 {
		t.Errorf("a schedule with too many steps: %s, %d schedules\n%s", o.Action, o.Schedules, o.Output)
	}
	if o := got["TestSkipsSometimes"]; !strings.Contains(o.Output, " of them it skips the rest") {
		t.Errorf("it is not said that some schedules are skipped\n%s", o.Output)
	}
	if o := got["TestRegistersAndLeaks"]; o.Failure != nil {
		again := explored(t, "-run=^TestRegistersAndLeaks$", "-replay="+o.Failure.Token, "./testdata/alarms")
		if a := again["TestRegistersAndLeaks"].Failure; a == nil || a.Report != o.Failure.Report {
			t.Errorf("replayed, it is %+v, and was %+v", a, o.Failure)
		}
	}
	for test, action := range map[string]string{
		"TestSkipsFirst": "fail", "TestSkipsSometimes": "pass", "TestSkipsAlways": "skip", "TestSkips": "skip",
	} {
		if o := explored(t, "-fresh", "-schedules=10", "-run=^"+test+"$", "./testdata/alarms")[test]; o.Action != action {
			t.Errorf("%s, each schedule in a process: %s, want %s\n%s", test, o.Action, action, o.Output)
		}
	}
	// A schedule in a process of its own has the same limit, and its report the same words.
	alone := explored(t, "-v", "-fresh", "-schedules=1", "-run=^TestTooManySteps$", "./testdata/alarms")["TestTooManySteps"]
	if alone.Action != "skip" || !strings.Contains(alone.Output, sentence) {
		t.Errorf("a schedule with too many steps, alone: %s\n%s", alone.Action, alone.Output)
	}
}

// After a lock is collected, other locks may get its address. They are other objects, with other numbers, as without a
// collection.
func TestCollectedLocksAreOthers(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	trace := func(collect string) string {
		t.Setenv("GOGC", collect)
		return explored(t, "-schedules=20", "-run=^TestLocksAreCollected$", "./testdata/alarms")["TestLocksAreCollected"].Trace
	}
	if off, always := trace("off"), trace("1"); off == "" || off != always {
		t.Errorf("the trace is %q, and %q with a collector that runs all the time", off, always)
	}
}

// A test that itself explores schedules with package sim runs as under go test, with the same output.
func TestSimulated(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	var out, errs bytes.Buffer
	if code := run([]string{"test", "-v", "-p=1", "-schedules=50", "./testdata/simulated"}, &out, &errs); code != 1 {
		t.Fatalf("exit code %d: %s%s", code, &out, &errs)
	}
	text := regexp.MustCompile(`[\d.]+ schedules a second`).ReplaceAllString(out.String(), "N schedules a second")
	for _, want := range []string{
		"=== RUN   TestPasses\n    simulated_test.go:25: 123 schedules; ", "--- PASS: TestPasses (",
		"    --- FAIL: TestFails/sub (", " (schedule 1, strategy portfolio, seed 1): it fails\n",
		"replay: go test github.com/coir-go/coir/cmd/coir/testdata/simulated -run '^TestFails$/^sub$' -sim.replay=",
		"--- PASS: TestExplores (", "--- PASS: TestPlain (50 schedules",
		"fiber main waits outside of coir, in time.Sleep", "--- FAIL: TestSleeps (",
		"\t5 tests, 50 schedules, 4 explored by sim, ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "\nFAIL\n") || strings.Contains(text, "\nPASS\n") || strings.Contains(text, "deadlock") {
		t.Errorf("it prints\n%s", text)
	}
	out.Reset()
	if code := run([]string{"test", "-run=^Test(Passes|Explores)$", "./testdata/simulated"}, &out, &errs); code != 0 ||
		strings.Count(out.String(), "\n") != 1 {
		t.Errorf("exit code %d: %s", code, &out)
	}
}

// With -race, as many schedules run as without, even if each has a process of its own: the race detector does not sleep
// at the end of a process.
func TestRaceDoesNotSleepAtExit(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	o := explored(t, "-race", "-fresh", "-budget=10s", "-run=^TestTransfer$", "./testdata/bank")["TestTransfer"]
	if o.Failure == nil {
		t.Errorf("no deadlock was found in %d schedules", o.Schedules)
	}
}
