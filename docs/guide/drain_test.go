package guide_test

// The program of streams.md that stops without loss.

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// The guide shows the program as it is, and its test passes.
func TestTheDrainOfTheGuide(t *testing.T) {
	if program := read(t, "testdata/drain/main.go"); !strings.Contains(read(t, "streams.md"), "```go\n"+program+"```\n") {
		t.Error("streams.md does not show testdata/drain/main.go: copy it there")
	}
	if testing.Short() {
		t.Skip("it builds a program")
	}
	out, err := exec.Command("go", "test", "-count=1", "./testdata/drain").CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// The program stops at an interrupt, and has stored all that it has accepted.
func TestTheDrainOfTheGuideStops(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a program")
	}
	if runtime.GOOS == "windows" {
		t.Skip("a process cannot be interrupted there")
	}
	program := filepath.Join(t.TempDir(), "drain")
	if out, err := exec.Command("go", "build", "-o", program, "./testdata/drain").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c := exec.Command(program)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	last := ""
	for lines := bufio.NewScanner(out); lines.Scan(); {
		last = lines.Text()
		if last == "order 10 is accepted" {
			if err := c.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := c.Wait(); err != nil {
		t.Error(err)
	}
	m := regexp.MustCompile(`^accepted (\d+): stored (\d+), kept 0, error <nil>$`).FindStringSubmatch(last)
	if m == nil || m[1] != m[2] {
		t.Errorf("the last line is %q", last)
	}
}
