//go:build linux || darwin

package coir_test

// The resources of a runtime. Fibers park and are resumed a hundred million times, and the memory does not grow (make
// soak; an ordinary run does a small part). A hundred thousand waiting fibers, and as many distant timers, use no
// processor time.

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/soak"
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/snapshot"
)

// Spec: SC-26 (parked fibers cost no CPU)
// Spec: SC-32 (the monitor is advisory)
func TestIdleCostsNothing(t *testing.T) {
	fibers, period, bound := 100_000, 10*time.Second, 10*time.Millisecond
	if testing.Short() || raceEnabled {
		fibers, period, bound = 10_000, time.Second, 4*time.Millisecond
	}
	rt := newRuntime(t)
	err := rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		never := n.Go("never", func(ctx context.Context) error { return coir.Sleep(ctx, 2*time.Hour) })
		all := make([]*coir.Fiber, fibers)
		for i := range all {
			all[i] = n.Go("waiter", func(ctx context.Context) error {
				c, cancel := coir.WithTimeout(ctx, time.Hour) // a timer each
				defer cancel()
				return never.Wait(c)
			})
		}
		for _, f := range all {
			for f.State() != coir.StateWaiting {
				if err := coir.Yield(ctx); err != nil {
					return err
				}
			}
		}
		runtime.GC()
		defer debug.SetGCPercent(debug.SetGCPercent(-1)) // do not measure the collector, nor what gives memory back
		used, best := time.Duration(0), time.Duration(1<<62)
		for range 10 { // other processes can only add to the time: try again
			blocking(ctx, func() {
				<-time.After(200 * time.Millisecond) // the monitor sees that nothing runs, and stops
				before := cpuTime(t)
				<-time.After(period)
				used = cpuTime(t) - before
			})
			if best = min(best, used); best <= bound {
				break
			}
		}
		t.Logf("%d fibers parked, %d timers armed: %v of CPU time in %v", fibers, fibers, best, period)
		if best > bound {
			t.Errorf("%v of CPU time in %v; at most %v", best, period, bound)
		}
		n.Cancel(errStop)
		return nil
	})
	if !isCancelFor(err, errStop) {
		t.Fatal(err)
	}
}

// cpuTime returns the CPU time of the process, in user and in system mode.
func cpuTime(t *testing.T) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Fibers park and are resumed in three ways: by each other, by time, and by the end of a fiber. Memory is measured with
// every fiber parked, after a quarter and at the end.
//
// Spec: FB-03 (a coroutine is reused for the next thunk)
// Spec: FB-32 (memory alone bounds the number of fibers)
// Spec: PK-29 (no spurious returns)
func TestSoak(t *testing.T) {
	cycles := sized(200_000, 2_000_000, 100_000_000)
	const inPairs, sleepers, spawners = 500, 250, 250
	rt := newRuntime(t)
	quarter := cycles / 4 / (inPairs + sleepers + spawners)
	var done atomic.Int64
	var memory [2]uint64
	start := time.Now()
	err := rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		var gates [2]*coir.Fiber // the first for the first quarter, the second for the end
		var open [2]context.CancelCauseFunc
		for i := range gates {
			var c context.Context
			c, open[i] = coir.WithCancelCause(ctx)
			gates[i] = n.Go("gate", func(context.Context) error {
				_ = coir.Sleep(c, 24*time.Hour)
				return nil
			})
		}
		var fibers []*coir.Fiber
		spawn := func(name string, cycle func(ctx context.Context, n int)) {
			fibers = append(fibers, n.Go(name, func(ctx context.Context) error {
				cycle(ctx, quarter)
				if err := gates[0].Wait(ctx); err != nil {
					return err
				}
				cycle(ctx, 3*quarter)
				return gates[1].Wait(ctx)
			}))
		}
		for range inPairs / 2 {
			p := [2]*pair{newPair(ctx, n), newPair(ctx, n)} // one for each stretch
			for side := range 2 {
				stretch := 0
				spawn("pair", func(ctx context.Context, count int) {
					p[stretch].play(ctx, side, func() bool { done.Add(1); count--; return count > 0 })
					stretch++
				})
			}
		}
		for range sleepers {
			spawn("sleeper", func(ctx context.Context, count int) {
				for range count {
					_ = coir.Sleep(ctx, time.Nanosecond)
					done.Add(1)
				}
			})
		}
		for range spawners {
			spawn("spawner", func(ctx context.Context, count int) {
				for range count {
					_ = n.Go("child", func(context.Context) error { return nil }).Wait(ctx)
					done.Add(1)
				}
			})
		}
		for i, want := range []int{quarter, 4 * quarter} {
			for _, f := range fibers {
				for f.State() != coir.StateWaiting || done.Load() < int64(want*len(fibers)*9/10) {
					if err := coir.Sleep(ctx, time.Millisecond); err != nil {
						return err
					}
				}
			}
			memory[i] = memoryInUse()
			open[i](nil)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s := rt.Stats()
	t.Logf("%d cycles in %v, %d switches; %d KiB in use after a quarter, %d KiB at the end; %d coroutines",
		done.Load(), time.Since(start), s.Switches, memory[0]>>10, memory[1]>>10, s.Coroutines)
	// The constant allows for what comes and goes: the stacks and frames of 250 children, and what earlier tests left.
	// A leak of 32 bytes per cycle is 48 MiB.
	if float64(memory[1]) > 1.1*float64(memory[0])+4<<20 {
		t.Errorf("memory grew from %d to %d bytes", memory[0], memory[1])
	}
}

// memoryInUse returns the size of the heap and the stacks after garbage collection.
func memoryInUse() uint64 {
	debug.FreeOSMemory()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// Snapshots are taken, and explained, as fast as they come, while fibers pass values, lock, start others and are
// cancelled. Memory is measured when the fibers have ended, after a quarter of the time and at the end. No deadlock is
// certain, because there is none.
func TestSnapshotsForLong(t *testing.T) {
	whole := 2 * time.Second
	if testing.Short() {
		whole = 400 * time.Millisecond
	}
	if soak.On() {
		whole = 10 * time.Minute
	}
	coir.ListObjects(true)
	defer coir.ListObjects(false)
	rt := newRuntime(t)
	taken, fibers := 0, 0
	snapshots := func(stop *atomic.Bool, done chan<- bool) {
		defer close(done)
		var last *snapshot.Snapshot
		for !stop.Load() {
			s := rt.Snapshot(snapshot.Options{Stacks: taken%100 == 99})
			for _, e := range snapshot.Explain(last, s) {
				if e.Certain {
					t.Errorf("certain: %s", e.Text)
				}
			}
			last, taken, fibers = s, taken+1, fibers+len(s.Fibers)
		}
	}
	inBoth := func(ctx context.Context, locked [2]*locks.Mutex) error {
		for _, m := range locked {
			if err := m.Lock(ctx); err != nil {
				return err
			}
			defer m.Unlock()
		}
		return coir.Yield(ctx)
	}
	load := func(n *coir.Nursery, until time.Time) {
		locked := [2]*locks.Mutex{locks.NewMutex(coir.WithName("first")), locks.NewMutex(coir.WithName("second"))}
		for range 20 {
			c := coir.NewChan[int](1, coir.WithName("values"))
			n.Go("sender", func(ctx context.Context) error {
				defer c.Close()
				for i := 0; time.Now().Before(until); i++ {
					if err := c.Send(ctx, i); err != nil {
						return err
					}
				}
				return nil
			})
			n.Go("receiver", func(ctx context.Context) error {
				for range c.All(ctx) {
				}
				return nil
			})
			n.Go("locker", func(ctx context.Context) error {
				for time.Now().Before(until) {
					if err := inBoth(ctx, locked); err != nil {
						return err
					}
				}
				return nil
			})
			n.Go("spawner", func(ctx context.Context) error {
				for time.Now().Before(until) {
					_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
						for range 5 {
							n.Go("child", coir.WaitCancel)
						}
						n.Go("sleeper", func(ctx context.Context) error { return coir.Sleep(ctx, time.Microsecond) })
						n.Cancel(errStop)
						return nil
					})
				}
				return nil
			})
		}
	}
	round := func(d time.Duration) uint64 {
		var stop atomic.Bool
		done := make(chan bool)
		go snapshots(&stop, done)
		err := rt.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
			load(n, time.Now().Add(d))
			return nil
		})
		stop.Store(true)
		<-done
		if err != nil {
			t.Fatal(err)
		}
		return memoryInUse()
	}
	before := round(whole / 4)
	after := round(whole - whole/4)
	t.Logf("%d snapshots of %d fibers; %d KiB in use after a quarter, %d KiB at the end", taken, fibers, before>>10, after>>10)
	if float64(after) > 1.1*float64(before)+4<<20 {
		t.Errorf("memory grew from %d to %d bytes", before, after)
	}
}
