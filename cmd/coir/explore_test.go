package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/overlay"
)

// outcome is what coir test -json prints for a test.
type outcome struct {
	action string
	trace  string
	told   *told

	schedules int
	complete  bool
	output    string

	outside, uncontrolled int
}

// explored runs coir test, and returns the outcomes of the tests by their names.
func explored(t *testing.T, args ...string) map[string]outcome {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(append([]string{"test", "-json"}, args...), &out, &errs)
	if code == 2 {
		t.Fatalf("coir test %s: %s", strings.Join(args, " "), &errs)
	}
	all := map[string]outcome{}
	failed := false
	for d := json.NewDecoder(&out); d.More(); {
		var e event
		if err := d.Decode(&e); err != nil {
			t.Fatal(err)
		}
		o := all[e.Test]
		o.output += e.Output
		if e.Action != "output" {
			o.action, o.trace, o.told = e.Action, e.Trace, e.Failure
			o.schedules, o.complete = e.Schedules, e.Complete
			o.outside, o.uncontrolled = e.Outside, e.Uncontrolled
			failed = failed || e.Action == "fail"
		}
		all[e.Test] = o
	}
	if failed != (code == 1) {
		t.Errorf("the exit code is %d", code)
	}
	return all
}

// expected reads from the sources of a package the expected kind of each test: `// Expect: kind` above it.
func expected(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	want := map[string]string{}
	expect := regexp.MustCompile(`(?m)^// Expect: (.+)$|^func (Test\w+)\(\w* ?\*testing\.T\)`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		kind := "pass"
		for _, m := range expect.FindAllStringSubmatch(string(text), -1) {
			if m[1] != "" {
				kind = m[1]
				continue
			}
			want[m[2]] = kind
			kind = "pass"
		}
	}
	return want
}

// compare compares the outcomes with what was expected.
func compare(t *testing.T, got map[string]outcome, want map[string]string) {
	t.Helper()
	for test, kind := range want {
		o, ok := got[test]
		switch {
		case !ok:
			t.Errorf("%s was not run", test)
		case kind == "pass" || kind == "skip":
			if o.action != kind {
				t.Errorf("%s: %s, want %s\n%s", test, o.action, kind, o.output)
			}
		case strings.Contains(kind, " at "):
			if o.action != "skip" || !strings.Contains(o.output, "not controlled: "+kind) {
				t.Errorf("%s: %s, and %q as not controlled is wanted\n%s", test, o.action, kind, o.output)
			}
		case kind == "died":
			if o.action != "fail" || o.told != nil {
				t.Errorf("%s: %s, and a process that died is wanted\n%s", test, o.action, o.output)
			}
		case o.action != "fail" || o.told == nil || o.told.Kind != kind:
			t.Errorf("%s: %s, want %s\n%s", test, o.action, kind, o.output)
		}
	}
}

// soaking reports whether tests run at their full size, which takes many minutes: make soak.
func soaking() bool { return os.Getenv("COIR_SOAK") == "1" }

// replayed runs each failure again from its token, in a process of its own, or only some unless soaking. The report
// must be the same.
func replayed(t *testing.T, got map[string]outcome, args ...string) {
	t.Helper()
	most := 5
	for test, o := range got {
		if o.told == nil || most == 0 && !soaking() {
			continue
		}
		most--
		_, run, _ := strings.Cut(o.told.Replay, "-run '")
		run, _, _ = strings.Cut(run, "'")
		again := explored(t, append(args, "-run="+run, "-replay="+o.told.Token)...)[test]
		if again.told == nil || again.told.Kind != o.told.Kind || again.told.Token != o.told.Token ||
			again.told.Report != o.told.Report {
			t.Errorf("%s: replayed, it is\n%s\nand was\n%s", test, again.output, o.output)
		}
	}
}

// coir test finds the bugs of the corpus, each with the right kind, and their corrected twins pass. Bugs that only the
// race detector sees are searched for with it. Each failure is replayed from its token, in a process of its own.
func TestTheCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	want := expected(t, "corpus")
	races := map[string]string{}
	for test, kind := range want {
		if kind == "race" {
			races[test] = kind
			delete(want, test)
		}
	}
	got := explored(t, "-schedules=1000", "-tags=corpus", "./corpus")
	compare(t, got, want)
	replayed(t, got, "-tags=corpus", "./corpus")
	for test := range want { // the race detector finds nothing in the twins, and nothing in coir
		if strings.HasPrefix(test, "TestFixed") {
			races[test] = "pass"
		}
	}
	compare(t, explored(t, "-race", "-tags=corpus", "-schedules=500",
		"-run=^Test(Fixed.*|BugLimitConfig|BugSearchService)$", "./corpus"), races)
}

// Bugs between two atomic operations are found only if those are points. Each failure is replayed from its token, also
// with the race detector, with which the standard library's own atomics are no points either.
func TestAtomics(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	want := expected(t, "corpus/atomics")
	got := explored(t, "-atomics", "-schedules=2000", "-tags=corpus", "./corpus/atomics")
	compare(t, got, want)
	raced := explored(t, "-atomics", "-race", "-schedules=500", "-tags=corpus", "./corpus/atomics")
	compare(t, raced, want)
	for test, kind := range want {
		if o := got[test]; o.told != nil {
			again := explored(t, "-atomics", "-tags=corpus", "./corpus/atomics", "-run=^"+test+"$", "-replay="+o.told.Token)
			if a := again[test].told; a == nil || a.Token != o.told.Token || a.Report != o.told.Report {
				t.Errorf("%s: replayed, it is\n%s\nand was\n%s", test, again[test].output, o.output)
			}
			if a := raced[test].told; a != nil && a.Token != o.told.Token {
				t.Errorf("%s: the token is %s, and %s with -race", test, o.told.Token, a.Token)
			}
		}
		if kind != "pass" {
			want[test] = "pass"
		}
	}
	compare(t, explored(t, "-tags=corpus", "-schedules=500", "./corpus/atomics"), want)
	compare(t, explored(t, "-atomics", "-schedules=100", "./testdata/spin"), map[string]string{"TestSpin": "pass"})
}

// The second half of the corpus was written when the tool was finished, by readers of neither the tool nor the first
// half, and is not used to improve it. At least 85 of 100 bugs are found with the right kind, and no corrected twin
// fails.
func TestTheLaterCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	want := expected(t, "corpus/later")
	plain := explored(t, "-tags=corpus", "-schedules=1000", "./corpus/later")
	raced := explored(t, "-race", "-tags=corpus", "-schedules=200", "./corpus/later")
	bugs, found := 0, 0
	for test, kind := range want {
		got := plain[test]
		if kind == "race" {
			got = raced[test]
		}
		switch {
		case kind == "pass":
			if got.action != "pass" || raced[test].action != "pass" {
				t.Errorf("%s: %s, with -race %s\n%s", test, got.action, raced[test].action, got.output+raced[test].output)
			}
		case got.told != nil && got.told.Kind == kind:
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

// All schedules of a test, including those that make a failure smaller, do the same in each process: with other numbers
// of processors, and with a collector that runs all the time or never. So they do in maps whose keys are addresses, and
// on the network. `go run ./measure/determinism` is the long form.
func TestDeterminism(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	traces := func(procs, collect string) map[string]outcome {
		t.Setenv("GOMAXPROCS", procs)
		t.Setenv("GOGC", collect)
		all := explored(t, "-tags=corpus", "-schedules=50", "./corpus", "./corpus/atomics")
		maps.Copy(all, explored(t, "-schedules=10", "./testdata/maps"))
		if inMemory() {
			maps.Copy(all, explored(t, "-schedules=10", "-skip=Race|Probe|OnKernel", "./testdata/network"))
		}
		return all
	}
	one, other := traces("1", "off"), traces("4", "1")
	for test, o := range one {
		if test != "" && (o.trace == "" || o.trace != other[test].trace) {
			t.Errorf("%s: the trace is %q, and %q in another process", test, o.trace, other[test].trace)
		}
	}
}

// Programs that mix goroutines, native locks and fibers of coir are explored in one schedule. A report is about the
// program: it names fibers and what they called, and nothing inside coir.
func TestMixedPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	t.Chdir("../../verify")
	got := explored(t, "-schedules=1000", "-tags=corpus", "./mixed")
	compare(t, got, expected(t, "mixed"))
	replayed(t, got, "-tags=corpus", "./mixed")
	for _, line := range []string{
		"fiber service waits in Chan.Send, at channels_test.go:",
		", held by fiber add since step ", " (at locks_test.go:24), at locks_test.go:",
	} {
		if all := got["TestBugGuestLeaves"].output + got["TestBugRegistry"].output; !strings.Contains(all, line) {
			t.Errorf("no line has %q:\n%s", line, all)
		}
	}
	for test, o := range got {
		if strings.Contains(o.output, "idle.go") || strings.Contains(o.output, "coro.go") {
			t.Errorf("%s tells of coir's own goroutines:\n%s", test, o.output)
		}
	}
}

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

// Tests as people write them: each form does under coir test what it does under go test.
func TestTheForms(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	got := explored(t, "-v", "-tags=corpus", "-schedules=300", "-budget=1s", "./forms")
	compare(t, got, expected(t, "forms"))
	if o := got["TestGoroutineLeftBehind"]; o.told != nil && o.told.OutsideSeen { // the collector is not outside
		t.Errorf("a wake from outside\n%s", o.output)
	}
}

// Races of all sorts are reported: taking turns does not order any accesses that were not ordered anyway.
func TestTheRaces(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	got := explored(t, "-race", "-tags=corpus", "-schedules=1000", "./races")
	compare(t, got, expected(t, "races"))
	for test, o := range got {
		if o.told != nil && !o.told.Stable {
			t.Errorf("%s does not come again:\n%s", test, o.output)
		}
	}
}

// DPOR runs far fewer schedules than the exhaustive strategy, and sees each result of a program that the exhaustive one
// sees.
func TestDPORSeesEachResult(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	most := 4000
	if soaking() {
		most = 200_000
	}
	for test := range expected(t, "testdata/orders") {
		results := func(strategy string) (all []string, schedules int) {
			file := filepath.Join(t.TempDir(), strategy)
			t.Setenv("ORDERS", file)
			o := explored(t, "-strategy="+strategy, "-bound=-1", "-schedules="+strconv.Itoa(most), "-atomics", "-leaks=false",
				"-run=^"+test+"$", "./testdata/orders")[test]
			if o.action != "pass" || strategy == "dpor" && !o.complete {
				t.Errorf("%s by %s: %s, complete %v\n%s", test, strategy, o.action, o.complete, o.output)
			}
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all = strings.Split(strings.TrimSpace(string(text)), "\n")
			slices.Sort(all)
			return slices.Compact(all), o.schedules
		}
		all, many := results("exhaustive")
		some, few := results("dpor")
		lacks := func(result string) bool { return !slices.Contains(some, result) }
		if slices.ContainsFunc(all, lacks) || many < most && len(some) != len(all) {
			t.Errorf("%s: the results are %q, and by DPOR %q", test, all, some)
		}
		t.Logf("%s: %d results in %d schedules, by DPOR %d in %d", test, len(all), many, len(some), few)
		if few >= many {
			t.Errorf("%s: %d schedules, by DPOR %d", test, many, few)
		}
	}
}

// With -for a schedule that fails is kept, and is the first of the next run.
func TestRounds(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	dir := t.TempDir()
	first := explored(t, "-for=1m", "-keep="+dir, "./testdata/bank")["TestTransfer"]
	second := explored(t, "-for=1m", "-keep="+dir, "./testdata/bank")["TestTransfer"]
	if first.told == nil || second.told == nil {
		t.Fatalf("%s\n%s", first.output, second.output)
	}
	if first.told.Schedule == 1 || second.told.Schedule != 1 || second.told.Report != first.told.Report {
		t.Errorf("in schedule %d, then in %d:\n%s\n%s", first.told.Schedule, second.told.Schedule, first.output, second.output)
	}
	began := time.Now()
	passed := explored(t, "-for=3s", "-budget=100ms", "-leaks=false", "-keep="+dir, "-run=TestLocks", "./testdata/orders")["TestLocks"]
	if passed.action != "pass" || passed.schedules < 10 || time.Since(began) < 3*time.Second {
		t.Errorf("%s after %v and %d schedules\n%s", passed.action, time.Since(began), passed.schedules, passed.output)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.schedules"))
	if err != nil || len(files) != 2 {
		t.Errorf("%q are kept, %v", files, err)
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
	program, err := os.ReadFile("testdata/bank/bank_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(guide), "```go\n")
	code, _, _ = strings.Cut(code, "```")
	if !strings.Contains(string(program), code) {
		t.Error("the program of the guide is not testdata/bank/bank_test.go")
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

func TestFlags(t *testing.T) {
	for _, c := range []struct {
		args string
		want string // a part of the error
	}{
		{"-strategy=clever .", "there is no strategy"},
		{"-schedules=0 .", "above 0"},
		{"-replay=c1.AA .", "-replay needs -run"},
		{"-cover .", "-cover"},
		{"-c .", "-c needs -o"},
		{"-atomics -gcflags=-N .", "cannot be given together"},
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
	const record = "failure\t\"deadlock\"\t\"\"\t5\t1\t3\t\"c1.AA\"\ttrue\t0\t0\t9\t77\n"
	var r result
	r.read(record)
	if r.broken != "" || r.failure == nil || r.failure.switches != 3 || r.outcome != "" {
		t.Errorf("%+v", r)
	}
	for i := range record[:len(record)-3] {
		var r result
		if r.read(record[:i]); r.broken == "" && i > 0 && strings.HasPrefix(record[:i], "failure") {
			t.Errorf("%q is taken for a record", record[:i])
		}
	}
	for _, bad := range []string{"", "step\t1\tx\n", record[:30] + "\n"} {
		var r result
		if r.read(bad + "summary\t\"fail\"\t1\t0\t0\n"); r.outcome != "error" || !strings.Contains(r.broken, "coir test has failed, and not the test") {
			t.Errorf("%q is %s: %s", bad, r.outcome, r.broken)
		}
	}
	r.died(fs.ErrClosed)
	if r.outcome != "died" || r.broken == "" {
		t.Errorf("%+v", r)
	}
}

// A test that the user has interrupted with Ctrl-C is not reported as one that died.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, fresh := range []bool{false, true} {
		o := &options{schedules: 1, fresh: fresh}
		if r := new(tool).runTest(ctx, o, &pkg{Dir: t.TempDir()}, os.Args[0], "TestFlags", 0); r != nil {
			t.Errorf("fresh %v: %s, %s", fresh, r.outcome, r.broken)
		}
	}
}
