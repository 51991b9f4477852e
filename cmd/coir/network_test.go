package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coir-go/coir/cmd/coir/internal/coirtest"
)

// onMemory skips a test if there are no sockets in memory here.
func onMemory(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	if !coirtest.InMemory() {
		t.Skip("sockets are in memory on Linux alone")
	}
}

// Sockets in memory behave like those of the kernel, in all states and for all operations of the probe.
func TestSocketsInMemoryAreAsTheKernels(t *testing.T) {
	onMemory(t)
	dir := t.TempDir()
	kernel, memory := filepath.Join(dir, "kernel"), filepath.Join(dir, "memory")
	cmd := exec.Command("go", "test", "-count=1", "-run=^TestProbe$", "./testdata/network")
	cmd.Env = append(os.Environ(), "PROBE="+kernel)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv("PROBE", memory)
	o := explored(t, "-v", "-schedules=1", "-run=^TestProbe$", "./testdata/network")["TestProbe"]
	if o.Action != "pass" || strings.Contains(o.Output, "kernel's network") {
		t.Fatalf("%s\n%s", o.Action, o.Output)
	}
	want, got := lines(t, kernel), lines(t, memory)
	if len(got) != len(want) {
		t.Errorf("%d lines in memory, %d with the kernel", len(got), len(want))
	}
	for i := range min(len(want), len(got)) {
		if got[i] != want[i] {
			t.Errorf("memory: %s\nkernel: %s", got[i], want[i])
		}
	}
	t.Logf("%d lines", len(want))
}

func lines(t *testing.T, name string) []string {
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}

// With sockets in memory, nothing comes from outside. A test that needs the kernel's network says why.
func TestTheNetwork(t *testing.T) {
	onMemory(t)
	got := explored(t, "-v", "-schedules=100", "-skip=Race", "./testdata/network")
	want := coirtest.Expected(t, "testdata/network")
	delete(want, "TestBugRace")
	coirtest.Compare(t, got, want)
	files := []string{ // a call of the file system, or of the kernel's bind, may take long
		"TestProbe", "TestUnix", "TestUnixPacketsBackPressure", "TestCopies", "TestTLS", "TestPortInUse",
	}
	for test, o := range got {
		kernel := strings.Contains(o.Output, ", on the kernel's network: it ")
		switch {
		case test == "":
		case strings.HasSuffix(test, "OnKernel") != kernel:
			t.Errorf("%s: on the kernel's network: %v\n%s", test, kernel, o.Output)
		case !kernel && o.Outside != 0 && !slices.Contains(files, test):
			t.Errorf("%s: something came from outside\n%s", test, o.Output)
		}
	}
	for test, o := range got { // if a process dies, coir test runs a process for each schedule
		if o.Failure != nil && !strings.HasPrefix(o.Failure.Token, "c1.") {
			t.Errorf("%s has the token %s\n%s", test, o.Failure.Token, o.Output)
		}
	}
	for test, line := range map[string]string{
		"TestBugAccept":    "waits to accept a connection from l, at",
		"TestBugBothRead":  "waits to read from c, at",
		"TestBugBothWrite": "whose buffer is full, at network_test.go:",
		"TestBugPipeFull":  "waits to write to w, whose",
	} {
		if o := got[test]; !strings.Contains(o.Output, line) {
			t.Errorf("%s: no line has %q\n%s", test, line, o.Output)
		}
	}
	coirtest.Command(run).Replay(t, got, "-schedules=100", "./testdata/network")
}

// The race detector sees neither the implementation of the network in memory, nor an order from it that the program
// does not have.
func TestRacesBesideTheNetwork(t *testing.T) {
	onMemory(t)
	got := explored(t, "-race", "-schedules=20", "-run=TCP|Unix|UDP|HTTP|Pipe|Signal|Copies|BackPressure|Race", "./testdata/network")
	want := coirtest.Expected(t, "testdata/network")
	for test := range got {
		if test != "" {
			coirtest.Compare(t, got, map[string]string{test: want[test]})
		}
	}
}

// Tests that wait in the kernel on the kernel's network wait for nothing outside if sockets are in memory.
func TestTheKernelsTestsInMemory(t *testing.T) {
	onMemory(t)
	got := explored(t, "-v", "-schedules=200", "-run=Locks.*Server|SendWithLock|DoesNotCome|SenderReads|DoneAfterRead|Deadline|Polls|Leaves|Collected|BugPipe",
		"./testdata/kernel")
	want := coirtest.Expected(t, "testdata/kernel")
	want["TestLeavesListener"] = "leak"
	for test, o := range got {
		if test != "" && o.Action != "skip" {
			coirtest.Compare(t, got, map[string]string{test: want[test]})
			if o.Outside != 0 != strings.HasPrefix(test, "TestCollected") { // the collector is outside
				t.Errorf("%s: something came from outside in %d schedules\n%s", test, o.Outside, o.Output)
			}
		}
	}
}

// With -faults, the schedule decides which connections fail, and reports say so. Without it, all these tests pass. A
// program that tries again also passes with faults.
func TestFaults(t *testing.T) {
	onMemory(t)
	const dir = "./testdata/faults"
	for test, o := range explored(t, "-schedules=300", dir) {
		if test == "TestNever" && o.Action == "fail" && strings.Count(o.Output, "    never true in these schedules: never\n") == 1 {
			continue
		}
		if test != "" && (o.Action != "pass" || test == "TestNever") {
			t.Errorf("%s: %s\n%s", test, o.Action, o.Output)
		}
	}
	for _, c := range []struct{ faults, test, kind, line string }{
		{"reset", "TestChargesTwice", "fail", "fault: reset conn#"},
		{"short", "TestOneRead", "fail", "fault: shorten c, "},
		{"hang", "TestNoTimeout", "deadlock", "fault: hang conn#"},
		{"refused", "TestOneTry", "fail", "fault: refuse listener#"},
		{"all", "TestOffers", "fail", "fault, in TestOffers, at faults_test.go:"},
	} {
		o := explored(t, "-schedules=2000", "-faults="+c.faults, "-run=^"+c.test+"$", dir)[c.test]
		if o.Failure == nil || o.Failure.Kind != c.kind || !strings.Contains(o.Failure.Report, c.line) {
			t.Errorf("%s with %s: %s\n%s", c.test, c.faults, o.Action, o.Output)
			continue
		}
		again := explored(t, "-run=^"+c.test+"$", "-replay="+o.Failure.Token, dir)[c.test] // the token has the faults
		if again.Failure == nil || again.Failure.Report != o.Failure.Report ||
			!strings.Contains(o.Failure.Replay, "-faults "+c.faults) {
			t.Errorf("%s: replayed, it is\n%s\nand was\n%s", c.test, again.Output, o.Output)
		}
	}
	guide, err := os.ReadFile("../../docs/guide/coir-test.md")
	if err != nil {
		t.Fatal(err)
	}
	o := explored(t, "-faults=reset", "-run=^TestChargesTwice$", dir)["TestChargesTwice"]
	_, report, _ := strings.Cut(o.Output, "s)\n")
	if i := strings.Index(report, "    diverges here"); i < 0 || !strings.Contains(string(guide), indent(report[:i])) {
		t.Errorf("the guide does not show\n%s", o.Output)
	}
	for _, faults := range []string{"net", "test", "delay"} {
		if o := explored(t, "-schedules=500", "-faults="+faults, "-run=^TestRetries$", dir)["TestRetries"]; o.Action != "pass" {
			t.Errorf("with %s: %s\n%s", faults, o.Action, o.Output)
		}
	}
}
