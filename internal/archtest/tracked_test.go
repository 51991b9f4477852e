package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestTrackedFilesBelong checks for files that do not belong in the repository: a program that was committed by mistake
// stays in every clone forever.
func TestTrackedFilesBelong(t *testing.T) {
	files, err := Tracked(root(t))
	if err != nil {
		t.Fatal(err)
	}
	there := make(map[string]bool)
	for _, file := range files {
		there[file.Path] = true
		fault, err := TrackedFault(root(t), file)
		if err != nil {
			t.Error(err)
		} else if fault != "" {
			t.Error(fault)
		}
	}
	if !there["go.mod"] {
		t.Errorf("the list of %d tracked files lacks go.mod: the reader is wrong", len(files))
	}
	for path := range Large {
		if !there[path] {
			t.Errorf("Large lists %s, which is not there: remove the line", path)
		}
	}
}

// TestTrackedFaults checks that each fault is found, and nothing else.
func TestTrackedFaults(t *testing.T) {
	for _, c := range []struct {
		name, head string
		exec       bool
		size       int64
		want       string
	}{
		{"script", "#!/bin/sh\n", true, 10, ""},
		{"text", "package coir\n", false, 10, ""},
		{"text", "package coir\n", true, 10, "is not a script"},
		{"empty", "", true, 0, "is not a script"},
		{"text", "MZ is a text.\n", false, 10, ""},
		{"a.exe", "MZ\x90\x00\x03", false, 10, "a PE binary"},
		{"a", "\x7fELF\x02\x01", true, 10, "an ELF binary"},
		{"a", "\x7fELF\x02\x01", false, 10, "an ELF binary"},
		{"a", "\xcf\xfa\xed\xfe\x07", true, 10, "a Mach-O binary"},
		{"a.wasm", "\x00asm\x01", false, 10, "a WebAssembly binary"},
		{"data", "1,2,3\n", false, LargeFile, ""},
		{"data", "1,2,3\n", false, LargeFile + 1, "more than"},
	} {
		got := fault(TrackedFile{c.name, c.exec}, []byte(c.head), c.size)
		if got == "" != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s %q, executable %v, %d bytes: fault is %q, want one that says %q", c.name, c.head, c.exec, c.size, got, c.want)
		}
	}
}

// TestTrackedReadsTheIndex checks that untracked files are ignored, and that the mode is git's and not the file
// system's.
func TestTrackedReadsTheIndex(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git")
	}
	dir := t.TempDir()
	for _, name := range []string{"kept", "tool", "scratch"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("text\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "kept", "tool"}, {"update-index", "--chmod=+x", "tool"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	got, err := Tracked(dir)
	if err != nil {
		t.Fatal(err)
	}
	if want := []TrackedFile{{"kept", false}, {"tool", true}}; !slices.Equal(got, want) {
		t.Errorf("tracked files are %v, want %v", got, want)
	}
}
