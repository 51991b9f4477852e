// Package acceptance has the slowest tests of coir test: on the corpora of bugs, the forms of tests, the mixed
// programs, and the network. They are in a separate package so that neither this package nor the command's comes near
// the time limit of go test on a busy machine.
package acceptance

import (
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coir-go/coir/cmd/coir/internal/coirtest"
	"github.com/coir-go/coir/cmd/coir/internal/events"
	"github.com/coir-go/coir/cmd/coir/internal/services"
	"github.com/coir-go/coir/internal/mutant"
)

// coir runs the command coir, which TestMain builds.
var coir coirtest.Command

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "coir-acceptance-")
	if err != nil {
		panic(err)
	}
	name := filepath.Join(dir, "coir")
	if out, err := exec.Command("go", "build", "-o", name, "..").CombinedOutput(); err != nil {
		panic(string(out))
	}
	coir = func(args []string, out, errs io.Writer) int {
		c := exec.Command(name, args...)
		c.Stdout, c.Stderr = out, errs
		err := c.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			panic(err)
		}
		return c.ProcessState.ExitCode()
	}
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// turn skips one of two slow tests: one runs on even days of the year, and the other on odd days.
func turn(t *testing.T, i int) {
	t.Helper()
	if !mutant.Today(t, 2)(i) {
		t.Skip("it is the turn of another test today")
	}
}

// coir test finds the bugs of the corpus, reports each as the expected kind, and passes their corrected twins. Bugs
// that only the race detector sees are searched for with -race. Each failure is replayed from its token in a new
// process.
func TestTheCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	want := coirtest.Expected(t, "../corpus")
	races := map[string]string{}
	for test, kind := range want {
		if kind == "race" {
			races[test] = kind
			delete(want, test)
		}
	}
	got := coir.Explore(t, "-schedules=1000", "-tags=corpus", "../corpus")
	coirtest.Compare(t, got, want)
	coir.Replay(t, got, "-tags=corpus", "../corpus")
	for test := range want { // the race detector reports nothing in the twins or in coir
		if strings.HasPrefix(test, "TestFixed") {
			races[test] = "pass"
		}
	}
	coirtest.Compare(t, coir.Explore(t, "-race", "-tags=corpus", "-schedules=500",
		"-run=^Test(Fixed.*|BugLimitConfig|BugSearchService)$", "../corpus"), races)
}

// Bugs between two atomic operations are found only if atomic operations are points. Each failure is replayed from its
// token. With the race detector the tokens are the same, because the standard library's own atomic operations are not
// points there either.
func TestAtomics(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	turn(t, 0)
	want := coirtest.Expected(t, "../corpus/atomics")
	got := coir.Explore(t, "-atomics", "-schedules=2000", "-tags=corpus", "../corpus/atomics")
	coirtest.Compare(t, got, want)
	raced := coir.Explore(t, "-atomics", "-race", "-schedules=500", "-tags=corpus", "../corpus/atomics")
	coirtest.Compare(t, raced, want)
	for test, kind := range want {
		if o := got[test]; o.Failure != nil {
			again := coir.Explore(t, "-atomics", "-tags=corpus", "../corpus/atomics", "-run=^"+test+"$", "-replay="+o.Failure.Token)
			if a := again[test].Failure; a == nil || a.Token != o.Failure.Token || a.Report != o.Failure.Report {
				t.Errorf("%s: replayed, it is\n%s\nand was\n%s", test, again[test].Output, o.Output)
			}
			if a := raced[test].Failure; a != nil && a.Token != o.Failure.Token {
				t.Errorf("%s: the token is %s, and %s with -race", test, o.Failure.Token, a.Token)
			}
		}
		if kind != "pass" {
			want[test] = "pass"
		}
	}
	coirtest.Compare(t, coir.Explore(t, "-tags=corpus", "-schedules=500", "../corpus/atomics"), want)
	coirtest.Compare(t, coir.Explore(t, "-atomics", "-schedules=100", "../testdata/spin"), map[string]string{"TestSpin": "pass"})
}

// The second half of the corpus was written after the tool was finished. Its authors had read neither the tool nor the
// first half, and it is not used to improve the tool. coir test finds at least 85 of 100 bugs and reports them as the
// expected kind, and no corrected twin fails.
func TestTheLaterCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	turn(t, 1)
	want := coirtest.Expected(t, "../corpus/later")
	plain := coir.Explore(t, "-tags=corpus", "-schedules=1000", "../corpus/later")
	raced := coir.Explore(t, "-race", "-tags=corpus", "-schedules=200", "../corpus/later")
	bugs, found := 0, 0
	for test, kind := range want {
		got := plain[test]
		if kind == "race" {
			got = raced[test]
		}
		switch {
		case kind == "pass":
			if got.Action != "pass" || raced[test].Action != "pass" {
				t.Errorf("%s: %s, with -race %s\n%s", test, got.Action, raced[test].Action, got.Output+raced[test].Output)
			}
		case got.Failure != nil && got.Failure.Kind == kind:
			found++
			bugs++
		default:
			t.Logf("%s: %s is not found", test, kind)
			bugs++
		}
	}
	if t.Logf("found %d of %d", found, bugs); found*100 < bugs*85 {
		t.Errorf("found %d of %d", found, bugs)
	}
}

// coir test finds the bugs of the services, reports each as the expected kind, and passes their corrected twins. Each
// day the test tries a twentieth of them. `go run ./cmd/coir/measure/services` measures more.
func TestTheServices(t *testing.T) {
	if testing.Short() || !coirtest.InMemory() {
		t.Skip("it builds the standard library, and needs sockets in memory")
	}
	all, err := services.Read("../corpus/services")
	if err != nil {
		t.Fatal(err)
	}
	today := mutant.Today(t, 20)
	for i, s := range all {
		t.Run(s.String(), func(t *testing.T) {
			if !today(i) {
				t.Skip("it is the turn of others today")
			}
			got := coir.Explore(t, s.Args(s.Bug(), "-schedules=3000", "-budget=2m")...)
			coirtest.Compare(t, got, map[string]string{s.Bug(): s.Kind})
			got = coir.Explore(t, s.Args(s.Fixed(), "-schedules=200")...)
			coirtest.Compare(t, got, map[string]string{s.Fixed(): "pass"})
		})
	}
}

// All schedules of a test, including those that shrink a failure, do the same in each process, with different numbers
// of processors, and with a garbage collector that runs all the time or never. That also holds for maps whose keys are
// addresses, and for the network. `go run ./measure/determinism` is the long form.
func TestDeterminism(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	traces := func(procs, collect string) map[string]events.Event {
		t.Setenv("GOMAXPROCS", procs)
		t.Setenv("GOGC", collect)
		all := coir.Explore(t, "-tags=corpus", "-schedules=50", "../corpus", "../corpus/atomics")
		maps.Copy(all, coir.Explore(t, "-schedules=10", "../testdata/maps"))
		if coirtest.InMemory() {
			maps.Copy(all, coir.Explore(t, "-schedules=10", "-skip=Race|Probe|OnKernel", "../testdata/network"))
		}
		return all
	}
	one, other := traces("1", "off"), traces("4", "1")
	for test, o := range one {
		if test != "" && (o.Trace == "" || o.Trace != other[test].Trace) {
			t.Errorf("%s: the trace is %q, and %q in another process", test, o.Trace, other[test].Trace)
		}
	}
}

// Programs may mix goroutines, native locks and fibers of coir. One schedule covers all of them. A report names the
// fibers and the functions that they called, but nothing inside coir.
func TestMixedPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	t.Chdir("../../../verify")
	got := coir.Explore(t, "-schedules=1000", "-tags=corpus", "./mixed")
	coirtest.Compare(t, got, coirtest.Expected(t, "mixed"))
	coir.Replay(t, got, "-tags=corpus", "./mixed")
	for test, lines := range map[string][]string{
		"TestBugGuestLeaves": {"fiber service waits to send to a channel, at channels_test.go:"},
		"TestBugRegistry": {
			"fiber add waits to send to a channel, at locks_test.go:",
			", held by fiber add since step ", " (at locks_test.go:25), at locks_test.go:",
		},
		"TestBugTransfers": {
			"fiber transfer[0] waits to lock bob, held by fiber transfer[1], at locks_test.go:",
			"fiber transfer[1] waits to lock alice, held by fiber transfer[0], at locks_test.go:", "Mutex.Lock *",
		},
	} {
		for _, line := range lines {
			if !strings.Contains(got[test].Output, line) {
				t.Errorf("%s has no line with %q:\n%s", test, line, got[test].Output)
			}
		}
	}
	for test, o := range got {
		if strings.Contains(o.Output, "idle.go") || strings.Contains(o.Output, "coro.go") {
			t.Errorf("%s tells of coir's own goroutines:\n%s", test, o.Output)
		}
	}
}

// Each form of test that people write behaves under coir test as it does under go test.
func TestTheForms(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	got := coir.Explore(t, "-v", "-tags=corpus", "-schedules=300", "-budget=1s", "../forms")
	coirtest.Compare(t, got, coirtest.Expected(t, "../forms"))
	if o := got["TestGoroutineLeftBehind"]; o.Failure != nil && o.Failure.OutsideSeen { // the collector is not outside
		t.Errorf("a wake from outside\n%s", o.Output)
	}
}

// coir test -race reports races of all kinds: that goroutines take turns does not order any accesses for the race
// detector.
func TestTheRaces(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	got := coir.Explore(t, "-race", "-tags=corpus", "-schedules=1000", "../races")
	coirtest.Compare(t, got, coirtest.Expected(t, "../races"))
	for test, o := range got {
		if o.Failure != nil && !o.Failure.Stable {
			t.Errorf("%s does not come again:\n%s", test, o.Output)
		}
	}
}
