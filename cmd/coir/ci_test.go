package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Values of workflow commands are escaped as the toolkit of GitHub Actions does it.
func TestWorkflowCommandsAreEscaped(t *testing.T) {
	for _, c := range []struct{ text, data, property string }{
		{"", "", ""},
		{"deadlock in schedule 17", "deadlock in schedule 17", "deadlock in schedule 17"},
		{"100%", "100%25", "100%25"},
		{"%0A", "%250A", "%250A"},
		{"a\nb\r\nc", "a%0Ab%0D%0Ac", "a%0Ab%0D%0Ac"},
		{"panic: x, y", "panic: x, y", "panic%3A x%2C y"},
		{"::error::x", "::error::x", "%3A%3Aerror%3A%3Ax"},
	} {
		if got := escapeData(c.text); got != c.data {
			t.Errorf("the data %q is %q, want %q", c.text, got, c.data)
		}
		if got := escapeProperty(c.text); got != c.property {
			t.Errorf("the property %q is %q, want %q", c.text, got, c.property)
		}
	}
}

// The file of an annotation is relative to the workspace, if it is inside.
func TestAnnotatedLine(t *testing.T) {
	for _, c := range []struct {
		at        place
		workspace string
		want      string
	}{
		{place{}, "/w", ""},
		{place{file: "/w/a/b.go", line: 3}, "/w", "file=a/b.go,line=3,"},
		{place{file: "/w/a,b/c%d.go", line: 3}, "/w", "file=a%2Cb/c%25d.go,line=3,"},
		{place{file: "/elsewhere/b.go", line: 3}, "/w", "file=/elsewhere/b.go,line=3,"},
		{place{file: "/w/b.go", line: 3}, "", "file=/w/b.go,line=3,"},
	} {
		if got := annotatedLine(c.at, c.workspace); got != c.want && filepath.Separator == '/' {
			t.Errorf("%v is %q, want %q", c.at, got, c.want)
		}
	}
}

// failing returns suites with a package of n tests that fail.
func failing(n int) *suites {
	s := &suites{of: map[*pkg]*suite{}}
	p := &pkg{ImportPath: "example.com/m"}
	of := s.suite(p)
	for i := range n {
		c := &testcase{name: fmt.Sprint("Test", i), action: "fail", headline: "deadlock", waits: "a waits\n"}
		of.tests = append(of.tests, c)
	}
	s.finished(p, "FAIL", time.Second)
	return s
}

// GitHub shows ten annotations of a kind per step. The others are counted.
func TestAnnotationsAreBounded(t *testing.T) {
	for n, more := range map[int]string{0: "", 1: "", 10: "", 11: "1 failure more", 25: "15 failures more"} {
		var out bytes.Buffer
		failing(n).annotate(&out)
		text := out.String()
		if got := strings.Count(text, "::error title=Test"); got != min(n, mostAnnotations) {
			t.Errorf("%d annotations of %d failures", got, n)
		}
		if notice := "::notice title=coir test::" + more; strings.Contains(text, "::notice") != (more != "") ||
			more != "" && !strings.Contains(text, notice) {
			t.Errorf("there is no %q in\n%s", notice, text)
		}
	}
}

// A summary that is too long for GitHub ends early, and says what is missing.
func TestTheSummaryIsBounded(t *testing.T) {
	s := failing(3)
	for _, c := range s.all[0].tests {
		c.waits = strings.Repeat("a waits ```` for b\n", mostSummary/50)
	}
	text := s.summary()
	if len(text) > mostSummary+1000 || !strings.HasSuffix(text, "\n1 failure more: see the log.\n") ||
		!strings.Contains(text, "\n`````\ndeadlock\na waits") {
		t.Errorf("%d bytes, which end with %q", len(text), text[len(text)-100:])
	}
}

// onGitHub sets the environment of a job with a workspace, and returns the name of the summary file.
func onGitHub(t *testing.T, workspace string) string {
	t.Helper()
	summary := filepath.Join(t.TempDir(), "summary.md")
	t.Setenv("GITHUB_ACTIONS", "true")
	t.Setenv("GITHUB_WORKSPACE", workspace)
	t.Setenv("GITHUB_STEP_SUMMARY", summary)
	return summary
}

const bankOnGitHub = `::error file=cmd/coir/testdata/bank/bank_test.go,line=16,title=TestTransfer (bank)::` +
	`deadlock in schedule 4 (seed 4), shrunk to 1 switch%0A` +
	`TestTransfer waits for wg, at bank_test.go:28%0A` +
	`bank_test.go:26 waits to lock to.mu (mutex#2), held by bank_test.go:27 since step 7 ` +
	`(at bank_test.go:14, as from.mu), at bank_test.go:16%0A` +
	`bank_test.go:27 waits to lock to.mu (mutex#1), held by bank_test.go:26 since step 5 ` +
	`(at bank_test.go:14, as from.mu), at bank_test.go:16%0A` +
	`cycle:%0A  bank_test.go:26 waits for bank_test.go:27%0A  bank_test.go:27 waits for bank_test.go:26%0A` +
	`replay: coir test bank -run '^TestTransfer$' -replay TOKEN
`

const bankSummary = "## coir test\n" + `
| package | tests | schedules | verdict |
|---|--:|--:|---|
| bank | 1 | 4 | FAIL |

### TestTransfer (bank)

FENCE
deadlock in schedule 4 (seed 4), shrunk to 1 switch
TestTransfer waits for wg, at bank_test.go:28
bank_test.go:26 waits to lock to.mu (mutex#2), held by bank_test.go:27 since step 7 (at bank_test.go:14, as from.mu), at bank_test.go:16
bank_test.go:27 waits to lock to.mu (mutex#1), held by bank_test.go:26 since step 5 (at bank_test.go:14, as from.mu), at bank_test.go:16
cycle:
  bank_test.go:26 waits for bank_test.go:27
  bank_test.go:27 waits for bank_test.go:26
FENCE

FENCEsh
coir test bank -run '^TestTransfer$' -replay TOKEN
FENCE

`

// In a job of GitHub Actions the output ends with annotations, and the summary is appended to a file. With -json there
// is neither.
func TestOnGitHub(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	summary, pages := onGitHub(t, root), t.TempDir()
	if err := os.WriteFile(summary, []byte("before\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	short := func(text string) string {
		text = strings.ReplaceAll(text, "github.com/coir-go/coir/cmd/coir/testdata/bank", "bank")
		text = strings.ReplaceAll(text, "```", "FENCE")
		return regexp.MustCompile(`c1\.[\w-]+`).ReplaceAllString(text, "TOKEN")
	}
	var out, errs bytes.Buffer
	if code := run([]string{"test", "-html", pages, "./testdata/bank"}, &out, &errs); code != 1 {
		t.Fatalf("exit code %d: %s%s", code, &out, &errs)
	}
	if got := short(out.String()); !strings.HasSuffix(got, " s\n"+bankOnGitHub) {
		t.Errorf("it prints\n%s\nwhich does not end with\n%s", got, bankOnGitHub)
	}
	page := filepath.Join(pages, "github.com_coir-go_coir_cmd_coir_testdata_bank.TestTransfer.html")
	text, err := os.ReadFile(summary)
	if want := "before\n" + bankSummary + "Page: `" + page + "`\n"; err != nil || short(string(text)) != want {
		t.Errorf("the summary is\n%s, %v\nwant\n%s", short(string(text)), err, want)
	}

	out.Reset()
	summary = onGitHub(t, root)
	if code := run([]string{"test", "-json", "./testdata/bank"}, &out, &errs); code != 1 {
		t.Fatalf("exit code %d: %s%s", code, &out, &errs)
	}
	if _, err := os.Stat(summary); strings.Contains(out.String(), "::error") || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("with -json there is a summary, %v, or an annotation in\n%s", err, &out)
	}
}

const tellingTests = `package telling

import (
	"os"
	"sync"
	"testing"
)

func TestPanics(t *testing.T) {
	var m map[string]int
	m["a"] = 1 // here: TestPanics
}

func TestFails(t *testing.T) {
	t.Error("wrong: 50%") // here: TestFails
}

func TestLeaves(t *testing.T) {
	c := make(chan int)
	go func() {
		<-c // here: TestLeaves
	}()
}

func TestOnlyItself(t *testing.T) {
	var wg sync.WaitGroup
	wg.Add(1)
	wg.Wait() // here: TestOnlyItself
}

func TestExits(t *testing.T) { // here: TestExits
	os.Exit(3)
}
`

// An annotation is at the line that best explains the failure.
func TestTellingLines(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	dir := module(t, map[string]string{"telling/telling_test.go": tellingTests})
	for _, flag := range []string{"-trimpath=false", "-trimpath"} {
		onGitHub(t, dir)
		var out, errs bytes.Buffer
		if code := run([]string{"test", flag, "-schedules=50", "./telling"}, &out, &errs); code != 1 {
			t.Fatalf("exit code %d: %s%s", code, &out, &errs)
		}
		n := 0
		for i, line := range strings.Split(tellingTests, "\n") {
			_, name, ok := strings.Cut(line, "// here: ")
			if !ok {
				continue
			}
			n++
			want := fmt.Sprintf("::error file=telling/telling_test.go,line=%d,title=%s (example.com/m/telling)::", i+1, name)
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s: there is no %q in\n%s", flag, want, &out)
			}
		}
		if n != 5 || !strings.Contains(out.String(), "wrong: 50%25") {
			t.Errorf("%d lines; %s", n, &out)
		}
	}
}

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
				t.Errorf("result %+v; want at most one result, with a name, the class of its suite and a time", c)
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
	"system-out": {"testcase", ""},
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
			t.Errorf("TestPasses is %+v; want 20 schedules, and neither a failure nor a token", c)
		}
		if c := all.find(t, a, "TestSkips"); c.Skipped == nil {
			t.Errorf("TestSkips is %+v; want skipped", c)
		}
		c = all.find(t, a, "TestPrints")
		if f := c.Failure; f == nil || f.Type != "fail" || !strings.HasPrefix(f.Message, "the test fails: a_test.go:13: ") ||
			!strings.Contains(f.Text, "[31m <b>&\uFFFD]]>") || !strings.HasPrefix(f.Text, "--- FAIL: TestPrints (") ||
			!strings.HasSuffix(c.property("replay"), " -run '^TestPrints$' -replay "+c.property("token")) {
			t.Errorf("%+v, %+v", c, c.Failure)
		}
		if f := all.find(t, a, "TestDies").Failure; f == nil || f.Type != "died" || !strings.Contains(f.Message, "os.Exit") {
			t.Errorf("the failure of TestDies is %+v; want died, by os.Exit", f)
		}
		if skip == "" {
			if c := all.find(t, a, "TestWaits"); c.Skipped == nil || !strings.HasPrefix(c.Skipped.Message, "not controlled: ") {
				t.Errorf("TestWaits is %+v; want skipped, because it is not controlled", c)
			}
		}
		if c := all.find(t, a, "FuzzSeeds"); c.Skipped != nil || c.Failure != nil {
			t.Errorf("FuzzSeeds is %+v; want passed", c)
		}
		e := all.find(t, "example.com/m/b", "build failed").Error
		if e == nil || !strings.Contains(e.Text, "undefined: undefined") {
			t.Errorf("the error of package b is %+v; want the compiler's", e)
		}
	}
}

// If the report cannot be written, coir test fails before it builds anything. If coir test cannot run, an older report
// does not remain.
func TestJUnitThatCannotBeWritten(t *testing.T) {
	dir := module(t, map[string]string{"c/notes.txt": "", "report.xml": "old"})
	for args, want := range map[string]string{
		"-junit=c/notes.txt/x.xml .":  "-junit: ",
		"-junit=x.xml -c -o=a.test .": "-junit cannot be combined with -c or -list",
		"-junit=x.xml -list=. .":      "-junit cannot be combined with -c or -list",
		"-junit=report.xml ./c/...":   "no packages match ./c/...",
	} {
		var out, errs bytes.Buffer
		if code := run(append([]string{"test"}, strings.Fields(args)...), &out, &errs); code != 2 ||
			!strings.Contains(errs.String(), want) {
			t.Errorf("%s: exit code %d, %s%s", args, code, &out, &errs)
		}
	}
	e := readJUnit(t, filepath.Join(dir, "report.xml")).find(t, "coir test", "the results are not complete").Error
	if e == nil || !strings.Contains(e.Text, "no packages match ./c/...") {
		t.Errorf("the error of the run is %+v; want that no packages match ./c/...", e)
	}
}

// CI systems show a test that passes but may fail on a slow machine.
func TestSlowMachineInCI(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	dir := t.TempDir()
	summary, name := filepath.Join(dir, "summary.md"), filepath.Join(dir, "report.xml")
	t.Setenv("GITHUB_ACTIONS", "true")
	t.Setenv("GITHUB_STEP_SUMMARY", summary)
	var out, errs bytes.Buffer
	args := []string{"test", "-schedules=500", "-run=^Test(SleepsToWait|NoTime)$", "-junit=" + name, "./testdata/slow"}
	if code := run(args, &out, &errs); code != 0 {
		t.Fatalf("exit code %d: %s%s", code, &out, &errs)
	}
	const headline = "on a slow machine: the test fails: slow_test.go:37: not ready, in schedule "
	if n := strings.Count(out.String(), "\n::notice "); n != 1 || !strings.Contains(out.String(), "line=37,") ||
		!strings.Contains(out.String(), "::"+headline) {
		t.Errorf("no annotation, or %d:\n%s", n, &out)
	}
	text, err := os.ReadFile(summary)
	if err != nil || !strings.Contains(string(text), " passes. Note: "+headline) ||
		strings.Contains(string(text), "### ") {
		t.Errorf("the summary is %v\n%s", err, text)
	}
	for _, c := range readJUnit(t, name).Suites[0].Cases {
		told := c.SystemOut != nil && strings.HasPrefix(c.SystemOut.Text, "note: "+headline) &&
			strings.Count(c.SystemOut.Text, "\n") == 2
		if c.Failure != nil || told != (c.Name == "TestSleepsToWait") {
			t.Errorf("the report of JUnit has %+v", c)
		}
	}
}
