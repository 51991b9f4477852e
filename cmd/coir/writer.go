package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
	"github.com/coir-go/coir/cmd/coir/internal/events"
	"github.com/coir-go/coir/internal/chart"
)

// writer prints results in the form of go test.
type writer struct {
	mu      sync.Mutex
	out     io.Writer
	o       *options
	tty     bool
	width   int // of reports
	lastBar time.Time
	bar     bool
	leaks   map[string]string // by package and go statement: the first test whose report names the statement

	failedBuilds map[string]bool // packages whose events have been printed
	tests        int             // tests in the packages that are finished

	suites  *suites
	shrinks *shrinks        // may be nil
	text    strings.Builder // what has been printed about the current test
}

func newWriter(out io.Writer, o *options) *writer {
	w := &writer{out: out, o: o, failedBuilds: map[string]bool{}, leaks: map[string]string{}, suites: newSuites(o)}
	w.tty, w.width = !o.json && isTerminal(out), reportWidth
	n, _ := strconv.Atoi(os.Getenv("COLUMNS"))
	if f, ok := out.(*os.File); ok && w.tty {
		n = cmp.Or(terminalWidth(f), n)
	}
	if n > 0 {
		w.width = max(n, leastReportWidth)
	}
	return w
}

// reportWidth is the width of the tables of a report if neither a terminal nor the variable COLUMNS says it, and
// leastReportWidth the smallest one.
const reportWidth, leastReportWidth = 120, 80

// isTerminal reports whether w is a terminal, or at least a device.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

func (w *writer) event(e events.Event) {
	e.Time = time.Now()
	b, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	_, _ = fmt.Fprintf(w.out, "%s\n", b)
}

// line writes a text of whole lines. With -json it writes an output event for each line, as go test does, because tools
// expect no other lines in an event that begins with "--- FAIL".
func (w *writer) line(p *pkg, test, format string, args ...any) {
	w.shrinks.clear()
	text := fmt.Sprintf(format, args...)
	w.text.WriteString(text)
	if w.o.json {
		for line := range strings.Lines(text) {
			w.event(events.Event{Action: "output", Package: p.ImportPath, Test: test, Output: line})
		}
		return
	}
	if w.bar {
		_, _ = io.WriteString(w.out, "\r\x1b[K")
		w.bar = false
	}
	_, _ = io.WriteString(w.out, text)
}

// start prints the start event of a package, after the events of its build.
func (w *writer) start(b *built) {
	if !w.o.json {
		return
	}
	if !w.failedBuilds[b.failed] { // like go test, report once that an imported package cannot be built
		for _, e := range b.events {
			_, _ = io.WriteString(w.out, e)
		}
	}
	if b.failed != "" {
		w.failedBuilds[b.failed] = true
	}
	w.event(events.Event{Action: "start", Package: b.p.ImportPath})
}

// began prints the run event of a test.
func (w *writer) began(p *pkg, test string) {
	if w.o.json {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.event(events.Event{Action: "run", Package: p.ImportPath, Test: test})
		w.line(p, test, "=== RUN   %s\n", test)
	}
}

// cutShort prints that a test was interrupted.
func (w *writer) cutShort(p *pkg, test string, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.line(p, test, "--- INTERRUPTED: %s (%.2fs)\n", test, took.Seconds())
	w.suites.without(p, test, "interrupted", "", took)
}

func (w *writer) noTests(p *pkg) {
	w.start(&built{p: p})
	w.line(p, "", "?   \t%s\t[no test files]\n", p.ImportPath)
	if w.o.json {
		w.event(events.Event{Action: "skip", Package: p.ImportPath})
	}
}

func (w *writer) notBuilt(b *built) {
	w.start(b)
	if !w.o.json || b.events == nil {
		w.line(b.p, "", "%s\n", strings.TrimSpace(b.output))
	}
	w.line(b.p, "", "FAIL\t%s [%s]\n", b.p.ImportPath, b.why)
	w.suites.without(b.p, "", b.why, b.output, 0)
	if w.o.json {
		w.event(events.Event{Action: "fail", Package: b.p.ImportPath, FailedBuild: b.failed})
	}
}

// listed prints the names of tests, or the error if they could not be listed. It reports whether there was an error.
func (w *writer) listed(p *pkg, names string, err error, took time.Duration) (failed bool) {
	verdict, action := "ok  ", "pass"
	if err != nil {
		verdict, action = "FAIL", "fail"
		w.suites.without(p, "", "tests cannot be listed", names, took)
	}
	if names != "" {
		w.line(p, "", "%s\n", strings.TrimSuffix(names, "\n"))
	}
	w.line(p, "", "%s\t%s\t%.3fs\n", verdict, p.ImportPath, took.Seconds())
	if w.o.json {
		w.event(events.Event{Action: action, Package: p.ImportPath, Elapsed: took.Seconds()})
	}
	return err != nil
}

// progress stores the result of test i, and prints it if it is final. On a terminal it also shows how many tests of the
// package are done.
func (w *writer) progress(p *pkg, results []*result, i int, r *result, final bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if results[i] = r; final {
		w.printOnce(p, r)
	}
	if !w.tty || time.Since(w.lastBar) < 200*time.Millisecond {
		return
	}
	w.lastBar, w.bar = time.Now(), true
	done, schedules := 0, 0
	for _, r := range results {
		if r != nil {
			done++
			schedules += r.schedules
		}
	}
	_, _ = fmt.Fprintf(w.out, "\r\x1b[K...  \t%s\t%d of %d tests, %s schedules", p.ImportPath, done, len(results),
		chart.Grouped(schedules))
}

// printOnce prints the result of a test, unless that has been printed.
func (w *writer) printOnce(p *pkg, r *result) {
	if !r.printed {
		r.printed = true
		r.failed = w.test(p, r)
	}
}

// finished prints the result of a package, and reports whether the package failed.
func (w *writer) finished(p *pkg, results []*result, took time.Duration) (failed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range results {
		if r != nil {
			w.printOnce(p, r)
		}
	}
	n := totalsOf(results)
	w.tests += len(results)
	verdict, action := "ok  ", "pass"
	switch {
	case n.fails():
		verdict, action = "FAIL", "fail"
	case w.o.replay != "" && len(results) == 0: // a replay that runs nothing shows nothing
		verdict, action = "?   ", "skip"
	}
	w.suites.finished(p, verdict, took)
	if n.missing > 0 {
		w.suites.finished(p, "interrupted", took)
	}
	for _, r := range results {
		if r == nil || r.outcome != coir.VerdictPass {
			continue
		}
		if text := w.recoveredNote(p, r); text != "" {
			w.line(p, "", "note: %s: %s\n", r.test, text)
		}
	}
	if text := w.fewNote(p, results); text != "" {
		w.line(p, "", "note: %s\n", text)
	}
	if !w.o.atomicPoints() && n.schedules > n.tests && p.usesAtomics() {
		w.line(p, "", "note: %s\n", atomicsHint)
	}
	w.line(p, "", "%s\t%s\t%s\n", verdict, p.ImportPath, n.text(w.within(), took))
	if w.o.json {
		w.event(events.Event{Action: action, Package: p.ImportPath, Elapsed: took.Seconds()})
	}
	return n.fails()
}

// printed is what the writer has printed of the result of a test.
type printed struct {
	action        string // pass, fail or skip
	failure, slow *events.Failure
}

// test prints the result of a test, and reports whether the test failed.
func (w *writer) test(p *pkg, r *result) (failed bool) {
	w.text.Reset()
	verdict := w.verdict(r)
	of := w.print(p, r, verdict)
	var notes []string
	if w.few(r) {
		notes = append(notes, w.fewText(p, r, strconv.Itoa(r.schedules), ""))
	}
	if text := w.recoveredNote(p, r); text != "" && of.action == "pass" {
		notes = append(notes, text)
	}
	note := strings.Join(notes, "\n")
	if of.action == "pass" && of.slow != nil {
		w.suites.slow(p, r, of.slow, note)
	} else {
		w.suites.test(p, r, of.action, verdict, of.failure, w.text.String(), note)
	}
	if w.o.json {
		w.event(events.Event{Action: of.action, Package: p.ImportPath, Test: r.test, Elapsed: r.elapsed.Seconds(),
			Failure: of.failure, Slow: of.slow, Schedules: r.explored(), Shrinking: r.schedules - r.explored(), Racing: r.racing,
			Note: note, Complete: r.complete, Trace: r.trace, Outside: r.outside, Uncontrolled: r.uncontrolled})
	}
	return of.action == "fail"
}

// verdict returns the outcome of a test, as the flags judge it.
func (w *writer) verdict(r *result) coir.Verdict {
	switch {
	case w.o.strict && (r.outcome == coir.VerdictUncontrolled || r.outcome == coir.VerdictLong),
		w.o.strict && r.outcome == coir.VerdictPass && (r.uncontrolled > 0 || r.stopped || r.once != nil):
		return coir.VerdictStrict
	case w.o.replay != "" && r.outcome == coir.VerdictPass:
		return coir.VerdictHealed
	}
	return r.outcome
}

// print prints the lines about a test.
func (w *writer) print(p *pkg, r *result, verdict coir.Verdict) printed {
	switch verdict {
	case coir.VerdictPass, coir.VerdictSkip:
		return w.printPassed(p, r)
	case coir.VerdictSimulates:
		return w.printSimulated(p, r)
	case coir.VerdictUncontrolled, coir.VerdictLong:
		if w.o.printsAll() {
			w.line(p, r.test, "--- SKIP: %s (%.2fs)\n%s", r.test, r.elapsed.Seconds(), indent(r.notControlled(p.Dir)))
		}
		return printed{action: "skip"}
	case coir.VerdictFail:
		return w.printFailed(p, r)
	}
	remark, why := "", ""
	switch verdict {
	case coir.VerdictHealed:
		why = indent(healedText + "\n" + healedWhy)
	case coir.VerdictStrict:
		remark, why = w.ran(r)+", ", indent(r.notControlled(p.Dir))
	case coir.VerdictNever:
		remark = w.ran(r) + ", "
		for _, name := range r.never {
			why += "    never true in these schedules: " + name + "\n"
		}
	case coir.VerdictChanged:
		why = indent(w.changed(p, r))
	default:
		why = "    " + r.broken + "\n" + indent(tail(plain(r.output), 60))
	}
	w.line(p, r.test, "--- FAIL: %s (%s%.2fs)\n%s", r.test, remark, r.elapsed.Seconds(), why)
	return printed{action: "fail"}
}

// printPassed prints about a test that passes or skips itself.
func (w *writer) printPassed(p *pkg, r *result) printed {
	of := printed{action: "pass"}
	if r.outcome == coir.VerdictSkip {
		of.action = "skip"
	}
	if r.slow != nil && (w.o.printsAll() || w.suites.junit != "" || w.suites.github) {
		of.slow = w.described(p, r.slow)
	}
	if !w.o.printsAll() {
		return of
	}
	w.line(p, r.test, "--- %s: %s (%s, %.2fs)\n", strings.ToUpper(of.action), r.test, w.ran(r), r.elapsed.Seconds())
	if r.left > 0 {
		w.line(p, r.test, "%s", indent(r.leftBehind(p.Dir)))
	}
	if r.uncontrolled > 0 || r.stopped {
		w.line(p, r.test, "%s", indent(r.notControlled(p.Dir)))
	}
	if r.once != nil {
		w.line(p, r.test, "%s", indent(r.once.failedOnce(p.Dir)))
	}
	if of.slow != nil {
		w.line(p, r.test, "%s", indent(slowNote(of.slow)))
	}
	return of
}

// printSimulated prints about a test that explores schedules itself, as go test does.
func (w *writer) printSimulated(p *pkg, r *result) printed {
	of := printed{action: "pass"}
	switch {
	case r.failed:
		of.action = "fail"
	case strings.Contains(r.output, "\n--- SKIP: "+r.test+" ("):
		of.action = "skip"
	}
	if r.failed || w.o.printsAll() {
		w.line(p, r.test, "%s", withoutVerdict(r.output))
	}
	return of
}

// printFailed prints about a test with a failing schedule.
func (w *writer) printFailed(p *pkg, r *result) printed {
	of := printed{action: "fail", failure: w.failed(p, &r.record)}
	f, seconds := of.failure, r.elapsed.Seconds()
	if test := w.leakPrinted(p, r); test != "" && !w.o.verbose {
		w.line(p, r.test, "--- FAIL: %s (%.2fs)\n    %s: see %s, and -v\n", r.test, seconds, f.Headline, test)
		return of
	}
	w.line(p, r.test, "--- FAIL: %s (%.2fs)\n    %s\n%s", r.test, seconds, f.Headline, indent(f.Report))
	if log := r.outputs(60); log != "" {
		w.line(p, r.test, "    its output:\n%s", indent(indent(log)))
	}
	if f.Chart != "" {
		w.line(p, r.test, "    chart: %s\n", f.Chart)
	}
	w.keepFailure(p, r, f)
	if f.Replay != "" {
		w.line(p, r.test, "    replay: %s\n", f.Replay)
	}
	return of
}

// leakPrinted returns a test of the package whose report already names the go statements of the goroutines that this
// test left behind. If there is no such test, or this test failed in another way, leakPrinted returns "".
func (w *writer) leakPrinted(p *pkg, r *result) (test string) {
	if r.failure.kind != coir.KindLeak {
		return ""
	}
	lines, new := r.goLines(), false
	for _, line := range lines {
		by, ok := w.leaks[p.ImportPath+" "+line]
		if !ok {
			new = true
			w.leaks[p.ImportPath+" "+line] = r.test
			continue
		}
		test = by
	}
	if new {
		return ""
	}
	return test
}

// failed returns the failure of a test in the format of -json. With -html, it also writes its chart.
func (w *writer) failed(p *pkg, r *record) *events.Failure {
	f := w.described(p, r)
	if w.o.html != "" {
		path, err := r.page(w.o.html, p.Dir, f.Replay)
		if err != nil {
			w.line(p, r.test, "coir test: the chart cannot be written: %v\n", err)
		} else {
			f.Chart = path
		}
	}
	return f
}

// described returns the failure of a test, or how a test that passes may fail, in the format of -json.
func (w *writer) described(p *pkg, r *record) *events.Failure {
	t := r.ending(p.Dir)
	f := &events.Failure{
		Kind: string(r.failure.kind), Text: r.failure.text, Headline: r.headline(), Waits: []events.Wait{},
		Token:    r.failure.token,
		Schedule: r.failure.schedule, Steps: r.steps, Switches: r.failure.switches,
		Report: r.report(p.Dir, w.width-len("    ")),
		Stable: r.failure.stable, OutsideSeen: r.failure.outside > 0,
	}
	for _, w := range t.Waiting {
		a := r.columnOf[w.Actor]
		x := events.Wait{
			Goroutine: t.Of[w.Actor].Name, For: w.Does, File: a.at.file, Line: a.at.line,
			Since: a.since.Seconds(), Elapsed: r.lasted(w).Seconds(),
		}
		for _, wish := range w.Wishes {
			for _, h := range wish.By {
				x.HeldBy = append(x.HeldBy, t.Of[h.Actor].Name)
			}
		}
		f.Waits = append(f.Waits, x)
	}
	if r.failure.kind == coir.KindLeak {
		for _, l := range r.leftFrom() {
			f.Left = append(f.Left, events.Left{Started: l.started, Count: l.count})
		}
	}
	if who := t.FindCycle(); len(who) > 0 {
		for _, i := range append(slices.Clone(who), who[0]) {
			f.Cycle = append(f.Cycle, t.Of[i].Name)
		}
	}
	if f.Token != "" {
		f.Replay = w.command(p, r) + " -replay " + f.Token
	}
	return f
}
