package archtest

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A Queue calls its Resource with synchronisation hidden from the race detector, so the Resource's methods, and what
// they call, must be marked.
func TestResourcesAreNotSeen(t *testing.T) {
	s, err := ReadSource(root(t))
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, dir := range Satellites {
		if _, err := os.Stat(filepath.Join(root(t), dir)); err != nil {
			continue
		}
		called, err := s.Resources(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(called) == 0 {
			continue
		}
		all = slices.AppendSeq(all, maps.Keys(called))
		problems, err := s.Hidden(dir, HiddenRules{Called: called})
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range problems {
			t.Error(problem)
		}
	}
	slices.Sort(all)
	for _, name := range []string{"mutex.Put", "mutex.Take", "mutex.Verb", "rwmutex.Take", "semaphore.Take"} {
		if _, ok := slices.BinarySearch(all, name); !ok {
			t.Errorf("%s was not checked; these were: %v", name, all)
		}
	}
}

// The check finds a method without the mark, and a function without it that a method calls.
func TestResourcesWithoutTheMark(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("coir.go", "package coir\n\ntype Resource interface {\n\tTake() bool\n\tPut() bool\n}\n")
	write("locks/locks.go", `package locks

import _ "github.com/coir-go/coir"

type one struct{ left int }

//go:norace
func (o *one) Take() bool { return o.has() }

func (o *one) Put() bool { o.left++; return true }

func (o *one) has() bool { return o.left > 0 }

func (o *one) Other() {}
`)
	s := newSource(dir, nil)
	called, err := s.Resources("locks")
	if err != nil {
		t.Fatal(err)
	}
	problems, err := s.Hidden("locks", HiddenRules{Called: called})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(problems, "\n")
	if len(problems) != 2 || !strings.Contains(text, "one.Put") || !strings.Contains(text, "one.has") {
		t.Errorf("found:\n%s", text)
	}
}
