package main

import (
	"bytes"
	"encoding/xml"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// readJUnit reads a report, and checks that it has the form that CI systems expect: the names, times and counts.
func readJUnit(t *testing.T, name string) *junitSuites {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	checkElements(t, text)
	all := new(junitSuites)
	if err := xml.Unmarshal(text, all); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	seconds := regexp.MustCompile(`^\d+\.\d{3}$`)
	var sum junitSuite
	for _, s := range all.Suites {
		var n junitSuite
		for _, c := range s.Cases {
			n.Tests++
			results := 0
			for p, count := range map[*junitProblem]*int{c.Failure: &n.Failures, c.Error: &n.Errors, c.Skipped: &n.Skipped} {
				if p != nil {
					*count++
					if results++; p.Message == "" {
						t.Errorf("%s has no message", c.Name)
					}
				}
			}
			if results > 1 || c.Name == "" || c.Classname != s.Name || !seconds.MatchString(c.Time) {
				t.Errorf("%+v", c)
			}
		}
		if n.Tests != s.Tests || n.Failures != s.Failures || n.Errors != s.Errors || n.Skipped != s.Skipped {
			t.Errorf("the counts are not those of the tests: %+v", s)
		}
		_, err := time.Parse("2006-01-02T15:04:05", s.Timestamp)
		if err != nil || s.Name == "" || !seconds.MatchString(s.Time) {
			t.Errorf("%v: %+v", err, s)
		}
		sum.Tests, sum.Failures = sum.Tests+s.Tests, sum.Failures+s.Failures
		sum.Errors, sum.Skipped = sum.Errors+s.Errors, sum.Skipped+s.Skipped
	}
	if sum.Tests != all.Tests || sum.Failures != all.Failures || sum.Errors != all.Errors || sum.Skipped != all.Skipped ||
		!seconds.MatchString(all.Time) {
		t.Errorf("the counts are not those of the suites: %+v", all)
	}
	return all
}

// junitSchema has the elements of a report, with the elements in which each may be, and its attributes.
var junitSchema = map[string]struct{ in, attributes string }{
	"testsuites": {"", "name tests failures errors skipped time"},
	"testsuite":  {"testsuites", "name tests failures errors skipped time timestamp"},
	"testcase":   {"testsuite", "classname name time"},
	"properties": {"testcase", ""},
	"property":   {"properties", "name value"},
	"skipped":    {"testcase", "message"},
	"failure":    {"testcase", "message type"},
	"error":      {"testcase", "message type"},
}

// checkElements checks that a report has only known elements and attributes.
func checkElements(t *testing.T, text []byte) {
	t.Helper()
	in := []string{""}
	for d := xml.NewDecoder(bytes.NewReader(text)); ; {
		token, err := d.Token()
		if token == nil {
			if len(in) != 1 {
				t.Errorf("%v in %v", err, in)
			}
			return
		}
		switch x := token.(type) {
		case xml.StartElement:
			s, ok := junitSchema[x.Name.Local]
			if !ok || s.in != in[len(in)-1] {
				t.Errorf("%s is in %v", x.Name.Local, in)
			}
			var names []string
			for _, a := range x.Attr {
				names = append(names, a.Name.Local)
			}
			if got := strings.Join(names, " "); got != s.attributes {
				t.Errorf("%s has the attributes %s, want %s", x.Name.Local, got, s.attributes)
			}
			in = append(in, x.Name.Local)
		case xml.EndElement:
			in = in[:len(in)-1]
		}
	}
}

// property returns a property of a test.
func (c *junitCase) property(name string) string {
	if c.Properties != nil {
		for _, p := range c.Properties.All {
			if p.Name == name {
				return p.Value
			}
		}
	}
	return ""
}

// find returns a test of a report by the package and the name.
func (s *junitSuites) find(t *testing.T, class, name string) *junitCase {
	t.Helper()
	for _, s := range s.Suites {
		for _, c := range s.Cases {
			if c.Classname == class && c.Name == name {
				return &c
			}
		}
	}
	t.Fatalf("there is no %s in %s: %+v", name, class, s)
	return nil
}

// -junit writes a report with all that coir test knows about a test, and with all packages.
func TestJUnit(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	const head = "package m\n\nimport (\n\t\"os\"\n\t\"os/signal\"\n\t\"testing\"\n)\n\nvar _ = signal.Stop\n\n"
	module(t, map[string]string{
		"a/a_test.go": head + "func TestPasses(*testing.T) {}\n" +
			"func TestSkips(t *testing.T) { t.Skip() }\n" +
			"func TestPrints(t *testing.T) { t.Error(\"\\x00\\x1b[31m <b>&\\xff]]>\") }\n" +
			"func TestDies(*testing.T) { os.Exit(1) }\n" +
			"func TestWaits(*testing.T) { c := make(chan os.Signal, 1); signal.Notify(c, os.Interrupt); <-c }\n" +
			"func FuzzSeeds(f *testing.F) { f.Fuzz(func(*testing.T, int) {}) }\n",
		"b/b_test.go": head + "func TestB(*testing.T) { undefined() }\n",
		"c/c.go":      "package c\n",
	})
	name := filepath.Join(t.TempDir(), "new", "directory", "report.xml")
	for flag, skip := range map[string]string{"-json=false": "", "-json": "TestWaits"} { // which takes some seconds
		var out, errs bytes.Buffer
		args := []string{"test", flag, "-skip=" + skip, "-schedules=20", "-budget=1s", "-junit", name, "./..."}
		code := run(args, &out, &errs)
		if code != 1 {
			t.Fatalf("exit code %d: %s%s", code, &out, &errs)
		}
		all := readJUnit(t, name)
		const a = "example.com/m/a"
		if len(all.Suites) != 2 {
			t.Errorf("there are %d packages: %+v", len(all.Suites), all)
		}
		c := all.find(t, a, "TestPasses")
		if c.property("schedules") != "20" || c.Failure != nil || c.property("token") != "" {
			t.Errorf("%+v", c)
		}
		if c := all.find(t, a, "TestSkips"); c.Skipped == nil {
			t.Errorf("%+v", c)
		}
		c = all.find(t, a, "TestPrints")
		if f := c.Failure; f == nil || f.Type != "fail" || !strings.HasPrefix(f.Message, "the test fails in schedule 1 ") ||
			!strings.Contains(f.Text, "[31m <b>&\uFFFD]]>") || !strings.HasPrefix(f.Text, "--- FAIL: TestPrints (") ||
			!strings.HasSuffix(c.property("replay"), " -run '^TestPrints$' -replay "+c.property("token")) {
			t.Errorf("%+v, %+v", c, c.Failure)
		}
		if f := all.find(t, a, "TestDies").Failure; f == nil || f.Type != "died" || !strings.Contains(f.Message, "os.Exit") {
			t.Errorf("%+v", f)
		}
		if skip == "" {
			if c := all.find(t, a, "TestWaits"); c.Skipped == nil || !strings.HasPrefix(c.Skipped.Message, "not controlled: ") {
				t.Errorf("%+v", c)
			}
		}
		if c := all.find(t, a, "FuzzSeeds"); c.Skipped != nil || c.Failure != nil {
			t.Errorf("%+v", c)
		}
		e := all.find(t, "example.com/m/b", "build failed").Error
		if e == nil || !strings.Contains(e.Text, "undefined: undefined") {
			t.Errorf("%+v", e)
		}
	}
}

// A report that cannot be written is an error before anything is built, and an older one does not stay when coir test
// cannot run.
func TestJUnitThatCannotBeWritten(t *testing.T) {
	dir := module(t, map[string]string{"c/notes.txt": "", "report.xml": "old"})
	for args, want := range map[string]string{
		"-junit=c/notes.txt/x.xml .":  "-junit: ",
		"-junit=x.xml -c -o=a.test .": "-junit does not go with -c or -list",
		"-junit=x.xml -list=. .":      "-junit does not go with -c or -list",
		"-junit=report.xml ./c/...":   "there are no packages to test",
	} {
		var out, errs bytes.Buffer
		if code := run(append([]string{"test"}, strings.Fields(args)...), &out, &errs); code != 2 ||
			!strings.Contains(errs.String(), want) {
			t.Errorf("%s: exit code %d, %s%s", args, code, &out, &errs)
		}
	}
	e := readJUnit(t, filepath.Join(dir, "report.xml")).find(t, "coir test", "the results are not complete").Error
	if e == nil || !strings.Contains(e.Text, "there are no packages to test") {
		t.Errorf("%+v", e)
	}
}
