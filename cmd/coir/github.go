package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
	"github.com/coir-go/coir/internal/chart"
	"github.com/coir-go/coir/internal/report"
)

// In a job of GitHub Actions, failures are also annotations, which GitHub shows beside the code, and a summary of the
// job. coir test writes both at the end of the run, because it then knows how many annotations it leaves out.

// Limits: GitHub shows 10 annotations of a kind per step, and refuses a summary of more than a megabyte.
const mostAnnotations, mostSummary = 10, 900_000

// annotate prints an annotation for each test that failed, for each package without results, and as notices for the
// tests that may fail on a slow machine.
func (s *suites) annotate(out io.Writer) {
	annotateAll(out, "error", "failure", s.failures())
	annotateAll(out, "notice", "note", s.notes())
}

func annotateAll(out io.Writer, level, what string, all []failed) {
	more := 0
	for n, c := range all {
		if n >= mostAnnotations {
			more++
			continue
		}
		text := c.headline + "\n" + c.waits
		if c.replay != "" {
			text += "replay: " + c.replay
		}
		fmt.Fprintf(out, "::%s %stitle=%s::%s\n", level, annotatedLine(c.at, os.Getenv("GITHUB_WORKSPACE")),
			escapeProperty(c.title()), escapeData(strings.TrimSpace(text)))
	}
	if more > 0 {
		fmt.Fprintf(out, "::notice title=coir test::%s\n", escapeData(fmt.Sprintf(
			"%s more: GitHub shows %d annotations per step. The job summary and the log show all",
			report.Count(more, what), mostAnnotations)))
	}
}

// failed is a test that failed, or a package without results.
type failed struct {
	*testcase
	path string
}

func (f failed) title() string {
	if f.name == f.headline { // of a package
		return f.path
	}
	return f.name + " (" + f.path + ")"
}

// failures returns the tests that failed, and the packages without results.
func (s *suites) failures() (all []failed) {
	for _, of := range s.all {
		for _, c := range of.tests {
			if c.action == "fail" || c.action == "error" {
				all = append(all, failed{c, of.path})
			}
		}
	}
	return all
}

// notes returns the tests that pass but may fail on a slow machine.
func (s *suites) notes() (all []failed) {
	for _, of := range s.all {
		for _, c := range of.tests {
			if c.slow {
				all = append(all, failed{c, of.path})
			}
		}
	}
	return all
}

// annotatedLine returns the properties of an annotation for its file and line, with a comma after each. GitHub expects
// a file relative to the workspace.
func annotatedLine(at place, workspace string) string {
	if at.file == "" {
		return ""
	}
	file := at.file
	if in, err := filepath.Rel(workspace, file); workspace != "" && err == nil && filepath.IsLocal(in) {
		file = in
	}
	return fmt.Sprintf("file=%s,line=%d,", escapeProperty(filepath.ToSlash(file)), at.line)
}

// escapeData escapes the text of a workflow command.
func escapeData(text string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(text)
}

// escapeProperty escapes the value of a property of a workflow command.
func escapeProperty(text string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(text)
}

// telling returns the line of the user's code that best explains a failure. It is the first of these places that is in
// the user's module:
//
//   - where a goroutine panics or makes the test fail;
//   - where the first goroutine of a cycle waits;
//   - where a goroutine other than the test's own waits, because the test usually waits for the others;
//   - where the test's own goroutine waits;
//   - the first line that the race detector or a crash printed;
//   - where the waiting goroutines come from;
//   - the last step;
//   - the test itself.
func (r *record) telling(p *pkg, output string) place {
	for _, at := range r.tellingPlaces(p.Dir, output) {
		if r.mine(at) {
			if in, ok := strings.CutPrefix(at.file, r.modulePath+"/"); ok && !filepath.IsAbs(at.file) { // -trimpath
				at.file = filepath.Join(r.moduleDir, filepath.FromSlash(in))
			}
			return at
		}
	}
	return declared(p.Dir, r.test)
}

func (r *record) tellingPlaces(dir, output string) (all []place) {
	if r.failure == nil {
		return printedPlaces(output)
	}
	t, own, from := r.ending(dir), []place(nil), []place(nil)
	if a := r.actors[r.failure.panicked]; a != nil && r.failure.kind == coir.KindPanic {
		all = append(all, a.at)
	}
	if s := r.failStep(); s != nil {
		all = append(all, s.place)
	}
	for _, i := range t.FindCycle() {
		all = append(all, r.columnOf[i].at)
	}
	for _, w := range t.Waiting {
		a := r.columnOf[w.Actor]
		if from = append(from, r.origin(a).at); r.kindOfName(a) == r.test {
			own = append(own, a.at)
			continue
		}
		all = append(all, a.at)
	}
	all = append(append(append(all, own...), printedPlaces(r.shown)...), from...)
	for _, s := range slices.Backward(r.known) {
		if s.n <= r.endStep() {
			all = append(all, s.place)
		}
	}
	return all
}

// printedPlace matches a line of a stack that the runtime or the race detector prints.
var printedPlace = regexp.MustCompile(`(?m)^\s+(\S.*\.go):(\d+)(?: \+0x[0-9a-f]+)?$`)

func printedPlaces(text string) (all []place) {
	for _, m := range printedPlace.FindAllStringSubmatch(text, -1) {
		line, _ := strconv.Atoi(m[2])
		all = append(all, place{file: m[1], line: line})
	}
	return all
}

// declared returns the place where a test is declared, or an empty place.
func declared(dir, test string) place {
	for _, file := range entries(dir, "", "_test.go") {
		text, _ := os.ReadFile(file)
		before, _, ok := strings.Cut("\n"+string(text), "\nfunc "+test+"(")
		if ok {
			return place{file: file, line: strings.Count(before, "\n") + 1}
		}
	}
	return place{}
}

// summarize appends the summary to a file.
func (s *suites) summarize(name string) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	if _, err = io.WriteString(f, s.summary()); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// summary returns the results in Markdown: a table of packages, and a section for each failure. Text from a test is in
// a code block, where Markdown leaves it as it is.
func (s *suites) summary() string {
	var b strings.Builder
	b.WriteString("## coir test\n\n")
	if len(s.all) > 0 {
		b.WriteString("| package | tests | schedules | verdict |\n|---|--:|--:|---|\n")
	}
	for _, of := range s.all {
		tests, schedules := 0, 0
		for _, c := range of.tests {
			if schedules += c.schedules; c.action != "error" {
				tests++
			}
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", of.path, chart.Grouped(tests), chart.Grouped(schedules), of.verdict)
		if b.Len() > mostSummary/2 {
			b.WriteString("| ... | | | |\n")
			break
		}
	}
	all := slices.Concat(s.failures(), s.notes())
	for i, c := range all {
		text := fmt.Sprintf("\n### %s\n\n", c.title())
		if c.slow {
			text = "\n" + fenced("", c.title()+" passes. Note: "+c.headline+"\nto see how: "+c.replay)
		} else {
			text += fenced("", c.headline+"\n"+c.waits)
		}
		if c.replay != "" && !c.slow {
			text += "\n" + fenced("sh", c.replay)
		}
		if c.page != "" {
			text += "\nPage: `" + c.page + "`\n"
		}
		if b.Len()+len(text) > mostSummary {
			fmt.Fprintf(&b, "\n%s more: see the log.\n", report.Count(len(all)-i, "failure"))
			break
		}
		b.WriteString(text)
	}
	return b.String()
}

// fenced returns a block of code in Markdown.
func fenced(language, text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + language + "\n" + strings.TrimRight(text, "\n") + "\n" + fence + "\n"
}
