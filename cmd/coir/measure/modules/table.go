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
	"strconv"
	"strings"
)

// The classes of alarms, in the order of the table.
var classes = []string{
	"bug",   // a bug of the module outside of its tests
	"order", // the test relies on an order or a probability that Go does not guarantee
	"left",  // the test leaves a goroutine behind
	"time",  // the test relies on how long something takes
	"limit", // a limit of coir test
}

// verdict is a line of triage.txt.
type verdict struct {
	class string
	used  bool
}

// readTriage reads verdicts. A line has a package, tests separated by commas, a class, and a reason, which is only for
// readers. The keys of the result have the form "package test".
func readTriage(text string) (map[string]*verdict, error) {
	all := map[string]*verdict{}
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 0 || strings.HasPrefix(f[0], "#") {
			continue
		}
		if len(f) < 4 {
			return nil, fmt.Errorf("triage.txt: the line is too short: %s", line)
		}
		if !slices.Contains(classes, f[2]) {
			return nil, fmt.Errorf("triage.txt: unknown class %s: %s", f[2], line)
		}
		for name := range strings.SplitSeq(f[1], ",") {
			key := f[0] + " " + name
			if all[key] != nil {
				return nil, fmt.Errorf("triage.txt: there are two lines for %s", key)
			}
			all[key] = &verdict{class: f[2]}
		}
	}
	return all, nil
}

// event is a line of coir test -json, or of go test -json.
type event struct {
	Action, Package, Test, Output string
	Uncontrolled                  int // the number of schedules
	Failure                       *struct{ Kind, Text string }
}

func decode(text []byte) (all []event, err error) {
	for d := json.NewDecoder(bytes.NewReader(text)); d.More(); {
		var e event
		if err := d.Decode(&e); err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// test is the report of coir test about a test.
type test struct {
	pkg, name string
	outcome   string // clean, partly, skipped, uncontrolled, flagged, died
	kind      string // the kind of the alarm
	output    string
}

var schedulesLine = regexp.MustCompile(`([\d,]+) schedules?`)

// readEvents reads the output of coir test. It returns the tests, and the packages that were not run.
func readEvents(text []byte) (tests []*test, notRun []string, err error) {
	events, err := decode(text)
	output := map[string]string{}
	for _, e := range events {
		key := e.Package + " " + e.Test
		if e.Action == "output" {
			output[key] += e.Output
			continue
		}
		t := &test{pkg: e.Package, name: e.Test, output: output[key]}
		switch {
		case e.Action == "cut":
			notRun = append(notRun, "the rest: its time was over")
			continue
		case e.Test == "":
			if strings.Contains(t.output, "[build failed]") {
				notRun = append(notRun, e.Package)
			}
			continue
		case e.Action != "pass" && e.Action != "skip" && e.Action != "fail": // actions such as start, run, and those of builds
			continue
		case e.Action == "pass" && e.Uncontrolled > 0:
			t.outcome = "partly"
		case e.Action == "pass":
			t.outcome = "clean"
		case e.Action == "skip" && strings.Contains(t.output, "not controlled:"):
			t.outcome = "uncontrolled"
		case e.Action == "skip":
			t.outcome = "skipped"
		case e.Failure == nil && strings.Contains(t.output, "it did not end within -timeout"):
			t.outcome = "uncontrolled"
		case e.Failure == nil:
			t.outcome = "died"
		default:
			t.outcome, t.kind = "flagged", e.Failure.Kind
		}
		tests = append(tests, t)
	}
	return tests, notRun, err
}

// row is a line of the table.
type row struct {
	m                                        *module
	tests, clean, skipped, network, schedule int
	partly                                   int            // clean, except for schedules that are not controlled
	anyhow                                   int            // flagged without a verdict, but also fail under go test
	by                                       map[string]int // flagged, by class
	open                                     []string       // alarms without a verdict
	notRun                                   []string
}

// read returns the row of a module, and writes its alarms to files.
func (m *module) read(home string, verdicts map[string]*verdict) (*row, error) {
	r := &row{m: m, by: map[string]int{}}
	first, err := os.ReadFile(filepath.Join(home, "first.json"))
	if err != nil {
		return nil, err
	}
	tests, notRun, err := readEvents(first)
	if err != nil {
		return nil, err
	}
	r.notRun = notRun
	events, err := decode(first)
	if err != nil {
		return nil, err
	}
	for _, e := range events {
		if m := schedulesLine.FindStringSubmatch(e.Output); m != nil && e.Test == "" {
			n, _ := strconv.Atoi(strings.ReplaceAll(m[1], ",", ""))
			r.schedule += n
		}
	}
	second, _ := os.ReadFile(filepath.Join(home, "second.json"))
	more, _, err := readEvents(second)
	if err != nil {
		return nil, err
	}
	failsAnyhow, err := readPlain(filepath.Join(home, "plain.json"))
	if err != nil {
		return nil, err
	}
	alarms := filepath.Join(home, "alarms")
	if err := errors.Join(os.RemoveAll(alarms), os.MkdirAll(alarms, 0o777)); err != nil {
		return nil, err
	}
	for _, t := range tests {
		r.tests++
		switch t.outcome {
		case "clean":
			r.clean++
			continue
		case "partly":
			r.partly++
			continue
		case "skipped":
			r.skipped++
			continue
		}
		for _, u := range more { // failures found in addition to the leak
			if u.pkg == t.pkg && u.name == t.name && (u.outcome == "flagged" || u.outcome == "died") {
				t.output += "\nwith -leaks=false:\n" + u.output
				t.kind += " " + u.kind
			}
		}
		if t.outcome == "uncontrolled" && needsNetwork(t.output) {
			r.network++
			continue
		}
		file := strings.Trim(strings.TrimPrefix(t.pkg, m.path)+"/"+t.name, "/") + ".txt"
		file = filepath.Join(alarms, strings.ReplaceAll(file, "/", "."))
		if err := os.WriteFile(file, []byte(t.output), 0o666); err != nil {
			return nil, err
		}
		v := verdicts[t.pkg+" "+t.name]
		switch {
		case v == nil && failsAnyhow[t.pkg+" "+t.name]:
			r.anyhow++
		case t.outcome == "uncontrolled": // a computation takes too long
			r.by["limit"]++
		case v == nil, v.class == "left" && strings.TrimSpace(t.kind) != "leak": // the verdict is about another failure
			r.open = append(r.open, t.pkg+" "+t.name+" ("+strings.TrimSpace(t.outcome+" "+t.kind)+")")
		default:
			v.used = true
			r.by[v.class]++
		}
	}
	return r, nil
}

// needsNetwork reports whether a test that is not controlled waits for something outside, and not for a long
// computation.
func needsNetwork(output string) bool {
	for _, own := range []string{
		"a computation without end", "half a minute", "a schedule has ", "did not end within -timeout",
	} {
		if strings.Contains(output, own) {
			return false
		}
	}
	return true
}

// readPlain returns the tests that fail under go test.
func readPlain(file string) (map[string]bool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return map[string]bool{}, nil //nolint:nilerr // there were no alarms, or the time was up
	}
	events, err := decode(text)
	fails := map[string]bool{}
	for _, e := range events {
		if e.Action == "fail" && e.Test != "" {
			fails[e.Package+" "+e.Test] = true
		}
	}
	return fails, err
}

// counted returns the number of tests of a row that run, pass under go test, and wait for nothing outside. good returns
// how many of them are clean, or flagged for a valid reason.
func (r *row) counted() int { return r.tests - r.skipped - r.network - r.partly - r.anyhow }

func (r *row) good() int {
	n := r.clean
	for _, class := range classes {
		if class != "limit" {
			n += r.by[class]
		}
	}
	return n
}

// share returns the percentage of tests with schedules that are not controlled.
func (r *row) share() string {
	if r.network+r.partly == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f %%", 100*float64(r.network+r.partly)/float64(r.tests))
}

func (r *row) String() string {
	text := fmt.Sprintf("%s: %d tests, %d clean, %d skipped, %d not controlled, %d in part, %d fail anyhow",
		r.m.path, r.tests, r.clean, r.skipped, r.network, r.partly, r.anyhow)
	for _, class := range classes {
		text += fmt.Sprintf(", %d %s", r.by[class], class)
	}
	text += fmt.Sprintf("; %d without a verdict", len(r.open))
	for _, a := range r.open {
		text += "\n    " + a
	}
	for _, p := range r.notRun {
		text += "\n    not run: " + p
	}
	return text
}

func printTable(rows []*row) {
	head := []string{"module", "tests", "schedules", "clean", "skipped", "not controlled", "in part", "share",
		"fail anyhow"}
	head = append(append(head, classes...), "open")
	table := [][]string{head}
	sum := &row{by: map[string]int{}}
	line := func(name string, r *row) {
		cells := []string{name}
		for _, n := range []int{r.tests, r.schedule, r.clean, r.skipped, r.network, r.partly} {
			cells = append(cells, blank(n))
		}
		cells = append(cells, r.share())
		cells = append(cells, blank(r.anyhow))
		for _, class := range classes {
			cells = append(cells, blank(r.by[class]))
		}
		table = append(table, append(cells, blank(len(r.open))))
	}
	for _, r := range rows {
		name := r.m.path + " " + r.m.version
		if len(r.notRun) > 0 {
			name += " (a part)"
		}
		line(name, r)
		sum.tests, sum.schedule, sum.clean = sum.tests+r.tests, sum.schedule+r.schedule, sum.clean+r.clean
		sum.skipped, sum.network, sum.anyhow = sum.skipped+r.skipped, sum.network+r.network, sum.anyhow+r.anyhow
		sum.partly += r.partly
		for class, n := range r.by {
			sum.by[class] += n
		}
		sum.open = append(sum.open, r.open...)
	}
	line(fmt.Sprintf("%d modules", len(rows)), sum)
	write(table)
	if n := sum.counted(); n > 0 {
		fmt.Printf("\nOf the %d tests that run, pass under go test and wait for nothing outside, %d are clean or flagged "+
			"with a reason that is true: %.1f %%.\n", n, sum.good(), 100*float64(sum.good())/float64(n))
	}
}

// blank formats a number, and returns "" for 0.
func blank(n int) string {
	if n == 0 {
		return ""
	}
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// write prints a table in Markdown. All columns but the first are numbers.
func write(table [][]string) {
	for n, cells := range table {
		fmt.Printf("| %s |\n", strings.Join(cells, " | "))
		if n == 0 {
			fmt.Printf("|---%s|\n", strings.Repeat("|---:", len(cells)-1))
		}
	}
}
