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

// writer tells the user, in the form that go test has.
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
	Complete  bool   `json:",omitempty"` // the strategy has run all schedules that it is there to run
	Trace     string `json:",omitempty"` // what they all did, as a hash
}

// told is a failure in -json.
type told struct {
	Kind, Text, Token   string
	Schedule, Switches  int
	Report              string
	Replay              string
	Stable, OutsideSeen bool
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

// progress shows on a terminal how far a package is.
func (w *writer) progress(p *pkg, results []*result, all int) {
	w.mu.Lock()
	defer w.mu.Unlock()
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
	_, _ = fmt.Fprintf(w.out, "\r\x1b[K...  \t%s\t%d of %d tests, %s schedules", p.ImportPath, done, all, thousands(schedules))
}

// finished tells of a package. It reports whether it has failed.
func (w *writer) finished(p *pkg, results []*result, took time.Duration) (failed bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	tests, schedules, skipped, uncontrolled, left := 0, 0, 0, 0, 0
	for _, r := range results {
		if r == nil {
			continue // interrupted
		}
		tests++
		schedules += r.schedules
		if r.left > 0 && r.outcome == "pass" {
			left++
		}
		switch r.outcome {
		case "skip":
			skipped++
		case "uncontrolled", "long":
			uncontrolled++
		}
		if w.test(p, r) {
			failed = true
		}
	}
	text := count(tests, "test") + ", " + count(schedules, "schedule")
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
	w.line(p, "", "%s\t%s\t%s, %.1f s\n", verdict, p.ImportPath, text, took.Seconds())
	if w.o.json {
		w.event(event{Action: map[bool]string{false: "pass", true: "fail"}[failed], Package: p.ImportPath, Elapsed: took.Seconds()})
	}
	return failed
}

// test tells of a test. It reports whether it has failed.
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
			w.line(p, r.test, "--- %s: %s (%s, %.2fs)\n", strings.ToUpper(action), r.test, count(r.schedules, "schedule"), seconds)
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
		report := r.report(p.Dir)
		replay := fmt.Sprintf("coir test %s%s -run '%s' -replay %s", flags(w.o), p.ImportPath, r.pattern(), r.failure.token)
		if r.failure.token == "" {
			replay = ""
		}
		w.line(p, r.test, "--- FAIL: %s (%.2fs)\n    %s\n%s", r.test, seconds, r.headline(), indent(report))
		for _, log := range []string{r.log, r.shown} { // what the test says is not lost among what it prints
			if log = strings.TrimSpace(log); log != "" {
				w.line(p, r.test, "    its output:\n%s", indent(indent(tail(log, 60))))
			}
		}
		w.line(p, r.test, "    replay: %s\n", replay)
		f = &told{
			Kind: r.failure.kind, Text: r.failure.text, Token: r.failure.token, Schedule: r.failure.schedule,
			Switches: r.failure.switches, Report: report, Replay: replay, Stable: r.failure.stable,
			OutsideSeen: r.failure.outside > 0,
		}
	default:
		action, failed = "fail", true
		w.line(p, r.test, "--- FAIL: %s (%.2fs)\n    %s\n%s", r.test, seconds, r.broken, indent(tail(r.output, 60)))
	}
	if w.o.json {
		w.event(event{Action: action, Package: p.ImportPath, Test: r.test, Elapsed: seconds, Failure: f,
			Schedules: r.schedules, Complete: r.complete, Trace: r.trace})
	}
	return failed
}

// flags are those that a replay needs as well.
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

// tail is the last n lines of a text.
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
