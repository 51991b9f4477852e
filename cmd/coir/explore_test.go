package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// outcome is what coir test -json says of a test.
type outcome struct {
	action string
	told   *told
	output string
}

// explored runs coir test, and returns the outcomes of the tests by their names.
func explored(t *testing.T, args ...string) map[string]outcome {
	t.Helper()
	var out, errs bytes.Buffer
	code := run(append([]string{"test", "-json"}, args...), &out, &errs)
	if code == 2 {
		t.Fatalf("coir test %s: %s", strings.Join(args, " "), &errs)
	}
	all := map[string]outcome{}
	failed := false
	for d := json.NewDecoder(&out); d.More(); {
		var e event
		if err := d.Decode(&e); err != nil {
			t.Fatal(err)
		}
		o := all[e.Test]
		o.output += e.Output
		if e.Action != "output" {
			o.action, o.told = e.Action, e.Failure
			failed = failed || e.Action == "fail"
		}
		all[e.Test] = o
	}
	if failed != (code == 1) {
		t.Errorf("the exit code is %d", code)
	}
	return all
}

// expected reads from the sources of a package what is to be said of each test: `// Expect: kind` above it.
func expected(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	want := map[string]string{}
	expect := regexp.MustCompile(`(?m)^// Expect: (\w+)|^func (Test\w+)\(\w* ?\*testing\.T\)`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		kind := "pass"
		for _, m := range expect.FindAllStringSubmatch(string(text), -1) {
			if m[1] != "" {
				kind = m[1]
				continue
			}
			want[m[2]] = kind
			kind = "pass"
		}
	}
	return want
}

// compare compares what was said with what was expected.
func compare(t *testing.T, got map[string]outcome, want map[string]string) {
	t.Helper()
	for test, kind := range want {
		o, ok := got[test]
		switch {
		case !ok:
			t.Errorf("%s was not run", test)
		case kind == "pass" || kind == "skip":
			if o.action != kind {
				t.Errorf("%s: %s, want %s\n%s", test, o.action, kind, o.output)
			}
		case kind == "died":
			if o.action != "fail" || o.told != nil {
				t.Errorf("%s: %s, and a process that died is wanted\n%s", test, o.action, o.output)
			}
		case o.action != "fail" || o.told == nil || o.told.Kind != kind:
			t.Errorf("%s: %s, want %s\n%s", test, o.action, kind, o.output)
		}
	}
}

// The bugs of the corpus are found, each as what it is, and their corrected twins pass. Those that only the race detector
// sees are looked for with it. Each failure comes again from its token, in a process of its own.
func TestTheCorpus(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	want := expected(t, "corpus")
	races := map[string]string{}
	for test, kind := range want {
		if kind == "race" {
			races[test] = kind
			delete(want, test)
		}
	}
	got := explored(t, "-tags=corpus", "./corpus")
	compare(t, got, want)
	for test, o := range got {
		if o.told == nil {
			continue
		}
		again := explored(t, "-tags=corpus", "./corpus", "-run=^"+test+"$", "-replay="+o.told.Token)[test]
		if again.told == nil || again.told.Kind != o.told.Kind || again.told.Token != o.told.Token ||
			again.told.Report != o.told.Report {
			t.Errorf("%s: replayed, it is\n%s\nand was\n%s", test, again.output, o.output)
		}
	}
	for test := range want { // the race detector finds nothing in the twins, and nothing of coir's own
		if strings.HasPrefix(test, "TestFixed") {
			races[test] = "pass"
		}
	}
	compare(t, explored(t, "-race", "-tags=corpus", "-schedules=500",
		"-run=^Test(Fixed.*|BugLimitConfig|BugSearchService)$", "./corpus"), races)
}

// Tests as people write them: each form does under coir test what it does under go test.
func TestTheForms(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	compare(t, explored(t, "-tags=corpus", "-schedules=300", "./forms"), expected(t, "forms"))
}

// Races of all sorts are told: taking turns puts no access before another that was not so anyway.
func TestTheRaces(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	got := explored(t, "-race", "-tags=corpus", "-schedules=1000", "-budget=1m", "./races")
	compare(t, got, expected(t, "races"))
	for test, o := range got {
		if o.told != nil && !o.told.Stable {
			t.Errorf("%s does not come again:\n%s", test, o.output)
		}
	}
}

// The guide shows what coir test prints for its example.
func TestTheGuide(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	guide, err := os.ReadFile("../../docs/guide/coir-test.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("testdata/bank/bank_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(guide), "```go\n")
	code, _, _ = strings.Cut(code, "```")
	if !strings.Contains(string(program), code) {
		t.Error("the program of the guide is not testdata/bank/bank_test.go")
	}
	var out, errs bytes.Buffer
	if code := run([]string{"test", "./testdata/bank"}, &out, &errs); code != 1 {
		t.Fatalf("exit code %d: %s%s", code, &out, &errs)
	}
	_, shown, _ := strings.Cut(string(guide), "    $ coir test .\n")
	shown, _, _ = strings.Cut(shown, "\n\n")
	plain := func(text string) string {
		text = strings.ReplaceAll(text, "github.com/coir-go/coir/cmd/coir/testdata/bank", "bank")
		text = regexp.MustCompile(`\d+\.\d+ ?s|c1\.[\w-]+`).ReplaceAllString(text, "")
		return strings.TrimSpace(text)
	}
	if got, want := plain(indent(out.String())), plain(shown); got != want {
		t.Errorf("the guide shows\n%s\nand it is\n%s", want, got)
	}
}

func TestFlags(t *testing.T) {
	for _, c := range []struct {
		args string
		want string // a part of the error
	}{
		{"-strategy=clever .", "there is no strategy"},
		{"-schedules=0 .", "above 0"},
		{"-replay=c1.AA .", "-replay needs -run"},
		{"-cover .", "-cover"},
		{"-run=TestA -race ./a -tags=x ./b -args -y", ""},
	} {
		o, err := parse(strings.Fields(c.args))
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", c.args, err)
			}
		case err != nil:
			t.Errorf("%s: %v", c.args, err)
		case len(o.build) != 2 || len(o.packages) != 2 || len(o.args) != 1 || o.run != "TestA":
			t.Errorf("%s: %+v", c.args, o)
		}
	}
}

func TestCommands(t *testing.T) {
	for args, code := range map[string]int{"": 2, "help": 0, "help test": 0, "tset": 2, "test -h": 0, "test -nosuch": 2} {
		var out, errs bytes.Buffer
		if got := run(strings.Fields(args), &out, &errs); got != code || out.Len()+errs.Len() == 0 {
			t.Errorf("coir %s: exit code %d, %s%s", args, got, &out, &errs)
		}
	}
}

// A record that is cut off, as by a process that is killed, is told as such.
func TestRecordsThatAreDamaged(t *testing.T) {
	const record = "failure\t\"deadlock\"\t\"\"\t5\t1\t3\t\"c1.AA\"\ttrue\t0\t0\n"
	var r result
	r.read(record)
	if r.broken != "" || r.failure == nil || r.failure.switches != 3 || r.outcome != "" {
		t.Errorf("%+v", r)
	}
	for i := range record[:len(record)-4] {
		var r result
		if r.read(record[:i]); r.broken == "" && i > 0 && strings.HasPrefix(record[:i], "failure") {
			t.Errorf("%q is taken for a record", record[:i])
		}
	}
	r.died(fs.ErrClosed)
	if r.outcome != "died" || r.broken == "" {
		t.Errorf("%+v", r)
	}
}
