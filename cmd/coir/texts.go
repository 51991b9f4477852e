package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
	"github.com/coir-go/coir/cmd/coir/internal/events"
	"github.com/coir-go/coir/internal/chart"
	"github.com/coir-go/coir/internal/report"
)

// This file contains the texts about a result that the writer prints, besides the report of a failure.

// command returns the command that explores a test.
func (w *writer) command(p *pkg, r *record) string {
	return fmt.Sprintf("coir test %s%s -run '%s'", flags(w.o), strings.Join(p.args(), " "), r.pattern(w.o.run))
}

// changed returns the text for a test that no longer does what it did when the token of -replay was made.
func (w *writer) changed(p *pkg, r *result) string {
	return changedText + "\nto explore the code as it is now: " + w.command(p, &r.record) + `
to keep a failure before you change the code: -save; coir test then begins with its schedule and similar ones
if the code is the same, something else has changed: the flags, the version of Go, the month, or what the test reads
`
}

const (
	healedText = "the schedule of the token does not fail"
	healedWhy  = "a failure may need the flags with which it was found, such as -race or -racing: " +
		"copy the whole line after replay:\n"
)

const changedText = "the code has changed since the token was made, so the token says nothing about the bug any more"

// ran describes how many schedules of a test were run, and in how many something came from outside.
func (w *writer) ran(r *result) string {
	text := w.explored(r)
	switch {
	case r.ofSaved == 1:
		text += ", the first of them saved in testdata/coir"
	case r.ofSaved > 1:
		text += fmt.Sprintf(", the first %s of them saved in testdata/coir", chart.Grouped(r.ofSaved))
	case r.ofToken > 0:
		text += ", the first of them that of explore.Replay"
	}
	if r.ofKept > 0 {
		text += fmt.Sprintf(", %s of them kept by -for", chart.Grouped(r.ofKept))
	}
	if r.skips > 0 && r.outcome != coir.VerdictSkip {
		text += fmt.Sprintf(", in %s of them it skips the rest", chart.Grouped(r.skips))
	}
	if r.outside > 0 {
		text += fmt.Sprintf(", something came from outside in %s of them", chart.Grouped(r.outside))
	}
	if r.onKernel != "" {
		text += ", on the kernel's network: " + r.onKernel
	}
	return text
}

func (w *writer) explored(r *result) string {
	text := report.Count(r.schedules, "schedule")
	switch {
	case r.seeds:
		return "its seeds, once"
	case r.complete && w.o.strategy == "dpor":
		if !w.o.atomicPoints() {
			return text + ", at least one of each order of operations on channels and locks"
		}
		return text + ", at least one of each order of operations that it knows to conflict"
	case r.all > 0 && r.complete:
		return "all " + text + w.within()
	case r.all > 0:
		text = fmt.Sprintf("%s, among them all %s%s", text, chart.Grouped(r.all), w.within())
	}
	switch {
	case r.racing > 0:
		text += fmt.Sprintf(", and %s as on a slow machine", chart.Grouped(r.racing))
	case r.noSlow:
		text += ", none as on a slow machine"
	}
	return text
}

// A test that passes after fewer than fewSchedules schedules has a note, if its time was up. Almost all bugs in
// docs/guide/coir-test-services.md are found in less than half as many schedules.
const fewSchedules = 500

// few reports whether a test passes after few of its schedules because its time was up. With -for it returns false:
// each round gives the test more time, and -schedules has no effect.
func (w *writer) few(r *result) bool {
	return r.outcome == coir.VerdictPass && r.timeUp && r.decided && r.schedules < fewSchedules && r.all == 0 &&
		!r.complete && w.o.total == 0
}

// fewNote returns the note about the tests of a package with few schedules, or "". Those with the fewest come first,
// because the command is for the first one only.
func (w *writer) fewNote(p *pkg, results []*result) string {
	var few []*result
	for _, r := range results {
		if r != nil && w.few(r) {
			few = append(few, r)
		}
	}
	if few == nil {
		return ""
	}
	slices.SortStableFunc(few, func(a, b *result) int { return cmp.Compare(a.schedules, b.schedules) })
	var names []string
	for _, r := range few {
		names = append(names, fmt.Sprintf("%s (%d)", r.test, r.schedules))
	}
	return w.fewText(p, few[0], "few", report.Names(names, 3))
}

// fewText returns the note about tests with few schedules, of which r is one. many is the number of schedules of r, or
// few. tests names the tests, or is empty.
func (w *writer) fewText(p *pkg, r *result, many, tests string) string {
	if tests != "" {
		tests = ": " + tests
	}
	return fmt.Sprintf("%s was enough for %s of %s schedules%s; to search longer: %s", shortTime(w.o.limit()), many,
		chart.Grouped(w.o.schedules), tests, w.longer(p, r))
}

// longer returns the command that explores a test again, for longer.
func (w *writer) longer(p *pkg, r *result) string {
	text := w.command(p, &r.record)
	if w.o.racing {
		text += " -racing"
	}
	if w.o.strategy != strategies[0].name {
		text += " -strategy " + w.o.strategy
	}
	return text + " -budget " + shortTime(max(2*time.Minute, 10*w.o.limit()))
}

const atomicsHint = "this package uses sync/atomic: -atomics explores those operations too"

// within describes how many preemptions the schedules of the exhaustive strategy have.
func (w *writer) within() string {
	if w.o.bound < 0 {
		return ""
	}
	return " with at most " + report.Count(w.o.bound, "preemption")
}

// outputs returns what the test has logged, and then what it has printed, but a text that is in both only once. It
// returns the last n lines of each.
func (r *record) outputs(n int) (text string) {
	log, printed := r.withoutFailLine(r.log), r.withoutFailLine(r.shown)
	if strings.Contains(printed, log) {
		log = ""
	}
	for _, of := range []string{log, printed} {
		if of != "" {
			text += tail(r.withRaceNames(of), n)
		}
	}
	return text
}

// withoutFailLine returns a log or an output of the test, without the line that says that the test failed, and without
// the indentation that all its lines have.
func (r *record) withoutFailLine(log string) string {
	log = strings.TrimRight(strings.TrimLeft(log, "\n"), " \t\n")
	if first, rest, _ := strings.Cut(log, "\n"); strings.HasPrefix(first, "--- FAIL: "+r.test+" (") {
		log = rest
	}
	least := len(log)
	for line := range strings.Lines(log) {
		if text := strings.TrimLeft(line, " "); strings.TrimSpace(text) != "" {
			least = min(least, len(line)-len(text))
		}
	}
	var b strings.Builder
	for line := range strings.Lines(log) {
		if len(line) >= least {
			line = line[least:]
		}
		b.WriteString(line)
	}
	return b.String()
}

// withoutVerdict returns the output of a test without the line PASS or FAIL, which is the result of the process.
func withoutVerdict(output string) string {
	lines := strings.SplitAfter(strings.TrimSuffix(output, "\n")+"\n", "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if last := strings.TrimSpace(lines[i]); last == "PASS" || last == "FAIL" {
			return strings.Join(append(lines[:i:i], lines[i+1:]...), "")
		}
	}
	return output
}

// plain returns the output of a process without the marks around a schedule.
func plain(output string) string {
	return strings.NewReplacer(beginOutput, "", endOutput, "").Replace(output)
}

// flags returns the other flags that a replay needs.
func flags(o *options) string {
	text := ""
	if o.chdir != "" {
		text = "-C " + o.chdir + " "
	}
	for _, f := range o.build {
		if strings.ContainsAny(f, " \t\"$;&|<>()*?[#~`\\") { // for the shell
			f = "'" + f + "'"
		}
		text += f + " "
	}
	if o.short {
		text += "-short "
	}
	if o.atomicPoints() {
		text += "-atomics "
	}
	if o.network == onKernelNet {
		text += "-network kernel "
	}
	if o.faults != "" {
		text += "-faults " + o.faults + " "
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

// slowNote returns the note about a test that passes, but may fail on a slow machine as f describes.
func slowNote(f *events.Failure) string {
	how := f.Replay
	if command, token, ok := strings.Cut(how, " -replay "); ok && len(token) > mostToken &&
		strings.HasSuffix(f.Headline, ", "+asFound) {
		how = command + " -racing, which fails with a report"
	}
	return "note: " + f.Headline + "\nto see how: " + how + "\n"
}

// mostToken is the length up to which a note has the token of a schedule that was not shrunk.
const mostToken = 200
