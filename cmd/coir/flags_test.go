package main

import (
	"bytes"
	"flag"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// accepted has a valid value for each flag of go test and go build that coir test accepts. It refuses the others.
var accepted = map[string]string{
	"C": ".", "a": "true", "args": "", "asan": "true", "asmflags": "-D=X", "buildmode": "exe", "buildvcs": "false",
	"c": "true", "count": "1", "failfast": "true", "fullpath": "true", "gcflags": "-N", "installsuffix": "x", "json": "true",
	"ldflags": "-s", "list": ".", "mod": "mod", "modcacherw": "true", "modfile": "go.mod", "msan": "true", "o": "x.test",
	"p": "2", "pgo": "off", "race": "true", "run": "TestA", "short": "true", "shuffle": "on", "skip": "TestB", "tags": "x",
	"timeout": "1m", "toolexec": "x", "trimpath": "true", "v": "true", "work": "true", "x": "true",
}

// goFlags returns the flags that the go command documents for go test.
func goFlags(t *testing.T) []string {
	t.Helper()
	all := map[string]bool{}
	for _, topic := range []string{"test", "testflag", "build"} {
		text, err := exec.Command("go", "help", topic).Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^\t-(\w+)`).FindAllStringSubmatch(string(text), -1) {
			all[m[1]] = true
		}
	}
	if len(all) < 60 {
		t.Fatalf("only these flags were found: %v", slices.Sorted(maps.Keys(all)))
	}
	return slices.Sorted(maps.Keys(all))
}

// Each flag of go test is accepted or refused, and the guide names it.
func TestEachFlagOfGoTest(t *testing.T) {
	guide, err := os.ReadFile("../../docs/guide/coir-test-reference.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range goFlags(t) {
		if !bytes.Contains(guide, []byte("`-"+name+"`")) {
			t.Errorf("the guide does not name -%s", name)
		}
		value, ok := accepted[name]
		if _, also := refused[name]; name != "C" && also == ok {
			t.Errorf("-%s: accepted %v, refused %v", name, ok, also)
		}
		args := []string{"-" + name + "=" + value}
		switch name {
		case "args":
			args = []string{"-args", "-x"}
		case "c", "o":
			args = []string{"-c", "-o=x.test"}
		}
		if !ok {
			args = []string{"-" + name + "=true"}
		}
		o, err := parse(append(args, "./..."))
		switch {
		case ok && err != nil:
			t.Errorf("-%s: %v", name, err)
		case !ok && (err == nil || !strings.HasPrefix(err.Error(), "-"+name+" is not accepted: ")):
			t.Errorf("-%s is not refused: %v", name, err)
		}
		if _, passed := passedOn[name]; passed && (err != nil || len(o.build) != 1 || o.build[0] != args[0]) {
			t.Errorf("-%s is not passed on: %+v, %v", name, o, err)
		}
	}
	for name, r := range refused { // the reason is one sentence, and says what to do
		if strings.ContainsAny(r.why, ".\n") || strings.Count(r.why, "; ") != 1 || !regexp.MustCompile(
			`; (run go|leave the flag out|put your files|write it)`).MatchString(r.why) {
			t.Errorf("-%s: %s", name, r.why)
		}
		for _, value := range r.unless {
			if _, err := parse([]string{"-" + name + "=" + value}); err != nil {
				t.Errorf("-%s=%s: %v", name, value, err)
			}
		}
	}
}

// Like go test, coir test accepts the flags for the tests with and without a prefix.
func TestPrefixedFlags(t *testing.T) {
	f := flag.NewFlagSet("", flag.ContinueOnError)
	for name := range accepted {
		if _, passed := passedOn[name]; !passed && name != "C" && name != "count" && name != "shuffle" {
			f.Bool(name, false, "")
		}
	}
	defineOthers(f, new([]string), new(error))
	help, err := exec.Command(os.Args[0], "-h").CombinedOutput()
	if err != nil {
		t.Fatal(err)
	}
	hidden := []string{"fuzzcachedir", "fuzzworker", "gocoverdir", "paniconexit0", "testlogfile"} // of the go command
	n := 0
	for _, m := range regexp.MustCompile(`(?m)^  -test\.(\w+)`).FindAllStringSubmatch(string(help), -1) {
		if n++; f.Lookup("test."+m[1]) == nil && !slices.Contains(hidden, m[1]) {
			t.Errorf("there is no flag -test.%s", m[1])
		}
	}
	if n < 30 {
		t.Errorf("%d flags: %s", n, help)
	}
}

// Wrong values and combinations are refused with a sentence.
func TestWrongFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-run=(":                 "-run: \"(\" is not a regular expression: error parsing regexp: missing closing ): `(`",
		"-run=TestA/[":           "-run: \"[\" is not a regular expression: ",
		"-run=TestA|TestB/*":     "-run: \"*\" is not a regular expression: ",
		"-run=a\\":               "-run: \"a\\\\\" is not a regular expression: ",
		"-skip=(":                "-skip: \"(\" is not a regular expression: ",
		"-list=(":                "-list: \"(\" is not a regular expression: ",
		"-v -C dir":              "-C is not accepted: it must be the first flag",
		"-C":                     "-C needs a directory",
		"-count=0":               "invalid value \"0\" for flag -count: must be a positive number",
		"-shuffle=maybe":         "invalid value \"maybe\" for flag -shuffle: must be on, off, or a number",
		"-update":                "unknown flag -update; put the test's own flags after -args",
		"-cover":                 "-cover is not accepted: coir test runs each test in many schedules",
		"-test.bench=. -v":       "-bench is not accepted: ",
		"-vet=all":               "-vet is not accepted: ",
		"-race -cpu 1,2 ./a ./b": "-cpu is not accepted: ",
	} {
		if _, err := parse(strings.Fields(args)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
		var out, errs bytes.Buffer
		if code := run(append([]string{"test"}, strings.Fields(args)...), &out, &errs); code != 2 || out.Len() > 0 {
			t.Errorf("%s: exit code %d, %s", args, code, &out)
		}
	}
}

// A pattern selects the tests and subtests that it selects for go test.
func TestPatterns(t *testing.T) {
	for _, c := range []struct{ pattern, test, narrowed string }{
		{"", "TestA", "^TestA$"},
		{"TestA", "TestA", "^TestA$"},
		{"A", "TestAll", "^TestAll$"},
		{"TestA", "TestB", ""},
		{"TestA/x", "TestA", "^TestA$/x"},
		{"TestA/x|TestB", "TestA", "^TestA$/x"},
		{"TestA/x|TestB", "TestB", "^TestB$"},
		{"TestA/x|TestA/y/z|TestB", "TestA", "^TestA$/x|^TestA$/y/z"},
		{"TestA/x|Test", "TestA", "^TestA$"},
		{"Test(A|B/x)", "TestA", "^TestA$"},
		{"TestA/a[/|]b", "TestA", "^TestA$/a[/|]b"},
		{"/x", "TestA", "^TestA$/x"},
	} {
		p, err := parsePattern(c.pattern)
		if err != nil {
			t.Errorf("%q: %v", c.pattern, err)
			continue
		}
		if got := p.narrowed(c.test); got != c.narrowed {
			t.Errorf("%q selects %q of %s, want %q", c.pattern, got, c.test, c.narrowed)
		}
	}
}

// -C, files as arguments, -list, and patterns with alternatives work as for go test.
func TestArguments(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	const ok = "func TestA(t *testing.T) { t.Run(\"x\", func(*testing.T) {}); t.Run(\"y\", func(t *testing.T) { t.Error() }) }\n" +
		"func TestB(t *testing.T) { t.Error() }\nfunc TestC(*testing.T) {}\nfunc BenchmarkD(*testing.B) {}\n"
	dir := module(t, map[string]string{
		"a/a_test.go":     "package a\n\nimport \"testing\"\n\n" + ok,
		"a/other_test.go": "package a\n\nimport \"testing\"\n\nfunc TestOther(*testing.T) {}\n",
		"b/b.go":          "package b\n",
		"c/notes.txt":     "",
	})
	for _, c := range []struct {
		dir, args string
		code      int
		tests     string // with a result
		printed   string
	}{
		{dir, "-C a -run=C|Other .", 0, "TestC TestOther", "ok  \texample.com/m/a\t2 tests, "},
		{"/", "-C=" + dir + " -run=TestC ./a", 0, "TestC", "ok  \texample.com/m/a\t1 test, "},
		{dir, "-C=nosuch .", 2, "", "-C: chdir nosuch: "},
		{dir, "a/other_test.go", 0, "TestOther", "ok  \tcommand-line-arguments\t1 test, "},
		{dir, "-run=TestB a/a_test.go a/other_test.go", 1, "TestB",
			"replay: coir test a/a_test.go a/other_test.go -run '^TestB$' -replay "},
		{dir, "-C=a -run=TestB a_test.go", 1, "TestB", "replay: coir test -C a a_test.go -run '^TestB$' -replay "},
		{dir, "a/other_test.go go.mod", 1, "", "named files must be .go files: go.mod"},
		{dir, "-list=A|D ./...", 0, "", "TestA\nBenchmarkD\nok  \texample.com/m/a\t"},
		{dir, "-run=TestA/x|TestC ./a", 0, "TestA TestC", "ok  \texample.com/m/a\t2 tests, "},
		{dir, "-skip=TestA/y|TestB ./a", 0, "TestA TestC TestOther", "ok  \texample.com/m/a\t3 tests, "},
		{dir, "./nosuch ./b", 1, "", "FAIL\t./nosuch [setup failed]\n?   \texample.com/m/b\t[no test files]\n"},
		{dir, "./b/...", 0, "", "?   \texample.com/m/b\t[no test files]\n"},
		{dir, "./nosuch/...", 1, "", "FAIL\t./nosuch/... [setup failed]\n"},
		{dir, "./c/...", 2, "", "no packages match ./c/...\n"},
		{dir, "-x -run=TestC ./a", 0, "TestC", "mkdir -p $WORK/"},
	} {
		t.Run(c.args, func(t *testing.T) {
			t.Chdir(c.dir)
			var out, errs bytes.Buffer
			args := append([]string{"test"}, strings.Fields(c.args)...)
			code := run(append(args, "-v", "-schedules=20"), &out, &errs)
			var tests []string
			for _, m := range regexp.MustCompile(`(?m)^--- \w+: (\w+) `).FindAllStringSubmatch(out.String(), -1) {
				tests = append(tests, m[1])
			}
			slices.Sort(tests)
			all := out.String() + errs.String()
			if code != c.code || strings.Join(tests, " ") != c.tests || !strings.Contains(all, c.printed) {
				t.Errorf("exit code %d, results of %v, and %q is not in\n%s", code, tests, c.printed, all)
			}
		})
	}
}
