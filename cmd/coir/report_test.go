package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
)

// The reports of failures. They must have these lines in this order.
func TestReports(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	dir := t.TempDir()
	got := explored(t, "-budget=1m", "-html="+dir, "-skip=^TestPasses$", "./testdata/reports")
	for test, want := range map[string][]string{
		"TestSelect": {
			"deadlock in schedule 1 (seed 1), in the plain order",
			"TestSelect waits in a select to send to out (made at reports_test.go:13), or to receive from ctx.Done(), or to " +
				"receive from in (made at reports_test.go:13, capacity 1), or to receive from timer.C (made at " +
				"reports_test.go:22), at reports_test.go:24\n",
			"| send full | :14\n", "| select default | :16\n", "| select recv in | :24\n",
			"| select send out, recv ctx.Done(), recv in, recv timer.C * | :24\n",
		},
		"TestReaders": {
			"TestReaders waits to read-lock mu, behind reports_test.go:37, at reports_test.go:42, for 0s\n",
			"reports_test.go:37 waits to lock mu, read-locked by TestReaders since step 1 (at reports_test.go:36), at reports_test.go:38, for 1s\n",
			"cycle:\n TestReaders waits for reports_test.go:37\n reports_test.go:37 waits for TestReaders\n",
			" | rlock mu | | :36 0s\n", " | | lock mu * | :38\n", " | rlock mu * | | :42 1s\n",
		},
		"TestOnce": {
			"TestOnce waits to receive from done (", "reports_test.go:49 waits for once to be done, by TestOnce since step 2 (at reports_test.go:48), at reports_test.go:50\n",
			" | do once | | :48\n", " | | do once * | :50\n",
		},
		"TestLockedTwice":  {"reports_test.go:61 waits to lock mu, held by itself since step 4 (at reports_test.go:62), at reports_test.go:63\n"},
		"TestWaitsForLong": {", at reports_test.go:74, for 0s\n", "reports_test.go:72 waits to receive from never (made at ", ", for 3s\n"},
		"TestArrows":       {"reports_test.go:83", " | go | | :83\n", " | | done wg |\n"},
		"TestMany": {
			"reports_test.go:105 (8) waits in a select without cases", " | reports_test.go:105 | at reports_test.go\n",
			" | (8) |\n", "... steps 1 to 9: TestMany starts 9 goroutines\n",
			" | send jobs | | | | :114\n",
			"... TestMany send jobs: 8 times more, until step 26\n", " | close jobs | | | | :116\n",
			"... and 6 goroutines without a column\n",
		},
		"TestPanics": {
			"panic: runtime error: invalid memory address or nil pointer dereference, in schedule 1 (seed 1), in the plain order\n",
			"reports_test.go:123 panics, at reports_test.go:126\n",
		},
		"TestManyDecisions": {", with more than ", "the last 65,536 are known\n", "so it cannot be replayed from a token\n",
			" steps before\n", " left out\n"},
	} {
		o := got[test]
		if o.Action != "fail" || o.Failure == nil {
			t.Errorf("%s: %s\n%s", test, o.Action, o.Output)
			continue
		}
		rest := regexp.MustCompile(` +`).ReplaceAllString(o.Output, " ")
		for _, line := range want {
			_, after, ok := strings.Cut(rest, line)
			if !ok {
				t.Errorf("%s: there is no %q in\n%s\nof\n%s", test, line, rest, o.Output)
				break
			}
			rest = after
		}
		if page, err := os.ReadFile(o.Failure.Chart); err != nil || !bytes.Contains(page, []byte("<title>"+test+": ")) ||
			filepath.Dir(o.Failure.Chart) != dir {
			t.Errorf("%s: the chart is %s, %v", test, o.Failure.Chart, err)
		}
	}
	if o := got["TestManyDecisions"]; o.Failure != nil && (o.Failure.Token+o.Failure.Replay != "" || strings.Contains(o.Output, "replay:")) {
		t.Errorf("there is a token of a part of the decisions:\n%s", o.Output)
	}
	if o := got["TestArrows"]; o.Failure != nil {
		page, err := os.ReadFile(o.Failure.Chart)
		if err != nil {
			t.Fatal(err)
		}
		var data struct {
			Words []string
			Runs  []struct {
				Arrows  [][5]int
				Starts  [][2]int
				Objects []struct{ Sort int }
				Did     [][4]int
			}
		}
		_, text, _ := strings.Cut(string(page), `id="data">`)
		text, _, _ = strings.Cut(text, "</script>")
		if err := json.Unmarshal([]byte(text), &data); err != nil || len(data.Runs) == 0 {
			t.Fatal(err)
		}
		var arrows []string
		r := data.Runs[0]
		for _, a := range r.Arrows {
			arrows = append(arrows, []string{"msg", "shut", "hand", "wake"}[a[2]]+" "+data.Words[a[3]])
		}
		slices.Sort(arrows)
		all := strings.Join(arrows, ", ")
		if want := "hand mu, hand mu, msg values, shut quit, wake cond, wake wg"; all != want {
			t.Errorf("the arrows are %s, want %s", all, want)
		}
		if n := len(r.Starts); n != 1 {
			t.Errorf("%d goroutines are started", n)
		}
		effects := map[string]bool{}
		for _, d := range r.Did {
			effects[fmt.Sprint(data.Words[r.Objects[d[1]].Sort], " ", d[2])] = true
		}
		for _, want := range []string{"channel 1", "channel 2", "channel 3", "lock 4", "lock 5"} {
			if !effects[want] {
				t.Errorf("no step does %s: %v", want, effects)
			}
		}
	}
}

// The report compares the failing schedule with a passing one. A replay shows the same.
func TestTwins(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	o := explored(t, "./testdata/bank")["TestTransfer"]
	if o.Failure == nil {
		t.Fatal("it has not failed")
	}
	for _, want := range []string{
		"diverges here: bank_test.go:27 locked from.mu (mutex#2) first, at bank_test.go:14; " +
			"in the schedule that passes, bank_test.go:26 locked to.mu (mutex#2) first, at bank_test.go:16\n",
		"=> bank_test.go:27 lock from.mu (mutex#2), at :14 | ", "| => bank_test.go:26 lock to.mu (mutex#2), at :16\n",
		"no schedule that passes has more in common with this one\n", "=>7 | | | lock from.mu (mutex#2) | :14\n",
	} {
		if text := regexp.MustCompile(` +`).ReplaceAllString(o.Failure.Report, " "); !strings.Contains(text, want) {
			t.Errorf("there is no %q in\n%s", want, text)
		}
	}
	again := explored(t, "-run=^TestTransfer$", "-replay="+o.Failure.Token, "./testdata/bank")["TestTransfer"]
	if again.Failure == nil || again.Failure.Report != o.Failure.Report {
		t.Errorf("replayed:\n%+v\nwas:\n%s", again.Failure, o.Failure.Report)
	}
	o = explored(t, "-run=^TestPanics$", "./testdata/reports")["TestPanics"]
	if o.Failure == nil || !strings.Contains(o.Failure.Report, "; none that passes was found\n") &&
		!strings.Contains(o.Failure.Report, "the test fails in all its ") {
		t.Errorf("%+v", o.Failure)
	}
}

// The output of -json.
func TestFailuresInJSON(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	f := explored(t, "./testdata/bank")["TestTransfer"].Failure
	if f == nil {
		t.Fatal("it has not failed")
	}
	headline := fmt.Sprintf("deadlock in schedule %[1]d (seed %[1]d), shrunk to 1 switch", f.Schedule)
	if f.Kind != "deadlock" || f.Headline != headline || f.Switches != 1 || f.Steps != 8 || !f.Stable || f.OutsideSeen || !strings.HasSuffix(f.Replay, "-run '^TestTransfer$' -replay "+f.Token) {
		t.Errorf("the failure is %+v; want the deadlock of the two transfers, found again", f)
	}
	if got := strings.Join(f.Cycle, " "); got != "bank_test.go:26 bank_test.go:27 bank_test.go:26" {
		t.Error(got)
	}
	if len(f.Waits) != 3 {
		t.Fatalf("the waits are %+v; want 3", f.Waits)
	}
	w := f.Waits[1]
	if w.Goroutine != "bank_test.go:26" || w.For != "waits to lock to.mu (mutex#2)" || w.Line != 16 ||
		filepath.Base(w.File) != "bank_test.go" || strings.Join(w.HeldBy, " ") != "bank_test.go:27" {
		t.Errorf("the second wait is %+v; want the lock that the other transfer holds", w)
	}
}

// The report says whether the search is complete.
func TestAllSchedules(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	for _, c := range []struct{ args, want string }{
		{"-strategy=exhaustive", `(?m)^ok .*\t1 test, all \d+ schedules with at most 2 preemptions, `},
		{"-strategy=exhaustive -v -bound=1", `--- PASS: TestPasses \(all \d+ schedules with at most 1 preemption, `},
		{"-v", `--- PASS: TestPasses \([\d,]+ schedules, among them all [\d,]+ with at most 2 preemptions, `},
		{"-strategy=exhaustive -schedules=2 -v", `--- PASS: TestPasses \(2 schedules, `},
		{"-strategy=random -v", `--- PASS: TestPasses \([\d,]+ schedules, \d`},
	} {
		var out, errs bytes.Buffer
		args := strings.Fields("test -schedules=3000 -run=^TestPasses$ ./testdata/reports " + c.args)
		if code := run(args, &out, &errs); code != 0 || !regexp.MustCompile(c.want).MatchString(out.String()) {
			t.Errorf("%s: exit code %d, and no %s in\n%s%s", c.args, code, c.want, &out, &errs)
		}
	}
}

// A process may crash because of a bug in coir or in the program.
func TestCrashes(t *testing.T) {
	const tests = "testing.coirExplore(0xc000130248, 0x5a3308)\n\t/go/src/testing/coir.go:171 +0x2ca\n" +
		"testing.tRunner(0xc000130248, 0x5a3308)\n\t/go/src/testing/testing.go:2037 +0xea\n" +
		"created by testing.(*T).Run in goroutine 1\n\t/go/src/testing/testing.go:2103 +0x533\n"
	const point = "sync.coirPoint(0x60?, 0xc000009860?)\n\t/go/src/runtime/coir.go:532 +0x15\n" +
		"sync.(*WaitGroup).Wait(0xc0000160d0)\n\t/go/src/sync/waitgroup.go:166 +0x2f\n" +
		"example.com/bank.TestTransfer(0x68ade0?)\n\t/bank/bank_test.go:28 +0x125\n" + tests
	const panicked = "goroutine 5 [running]:\ntesting.tRunner.func1.2({0x569060, 0x6e3ce0})\n\t/go/src/testing/testing.go:1975 +0x232\n" +
		"testing.tRunner.func1()\n\t/go/src/testing/testing.go:1978 +0x416\n" +
		"panic({0x569060?, 0x6e3ce0?})\n\t/go/src/runtime/panic.go:861 +0x13a\n"
	for _, c := range []struct {
		what, output string
		whose        int
		says         string
	}{
		{"a panic of the explorer", "--- FAIL: TestTransfer (0.00s)\n" +
			"panic: runtime error: invalid memory address or nil pointer dereference [recovered, repanicked]\n" +
			"[signal SIGSEGV: segmentation violation code=0x1 addr=0xc8 pc=0x4e8eab]\n\n" + panicked +
			"testing.(*coirExplorer).explore(0xc00007a1e0)\n\t/go/src/testing/coir.go:306 +0x10b\n" + tests, ours, "internal error in coir test: "},
		{"a check of coir's", "fatal error: coir: too many goroutines\n\ngoroutine 7 gp=0xc000009860 m=0 mp=0x6effa0 [running]:\n" +
			"runtime.throw({0x59a91a?, 0xc000009860?})\n\t/go/src/runtime/panic.go:1233 +0x48 fp=0xc00003adc8\n" +
			"runtime.coirPointOf(0xe, 0xc00003ae01?, 0x0)\n\t/go/src/runtime/coir.go:578 +0x512\n" + point, ours, "internal error in coir test: "},
		{"a nil pointer in the scheduler", "fatal error: unexpected signal during runtime execution\n" +
			"[signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x417a25]\n\ngoroutine 7 gp=0xc000009860 m=0 [running]:\n" +
			"runtime.throw({0x59f95b?, 0x6cb200?})\n\t/go/src/runtime/panic.go:1233 +0x48\n" +
			"runtime.sigpanic()\n\t/go/src/runtime/signal_unix.go:915 +0x3df\n" +
			"runtime.(*coirTurns).way(0x418272?, 0x60?)\n\t/go/src/runtime/coir_turn.go:138 +0x25\n" + point, ours, "internal error in coir test: "},
		{"a check of the runtime's that no program fails", "fatal error: casgstatus: bad incoming values\n\nruntime stack:\n" +
			"runtime.throw({0x59f95b?, 0x6cb200?})\n\t/go/src/runtime/panic.go:1233 +0x48\n", ours, "internal error in coir test: "},
		{"an unlock of an unlocked mutex", "fatal error: sync: unlock of unlocked mutex\n\ngoroutine 7 [running]:\n" +
			"internal/sync.fatal({0x5a?, 0x6?})\n\t/go/src/runtime/panic.go:1180 +0x18\n" +
			"internal/sync.(*Mutex).Unlock(...)\n\t/go/src/internal/sync/mutex.go:204\n" + point, theirs, "the program crashed outside the explored schedule"},
		{"a panic of TestMain", "panic: no database\n\ngoroutine 1 [running]:\nexample.com/bank.TestMain(0xc000016)\n" +
			"\t/bank/bank_test.go:9 +0x2c\nmain.main()\n\t_testmain.go:47 +0x8d\n", theirs, "the program crashed outside the explored schedule"},
		{"memory", "fatal error: runtime: out of memory\n\nruntime stack:\nruntime.throw({0x59f95b?})\n\t/go/src/runtime/panic.go:1233\n",
			unclear, "If it does not do so under go test"},
		{"C", "fatal error: unexpected signal during runtime execution\n[signal SIGSEGV: segmentation violation]\n\nruntime stack:\n" +
			"runtime.throw({0x59f95b?})\n\t/go/src/runtime/panic.go:1233\n\ngoroutine 7 [syscall]:\n" +
			"runtime.cgocall(0x4, 0xc)\n\t/go/src/runtime/cgocall.go:167\nexample.com/bank._Cfunc_crash()\n\t_cgo_gotypes.go:45\n" + point,
			unclear, "If it does not do so under go test"},
		{"os.Exit", "what the test has printed\n", none, "does it call os.Exit?"},
	} {
		r := &result{output: c.output}
		if got := r.crash(); got != c.whose {
			t.Errorf("%s: it is taken for %d, want %d", c.what, got, c.whose)
		}
		if r.died(nil); !strings.Contains(r.broken, c.says) {
			t.Errorf("%s: %s", c.what, r.broken)
		}
	}
}

// A build error is a bug in coir only if it is in a package of the standard library.
func TestTheLibraryDoesNotBuild(t *testing.T) {
	for out, want := range map[string]bool{
		"# runtime\n/usr/local/go/src/runtime/coir.go:17:2: undefined: x\n":          true,
		"# internal/sync\nmutex.go:17:2: undefined: x\n":                             true,
		"# internal/search\ndpor.go:17:2: undefined: x\n":                            true,
		"# internal/replay\ntwin.go:17:2: undefined: x\n":                            true,
		"# example.com/bank [example.com/bank.test]\n./a_test.go:17: undefined: x\n": false,
		"# example.com/runtime\n./a.go:17: undefined: x\n":                           false,
	} {
		if got := libraryBroken(out); got != want {
			t.Errorf("%v for %s", got, out)
		}
	}
}

// A Go release with other sources is reported as not supported, and nothing is run.
func TestAnotherGo(t *testing.T) {
	tool, err := toolchain(t.Context(), &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	link := func(below string, except string) {
		t.Helper()
		entries, err := os.ReadDir(filepath.Join(tool.root, below))
		if err := errors.Join(err, os.MkdirAll(filepath.Join(root, below), 0o777)); err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if e.Name() == except {
				continue
			}
			if err := os.Symlink(filepath.Join(tool.root, below, e.Name()), filepath.Join(root, below, e.Name())); err != nil {
				t.Skip(err)
			}
		}
	}
	link("", "src")
	link("src", "runtime")
	link("src/runtime", "select.go")
	text, err := os.ReadFile(filepath.Join(tool.root, "src/runtime/select.go"))
	if err != nil {
		t.Fatal(err)
	}
	text = bytes.ReplaceAll(text, []byte("pass 1 - look for something already waiting"), []byte("pass one"))
	if err := os.WriteFile(filepath.Join(root, "src/runtime/select.go"), text, 0o666); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOROOT", root)
	var out, errs bytes.Buffer
	code := run([]string{"test", "./testdata/bank"}, &out, &errs)
	for _, want := range []string{"is not supported yet: runtime/select.go is not as expected", "a limit of coir test", "report it"} {
		if code != 2 || out.Len() > 0 || !strings.Contains(errs.String(), want) {
			t.Errorf("exit code %d, and no %q in\n%s%s", code, want, &out, &errs)
		}
	}
}

// A goroutine may lose the turn between its point and its operation: arrows follow the operations.
func TestArrowsFollowTheOrderOfOperations(t *testing.T) {
	const g, h, k = 3, 4, 5
	r := &record{tested: new(tested), failure: &failure{}, steps: 10, actors: map[int]*actor{
		g: {id: g, state: coir.Ended}, h: {id: h, state: coir.Ended}, k: {id: k, state: coir.Waiting, wait: coir.WaitRecv},
	}}
	for i, s := range []step{
		{g: g, op: coir.OpSend, object: 1, done: 2}, // its point comes first, its send second
		{g: h, op: coir.OpSend, object: 1, done: 1},
		{g: k, op: coir.OpRecv, object: 1, done: 3},
		{g: k, op: coir.OpRecv, object: 1, done: 4},
		{g: h, op: coir.OpLock, object: 2, done: 6},
		{g: g, op: coir.OpLock, object: 2, done: 5},
		{g: g, op: coir.OpUnlock, object: 2, done: 7},
		{g: h, op: coir.OpUnlock, object: 2, done: 8},
		{g: k, op: coir.OpRecv, object: 1, chose: -1, done: 9},
		{g: k, op: coir.OpRecv, object: 1, done: 10, last: true}, // waits at the end
	} {
		s.n = i + 1
		r.known = append(r.known, s)
	}
	arrows := func() (all [][2]int) {
		r.end, r.columnOf = nil, nil
		tr := r.ending("/p")
		r.draw(tr, "/p")
		for _, a := range tr.Arrows {
			all = append(all, [2]int{tr.Steps[a.From].Number, tr.Steps[a.To].Number})
		}
		return all
	}
	if got, want := arrows(), [][2]int{{2, 3}, {1, 4}, {7, 5}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if locks := r.locks(); len(locks[2].Holders()) != 0 {
		t.Errorf("%+v is held, want not held", locks[2])
	}
	r.steps = 11 // the first is not known
	if got, want := arrows(), [][2]int{{7, 5}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// A Lock waited if another goroutine certainly held the lock when it began. If another goroutine was about to get the
// lock, the Lock may have come first.
func TestLocksThatWaited(t *testing.T) {
	const a, b, c = 2, 3, 4
	r := &record{tested: new(tested), failure: &failure{}, steps: 20, actors: map[int]*actor{c: {id: c, state: coir.Waiting}}}
	for i, s := range []step{
		{g: a, op: coir.OpLock, object: 1},
		{g: b, op: coir.OpLock, object: 1, via: "waits"},
		{g: a, op: coir.OpUnlock, object: 1},
		{g: a, op: coir.OpLock, object: 1}, // b may have the lock, or a again
		{g: b, op: coir.OpUnlock, object: 1},
		{g: a, op: coir.OpUnlock, object: 1},
		{g: a, op: coir.OpRLock, object: 2},
		{g: b, op: coir.OpRLock, object: 2},
		{g: c, op: coir.OpWLock, object: 2, via: "waits"},
		{g: a, op: coir.OpRUnlock, object: 2},
		{g: b, op: coir.OpRUnlock, object: 2},
		{g: c, op: coir.OpWUnlock, object: 2},
		{g: a, op: coir.OpTryLock, object: 3},
		{g: a, op: coir.OpLock, object: 3},
		{g: b, op: coir.OpLock, object: 3}, // it is not known who holds it
		{g: a, op: coir.OpLock, object: 4},
		{g: c, op: coir.OpLock, object: 4, last: true}, // waits at the end, which is told otherwise
	} {
		s.n, s.done = i+1, i+1
		r.known = append(r.known, s)
	}
	r.locks()
	for _, s := range r.known {
		if s.waited != (s.via == "waits") {
			t.Errorf("step %d: waited is %v", s.n, s.waited)
		}
	}
}

// Goroutines that wait for the same thing at the same line share a line, with the shortest and the longest time.
func TestGoroutinesThatWaitForTheSame(t *testing.T) {
	r := &record{tested: new(tested), failure: &failure{now: time.Minute}, actors: map[int]*actor{}}
	for i := range 5 {
		r.actors[i+2] = &actor{
			id: i + 2, at: place{"/p/a_test.go", 7, "p.f"}, made: place{"/p/a_test.go", 3, "p.g"}, state: coir.Waiting,
			wait: coir.WaitLock, op: coir.OpLock, object: 1, since: time.Minute - time.Duration(i)*time.Second,
		}
	}
	r.actors[6].object = 2
	var b strings.Builder
	r.waiters(&b, "/p")
	got := b.String()
	if want := "a_test.go:3 (1..4) wait to lock mutex#1, at a_test.go:7 (4 goroutines), for 0s to 3s\n" +
		"a_test.go:3 (5) waits to lock mutex#2, at a_test.go:7, for 4s\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// The last line counts the schedules that searched for failures separately from those that shrank them.
func TestShrinkingIsCountedApart(t *testing.T) {
	for _, c := range []struct {
		outcome   coir.Verdict
		schedules int
		f         *failure
		want      int
	}{
		{coir.VerdictPass, 41, nil, 41},
		{coir.VerdictFail, 41, &failure{kind: coir.KindDeadlock, schedule: 17}, 17},
		{coir.VerdictFail, 41, &failure{kind: coir.KindLeak, schedule: 17}, 41},
		{coir.VerdictFail, 1, &failure{kind: coir.KindFail, schedule: 17}, 1},
	} {
		r := result{record: record{failure: c.f}, outcome: c.outcome, tally: tally{schedules: c.schedules}}
		if got := r.explored(); got != c.want {
			t.Errorf("%s after %d schedules with failure %+v: %d, want %d", c.outcome, c.schedules, c.f, got, c.want)
		}
	}
}
