package pace_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/pace"
)

// A call that can never succeed fails immediately.
func TestMoreThanTheBurst(t *testing.T) {
	l := pace.NewLimiter(time.Hour, 3, coir.WithName("api"))
	if err := l.WaitN(context.Background(), 4); !errors.Is(err, pace.ErrTooMany) || !strings.Contains(err.Error(), "api") {
		t.Errorf("WaitN(4) of 3: %v", err)
	}
	if l.TryWaitN(4) {
		t.Error("TryWaitN took what the bucket cannot hold")
	}
	if !l.TryWaitN(3) || l.TryWaitN(1) {
		t.Error("the bucket did not hold 3 tokens")
	}
	if !l.TryWaitN(0) || l.WaitN(context.Background(), 0) != nil {
		t.Error("no token is more than there are")
	}
}

// If the context has ended, a call fails and takes no token, even if there are tokens.
func TestWaitInAnEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	l := pace.NewLimiter(time.Hour, 1)
	for _, n := range []int{0, 1, 2} { // none, one, and more than the bucket holds
		if err := l.WaitN(ctx, n); !errors.Is(err, context.Canceled) || errors.Is(err, pace.ErrTooMany) {
			t.Errorf("WaitN(%d): %v", n, err)
		}
	}
	if _, err := pace.NewTicker(time.Hour).Wait(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Ticker.Wait: %v", err)
	}
	if !l.TryWaitN(1) {
		t.Error("the token is gone")
	}
}

// A wait for tokens that come after the deadline fails at once, on a real and on a virtual clock, for deadlines of both
// packages. A deadline outside a shield is ignored.
func TestTooLateIsKnown(t *testing.T) {
	check := func(t *testing.T, ctx context.Context, now func() time.Duration) {
		t.Helper()
		l := pace.NewLimiter(time.Minute, 1, coir.WithName("api"))
		if !l.TryWaitN(1) {
			t.Error("the bucket is not full")
		}
		in, cancel := coir.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		before := now()
		err := l.Wait(in)
		if !errors.Is(err, coir.ErrTimeout) || now() != before {
			t.Errorf("it took %v and returned %v", now()-before, err)
		}
		if err != nil && !strings.Contains(err.Error(), "wait for api: coir: timed out before there is 1 token") {
			t.Errorf("the error is %q", err)
		}
		pair := pace.NewLimiter(time.Minute, 2, coir.WithName("api"))
		pair.TryWaitN(2)
		if err := pair.WaitN(in, 2); err == nil || !strings.Contains(err.Error(), "timed out before there are 2 tokens") {
			t.Errorf("the error is %q", err)
		}
		if err := l.Wait(coir.Shield(in)); err != nil || now()-before != time.Minute {
			t.Errorf("behind a shield it took %v and returned %v", now()-before, err)
		}
	}
	t.Run("bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			now := func() time.Duration { return time.Since(began) }
			check(t, t.Context(), now)
			err := coir.Run(t.Context(), func(ctx context.Context, _ *coir.Nursery) error {
				check(t, ctx, now)
				l := pace.NewLimiter(time.Minute, 1)
				in, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				before := now()
				if err := errors.Join(l.Wait(in), l.Wait(in)); !errors.Is(err, coir.ErrTimeout) || now() != before {
					t.Errorf("under package context it took %v and returned %v", now()-before, err)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("virtual", func(t *testing.T) {
		virtually(t, func(ctx context.Context, clock *coir.Clock) { check(t, ctx, clock.Now) })
	})
}

// busyFibers is an observer that counts the fibers that are running or ready.
type busyFibers struct{ atomic.Int64 }

func (b *busyFibers) FiberStarted(*coir.Fiber)      { b.Add(1) }
func (b *busyFibers) FiberParked(*coir.Fiber)       { b.Add(-1) }
func (b *busyFibers) FiberReady(_, _ *coir.Fiber)   { b.Add(1) }
func (b *busyFibers) FiberEnded(*coir.Fiber, error) { b.Add(-1) }
func (b *busyFibers) FiberStalled(coir.Stall)       {}

// virtually runs fn in a fiber with a virtual clock, which advances when nothing else can happen. In the end no timer
// may be left on the clock.
func virtually(t *testing.T, fn func(ctx context.Context, clock *coir.Clock)) {
	t.Helper()
	clock := coir.NewClock()
	var busy busyFibers
	rt := coir.NewRuntime(coir.WithClock(clock), coir.WithWorkers(1), coir.WithObserver(&busy))
	done := make(chan error, 1)
	go func() {
		done <- rt.Run(context.Background(), func(ctx context.Context, _ *coir.Nursery) error {
			fn(ctx, clock)
			return nil
		})
	}()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			if n := clock.Len(); n != 0 {
				t.Errorf("%d waits are left on the clock", n)
			}
			return
		default:
			if busy.Load() == 0 {
				clock.AdvanceToNext()
			}
			runtime.Gosched()
		}
	}
}

// Goroutines and fibers in a bubble share a limiter: together they get tokens at its rate, and no goroutine is left.
func TestFibersAndGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		l := pace.NewLimiter(time.Second, 5)
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if err := l.Wait(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		err := coir.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
			for range 10 {
				n.Go("caller", l.Wait)
			}
			return nil
		})
		all.Wait()
		if d := time.Since(began); err != nil || d != 15*time.Second {
			t.Errorf("20 tokens of 1 a second and 5 at once took %v (%v)", d, err)
		}
	})
}

// A goroutine in a bubble uses a ticker.
func TestTickerInAGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tick := pace.NewTicker(time.Second, coir.WithName("tick"))
		began := time.Now()
		for range 3 {
			if n, err := tick.Wait(t.Context()); n != 1 || err != nil {
				t.Errorf("%d ticks, %v", n, err)
			}
		}
		time.Sleep(2500 * time.Millisecond)
		if n, err := tick.Wait(t.Context()); n != 2 || err != nil {
			t.Errorf("after 2.5 s %d ticks, %v", n, err)
		}
		if n, err := tick.Wait(t.Context()); n != 1 || err != nil || time.Since(began) != 6*time.Second {
			t.Errorf("then %d ticks at %v, %v", n, time.Since(began), err)
		}
		var n int
		if i, err := coir.Select(t.Context(), tick.WaitCase(&n)); i != 0 || n != 1 || err != nil {
			t.Errorf("in a select %d ticks, case %d, %v", n, i, err)
		}
		s := coir.NewSelector()
		defer s.Clear()
		id := s.Add(tick.WaitCase(&n))
		if got, err := s.Wait(t.Context()); got != id || n != 1 || err != nil || time.Since(began) != 8*time.Second {
			t.Errorf("in a selector %d ticks, case %d, %v", n, got, err)
		}
	})
}

// The default runtime of a bubble is collected when it is no longer used. A ticker used by goroutines continues on the
// clock of the next runtime.
func TestTickerAfterACollection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tick, began := pace.NewTicker(time.Second), time.Now()
		for i := range 5 {
			n, err := tick.Wait(t.Context())
			if took := time.Since(began); n != 1 || err != nil || took != time.Duration(i+1)*time.Second {
				t.Errorf("%d ticks after %v, %v", n, took, err)
			}
			for range 3 {
				runtime.GC()
			}
		}
	})
}

// In the steady state neither type allocates, whether a call waits or not.
func TestNoAllocations(t *testing.T) {
	virtually(t, func(ctx context.Context, _ *coir.Clock) {
		free, slow := pace.NewLimiter(1, 1<<20), pace.NewLimiter(time.Millisecond, 1)
		tick := pace.NewTicker(time.Millisecond)
		var n int
		for name, f := range map[string]func(){
			"Wait":             func() { _ = free.Wait(ctx) },
			"TryWaitN":         func() { free.TryWaitN(1) },
			"Wait that waits":  func() { _ = slow.Wait(ctx) },
			"Ticker.Wait":      func() { _, _ = tick.Wait(ctx) },
			"WaitCase":         func() { _, _ = coir.Select(ctx, tick.WaitCase(&n)) },
			"WaitCase, others": func() { _, _ = coir.SelectPriority(ctx, coir.Case{}, coir.After(time.Hour), tick.WaitCase(&n)) },
		} {
			if allocs := testing.AllocsPerRun(200, f); allocs != 0 && !raceEnabled {
				t.Errorf("%s allocates %v times", name, allocs)
			}
		}
	})
}

// Invalid arguments panic.
func TestWrongArguments(t *testing.T) {
	for name, f := range map[string]func(){
		"period":   func() { pace.NewTicker(0) },
		"interval": func() { pace.NewLimiter(0, 1) },
		"burst":    func() { pace.NewLimiter(1, 0) },
		"size":     func() { pace.NewLimiter(1<<60, 1<<20) },
		"negative": func() { _ = pace.NewLimiter(1, 1).WaitN(context.Background(), -1) },
	} {
		func() {
			defer func() {
				if text, ok := recover().(string); !ok || !strings.HasPrefix(text, "pace: ") {
					t.Errorf("%s: no panic of the package: %v", name, text)
				}
			}()
			f()
		}()
	}
}

// A child on a goroutine uses the clock of its own runtime, also in TryWaitN, which has no context.
func TestClockOfAChildOnAGoroutine(t *testing.T) {
	clock := coir.NewClock()
	rt := coir.NewRuntime(coir.WithClock(clock))
	l := pace.NewLimiter(time.Hour, 1)
	err := rt.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("takes", func(context.Context) error {
			for i := range 3 {
				if !l.TryWaitN(1) {
					t.Errorf("after %d hours there is no token", i)
				}
				clock.Advance(time.Hour)
			}
			return nil
		}, coir.WithGoroutine())
		return nil
	})
	if err := errors.Join(err, rt.Close(context.Background())); err != nil {
		t.Error(err)
	}
}
