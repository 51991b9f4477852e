package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
)

// A fuzz test fails if one of its seeds fails, as for go test. -run and -skip select seeds.
func TestSeeds(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	const fuzz = "\tf.Fuzz(func(t *testing.T, n int) {\n\t\tif n > 1 {\n\t\t\tt.Error(\"too many\")\n\t\t}\n\t})\n}\n\n"
	module(t, map[string]string{
		"f_test.go": "package m\n\nimport \"testing\"\n\n" +
			"func TestA(*testing.T) {}\n\n" +
			"func FuzzAdd(f *testing.F) {\n\tf.Add(1)\n\tf.Add(2)\n" + fuzz +
			"func FuzzFile(f *testing.F) {\n" + fuzz +
			"func FuzzGood(f *testing.F) {\n\tf.Add(1)\n" + fuzz +
			"func FuzzPanics(f *testing.F) {\n\tf.Add(1)\n\tf.Fuzz(func(*testing.T, int) { panic(\"no\") })\n}\n\n" +
			"func FuzzSkips(f *testing.F) { f.Skip() }\n",
		"testdata/fuzz/FuzzFile/big":   "go test fuzz v1\nint(2)\n",
		"testdata/fuzz/FuzzFile/small": "go test fuzz v1\nint(1)\n",
	})
	for args, want := range map[string]string{
		"":                        "1 test, 10 schedules, the seeds of 5 fuzz tests, 1 skipped, ",
		"-run=Test":               "1 test, 10 schedules, ",
		"-run=FuzzGood":           "the seeds of 1 fuzz test, ",
		"-run=FuzzAdd/seed#0":     "the seeds of 1 fuzz test, ",
		"-run=FuzzAdd/seed#1":     "the seeds of 1 fuzz test, ",
		"-run=FuzzFile/big":       "the seeds of 1 fuzz test, ",
		"-run=FuzzF -skip=F/big":  "the seeds of 1 fuzz test, ",
		"-run=FuzzPanics":         "the seeds of 1 fuzz test, ",
		"-run=Test -for=10ms":     "1 test, ",
		"-run=FuzzAdd -for=100ms": "the seeds of 1 fuzz test, ",
	} {
		plain := strings.Fields(strings.Split(args, " -for")[0])
		_, err := exec.Command("go", append([]string{"test"}, plain...)...).Output()
		var out, errs bytes.Buffer
		code := run(append([]string{"test", "-v", "-schedules=10", "-keep=" + t.TempDir()}, strings.Fields(args)...), &out, &errs)
		if failed := err != nil; failed != (code == 1) || code == 2 {
			t.Errorf("%s: exit code %d, with go test %v\n%s%s", args, code, err, &out, &errs)
		}
		if !strings.Contains(out.String(), "\texample.com/m\t"+want) {
			t.Errorf("%s: there is no %q in\n%s", args, want, &out)
		}
		if strings.Contains(out.String(), "FuzzAdd/seed#1") && !strings.Contains(out.String(), "f_test.go:12: too many") {
			t.Errorf("%s: the failure is not shown:\n%s", args, &out)
		}
	}
}
