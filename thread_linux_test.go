package coir_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/coir-go/coir"
)

// A locked fiber is on the same thread after each wait.
//
// Spec: FB-30 (a locked fiber keeps its thread)
func TestLockedFiberKeepsItsThread(t *testing.T) {
	rt := on(t, coir.WithWorkers(2))
	err := rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for range 4 {
			tid := 0
			lock := func() {
				runtime.LockOSThread()
				tid = syscall.Gettid()
			}
			check := func() {
				if now := syscall.Gettid(); now != tid {
					t.Errorf("the fiber was on thread %d and is on %d", tid, now)
				}
			}
			everyWait(n, lock, check)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// No other fiber or goroutine uses the thread of a fiber that ended locked: the thread may be in a state that they must
// not see.
//
// Spec: FB-30 (a locked fiber keeps its thread)
func TestLockedEndKeepsTheThread(t *testing.T) {
	if !apart(t, "the thread was not used again") {
		return
	}
	rt := coir.NewRuntime(coir.WithWorkers(1))
	var locked atomic.Int64
	err := rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("locks", func(context.Context) error {
			runtime.LockOSThread()
			locked.Store(int64(syscall.Gettid()))
			return nil
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var used atomic.Int64
	look := func() {
		if int64(syscall.Gettid()) == locked.Load() {
			used.Add(1)
		}
	}
	for range 200 {
		all.Go(func() {
			for range 10 {
				look()
				runtime.Gosched()
			}
		})
	}
	err = rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for range 200 {
			n.Go("looks", func(ctx context.Context) error {
				for range 10 {
					look()
					blocking(ctx, runtime.Gosched)
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	all.Wait()
	if n := used.Load(); n > 0 {
		t.Fatalf("the thread was used %d times", n)
	}
	fmt.Println("the thread was not used again")
}
