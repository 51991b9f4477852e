package main

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The tokens that the guides show replay the failures that they are shown with.
func TestTheTokensOfTheDocuments(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	shown := regexp.MustCompile(`replay: coir test (bank|three) -run '(\S+)' -replay (c1\.[\w-]+)`)
	for _, file := range []string{"../../docs/guide/coir-test.md", "../../docs/guide/reports.md"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := shown.FindAllStringSubmatch(string(text), -1)
		if found == nil {
			t.Errorf("%s shows no token", file)
		}
		for _, m := range found {
			var out, errs bytes.Buffer
			code := run([]string{"test", "-run", m[2], "-replay", m[3], "./testdata/" + m[1]}, &out, &errs)
			if code != 1 || !strings.Contains(out.String(), "-replay "+m[3]+"\n") {
				t.Errorf("%s shows the token %s of %s in %s; replayed, exit code %d:\n%s%s", file, m[3], m[2], m[1], code, &out, &errs)
			}
		}
	}
}

// A replay that runs no test fails. Packages without the test are no error, if another one has it.
func TestReplayOfNoTest(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	const sends = "func TestSends(t *testing.T) {\n\tc := make(chan int)\n\tc <- 1\n}\n"
	head := func(name string) string { return "package " + name + "\n\nimport \"testing\"\n\n" }
	module(t, map[string]string{
		"a/a_test.go": head("a") + sends, "b/b_test.go": head("b") + "func TestB(*testing.T) {}\n", "c/c.go": "package c\n",
	})
	token := explored(t, "-schedules=1", "./a")["TestSends"].Failure.Token
	const none = "?   \texample.com/m/b\t[no tests to run]\n"
	const failure = "coir test: nothing was replayed: -run '^TestSends$' selects no test that has schedules\n"
	for _, c := range []struct {
		packages string
		code     int
		out, err string
	}{
		{"./b", 2, none, failure}, {"./c", 2, "?   \texample.com/m/c\t[no test files]\n", failure}, {"./...", 1, none, ""},
	} {
		var out, errs bytes.Buffer
		code := run([]string{"test", "-run=^TestSends$", "-replay=" + token, c.packages}, &out, &errs)
		if code != c.code || !strings.Contains(out.String(), c.out) || errs.String() != c.err {
			t.Errorf("%s: exit code %d, want %d:\n%s%s", c.packages, code, c.code, &out, &errs)
		}
	}
}

// README and the guide show lines of the report about a service. Numbers in them depend on the Go release.
func TestTheReportOfTheService(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	var out, errs bytes.Buffer
	if code := run([]string{"test", "./testdata/pay"}, &out, &errs); code != 1 {
		t.Fatalf("exit code %d: %s%s", code, &out, &errs)
	}
	plain := func(text string) string {
		text = regexp.MustCompile(`(server\.go:|#|schedule |seed |step |\()\d+(\.\d+s)?`).ReplaceAllString(text, "$1")
		return regexp.MustCompile(`shrunk to .*`).ReplaceAllString(text, "")
	}
	report := plain(out.String())
	for file, command := range map[string]string{"README.md": ".", "docs/guide/coir-test.md": "./pay"} {
		text, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		_, shown, found := strings.Cut(string(text), "    $ coir test "+command+"\n")
		shown, _, _ = strings.Cut(shown, "\n\n")
		if !found {
			t.Errorf("%s shows no report", file)
		}
		for line := range strings.Lines(shown) {
			if line = strings.TrimSpace(plain(line)); line != "..." && !strings.Contains(report, line) {
				t.Errorf("%s has %q, which is not in the report:\n%s", file, line, report)
			}
		}
	}
}
