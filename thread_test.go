package coir_test

// Fibers that are locked to their thread, and the other state that the Go runtime keeps for a goroutine: profiler
// labels, and whether a fault panics. A fiber has them like a goroutine, and the next fiber on the same goroutine finds
// none of them.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
)

// everyWait does everything that takes a fiber off its worker, in a child that calls check before and after. Other
// fibers on the same worker end its waits.
func everyWait(n *coir.Nursery, lock, check func()) {
	ch, back := coir.NewChan[int](0), coir.NewChan[int](0)
	n.Go("echo", func(ctx context.Context) error {
		for v, err := range ch.All(ctx) {
			if err != nil {
				return err
			}
			if err := back.Send(ctx, v); err != nil {
				return err
			}
		}
		return nil
	})
	n.Go("locked", func(ctx context.Context) error {
		lock()
		defer runtime.UnlockOSThread()
		step := func(err error) {
			check()
			if err != nil {
				panic(err)
			}
		}
		step(nil)
		for i := range 3 {
			step(ch.Send(ctx, i))
			v, err := back.Recv(ctx)
			if v != i {
				err = fmt.Errorf("got %d, want %d", v, i)
			}
			step(err)
		}
		step(coir.Sleep(ctx, time.Millisecond))
		for range 10 {
			step(coir.Yield(ctx))
		}
		for range 1000 { // yields when its budget is spent
			if _, err := back.TryRecv(); !errors.Is(err, coir.ErrWouldBlock) {
				step(err)
			}
		}
		step(nil)
		_, err := coir.Select(ctx, back.RecvCase(new(int)), coir.After(time.Millisecond))
		step(err)
		step(n.Go("other", func(ctx context.Context) error { return coir.Yield(ctx) }).Wait(ctx))
		step(coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("inner", func(ctx context.Context) error { return coir.Yield(ctx) })
			return nil
		}))
		blocking(ctx, func() { runtime.Gosched() })
		step(nil)
		ch.Close()
		return nil
	})
}

// A fiber may lock its thread and wait, yield and end like any other.
//
// Spec: FB-30 (a locked fiber keeps its thread)
func TestLockedFiberWaits(t *testing.T) {
	nothing := func() {}
	for _, workers := range []int{1, 2} {
		t.Run(fmt.Sprint(workers), func(t *testing.T) {
			rt := on(t, coir.WithWorkers(workers))
			err := rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
				for range 4 {
					everyWait(n, runtime.LockOSThread, nothing)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// Under sim too, where one fiber runs at a time.
//
// Spec: FB-30 (a locked fiber keeps its thread)
func TestLockedFiberUnderSim(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		var running atomic.Int32
		ch := coir.NewChan[int](0)
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			for i := range 3 {
				n.Go("locked", func(ctx context.Context) error {
					runtime.LockOSThread()
					defer runtime.UnlockOSThread()
					if running.Add(1) != 1 {
						s.Errorf("two fibers run at once")
					}
					runtime.Gosched()
					running.Add(-1)
					return ch.Send(ctx, i)
				})
			}
			for range 3 {
				if _, err := ch.Recv(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			s.Errorf("%v", err)
		}
	}, sim.WithSchedules(20))
}

// A cancellation ends the wait of a locked fiber; its panic and its Goexit are like those of any other.
//
// Spec: FB-25 (Goexit ends one fiber alone)
// Spec: FB-30 (a locked fiber keeps its thread)
func TestLockedFiberEnds(t *testing.T) {
	left := goroutines(t)
	rt := on(t, coir.WithWorkers(1))
	err := rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		lock := func(f func(ctx context.Context) error) func(context.Context) error {
			return func(ctx context.Context) error {
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				if err := coir.Yield(ctx); err != nil {
					return err
				}
				return f(ctx)
			}
		}
		exits := n.Go("exits", lock(func(context.Context) error { runtime.Goexit(); return nil }))
		if err := exits.Wait(ctx); !errors.Is(err, coir.ErrGoexit) {
			t.Errorf("exits: %v", err)
		}
		waits := n.Go("waits", lock(func(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) }))
		fails := errors.New("fails")
		n.Go("fails", lock(func(context.Context) error { return fails }))
		err := waits.Wait(coir.Shield(ctx))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("waits: %v", err)
		}
		return nil
	})
	if err == nil || err.Error() != "fails" {
		t.Errorf("Run: %v", err)
	}
	if err := rt.Close(context.Background()); err != nil {
		t.Error(err)
	}
	left()
}

// apart runs the calling test in a separate process, and reports whether this is that process. There the test must
// print what the caller expects here.
func apart(t *testing.T, want string) bool {
	if os.Getenv("COIR_APART") == t.Name() {
		return true
	}
	cmd := itself(t.Context(), "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=60s")
	cmd.Env = append(os.Environ(), "COIR_APART="+t.Name())
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), want) {
		t.Errorf("%v; want %q in:\n%s", err, want, out)
	}
	return false
}

// A fiber that ends without unlocking its thread does not end the process, and other fibers continue. (In a separate
// process: the thread is kept forever.)
//
// Spec: FB-30 (a locked fiber keeps its thread)
func TestLockedEnd(t *testing.T) {
	if !apart(t, "survived all") {
		return
	}
	ends := map[string]func(){
		"returns": func() {},
		"panics":  func() { panic("over") },
		"exits":   runtime.Goexit,
	}
	survived := 0
	for range 5 {
		for name, end := range ends {
			rt := coir.NewRuntime(coir.WithWorkers(1))
			err := func() (err error) {
				defer func() {
					if r := recover(); r != nil {
						err = r.(error)
					}
				}()
				return rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
					n.Go(name, func(ctx context.Context) error {
						runtime.LockOSThread()
						runtime.LockOSThread()
						end()
						return nil
					})
					return nil
				})
			}()
			if bad := err != nil; bad != (name == "panics") {
				t.Errorf("%s: %v", name, err)
			}
			for range 5 { // the remaining coroutines serve others
				err = rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
					for range 50 {
						n.Go("later", func(ctx context.Context) error { return coir.Yield(ctx) })
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
			if err := rt.Close(context.Background()); err != nil {
				t.Error(err)
			}
			survived++
		}
	}
	if survived == 15 {
		fmt.Println("survived all")
	}
}

var profiling sync.Mutex // at most one goroutine is in profileHere

// labelsHere returns the profiler labels of the calling goroutine.
func labelsHere() string {
	profiling.Lock()
	defer profiling.Unlock()
	return profileHere()
}

//go:noinline
func profileHere() string {
	var b strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&b, 1); err != nil {
		panic(err)
	}
	for record := range strings.SplitSeq(b.String(), "\n\n") {
		if strings.Contains(record, "coir_test.profileHere") {
			for line := range strings.Lines(record) {
				if labels, ok := strings.CutPrefix(line, "# labels: "); ok {
					return strings.TrimSpace(labels)
				}
			}
		}
	}
	return ""
}

// A fiber starts with the labels of its spawner, and its own changes are its own.
//
// Spec: FB-34 (labels are inherited and not left behind)
func TestFiberLabels(t *testing.T) {
	const mine = `{"tenant":"mine"}`
	labelled := func(ctx context.Context, value string, f func(ctx context.Context)) {
		pprof.Do(ctx, pprof.Labels("tenant", value), f)
	}
	see := func(want string) func(context.Context) error {
		return func(ctx context.Context) error {
			for range 3 {
				if got := labelsHere(); got != want {
					t.Errorf("%s has labels %q, want %q", coir.Self(ctx).Name(), got, want)
				}
				if err := coir.Yield(ctx); err != nil {
					return err
				}
			}
			return nil
		}
	}
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		set := func(ctx context.Context) error {
			pprof.SetGoroutineLabels(pprof.WithLabels(ctx, pprof.Labels("tenant", "other")))
			return see(`{"tenant":"other"}`)(ctx)
		}
		err := n.Go("sets", set).Wait(ctx)
		if err == nil {
			err = n.Go("after", see("")).Wait(ctx)
		}
		if err != nil {
			return err
		}
		_ = n.Go("exits", func(ctx context.Context) error {
			defer runtime.Goexit()
			return set(ctx)
		}).Wait(ctx)
		if err := n.Go("after", see("")).Wait(ctx); err != nil {
			return err
		}
		labelled(ctx, "mine", func(ctx context.Context) {
			n.Go("inherits", func(ctx context.Context) error {
				n.Go("as well", see(mine))
				return see(mine)(ctx)
			})
			n.Go("and sets", set)
		})
		n.Go("does not", see(""))
		return nil
	}, nil)
	// The body of a Run from outside, and workers and coroutines that were made meanwhile.
	labelled(context.Background(), "mine", func(context.Context) {
		rt := on(t, coir.WithWorkers(2))
		first := coir.NewChan[int](0)
		var both sync.WaitGroup
		both.Go(func() {
			pprof.SetGoroutineLabels(context.Background())
			err := rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
				if err := first.Send(ctx, 1); err != nil {
					return err
				}
				for range 10 {
					n.Go("does not", see(""))
				}
				return see("")(ctx)
			})
			if err != nil {
				t.Error(err)
			}
		})
		err := rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
			if _, err := first.Recv(ctx); err != nil {
				return err
			}
			for range 10 {
				n.Go("inherits", see(mine))
			}
			return see(mine)(ctx)
		})
		if err != nil {
			t.Error(err)
		}
		both.Wait()
	})
}

// The setting of debug.SetPanicOnFault ends with the fiber.
//
// Spec: FB-34 (labels are inherited and not left behind)
func TestPanicOnFaultEndsWithTheFiber(t *testing.T) {
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		for range 3 {
			err := n.Go("sets", func(context.Context) error {
				if debug.SetPanicOnFault(true) {
					t.Error("a fiber begins with the setting of another")
				}
				return nil
			}).Wait(ctx)
			if err != nil {
				return err
			}
		}
		return nil
	}, nil)
}
