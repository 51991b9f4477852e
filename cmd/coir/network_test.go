package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
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
	got := explored(t, "-v", "-schedules=200", "-skip=Race", "./testdata/network")
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
		of := map[bool]string{true: "test", false: "network"}[c.test == "TestOffers"]
		if passed := ", with faults of the " + of + "; "; !strings.Contains(o.Failure.Headline, passed) ||
			!strings.HasSuffix(o.Failure.Headline, " schedules without faults passed") || o.Failure.Schedule <= 800 {
			t.Errorf("%s with %s: the headline is %s", c.test, c.faults, o.Failure.Headline)
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
	o := explored(t, "-schedules=500", "-faults=reset", "-run=^TestChargesTwice$", dir)["TestChargesTwice"]
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

// A test with a bug that has nothing to do with its connection.
const countsBesideAConnection = `package m

import (
	"io"
	"net"
	"sync"
	"testing"
)

func TestCount(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	var wg sync.WaitGroup
	wg.Go(func() {
		if c, err := l.Accept(); err == nil {
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	})
	if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
		for range 5 {
			_, _ = c.Write([]byte("hello"))
		}
		_ = c.Close()
	}
	var mu sync.Mutex
	n := 0
	for range 2 {
		wg.Go(func() {
			mu.Lock()
			was := n
			mu.Unlock()
			mu.Lock()
			n = was + 1
			mu.Unlock()
		})
	}
	wg.Wait()
	if n != 2 {
		t.Errorf("counted to %d", n)
	}
}
`

// With -faults, a bug that has nothing to do with faults is found without them, and no fault is named as its cause.
func TestFaultsThatDoNotMatter(t *testing.T) {
	onMemory(t)
	module(t, map[string]string{"m_test.go": countsBesideAConnection})
	for _, seed := range []string{"1", "2", "3"} {
		o := explored(t, "-schedules=1000", "-strategy=random", "-faults=reset,short,delay", "-seed="+seed, ".")["TestCount"]
		if o.Failure == nil {
			t.Fatalf("with seed %s it has not failed: %s", seed, o.Output)
		}
		causes, _, _ := strings.Cut(o.Failure.Report, "diverges here")
		for line := range strings.Lines(causes) {
			if strings.Contains(line, "fault: ") && !strings.Contains(line, "is not needed for the failure") {
				t.Errorf("with seed %s it names a fault:\n%s", seed, o.Output)
			}
		}
		if strings.Contains(o.Failure.Headline, "faults") {
			t.Errorf("with seed %s the headline is %s", seed, o.Failure.Headline)
		}
	}
}

// The faults that matter come first. If a schedule could not be made smaller, the report says what follows from that.
func TestListOfFaults(t *testing.T) {
	r := &record{tested: &tested{}, failure: &failure{stable: true}, idle: []int{0}}
	for i, op := range []int{coir.OpDelay, coir.OpNetWrite, coir.OpReset} {
		s := step{n: i + 1, g: 2, object: 9, place: place{file: "/m/a_test.go", line: 7 + i}}
		s.op = op
		r.known = append(r.known, s)
	}
	names := map[int]string{2: "TestX"}
	reset := "fault: reset conn#1, in TestX, at a_test.go:9, at step 3\n"
	delay := "fault: delay conn#1, in TestX, at a_test.go:7, at step 1, is not needed for the failure: " +
		"the test fails in the same way without its effect\n"
	if got := r.faults(names, "/m"); got != reset+delay {
		t.Errorf("got\n%swant\n%s", got, reset+delay)
	}
	r.failure.token = "f1.AAAA"
	want := reset + "the schedule could not be made smaller, so some of these faults may not be needed for the failure\n" + delay
	if got := r.faults(names, "/m"); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}
