package coir_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/snapshot"
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

// TestSnapshotsTellWhatHoldsAWorker: a snapshot tells a fiber that computes from one that is in a system call, and from
// one that reads from the network, and since when.
func TestSnapshotsTellWhatHoldsAWorker(t *testing.T) {
	if !coro.Assembly {
		t.Skip("without assembly that is not known")
	}
	rt := coir.NewRuntime(coir.WithWorkers(1), coir.OnStall(0, nil))
	var stop atomic.Bool
	var pipe [2]int
	if err := syscall.Pipe(pipe[:]); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	end := inBackground(rt, func(_ context.Context, n *coir.Nursery) error {
		n.Go("sum", func(context.Context) error {
			for !stop.Load() {
			}
			return nil
		})
		n.Go("read", func(context.Context) error {
			_, err := syscall.Read(pipe[0], make([]byte, 1))
			return err
		})
		n.Go("accept", func(context.Context) error {
			_, _ = l.Accept()
			return nil
		})
		return nil
	})
	want := map[string]struct {
		state snapshot.State
		call  string
	}{
		"sum": {snapshot.StateRunning, "running"}, "read": {snapshot.StateBlocking, "syscall"},
		"accept": {snapshot.StateBlocking, "IO wait"},
	}
	begin := time.Now()
	snapshotWhen(t, rt, "each holds a worker", func(s *snapshot.Snapshot) bool {
		for name, is := range want {
			f := fiberIn(s, name)
			if f == nil || f.State != is.state || f.Call != is.call {
				return false
			}
			at := slices.IndexFunc(s.Workers, func(w snapshot.Worker) bool { return w.Fiber == f.ID })
			if at < 0 || s.Workers[at].Since.IsZero() {
				return false
			}
			if since := s.Workers[at].Since; since.Before(begin.Add(-time.Second)) || since.After(time.Now()) {
				t.Errorf("%s has its worker since %v", name, since)
			}
		}
		return true
	})
	stop.Store(true)
	_, _ = syscall.Write(pipe[1], []byte{1})
	_ = l.Close()
	if err := end(); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	_, _ = syscall.Close(pipe[0]), syscall.Close(pipe[1])
}
