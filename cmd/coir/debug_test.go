//go:build linux || darwin

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// fakeDelve takes the arguments of Delve. It prints the script, and runs the program.
const fakeDelve = `#!/bin/sh
echo "$1 $2 $3 $5"
cat "$4"
cd "$6" && binary=$7 && shift 8 && exec "$binary" "$@"
`

// coir debug replays a schedule, and then starts Delve with a program that replays it again.
func TestDebug(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	const test = "-run=^TestTransfer$"
	token := explored(t, "./testdata/bank")["TestTransfer"].Failure.Token
	debug := func(t *testing.T, want int, args ...string) string {
		t.Helper()
		var out, errs bytes.Buffer
		if code := run(append([]string{"debug"}, args...), &out, &errs); code != want {
			t.Errorf("%v: exit code %d, want %d\n%s%s", args, code, want, &out, &errs)
		}
		return out.String() + errs.String()
	}
	contains := func(t *testing.T, text string, wanted ...string) {
		t.Helper()
		for _, want := range wanted {
			_, rest, ok := strings.Cut(text, want)
			if !ok {
				t.Errorf("there is no %q in\n%s", want, text)
				return
			}
			text = rest
		}
	}
	t.Run("Delve", func(t *testing.T) {
		if _, err := exec.LookPath("dlv"); err != nil {
			t.Skip("there is no dlv")
		}
		contains(t, debug(t, 0, "./testdata/bank", test, "-replay="+token), "coir debug: stopping before step 8\n",
			"> [coir] runtime.coirTraced()", ".transfer", "bank_test.go:16", ".TestTransfer.func2", "bank_test.go:27")
	})
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "dlv"), []byte(fakeDelve), 0o777); err != nil {
		t.Fatal(err)
	}
	path := os.Getenv("PATH")
	t.Setenv("PATH", dir+":"+path)
	contains(t, debug(t, 1, "./testdata/bank", test, "-replay="+token), "deadlock in schedule ", "'-gcflags=all=-N -l' -gcflags=std= ",
		"coir debug: stopping before step 8\n", "exec --allow-non-terminal-interactive --init --wd\n",
		"break coir runtime.coirTraced\ncondition coir step == 8 && testing.coirShown\ncontinue\n", "coir begin\n", "coir end\n",
		"--- FAIL: TestTransfer (")
	contains(t, debug(t, 1, "./testdata/bank", test, "-replay="+token, "-step=5"), "condition coir step == 5 ")
	contains(t, debug(t, 2, "./testdata/bank"), "-replay is missing: copy the line")
	contains(t, debug(t, 2, "./testdata/bank", "./testdata/left", test, "-replay="+token), "name exactly one package")
	contains(t, debug(t, 2, "./testdata/bank", "-run=TestNone", "-replay="+token), "-run selects 0 tests")
	contains(t, debug(t, 0, "-h"), "coir debug runs one schedule again")

	var out, errs bytes.Buffer
	if code := run([]string{"test", "-step=3", "."}, &out, &errs); code != 2 ||
		!strings.Contains(errs.String(), "-step is a flag of coir debug") {
		t.Errorf("exit code %d, %s%s", code, &out, &errs)
	}
	t.Setenv("PATH", t.TempDir())
	contains(t, debug(t, 2, "./testdata/bank", test, "-replay="+token), "dlv is not installed; run go install ")
}
