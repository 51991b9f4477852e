//go:build !race

package coro

import (
	"bytes"
	"context"
	"runtime"
	"runtime/pprof"
	"testing"
)

// The word at lockAt follows the lock.
//
// Spec: FB-30 (a locked fiber keeps its thread)
func TestLockWord(t *testing.T) {
	seen := make(chan []bool)
	go func() {
		var x tie
		x.init()
		if x.word == &unknown {
			seen <- nil
			return
		}
		steps := []bool{x.maybe()}
		lock, unlock := runtime.LockOSThread, runtime.UnlockOSThread
		for _, step := range []func(){lock, lock, unlock, unlock} {
			step()
			steps = append(steps, x.maybe())
			if x.maybe() != bound() {
				t.Errorf("the word says %v, the runtime %v", x.maybe(), bound())
			}
		}
		seen <- steps
	}()
	got := <-seen
	if got == nil {
		t.Skip("none is known in this build: see TestLockWordIsFound")
	}
	for i, want := range []bool{false, true, true, true, false} {
		if got[i] != want {
			t.Fatalf("locked: %v", got)
		}
	}
}

// A locked coroutine passes control on and gets it back like any other, on either side of a transfer.
//
// Spec: FB-30 (a locked fiber keeps its thread)
func TestLockedCoroutineTransfers(t *testing.T) {
	before := runtime.NumGoroutine()
	var main Coro
	var trail []int
	var a, b *fiber
	g := uintptr(0)
	a = newFiber(func(f *fiber) {
		runtime.LockOSThread()
		g = G()
		for i := range 3 {
			trail = append(trail, i)
			if !f.Bound() || G() != g {
				t.Error("a locked coroutine has lost its lock, or changed its goroutine")
			}
			Transfer(&f.Coro, &b.Coro)
		}
		runtime.UnlockOSThread()
		if f.Bound() {
			t.Error("an unlocked coroutine is bound")
		}
	}, &main)
	b = newFiber(func(f *fiber) {
		for i := range 3 {
			trail = append(trail, 10+i)
			Transfer(&f.Coro, &a.Coro)
		}
	}, &main)
	Transfer(&main, &a.Coro) // until a rests
	Transfer(&main, &b.Coro) // until b rests
	for i, want := range []int{0, 10, 1, 11, 2, 12} {
		if len(trail) != 6 || trail[i] != want {
			t.Fatalf("control went %v", trail)
		}
	}
	release([]*fiber{a, b})
	goroutinesEnd(t, before)
}

func BenchmarkLockedTransfer(b *testing.B) {
	var main Coro
	stop := false
	f := newFiber(func(f *fiber) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for !stop {
			Transfer(&f.Coro, &main)
		}
	}, &main)
	for i := 0; i < b.N; i += 2 {
		Transfer(&main, &f.Coro)
	}
	stop = true
	Transfer(&main, &f.Coro)
	release([]*fiber{f})
}

// TestLabelsAreNoLock: the header of a traceback may contain labels, which are text of the program and not of the
// runtime.
func TestLabelsAreNoLock(t *testing.T) {
	t.Setenv("GODEBUG", "tracebacklabels=1")
	pprof.Do(t.Context(), pprof.Labels("fiber", "locked to thread"), func(context.Context) {
		var buf [200]byte
		header, _, _ := bytes.Cut(buf[:runtime.Stack(buf[:], false)], []byte("\n"))
		if !bytes.Contains(header, []byte("locked")) {
			t.Fatalf("the header has no labels, and the test shows nothing: %s", header)
		}
		if bound() {
			t.Error("a goroutine with a label is taken for one that is locked to its thread")
		}
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if !bound() {
			t.Error("a goroutine that is locked to its thread is not taken for one")
		}
	})
}
