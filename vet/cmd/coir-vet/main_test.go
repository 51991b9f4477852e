package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// go vet runs the command, which prints what each analyzer finds, and fails. Each analyzer can be turned off.
func TestUnderGoVet(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command, and looks at what the programs import")
	}
	tool := filepath.Join(t.TempDir(), "coir-vet")
	if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	vet := func(args ...string) (string, error) {
		cmd := exec.Command("go", append([]string{"vet", "-vettool=" + tool}, args...)...)
		cmd.Dir = filepath.Join("..", "..", "testdata")
		cmd.Env = append(os.Environ(), "GOWORK=off")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := vet("./...")
	if err == nil {
		t.Errorf("go vet does not fail")
	}
	for _, want := range []string{
		"buffers/wrong.go:17:2: Release of b, which was released at line 16",
		"cancels/cancels.go:16:7: the cancel function of coir.WithTimeout is discarded",
		"ranges/ranges.go:14:2: the loop drops the error of c.All",
		"waits/waits.go:18:3: time.Sleep holds the worker",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("go vet does not print %q:\n%s", want, out)
		}
	}
	if out, err := vet("-coirwait=false", "./waits"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
