package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

// writer prints results in the form of go test.
type writer struct {
	mu      sync.Mutex
	out     io.Writer
	o       *options
	tty     bool
	lastBar time.Time
	bar     bool
}

func newWriter(out io.Writer, o *options) *writer {
	w := &writer{out: out, o: o}
	if f, ok := out.(*os.File); ok && !o.json {
		if st, err := f.Stat(); err == nil {
			w.tty = st.Mode()&os.ModeCharDevice != 0
		}
	}
	return w
}

// event is a line of -json, in the form of go test -json.
type event struct {
	Time    time.Time
	Action  string
	Package string
	Test    string  `json:",omitempty"`
	Elapsed float64 `json:",omitempty"`
	Output  string  `json:",omitempty"`
	Failure *told   `json:",omitempty"`

	// Of a test.
	Schedules int    `json:",omitempty"`
	Complete  bool   `json:",omitempty"` // the strategy has run all its schedules
	Trace     string `json:",omitempty"` // what they all did, as a hash
}

// told is a failure in the output of -json.
type told struct {
	Kind        string // deadlock, panic, fail, leak, livelock, race
	Text        string // of a panic
	Headline    string
	Waits       []toldWait
	Cycle       []string `json:",omitempty"` // names of goroutines, the first again at the end
	Schedule    int      // that found it
	Steps       int
	Switches    int    // of the reported schedule
	Stable      bool   // it failed again with the same decisions
	OutsideSeen bool   // something came from outside
	Token       string // empty if there is none
	Replay      string // the command
	Report      string // the text
	Chart       string `json:",omitempty"` // the file
}

// toldWait is a goroutine that waits at the end.
type toldWait struct {
	Goroutine string
	For       string   // waits to lock mutex#3
	HeldBy    []string `json:",omitempty"` // goroutines
	File      string   `json:",omitempty"`
	Line      int      `json:",omitempty"`
	Since     float64  // when it began, in seconds of virtual time since the schedule began
	Elapsed   float64  // how long before the end that was
}

func (w *writer) event(e event) {
	e.Time = time.Now()
	b, err := json.Marshal(e)
	if err != nil {
		panic(err)
	}
	_, _ = fmt.Fprintf(w.out, "%s\n", b)
}

// line writes a line, or an output event.
func (w *writer) line(p *pkg, test, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if w.o.json {
		w.event(event{Action: "output", Package: p.ImportPath, Test: test, Output: text})
		return
	}
	if w.bar {
		_, _ = io.WriteString(w.out, "\r\x1b[K")
		w.bar = false
	}
	_, _ = io.WriteString(w.out, text)
}

func (w *writer) noTests(p *pkg) {
	w.line(p, "", "?   \t%s\t[no test files]\n", p.ImportPath)
	if w.o.json {
		w.event(event{Action: "skip", Package: p.ImportPath})
	}
}

func (w *writer) notBuilt(p *pkg, output string) {
	w.line(p, "", "%s\n", strings.TrimSpace(output))
	w.line(p, "", "FAIL\t%s [build failed]\n", p.ImportPath)
	if w.o.json {
		w.event(event{Action: "fail", Package: p.ImportPath})
	}
}

// progress takes the result of test i. If the result is final it prints it, and on a terminal how far the package is.
func (w *writer) progress(p *pkg, results []*result, i int, r *result, final bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if results[i] = r; final {
		w.tell(p, r)
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
		thousands(schedules))
}

// tell prints the result of a test, once.
func (w *writer) tell(p *pkg, r *result) {
	if !r.told {
		r.told = true
		r.failed = w.test(p, r)
	}
}

// finished prints the result of a package, and reports whether the package failed.
func (w *writer) finished(p *pkg, results []*result, took time.Duration) (failed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	tests, schedules, skipped, uncontrolled, left, all := 0, 0, 0, 0, 0, 0
	for _, r := range results {
		if r == nil {
			continue // interrupted
		}
		tests++
		schedules += r.schedules
		all += r.all
		if r.left > 0 && r.outcome == "pass" {
			left++
		}
		switch r.outcome {
		case "skip":
			skipped++
		case "uncontrolled", "long":
			uncontrolled++
		}
		w.tell(p, r)
		failed = failed || r.failed
	}
	text := count(tests, "test") + ", " + count(schedules, "schedule")
	if tests > 0 && all == schedules {
		text = count(tests, "test") + ", all " + count(schedules, "schedule") + w.within()
	}
	for _, n := range []struct {
		n    int
		what string
	}{{skipped, "skipped"}, {uncontrolled, "not controlled"}, {left, "with goroutines left behind"}} {
		if n.n > 0 {
			text += fmt.Sprintf(", %d %s", n.n, n.what)
		}
	}
	verdict := "ok  "
	if failed {
		verdict = "FAIL"
	}
	if tests == 0 && !failed {
		text = "[no tests to run]"
	} else {
		text += fmt.Sprintf(", %.1f s", took.Seconds())
	}
	w.line(p, "", "%s\t%s\t%s\n", verdict, p.ImportPath, text)
	if w.o.json {
		action := map[bool]string{false: "pass", true: "fail"}[failed]
		w.event(event{Action: action, Package: p.ImportPath, Elapsed: took.Seconds()})
	}
	return failed
}

// test prints the result of a test, and reports whether the test failed.
func (w *writer) test(p *pkg, r *result) (failed bool) {
	seconds := r.elapsed.Seconds()
	action := "pass"
	var f *told
	switch r.outcome {
	case "pass", "skip":
		if r.outcome == "skip" {
			action = "skip"
		}
		if w.o.verbose {
			w.line(p, r.test, "--- %s: %s (%s, %.2fs)\n", strings.ToUpper(action), r.test, w.ran(r), seconds)
			if r.left > 0 {
				w.line(p, r.test, "%s", indent(r.leftBehind(p.Dir)))
			}
		}
	case "uncontrolled", "long":
		if w.o.verbose {
			w.line(p, r.test, "--- SKIP: %s (%.2fs)\n%s", r.test, seconds, indent(r.notControlled(p.Dir)))
		}
		action = "skip"
	case "fail":
		action, failed = "fail", true
		f = w.failed(p, r)
		w.line(p, r.test, "--- FAIL: %s (%.2fs)\n    %s\n%s", r.test, seconds, f.Headline, indent(f.Report))
		for _, log := range []string{r.log, r.shown} { // first what the test logs, then what it prints
			if log = r.said(log); log != "" {
				w.line(p, r.test, "    its output:\n%s", indent(indent(tail(log, 60))))
			}
		}
		if f.Chart != "" {
			w.line(p, r.test, "    chart: %s\n", f.Chart)
		}
		if f.Replay != "" {
			w.line(p, r.test, "    replay: %s\n", f.Replay)
		}
	default:
		action, failed = "fail", true
		w.line(p, r.test, "--- FAIL: %s (%.2fs)\n    %s\n%s", r.test, seconds, r.broken, indent(tail(plain(r.output), 60)))
	}
	if w.o.json {
		w.event(event{Action: action, Package: p.ImportPath, Test: r.test, Elapsed: seconds, Failure: f,
			Schedules: r.schedules, Complete: r.complete, Trace: r.trace})
	}
	return failed
}

// failed returns a failure for -json.
func (w *writer) failed(p *pkg, r *result) *told {
	names := r.names()
	waits := r.waits(names, p.Dir)
	f := &told{
		Kind: r.failure.kind, Text: r.failure.text, Headline: r.headline(), Waits: []toldWait{}, Token: r.failure.token,
		Schedule: r.failure.schedule, Steps: r.failure.steps, Switches: r.failure.switches, Report: r.report(p.Dir),
		Stable: r.failure.stable, OutsideSeen: r.failure.outside > 0,
	}
	for _, a := range waits {
		t := toldWait{
			Goroutine: names[a.id], For: a.what, File: a.at.file, Line: a.at.line,
			Since: a.since.Seconds(), Elapsed: a.elapsed.Seconds(),
		}
		for _, s := range a.by {
			t.HeldBy = append(t.HeldBy, names[s.g])
		}
		f.Waits = append(f.Waits, t)
	}
	if who := cycle(waits); len(who) > 1 {
		f.Cycle = r.around(who, names)
	}
	if f.Token != "" {
		f.Replay = fmt.Sprintf("coir test %s%s -run '%s' -replay %s", flags(w.o), p.ImportPath, r.pattern(w.o.run), f.Token)
	}
	if w.o.html != "" {
		path, err := r.draw(w.o.html, p.Dir, f.Replay)
		if err != nil {
			w.line(p, r.test, "coir test: the chart cannot be written: %v\n", err)
		} else {
			f.Chart = path
		}
	}
	return f
}

// ran describes how many schedules of a test were run.
func (w *writer) ran(r *result) string {
	text := count(r.schedules, "schedule")
	switch {
	case r.complete && w.o.strategy == "dpor":
		if !w.o.atomics {
			return text + ", at least one of each order of operations on channels and locks"
		}
		return text + ", at least one of each order of operations that it knows to conflict"
	case r.all > 0 && r.complete:
		return "all " + text + w.within()
	case r.all > 0:
		return fmt.Sprintf("%s, among them all %s%s", text, thousands(r.all), w.within())
	}
	return text
}

// within describes how many preemptions the schedules of the exhaustive strategy have.
func (w *writer) within() string {
	if w.o.bound < 0 {
		return ""
	}
	return " with at most " + count(w.o.bound, "preemption")
}

// said returns what the test logged or printed, without the line that says that it failed.
func (r *result) said(log string) string {
	log = strings.TrimSpace(log)
	if first, rest, _ := strings.Cut(log, "\n"); strings.HasPrefix(first, "--- FAIL: "+r.test+" (") {
		log = strings.TrimSpace(rest)
	}
	return log
}

// plain returns the output of a process without the marks around a schedule.
func plain(output string) string {
	return strings.NewReplacer(beginOutput, "", endOutput, "").Replace(output)
}

// flags returns the flags that a replay needs as well.
func flags(o *options) string {
	text := ""
	for _, f := range o.build {
		text += f + " "
	}
	if o.short {
		text += "-short "
	}
	if o.atomics {
		text += "-atomics "
	}
	return text
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("    ")
		b.WriteString(line)
	}
	return b.String()
}

// tail returns the last n lines of a text.
func tail(text string, n int) string {
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n")+"\n", "\n")
	if len(lines) > n+1 {
		lines = append([]string{"...\n"}, lines[len(lines)-n-1:]...)
	}
	return strings.Join(lines, "")
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return thousands(n) + " " + what + "s"
}

func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
