package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// actions returns the events of -json without their texts, by package. Outputs that follow each other are one.
func actions(t *testing.T, events io.Reader) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	for d := json.NewDecoder(events); d.More(); {
		var e struct{ Action, Package, ImportPath, Test, FailedBuild string }
		if err := d.Decode(&e); err != nil {
			t.Fatal(err)
		}
		name, _, _ := strings.Cut(e.Package+e.ImportPath, " ")
		line := strings.TrimSpace(strings.Join([]string{e.Action, e.ImportPath, e.Test, e.FailedBuild}, " "))
		if n := len(all[name]); n == 0 || all[name][n-1] != line || e.Action != "output" {
			all[name] = append(all[name], line)
		}
	}
	return all
}

// -json prints the events that go test -json prints, also for packages that cannot be built, have no tests, or have
// fuzz tests.
func TestEvents(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	head := func(name string) string { return "package " + name + "\n\nimport \"testing\"\n\n" }
	module(t, map[string]string{
		"pass/pass_test.go":     head("pass") + "func TestA(*testing.T) {}\nfunc TestB(t *testing.T) { t.Skip() }\n",
		"fail/fail_test.go":     head("fail") + "func TestA(*testing.T) {}\nfunc TestB(t *testing.T) { t.Error() }\n",
		"seed/seed_test.go":     head("seed") + "func FuzzA(f *testing.F) { f.Skip() }\n",
		"none/none.go":          "package none\n",
		"wrong/wrong_test.go":   head("wrong") + "func TestA(*testing.T) { undefined() }\n",
		"uses/uses_test.go":     "package uses\n\nimport _ \"example.com/m/lacks\"\n",
		"lacks/lacks.go":        "package lacks\n\nvar x = y\n",
		"parse/parse_test.go":   "package parse\n\nfunc\n",
		"import/import_test.go": "package imports\n\nimport _ \"example.com/m/nosuch\"\n",
		"empty/empty_test.go":   "package empty\n",
	})
	for _, args := range [][]string{{"./..."}, {"-run=^TestA$", "./pass", "./nosuch"}, {"-list=.", "./pass"}} {
		c := exec.Command("go", append([]string{"test", "-json", "-p=1", "-vet=off"}, args...)...)
		var want, out, errs bytes.Buffer
		c.Stdout = &want
		_ = c.Run()
		code := run(append([]string{"test", "-json", "-p=1", "-schedules=3"}, args...), &out, &errs)
		if code != c.ProcessState.ExitCode() {
			t.Errorf("%v: exit code %d, of go test %d\n%s", args, code, c.ProcessState.ExitCode(), &errs)
		}
		got, as := actions(t, &out), actions(t, &want)
		for name := range as {
			if !slices.Equal(got[name], as[name]) {
				t.Errorf("%v: the events of %s are\n\t%s\nand of go test\n\t%s", args, name, strings.Join(got[name], "\n\t"),
					strings.Join(as[name], "\n\t"))
			}
		}
		if len(got) != len(as) || len(as) == 0 {
			t.Errorf("%v: there are events of %d packages, of go test of %d", args, len(got), len(as))
		}
	}
}
