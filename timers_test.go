package coir_test

// Sleeping fibers: a hundred thousand sleep at the same time, none wakes early, none is lost, and they wake in the
// order of their deadlines. (internal/clock tests the wheel itself, with ten million timers.)

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// sleeper is one sleeping fiber. Its deadline is its duration after some moment between the call of Sleep and the park.
type sleeper struct {
	d             time.Duration
	before, after time.Duration // since the beginning of the test
}

// Spec: TM-01 (deadlines are monotonic times)
// Spec: TM-02 (a sleeper is in no run queue)
// Spec: TM-03 (no timer fires early)
// Spec: TM-04 (no timer is lost)
// Spec: TM-09 (timers fire while workers sleep)
// Spec: TM-13 (expired sleepers are queued as others are)
func TestSleepers(t *testing.T) {
	count := sized(20_000, 100_000, 1_000_000)
	lead := 500 * time.Millisecond
	for range 5 {
		judged, asleep := sleepAndWake(t, count, lead)
		if judged >= count/10 {
			return
		}
		lead = 2 * max(lead, asleep) // they need longer to park
	}
	t.Skip("this machine is too busy to tell the order")
}

// sleepAndWake makes many fibers sleep for at least lead. It returns the number of fibers whose order of waking it has
// checked, and when all slept. It can check only fibers that were due after that: a fiber whose time is up before it
// has parked is readied by the worker that parks it, which may be late.
func sleepAndWake(t *testing.T, count int, lead time.Duration) (judged int, asleep time.Duration) {
	begin := time.Now()
	sleepers := make([]sleeper, count)
	byFiber := make(map[*coir.Fiber]*sleeper, count)
	var known sync.RWMutex // guards byFiber
	find := func(f *coir.Fiber) *sleeper {
		known.RLock()
		defer known.RUnlock()
		return byFiber[f]
	}
	var order struct {
		sync.Mutex
		woken []*sleeper
	}
	obs := &hooked{
		onParked: func(f *coir.Fiber) {
			if s := find(f); s != nil {
				s.after = time.Since(begin)
			}
		},
		onReady: func(f *coir.Fiber) {
			if s := find(f); s != nil {
				order.Lock()
				order.woken = append(order.woken, s)
				order.Unlock()
			}
		},
	}
	rt := newRuntime(t, coir.WithWorkers(1), coir.WithObserver(obs))
	var woke, early atomic.Int64
	var worst atomic.Int64
	err := rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		fibers := make([]*coir.Fiber, count)
		for i := range sleepers {
			s := &sleepers[i]
			s.d = lead + time.Duration(rand.Int64N(int64(2*time.Second)))
			fibers[i] = n.Go("sleeper", func(ctx context.Context) error {
				self := coir.Self(ctx)
				known.Lock()
				byFiber[self] = s
				known.Unlock()
				s.before = time.Since(begin)
				if err := coir.Sleep(ctx, s.d); err != nil {
					return err
				}
				late := time.Since(begin) - s.before - s.d
				if late < 0 {
					early.Add(1)
				}
				worst.Store(max(worst.Load(), int64(late)))
				woke.Add(1)
				return nil
			})
		}
		for _, f := range fibers {
			for state := f.State(); state != coir.StateWaiting && state != coir.StateEnded; state = f.State() {
				if err := coir.Yield(ctx); err != nil {
					return err
				}
			}
		}
		for rt.Stats().Held > 0 { // a worker that was replaced may be about to park a fiber
			if err := coir.Yield(ctx); err != nil {
				return err
			}
		}
		asleep = time.Since(begin)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if early.Load() > 0 || woke.Load() != int64(count) {
		t.Fatalf("%d woke, %d of them early; %d slept", woke.Load(), early.Load(), count)
	}
	// No fiber may have been woken before another whose deadline is certain to be earlier.
	order.Lock()
	defer order.Unlock()
	latest := time.Duration(0)
	for i, s := range order.woken {
		if s.after == 0 || s.before+s.d <= asleep {
			continue
		}
		judged++
		if end := s.after + s.d; end < latest {
			t.Fatalf("wake %d of %d: due at %v at the latest, after one that was not due before %v", i, len(order.woken), end, latest)
		}
		latest = max(latest, s.before+s.d)
	}
	t.Logf("%d sleepers, all of them after %v; %d were due later; the latest woke %v late",
		count, asleep, judged, time.Duration(worst.Load()))
	return judged, asleep
}

// Deadlines of scopes: each wait under one ends at its deadline, not before, with ErrTimeout; a scope inside another
// ends with the earlier of the two.
//
// Spec: TM-03 (no timer fires early)
// Spec: TM-04 (no timer is lost)
// Spec: TM-10 (a timeout is an ordinary claim)
func TestScopeDeadlines(t *testing.T) {
	count := sized(5_000, 20_000, 200_000)
	rt := newRuntime(t)
	var ended atomic.Int64
	err := rt.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
		for i := range count {
			n.Go("waiter", func(ctx context.Context) error {
				d := time.Duration(1 + rand.Int64N(int64(500*time.Millisecond)))
				at := time.Now().Add(d)
				c, cancel := coir.WithDeadline(ctx, at)
				defer cancel()
				if i%2 == 0 {
					inner, stop := coir.WithTimeout(c, time.Hour)
					defer stop()
					c = inner
				}
				if got, ok := c.Deadline(); !ok || !got.Equal(at) {
					t.Errorf("the scope's deadline is %v, want %v", got, at)
				}
				err := coir.Sleep(c, 24*time.Hour)
				if now := time.Now(); now.Before(at) {
					t.Errorf("timed out %v early", at.Sub(now))
				}
				if !errors.Is(err, coir.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("Sleep: %v", err)
				}
				ended.Add(1)
				return nil
			})
		}
		return nil
	})
	if err != nil || ended.Load() != int64(count) {
		t.Fatalf("%d of %d ended: %v", ended.Load(), count, err)
	}
}

// A goroutine sleeps by the same clock.
func TestGuestSleeps(t *testing.T) {
	start := time.Now()
	if err := coir.Sleep(t.Context(), 5*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(start); d < 5*time.Millisecond {
		t.Fatalf("slept %v", d)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := coir.Sleep(ctx, time.Hour); !errors.Is(err, coir.ErrTimeout) {
		t.Fatalf("Sleep: %v", err)
	}
}

// TestTimersAreNotLate bounds how late a fiber wakes from a sleep in a quiet process. To measure what the machine adds,
// goroutines sleep equally long with time.Sleep at the same time: if those are late too, the process was not quiet, and
// the round shows nothing. A round in which the goroutines are in time and the fibers are not counts as a failure only
// if it happens three times, because a preemption may hit only the fibers.
func TestTimersAreNotLate(t *testing.T) {
	// Spec: TM-16 (how late a timer may be)
	const (
		median, worst           = 3 * time.Millisecond, 30 * time.Millisecond // of fibers; see TM-16
		quietMedian, quietWorst = 2 * time.Millisecond, 15 * time.Millisecond // of goroutines
		rounds, failures        = 12, 3
	)
	rt := newRuntime(t)
	failed := 0
	for range rounds {
		fibers, goroutines := lateness(t, rt, 60)
		t.Logf("fibers: median %v, worst %v; goroutines: median %v, worst %v",
			fibers[len(fibers)/2], fibers[len(fibers)-1], goroutines[len(goroutines)/2], goroutines[len(goroutines)-1])
		switch {
		case fibers[0] < 0:
			t.Fatalf("a fiber woke %v early", -fibers[0])
		case goroutines[len(goroutines)/2] > quietMedian || goroutines[len(goroutines)-1] > quietWorst:
			continue
		case fibers[len(fibers)/2] <= median && fibers[len(fibers)-1] <= worst:
			return
		}
		if failed++; failed == failures {
			t.Fatalf("in %d rounds fibers woke late and goroutines did not; at most %v in the median and %v at worst", failed, median, worst)
		}
	}
	t.Skipf("goroutines that sleep wake late in most of %d rounds: this process is not quiet", rounds)
}

// lateness returns, sorted, how late fibers and goroutines woke from their sleeps. They sleep one after the other, for
// times that no tick divides.
func lateness(t *testing.T, rt *coir.Runtime, sleeps int) (fibers, goroutines []time.Duration) {
	length := func(i int) time.Duration { return 1013*time.Microsecond + time.Duration(i%7)*613*time.Microsecond }
	var control sync.WaitGroup
	control.Go(func() {
		for i := range sleeps {
			due := time.Now().Add(length(i))
			time.Sleep(length(i))
			goroutines = append(goroutines, time.Since(due))
		}
	})
	err := rt.Run(t.Context(), func(ctx context.Context, _ *coir.Nursery) error {
		for i := range sleeps {
			due := time.Now().Add(length(i))
			if err := coir.Sleep(ctx, length(i)); err != nil {
				return err
			}
			fibers = append(fibers, time.Since(due))
		}
		return nil
	})
	control.Wait()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(fibers)
	slices.Sort(goroutines)
	return fibers, goroutines
}
