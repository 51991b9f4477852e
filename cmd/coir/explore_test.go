package main

import (
	"bytes"
	"context"
	"fmt"
	"go/build"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/coirtest"
	"github.com/coir-go/coir/cmd/coir/internal/events"
	"github.com/coir-go/coir/cmd/coir/internal/overlay"
	"github.com/coir-go/coir/internal/soak"
)

// Only the part of a test that explore.Test marks is explored: see also TestBugPart of the mixed programs.
func TestExplorePart(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	t.Chdir("../../explore")
	var out, errs bytes.Buffer
	if code := run([]string{"test", "-v", "-schedules=500", "."}, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, &out, &errs)
	}
	for _, want := range []string{
		"--- PASS: TestClockIsVirtual (500 schedules", "--- PASS: TestTransfer (500 schedules", "--- PASS: TestSubtests (",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no line begins with %q:\n%s", want, &out)
		}
	}
}

// DPOR runs far fewer schedules than the exhaustive strategy, and sees the same results of a program.
func TestDPORSeesEachResult(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	most := 4000
	if soak.On() {
		most = 200_000
	}
	explore := func(strategy string) (outcomes map[string]events.Event, dir string) {
		dir = t.TempDir()
		t.Setenv("ORDERS", dir)
		return explored(t, "-strategy="+strategy, "-bound=-1", "-schedules="+strconv.Itoa(most), "-atomics", "-leaks=false",
			"./testdata/orders"), dir
	}
	results := func(test string, o events.Event, dir string) []string {
		if o.Action != "pass" {
			t.Fatalf("%s: %+v", test, o)
		}
		text, err := os.ReadFile(filepath.Join(dir, test))
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Split(strings.TrimSpace(string(text)), "\n")
		slices.Sort(all)
		return slices.Compact(all)
	}
	every, everyDir := explore("exhaustive")
	reduced, reducedDir := explore("dpor")
	for test := range coirtest.Expected(t, "testdata/orders") {
		all, some := results(test, every[test], everyDir), results(test, reduced[test], reducedDir)
		many, few := every[test].Schedules, reduced[test].Schedules
		lacks := func(result string) bool { return !slices.Contains(some, result) }
		if slices.ContainsFunc(all, lacks) || many < most && len(some) != len(all) {
			t.Errorf("%s: the results are %q, and by DPOR %q", test, all, some)
		}
		t.Logf("%s: %d results in %d schedules, by DPOR %d in %d", test, len(all), many, len(some), few)
		if !reduced[test].Complete || few >= many {
			t.Errorf("%s: %d schedules, by DPOR %d, complete %v", test, many, few, reduced[test].Complete)
		}
	}
}

// A test that fails only if a timer fires while goroutines can run passes, with a note. With -racing it fails.
func TestSlowMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	got := explored(t, "-schedules=1000", "./testdata/slow")
	raced := explored(t, "-schedules=1000", "-racing", "./testdata/slow")
	for _, test := range []string{"TestTimeout", "TestSleepsToWait", "TestWaits", "TestNoTime"} {
		fails := test == "TestTimeout" || test == "TestSleepsToWait"
		o, r := got[test], raced[test]
		if o.Action != "pass" || (o.Slow != nil) != fails || (r.Failure != nil) != fails {
			t.Errorf("%s: %s, on a slow machine %+v\n%s%s", test, o.Action, o.Slow, o.Output, r.Output)
			continue
		}
		if o.Slow == nil {
			continue
		}
		again := explored(t, "-run=^"+test+"$", "-replay="+o.Slow.Token, "./testdata/slow")[test]
		if !strings.HasPrefix(o.Slow.Headline, "on a slow machine: the test fails: slow_test.go:") || o.Slow.Chart != "" ||
			strings.Contains(o.Output, "| ") || again.Failure == nil ||
			again.Failure.Report != o.Slow.Report {
			t.Errorf("%s: %s\nreplayed, it is\n%s", test, o.Output, again.Output)
		}
	}
	if o := got[""]; !strings.Contains(o.Output, ", 2 may fail on a slow machine (") {
		t.Errorf("the last line does not count them:\n%s", o.Output)
	}
}

// A deadlock or a panic that needs a timer to fire while goroutines can run is a failure, even if the test itself also
// reports a failure, which is only a note.
func TestBugsOnASlowMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	got := explored(t, "-schedules=2000", "./testdata/early")
	for test, kind := range map[string]string{
		"TestDeadlock": "deadlock", "TestDeadlockBesideTimeout": "deadlock", "TestPanic": "panic", "TestNoDeadlock": "",
		"TestFailsAndWaits": "", "TestDay": "", "TestDials": "",
	} {
		o := got[test]
		if o.Failure == nil {
			if kind != "" || (o.Slow != nil) != (test == "TestFailsAndWaits") {
				t.Errorf("%s: no %s: %s", test, kind, o.Output)
			}
			continue
		}
		if o.Failure.Kind != kind || !strings.Contains(o.Failure.Headline, " when a timer fires while others are busy, in ") {
			t.Errorf("%s: want a %s: %s", test, kind, o.Output)
		}
		again := explored(t, "-run=^"+test+"$", "-replay="+o.Failure.Token, "./testdata/early")[test]
		if again.Failure == nil || again.Failure.Report != o.Failure.Report {
			t.Errorf("%s: replayed, it is\n%s\nand was\n%s", test, again.Output, o.Output)
		}
	}
	if o := got[""]; strings.Contains(o.Output, "left behind") { // only TestFailsAndWaits does so, when it fails
		t.Errorf("the last line counts goroutines left behind:\n%s", o.Output)
	}
}

// With -racing, no limit ends early that is so long that no machine is too slow for it.
func TestRacingKeepsLongLimits(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	got := explored(t, "-schedules=500", "-racing", "-run=TestDials|TestDay", "./testdata/early")
	for _, test := range []string{"TestDials", "TestDay"} {
		if o := got[test]; o.Action != "pass" || o.Racing < 100 {
			t.Errorf("%s: %s, %d schedules with a racing clock\n%s", test, o.Action, o.Racing, o.Output)
		}
	}
}

// With -racing, a timeout of the test does not hide a deadlock. If there is no worse failure, the timeout is reported.
func TestRacingFindsMoreThanTimeouts(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	module(t, map[string]string{"m_test.go": `package m

import (
	"sync"
	"testing"
	"time"
)

func timeout(t *testing.T) {
	done := make(chan bool)
	go func() {
		for range 20 {
			time.Sleep(time.Millisecond)
		}
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(time.Second):
		t.Error("late")
	}
}

func TestTimeout(t *testing.T) { timeout(t) }

func TestBoth(t *testing.T) {
	timeout(t)
	var a, b sync.Mutex
	var wg sync.WaitGroup
	both := func(first, second *sync.Mutex) {
		for range 3 {
			first.Lock()
			second.Lock()
			second.Unlock()
			first.Unlock()
			first, second = second, first
		}
	}
	wg.Go(func() { both(&a, &b) })
	wg.Go(func() { both(&a, &b) })
	wg.Wait()
}
`})
	got := explored(t, "-schedules=400", "-racing", ".")
	for test, kind := range map[string]string{"TestTimeout": "fail", "TestBoth": "deadlock"} {
		o := got[test]
		if o.Failure == nil || o.Failure.Kind != kind {
			t.Errorf("%s: want a %s: %s", test, kind, o.Output)
			continue
		}
		if kind == "fail" && (o.Schedules < 350 || o.Failure.Schedule >= o.Schedules) {
			t.Errorf("%s: schedule %d of %d fails", test, o.Failure.Schedule, o.Schedules)
		}
	}
}

// In each form of the output, the number of schedules does not include those with a racing clock, which look for
// failures on a slow machine. They are counted separately.
func TestSlowSchedulesAreCountedApart(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	name := filepath.Join(t.TempDir(), "report.xml")
	got := explored(t, "-v", "-schedules=500", "-junit="+name, "./testdata/slow")
	suite := readJUnit(t, name).Suites[0]
	for test, want := range map[string]struct {
		schedules, least, most int // and how many with a racing clock: fewer if one fails
	}{
		"TestTimeout": {400, 1, 99}, "TestSleepsToWait": {400, 1, 99}, "TestWaits": {400, 100, 100}, "TestNoTime": {500, 0, 0},
	} {
		o := got[test]
		if o.Schedules != want.schedules || o.Racing < want.least || o.Racing > want.most {
			t.Errorf("%s: %d schedules and %d with a racing clock", test, o.Schedules, o.Racing)
		}
		apart := fmt.Sprintf(", and %d as on a slow machine, ", o.Racing)
		if !strings.Contains(o.Output, fmt.Sprintf("(%d schedules, ", o.Schedules)) ||
			strings.Contains(o.Output, apart) != (o.Racing > 0) {
			t.Errorf("%s:\n%s", test, o.Output)
		}
		i := slices.IndexFunc(suite.Cases, func(c junitCase) bool { return c.Name == test })
		if n := suite.Cases[i].property("schedules"); n != strconv.Itoa(o.Schedules) {
			t.Errorf("%s: the report of JUnit has %s schedules", test, n)
		}
	}
	if o := got[""]; !strings.Contains(o.Output, "\t4 tests, 1,700 schedules, ") {
		t.Errorf("the last line is\n%s", o.Output)
	}
	raced := explored(t, "-schedules=800", "-racing", "-run=TestWaits|TestNoTime", "./testdata/slow")
	for test, o := range raced {
		if test != "" && (o.Schedules+o.Racing != 800 || o.Racing < 100) {
			t.Errorf("%s with -racing: %d schedules and %d with a racing clock", test, o.Schedules, o.Racing)
		}
	}
}

// With a process for each schedule, no schedule is as on a slow machine. The results of tests with timers say so.
func TestFreshIsNotSlow(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	got := explored(t, "-v", "-fresh", "-schedules=2", "./testdata/slow")
	const none = " schedules, none as on a slow machine"
	for _, test := range []string{"TestTimeout", "TestSleepsToWait", "TestWaits", "TestNoTime"} {
		if o := got[test]; o.Action != "pass" || strings.Contains(o.Output, none) != (test != "TestNoTime") {
			t.Errorf("%s:\n%s", test, o.Output)
		}
	}
	const last = ", 3 not run as on a slow machine (TestTimeout, TestSleepsToWait, TestWaits), "
	if o := got[""]; !strings.Contains(o.Output, last) {
		t.Errorf("the last line is\n%s", o.Output)
	}
}

// With a process for each schedule, a failure is in the last one.
func TestFreshIsNumbered(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	o := explored(t, "-fresh", "-schedules=100", "-run=^TestTransfer$", "./testdata/bank")["TestTransfer"]
	if o.Failure == nil || o.Schedules < 2 || o.Failure.Schedule != o.Schedules {
		t.Errorf("of %d schedules:\n%s", o.Schedules, o.Output)
	}
}

// If a test passes because its time was up after few schedules, it has a note, unless it has no other schedules.
func TestFewSchedules(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	module(t, map[string]string{"m_test.go": `package m

import (
	"sync"
	"testing"
)

func TestMany(*testing.T) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			mu.Lock()
			mu.Unlock()
		})
	}
	wg.Wait()
}

func TestOneOrder(*testing.T) {
	for range 1_000_000 {
		new(sync.Mutex).Lock()
	}
}
`})
	name := filepath.Join(t.TempDir(), "report.xml")
	got := explored(t, "-budget=1ms", "-junit="+name, ".")
	many, one := got["TestMany"], got["TestOneOrder"]
	const note = "1ms was enough for %s of 10,000 schedules%s; to search longer: coir test example.com/m " +
		"-run '^TestMany$' -budget 2m"
	n := strconv.Itoa(many.Schedules)
	if many.Note != fmt.Sprintf(note, n, "") || many.Action != "pass" {
		t.Errorf("it has the note %q\n%s", many.Note, many.Output)
	}
	if one.Note != "" || one.Action != "pass" || one.Schedules < 1 {
		t.Errorf("a test with one order has the note %q\n%s", one.Note, one.Output)
	}
	if o := got[""]; !strings.Contains(o.Output, "note: "+fmt.Sprintf(note, "few", ": TestMany ("+n+")")+"\nok ") {
		t.Errorf("the package has no note, or another:\n%s", o.Output)
	}
	for _, c := range readJUnit(t, name).Suites[0].Cases {
		if note := c.property("note"); note != got[c.Name].Note {
			t.Errorf("%s: the report of JUnit has the note %q", c.Name, note)
		}
	}
	for _, args := range [][]string{{"-schedules=20", "."}, {"-for=1ms", "-budget=1ms", "-keep=" + t.TempDir(), "."}} {
		if got := explored(t, args...); got["TestMany"].Note != "" || strings.Contains(got[""].Output, "note: ") {
			t.Errorf("with %s the note is %q\n%s", args, got["TestMany"].Note, got[""].Output)
		}
	}
}

// Almost all places at which a goroutine could stop are in package net/http. These bugs need a handler to stop at one
// line of the test.
func TestShutdownBehindHTTP(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	got := explored(t, "-schedules=300", "-shrink=0", "-run=HTTP", "./measure/strategies/testdata/shutdown")
	for _, test := range []string{"TestBugHTTPSendClosed", "TestBugHTTPQueuedJob"} {
		if o := got[test]; o.Failure == nil {
			t.Errorf("%s: no failure in %d schedules", test, o.Schedules)
		}
	}
}

// Tests in bubbles of testing/synctest may wait for locks and for the network, which keep time from moving under go
// test.
func TestSynctest(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	want := coirtest.Expected(t, "testdata/synctest")
	if !slices.Contains(build.Default.ReleaseTags, "go1.27") {
		delete(want, "TestNewTestServer")
	}
	if !coirtest.InMemory() {
		delete(want, "TestServer")
	}
	coirtest.Compare(t, explored(t, "-schedules=200", "./testdata/synctest"), want)
}

// -for keeps a schedule that fails, and the next run begins with it.
func TestRounds(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	dir := t.TempDir()
	first := explored(t, "-for=1m", "-keep="+dir, "./testdata/bank")["TestTransfer"]
	second := explored(t, "-for=1m", "-keep="+dir, "./testdata/bank")["TestTransfer"]
	if first.Failure == nil || second.Failure == nil {
		t.Fatalf("%s\n%s", first.Output, second.Output)
	}
	if first.Failure.Schedule == 1 || second.Failure.Schedule != 1 || second.Failure.Report != first.Failure.Report {
		t.Errorf("in schedule %d, then in %d:\n%s\n%s", first.Failure.Schedule, second.Failure.Schedule, first.Output, second.Output)
	}
	began := time.Now()
	passed := explored(t, "-for=3s", "-budget=100ms", "-leaks=false", "-keep="+dir, "-run=TestLocks", "./testdata/orders")["TestLocks"]
	if passed.Action != "pass" || passed.Schedules < 10 || time.Since(began) < 3*time.Second {
		t.Errorf("%s after %v and %d schedules\n%s", passed.Action, time.Since(began), passed.Schedules, passed.Output)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.schedules"))
	if err != nil || len(files) != 2 {
		t.Errorf("%q are kept, %v", files, err)
	}
}

// -for keeps no more schedules of a test that leaks in each schedule than of another test.
func TestKeptLeaks(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	module(t, map[string]string{"leaks_test.go": `package m

import (
	"sync"
	"testing"
)

func TestLeaks(t *testing.T) {
	go func() { select {} }()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 7 {
		wg.Go(func() {
			for range 2 {
				mu.Lock()
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}
`})
	const most = 256 // coirMostKept of package testing
	dir := t.TempDir()
	got := explored(t, "-for=8s", "-budget=8s", "-strategy=random", "-keep="+dir, ".")["TestLeaks"]
	if got.Failure == nil || got.Failure.Kind != "leak" || got.Schedules < most {
		t.Fatalf("%s after %d schedules\n%s", got.Action, got.Schedules, got.Output)
	}
	text, err := os.ReadFile(keptFile(dir, "example.com/m", "TestLeaks"))
	if n := strings.Count(string(text), "\n"); err != nil || n == 0 || n > most {
		t.Errorf("%d schedules are kept, %v", n, err)
	}
}

// The guide shows what coir test prints for its example.
func TestTheGuide(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	guide, err := os.ReadFile("../../docs/guide/coir-test.md")
	if err != nil {
		t.Fatal(err)
	}
	rest := string(guide)
	for _, name := range []string{"testdata/pay/pay_test.go", "testdata/bank/bank_test.go"} {
		program, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var code string
		_, rest, _ = strings.Cut(rest, "```go\n")
		code, rest, _ = strings.Cut(rest, "```")
		if !strings.Contains(string(program), code) {
			t.Errorf("the program of the guide is not %s", name)
		}
	}
	var out, errs bytes.Buffer
	if code := run([]string{"test", "./testdata/bank"}, &out, &errs); code != 1 {
		t.Fatalf("exit code %d: %s%s", code, &out, &errs)
	}
	_, shown, _ := strings.Cut(string(guide), "    $ coir test .\n")
	shown, _, _ = strings.Cut(shown, "\n\n")
	plain := func(text string) string {
		text = strings.ReplaceAll(text, "github.com/coir-go/coir/cmd/coir/testdata/bank", "bank")
		text = regexp.MustCompile(`\d+\.\d+ ?s|c1\.[\w-]+`).ReplaceAllString(text, "")
		return strings.TrimSpace(text)
	}
	if got, want := plain(indent(out.String())), plain(shown); got != want {
		t.Errorf("the guide shows\n%s\nand it is\n%s", want, got)
	}
}

// The guide to reports shows what coir test prints for three bugs.
func TestTheGuideToReports(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	guide, err := os.ReadFile("../../docs/guide/reports.md")
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := run([]string{"test", "-run", "Transfer|Count|Answer", "./testdata/three"}, &out, &errs); code != 1 {
		t.Fatalf("exit code %d: %s%s", code, &out, &errs)
	}
	plain := func(text string) string {
		text = strings.ReplaceAll(text, "github.com/coir-go/coir/cmd/coir/testdata/three", "three")
		return regexp.MustCompile(`\d+\.\d+ ?s|c1\.[\w-]+`).ReplaceAllString(text, "X")
	}
	reports := strings.Split(plain(out.String()), "--- FAIL: ")[1:]
	if len(reports) != 3 {
		t.Fatalf("%d tests failed:\n%s", len(reports), &out)
	}
	for _, report := range reports {
		report, _, _ = strings.Cut(report, "\nFAIL\t")
		if !strings.Contains(plain(string(guide)), strings.TrimSpace(report)+"\n```\n") {
			t.Errorf("the guide does not show\n%s", report)
		}
	}
}

// The edits leave the fast paths of package sync small enough to be inlined: see measure/cost.
func TestTheFastPathsAreInlined(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	tool, err := toolchain(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	over, err := overlay.Make(tool.root, tool.version, tool.cache)
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(tool.goCommand, "build", "-overlay="+over, "-gcflags=-m", "internal/sync", "sync")
	c.Env = tool.env
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, f := range []string{"(*Mutex).Lock", "(*Mutex).Unlock", "(*RWMutex).RLock", "(*Once).Do"} {
		want := 1
		if strings.HasPrefix(f, "(*Mutex)") {
			want = 2 // of package sync, and of internal/sync
		}
		if n := strings.Count(string(out), ": can inline "+f+"\n"); n != want {
			t.Errorf("%d functions %s can be inlined, want %d", n, f, want)
		}
	}
}

func TestCallsOfCoir(t *testing.T) {
	for function, want := range map[string]string{
		"github.com/coir-go/coir.Select":            "coir.Select",
		"github.com/coir-go/coir.(*Chan[...]).Send": "Chan.Send",
		"github.com/coir-go/coir.(*Runtime).Run":    "Runtime.Run",
	} {
		if got := method(function); got != want {
			t.Errorf("%s is shown as %s, want %s", function, got, want)
		}
	}
}

// With -leaks=false, the schedule of a leak does not fail. A replay that does not fail is not ok.
func TestAReplayThatDoesNotFail(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	got := explored(t, "-schedules=100", "-leaks=true", "./testdata/left")
	n := 0
	for test, o := range got {
		if o.Failure == nil || o.Failure.Kind != "leak" || o.Failure.Token == "" {
			continue
		}
		n++
		var out, errs bytes.Buffer
		code := run([]string{"test", "-leaks=false", "-run=^" + test + "$", "-replay=" + o.Failure.Token, "./testdata/left"}, &out, &errs)
		if code != 1 || !strings.Contains(out.String(), "\n    "+healedText+"\n") || strings.Contains(out.String(), "ok  ") {
			t.Errorf("%s: exit code %d\n%s%s", test, code, &out, &errs)
		}
		if n == 2 {
			break
		}
	}
	if n == 0 {
		t.Errorf("there is no leak: %+v", got)
	}
}

func TestFlags(t *testing.T) {
	for _, c := range []struct {
		args string
		want string // a part of the error
	}{
		{"-strategy=clever .", "unknown strategy \"clever\""},
		{"-schedules=0 .", "must be positive"},
		{"-replay=c1.AA .", "-replay needs -run"},
		{"-run=TestA -replay=c1. .", "is damaged"},
		{"-run=TestA -replay=c1.AAAA .", "is damaged"},
		{"-cover .", "-cover"},
		{"-c .", "-c needs -o"},
		{"-atomics -gcflags=-N .", "-atomics and -gcflags cannot be combined"},
		{"-run=TestA -race ./a -tags=x ./b -args -y", ""},
	} {
		o, err := parse(strings.Fields(c.args))
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", c.args, err)
			}
		case err != nil:
			t.Errorf("%s: %v", c.args, err)
		case len(o.build) != 2 || len(o.packages) != 2 || len(o.args) != 1 || o.run != "TestA":
			t.Errorf("%s: %+v", c.args, o)
		}
	}
}

func TestCommands(t *testing.T) {
	for args, code := range map[string]int{"": 2, "help": 0, "help test": 0, "tset": 2, "test -h": 0, "test -nosuch": 2} {
		var out, errs bytes.Buffer
		if got := run(strings.Fields(args), &out, &errs); got != code || out.Len()+errs.Len() == 0 {
			t.Errorf("coir %s: exit code %d, %s%s", args, got, &out, &errs)
		}
	}
}

// A truncated record, as of a process that is killed, is reported as such.
func TestRecordsThatAreDamaged(t *testing.T) {
	const text = "failure\t\"deadlock\"\t\"\"\t5\t1\t3\t\"c1.AA\"\ttrue\t0\t0\t9\t77\n"
	r := result{record: record{tested: new(tested)}}
	r.read(text)
	if r.broken != "" || r.failure == nil || r.failure.switches != 3 || r.outcome != "" {
		t.Errorf("read %+v; want a failure with 3 switches, and no outcome", r)
	}
	for i := range text[:len(text)-3] {
		r := result{record: record{tested: new(tested)}}
		if r.read(text[:i]); r.broken == "" && i > 0 && strings.HasPrefix(text[:i], "failure") {
			t.Errorf("%q is taken for a record", text[:i])
		}
	}
	const summary = "summary\t\"fail\"\t1\t0\t0\tfalse\t\"0\"\n"
	const twin = text + "twin\t1\t0\t1\ttrue\t9\n"
	whole := result{record: record{tested: new(tested)}}
	if whole.read(twin + "end\n" + summary); whole.broken != "" || whole.outcome != "fail" || whole.twin == nil {
		t.Errorf("read %+v; want a failure with a twin", whole)
	}
	for _, bad := range []string{
		"", "step\t1\tx\n", text[:30] + "\n", text + "other\t1\n", text + "\n",
		twin, twin + "step\t1\tx\nend\n", twin + "other\t1\nend\n",
	} {
		r := result{record: record{tested: new(tested)}}
		if r.read(bad + summary); r.outcome != "error" || !strings.Contains(r.broken, "internal error in coir test: ") {
			t.Errorf("%q is %s: %s", bad, r.outcome, r.broken)
		}
	}
	r.died(fs.ErrClosed)
	if r.outcome != "died" || r.broken == "" {
		t.Errorf("read %+v; want died, with what is broken", r)
	}
}

// A test that the user has interrupted with Ctrl-C is not reported as one that died.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, fresh := range []bool{false, true} {
		o := &options{schedules: 1, fresh: fresh}
		if r := new(tool).runTest(ctx, newJob(o, &pkg{Dir: t.TempDir()}, os.Args[0], "TestFlags", 0)); r != nil {
			t.Errorf("fresh %v: %s, %s", fresh, r.outcome, r.broken)
		}
	}
}

// coir test finds a failure even if the first run did something that a process does only once, so that the failure does
// not repeat exactly.
func TestFailsAfterOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	o := explored(t, "-schedules=500", "./testdata/once")["TestOnce"]
	if o.Failure == nil || o.Failure.Kind != "fail" || !o.Failure.Stable {
		t.Errorf("%s\n%s", o.Action, o.Output)
	}
}
