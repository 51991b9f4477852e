package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// On linux/arm64 the same schedules do the same as here, under an emulator. For other platforms see `make platforms`.
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
	built := func(goarch string) string {
		t.Setenv("GOARCH", goarch)
		t.Setenv("CGO_ENABLED", "0")
		name := filepath.Join(t.TempDir(), "bank.test")
		var out, errs bytes.Buffer
		if code := run([]string{"test", "-c", "-o", name, "./testdata/bank"}, &out, &errs); code != 0 {
			t.Fatalf("%s: exit code %d: %s%s", goarch, code, &out, &errs)
		}
		return name
	}
	recorded := func(name string, args ...string) string {
		record := filepath.Join(t.TempDir(), "record")
		c := exec.Command(name, append(args, "-test.run=^TestTransfer$")...)
		c.Env = append(os.Environ(), "COIR_TEST=schedules=50,budget=1h", "COIR_RECORD="+record)
		out, err := c.CombinedOutput()
		text, readErr := os.ReadFile(record)
		if readErr != nil || !strings.Contains(string(text), "\nsummary\t\"fail\"") {
			t.Fatalf("%s: %v %v\n%s%s", name, err, readErr, out, text)
		}
		var kept []string
		for line := range strings.Lines(string(text)) { // the output has real times
			if !strings.HasPrefix(line, "output\t") {
				kept = append(kept, line)
			}
		}
		return strings.Join(kept, "")
	}
	if here, there := recorded(built("amd64")), recorded(emulator, built("arm64")); here != there {
		t.Errorf("on amd64 the record is\n%s\nand on arm64\n%s", here, there)
	}
}
