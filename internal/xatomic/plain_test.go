//go:build !coirinterleave

package xatomic

// In a normal build the types are those of the standard library, and so is the code.

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
)

var (
	_ *atomic.Bool         = (*Bool)(nil)
	_ *atomic.Int32        = (*Int32)(nil)
	_ *atomic.Int64        = (*Int64)(nil)
	_ *atomic.Uint32       = (*Uint32)(nil)
	_ *atomic.Uint64       = (*Uint64)(nil)
	_ *atomic.Pointer[int] = (*Pointer[int])(nil)
	_ *sync.Mutex          = (*Mutex)(nil)
)

// A program contains nothing of this package, of the explorer, or of the empty forms of internal/race and
// internal/invariant: everything in them is an alias or is inlined. A function that only generic code of the library
// calls would not be inlined, because the compiler does not export its body to the packages that use that code.
func TestNothingIsLeftInAProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	bin := filepath.Join(t.TempDir(), "program")
	build := exec.Command("go", "build", "-o", bin, "./examples/crawler")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	names, err := exec.Command("go", "tool", "nm", bin).Output()
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(names, []byte("coir/internal/sched.")) {
		t.Fatal("the program does not have the scheduler in it: what is looked at is not it")
	}
	for line := range bytes.Lines(names) {
		for _, empty := range []string{"xatomic.", "interleave.", "race.Meet", "race.Offer", "race.Reads", "race.Wrote", "invariant.Check"} {
			if bytes.Contains(line, []byte("coir/internal/"+empty)) {
				t.Errorf("the program has the symbol %s, want none of %s", bytes.TrimSpace(line), empty)
			}
		}
	}
}

func TestSema(t *testing.T) {
	s, done := NewSema(), NewGate()
	go func() {
		s.Wait()
		<-s.C()
		done.Open()
	}()
	s.Post()
	s.Post()
	done.Wait()
	done.Wait()
	if s.Unmade() || !(Sema{}).Unmade() {
		t.Error("Unmade does not tell what NewSema has made")
	}
}
