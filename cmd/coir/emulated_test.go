package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Under an emulator of linux/arm64, the same schedules do the same as here. For other platforms see `make platforms`.
func TestArm64(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	emulator, err := exec.LookPath("qemu-aarch64")
	if err != nil {
		emulator, err = exec.LookPath("qemu-aarch64-static")
	}
	if err != nil || runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("there is no emulator of arm64")
	}
	native, foreign := buildBank(t, "amd64"), buildBank(t, "arm64")
	if here, there := recorded(t, base, native), recorded(t, base, emulator, foreign); here != there {
		t.Errorf("on amd64 the record is\n%s\nand on arm64\n%s", here, there)
	}
}

// A token is valid whenever it is replayed: what a schedule does depends on the date only if the program does.
func TestAnotherDate(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	name := buildBank(t, runtime.GOARCH)
	now, later := recorded(t, base, name), recorded(t, base.AddDate(1, 7, 3), name)
	if now != later {
		t.Errorf("on %v the record is\n%s\nand later\n%s", base, now, later)
	}
}

// A setting that the explorer does not know, or cannot read, is a mistake in the command, and ends the process.
func TestSettingsAreChecked(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the standard library")
	}
	name := buildBank(t, runtime.GOARCH)
	for setting, why := range map[string]string{
		"fresh=3": "unknown setting", "only=x": "invalid syntax", "budget=1": "missing unit",
		"racing=yes": "invalid syntax", "network=none": "want memory or kernel",
	} {
		c := exec.Command(name, "-test.run=^TestTransfer$")
		c.Env = append(os.Environ(), "COIR_TEST=schedules=5,"+setting)
		out, err := c.CombinedOutput()
		want := fmt.Sprintf("panic: coir: COIR_TEST has the setting %q: ", setting)
		if err == nil || !strings.Contains(string(out), want) || !strings.Contains(string(out), why) {
			t.Errorf("%s: %v, want %s%s\n%s", setting, err, want, why, out)
		}
	}
}

// base is the virtual time at which the schedules of these tests begin.
var base = time.Date(2026, 12, 15, 10, 20, 30, 0, time.UTC)

func buildBank(t *testing.T, goarch string) string {
	t.Helper()
	t.Setenv("GOARCH", goarch)
	t.Setenv("CGO_ENABLED", "0")
	name := filepath.Join(t.TempDir(), "bank.test")
	var out, errs bytes.Buffer
	if code := run([]string{"test", "-c", "-o", name, "./testdata/bank"}, &out, &errs); code != 0 {
		t.Fatalf("%s: exit code %d: %s%s", goarch, code, &out, &errs)
	}
	return name
}

// recorded explores a failing test whose schedules begin at the given time. It returns the record of the process,
// without the output, which has real times.
func recorded(t *testing.T, base time.Time, name string, args ...string) string {
	t.Helper()
	record := filepath.Join(t.TempDir(), "record")
	c := exec.Command(name, append(args, "-test.run=^TestTransfer$")...)
	c.Env = append(os.Environ(), fmt.Sprintf("COIR_TEST=schedules=50,budget=1h,base=%d", base.Unix()),
		"COIR_RECORD="+record)
	out, err := c.CombinedOutput()
	text, readErr := os.ReadFile(record)
	if readErr != nil || !strings.Contains(string(text), "\nsummary\t\"fail\"") {
		t.Fatalf("%s: %v %v\n%s%s", name, err, readErr, out, text)
	}
	var kept []string
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "output\t") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}
