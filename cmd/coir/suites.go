package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
	"github.com/coir-go/coir/cmd/coir/internal/events"
)

// This file collects the results of a run for CI systems. The writer adds the result of each test that it prints. At
// the end of the run, github.go and junit.go write the results in the formats that these systems read.

// suite is a package with its results.
type suite struct {
	path    string
	began   time.Time
	took    time.Duration
	tests   []*testcase
	verdict string // ok, FAIL, or the reason why there are no results; empty: the package has not ended
}

// testcase is the result of a test.
type testcase struct {
	name      string
	action    string // pass, fail or skip; error if there is no result
	took      time.Duration
	schedules int    // that searched for a failure
	beside    int    // that shrank a failure, or found one that passes to compare it with
	note      string // about a test that passes
	slow      bool   // it passes, but may fail on a slow machine

	// Set for a test that failed, was skipped, has no result, or may fail on a slow machine.
	kind     string // deadlock, ..., not controlled, died
	headline string
	waits    string // which goroutine waits for what, or what the test printed
	text     string // the whole printed text
	at       place  // the line to show

	token, replay, page string // for the failing schedule
}

// suites are the packages of a run.
type suites struct {
	junit  string // the file; empty: none
	github bool
	began  time.Time
	all    []*suite
	of     map[*pkg]*suite
}

func newSuites(o *options) *suites {
	return &suites{
		junit: o.junit, github: os.Getenv("GITHUB_ACTIONS") == "true" && !o.json && o.list == "", began: time.Now(),
		of: map[*pkg]*suite{},
	}
}

// suite returns the suite of a package. It adds one if there is none.
func (s *suites) suite(p *pkg) *suite {
	if s.of[p] == nil {
		s.of[p] = &suite{path: p.ImportPath, began: time.Now()}
		s.all = append(s.all, s.of[p])
	}
	return s.of[p]
}

// test adds the result of a test. f is nil if no schedule fails. text is the printed text.
func (s *suites) test(p *pkg, r *result, action string, verdict coir.Verdict, f *events.Failure, text, note string) {
	c := &testcase{name: r.test, action: action, took: r.elapsed, schedules: r.explored(), text: text, note: note}
	c.beside = r.schedules - c.schedules
	switch {
	case action == "pass":
		c.text = ""
	case f != nil:
		c.failed(p, &r.record, f)
	case verdict == coir.VerdictStrict || verdict == coir.VerdictUncontrolled || verdict == coir.VerdictLong:
		c.kind = "not controlled"
		c.headline, c.waits, _ = strings.Cut(r.notControlled(p.Dir), "\n")
	case verdict == coir.VerdictChanged:
		c.kind, c.headline = string(verdict), changedText
	case verdict == coir.VerdictHealed:
		c.kind, c.headline = string(verdict), healedText
	case action == "skip":
		c.headline = "the test skips itself"
	case verdict == coir.VerdictSimulates:
		c.kind, c.headline, c.waits = "sim", "it fails, explored by sim", tail(withoutVerdict(r.output), 30)
	default:
		c.kind, c.headline, c.waits = string(verdict), r.broken, tail(plain(r.output), 30)
	}
	if s.github && action == "fail" {
		c.at = r.telling(p, r.output)
	}
	of := s.suite(p)
	of.tests = append(of.tests, c)
}

// slow adds the result of a test that passes, but may fail on a slow machine as f describes.
func (s *suites) slow(p *pkg, r *result, f *events.Failure, note string) {
	c := &testcase{name: r.test, action: "pass", took: r.elapsed, schedules: r.schedules, note: note, slow: true}
	c.failed(p, r.slow, f)
	c.text, c.waits = slowNote(f), ""
	if s.github {
		c.at = r.slow.telling(p, "")
	}
	of := s.suite(p)
	of.tests = append(of.tests, c)
}

// failed sets the fields that describe a failure.
func (c *testcase) failed(p *pkg, r *record, f *events.Failure) {
	c.kind, c.headline, c.waits = f.Kind, f.Headline, r.explain(p.Dir)
	c.token, c.replay, c.page = f.Token, f.Replay, f.Chart
	if log := r.outputs(10); log != "" {
		c.waits += "its output:\n" + indent(log)
	}
}

// without records that a package, or one of its tests, has no result, and why.
func (s *suites) without(p *pkg, test, why, text string, took time.Duration) {
	of := s.suite(p)
	of.tests = append(of.tests, &testcase{name: cmp.Or(test, why), action: "error", kind: why, headline: why, text: text,
		waits: tail(text, 10), took: took})
	of.verdict = why
}

// finished sets the verdict of a package.
func (s *suites) finished(p *pkg, verdict string, took time.Duration) {
	of := s.suite(p)
	of.verdict, of.took = strings.TrimSpace(verdict), took
	of.began = time.Now().Add(-took)
}

// end writes the results for CI systems. ended is the error of a run that was interrupted or could not run, or nil.
func (s *suites) end(out io.Writer, ended error) error {
	if ended != nil {
		s.without(&pkg{ImportPath: "coir test"}, "", "the results are not complete", ended.Error()+"\n", 0)
	}
	if s.github {
		s.annotate(out)
		if name := os.Getenv("GITHUB_STEP_SUMMARY"); name != "" {
			if err := s.summarize(name); err != nil {
				fmt.Fprintf(out, "::warning title=coir test::%s\n", escapeData("the summary cannot be written: "+err.Error()))
			}
		}
	}
	return s.writeJUnit()
}
