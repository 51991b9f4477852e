package main

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// This file writes the report of -junit. The format of JUnit has no standard; the elements below are those that CI
// systems agree on. A package is a testsuite, and a test is a testcase. A test with a result other than success has one
// of the elements failure and skipped, or error if it has no result. Package xml replaces characters that XML does not
// allow.

type junitSuites struct {
	XMLName  xml.Name     `xml:"testsuites"`
	Name     string       `xml:"name,attr"`
	Tests    int          `xml:"tests,attr"`
	Failures int          `xml:"failures,attr"`
	Errors   int          `xml:"errors,attr"`
	Skipped  int          `xml:"skipped,attr"`
	Time     string       `xml:"time,attr"`
	Suites   []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name      string      `xml:"name,attr"`
	Tests     int         `xml:"tests,attr"`
	Failures  int         `xml:"failures,attr"`
	Errors    int         `xml:"errors,attr"`
	Skipped   int         `xml:"skipped,attr"`
	Time      string      `xml:"time,attr"`
	Timestamp string      `xml:"timestamp,attr"`
	Cases     []junitCase `xml:"testcase"`
}

type junitCase struct {
	Classname  string           `xml:"classname,attr"`
	Name       string           `xml:"name,attr"`
	Time       string           `xml:"time,attr"`
	Properties *junitProperties `xml:"properties"`
	Skipped    *junitProblem    `xml:"skipped"`
	Failure    *junitProblem    `xml:"failure"`
	Error      *junitProblem    `xml:"error"`
	SystemOut  *junitText       `xml:"system-out"` // how a test that passes may fail
}

type junitProperties struct {
	All []junitProperty `xml:"property"`
}

type junitProperty struct {
	Name  string `xml:"name,attr"`
	Value string `xml:"value,attr"`
}

type junitText struct {
	Text string `xml:",chardata"`
}

type junitProblem struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// writeJUnit writes a report of the results so far. It makes the directories above the file, as gotestsum does. It is
// also called at the start of the run, so that a file that cannot be written is noticed early, and the report of an
// earlier run does not remain.
func (s *suites) writeJUnit() error {
	if s.junit == "" {
		return nil
	}
	text, err := xml.MarshalIndent(s.report(), "", "\t")
	if err == nil {
		err = os.MkdirAll(filepath.Dir(s.junit), 0o777)
	}
	if err == nil {
		err = os.WriteFile(s.junit, append([]byte(xml.Header), append(text, '\n')...), 0o666)
	}
	if err != nil {
		return fmt.Errorf("-junit: %w", err)
	}
	return nil
}

func (s *suites) report() *junitSuites {
	all := &junitSuites{Name: "coir test", Time: junitTime(time.Since(s.began))}
	for _, from := range s.all {
		to := junitSuite{
			Name: from.path, Time: junitTime(from.took), Timestamp: from.began.UTC().Format("2006-01-02T15:04:05"),
		}
		for _, c := range from.tests {
			x := junitCase{Classname: from.path, Name: c.name, Time: junitTime(c.took), Properties: c.properties()}
			problem := &junitProblem{Message: c.headline, Type: c.kind, Text: c.text}
			to.Tests++
			switch c.action {
			case "fail":
				x.Failure = problem
				to.Failures++
			case "error":
				x.Error = problem
				to.Errors++
			case "pass":
				if c.text != "" {
					x.SystemOut = &junitText{c.text}
				}
			case "skip":
				x.Skipped = &junitProblem{Message: c.headline}
				to.Skipped++
			}
			to.Cases = append(to.Cases, x)
		}
		all.Tests += to.Tests
		all.Failures += to.Failures
		all.Errors += to.Errors
		all.Skipped += to.Skipped
		all.Suites = append(all.Suites, to)
	}
	return all
}

func (c *testcase) properties() *junitProperties {
	p := &junitProperties{}
	for _, x := range []junitProperty{
		{"schedules", strconv.Itoa(c.schedules)}, {"shrinking", strconv.Itoa(c.beside)}, {"token", c.token},
		{"replay", c.replay}, {"page", c.page}, {"note", c.note},
	} {
		if x.Value != "" && x.Value != "0" {
			p.All = append(p.All, x)
		}
	}
	if p.All == nil {
		return nil
	}
	return p
}

func junitTime(d time.Duration) string { return fmt.Sprintf("%.3f", d.Seconds()) }
