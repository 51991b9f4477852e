package coir_test

// How a runtime ends. Close cancels fibers wherever they are (parked, sleeping, running, blocked in native code, not
// started), waits for them, and leaves no goroutine. It can be called with a context that is done, twice, concurrently,
// and while others call Run. An idle runtime releases its resources by itself, and can be used again at any moment of
// that.

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/soak"
)

// Spec: SH-04 (close then cancels)
// Spec: SH-06 (close then joins the workers)
// Spec: SH-08 (after close no goroutine is left)
// Spec: SH-09 (coroutines exit one after the other)
// Spec: SH-12 (the last fiber wakes who waits for empty)
// Spec: SH-15 (every handle tells its end after close)
func TestCloseLeavesNoGoroutine(t *testing.T) {
	fibers, rounds := sized(2_000, 10_000, 10_000), 20
	if soak.On() {
		rounds = sized(0, 0, 1_000)
	} else if raceEnabled {
		rounds = 5
	}
	base := goroutineCount()
	start := time.Now()
	for range rounds {
		closeBusyRuntime(t, fibers)
		noGoroutinesAbove(t, base)
	}
	t.Logf("%d times %d fibers: %v a round", rounds, fibers, time.Since(start)/time.Duration(rounds))
}

// closeBusyRuntime closes a runtime while its fibers are in every state that a fiber can be in.
func closeBusyRuntime(t *testing.T, fibers int) {
	t.Helper()
	rt := coir.NewRuntime()
	var begun, ended atomic.Int64
	full := make(chan struct{})
	handles := make([]*coir.Fiber, 0, fibers)
	never := func(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) }
	result := make(chan error, 1)
	go func() {
		result <- rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
			target := n.Go("never", never)
			body := func(i int) func(ctx context.Context) error {
				return func(ctx context.Context) error {
					defer ended.Add(1)
					if begun.Add(1) == int64(fibers) {
						close(full)
					}
					switch i % 10 {
					case 0: // computes, and sometimes checks ctx
						for coir.Yield(ctx) == nil {
						}
						return nil
					case 1, 2, 3:
						return coir.Sleep(ctx, time.Duration(1+rand.IntN(3_600_000))*time.Millisecond)
					case 4:
						if i%40 == 4 { // each worker held like that is one more goroutine
							blocking(ctx, func() { <-ctx.Done() })
							return nil
						}
						return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
							n.Go("below", never)
							return nil
						})
					case 5:
						if i%1000 == 5 {
							<-ctx.Done() // without Blocking
							return nil
						}
						c, cancel := coir.WithTimeout(ctx, time.Hour)
						defer cancel()
						return target.Wait(c)
					default:
						return target.Wait(ctx)
					}
				}
			}
			for i := range fibers {
				handles = append(handles, n.Go("fiber", body(i), coir.WithIndex(i)))
			}
			return nil
		})
	}()
	within(t, time.Minute, "all fibers began", full)
	if err := rt.Close(context.Background()); err != nil {
		t.Fatalf("Close: %v", err)
	}
	if err := <-result; !cancelledByClose(err) {
		t.Fatalf("Run returned %v; want a cancel for the runtime's close", err)
	}
	if n := ended.Load(); n != int64(fibers) {
		t.Fatalf("%d of %d fibers have ended", n, fibers)
	}
	for _, f := range handles {
		if f.State() != coir.StateEnded {
			t.Fatalf("after Close fiber %s is %v", f.Name(), f.State())
		}
	}
}

// Spec: SH-03 (close first refuses new work)
// Spec: SH-10 (a shutdown continues when Close returns early)
// Spec: SH-11 (close is idempotent)
// Spec: SH-05 (close then drains)
func TestCloseWhoseContextIsOver(t *testing.T) {
	base := goroutineCount()
	rt := coir.NewRuntime(coir.WithWorkers(1))
	begun, release := make(chan struct{}), make(chan struct{})
	result := make(chan error, 1)
	go func() {
		result <- rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
			blocking(ctx, func() { close(begun); <-release })
			return coir.Yield(ctx)
		})
	}()
	<-begun
	cause := errors.New("no patience")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	if err := rt.Close(ctx); !isCancelIn(ctx, err, cause) {
		t.Fatalf("Close with a cancelled context: %v", err)
	}
	late, stop := context.WithTimeout(context.Background(), time.Millisecond)
	defer stop()
	if err := rt.Close(late); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Close with a deadline: %v", err)
	}
	if err := rt.Run(context.Background(), nothing); !errors.Is(err, coir.ErrClosed) {
		t.Fatalf("Run while it closes: %v", err)
	}
	close(release)
	if err := rt.Close(context.Background()); err != nil {
		t.Fatalf("Close again: %v", err)
	}
	if err := <-result; !cancelledByClose(err) {
		t.Fatalf("Run returned %v", err)
	}
	noGoroutinesAbove(t, base)
}

// Spec: SH-03 (close first refuses new work)
// Spec: SH-11 (close is idempotent)
func TestCloseTwice(t *testing.T) {
	base := goroutineCount()
	for _, used := range []bool{false, true} {
		rt := coir.NewRuntime()
		if used {
			if err := rt.Run(t.Context(), nothing); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if err := rt.Close(context.Background()); err != nil {
				t.Fatalf("Close: %v", err)
			}
			err := rt.Run(t.Context(), func(context.Context, *coir.Nursery) error {
				t.Error("ran on a closed runtime")
				return nil
			})
			if !errors.Is(err, coir.ErrClosed) {
				t.Fatalf("Run after Close: %v", err)
			}
		}
	}
	noGoroutinesAbove(t, base)
}

// Many goroutines call Close while others call Run: every Close returns, and every Run runs or is refused.
//
// Spec: SH-07 (a worker about to sleep is woken for close)
// Spec: SH-08 (after close no goroutine is left)
// Spec: SH-11 (close is idempotent)
func TestCloseByMany(t *testing.T) {
	base := goroutineCount()
	var ran, refused, cancelled atomic.Int64
	for range max(100, sized(200, 2_000, 50_000)) {
		rt := coir.NewRuntime(coir.WithWorkers(2))
		var all sync.WaitGroup
		begin := make(chan struct{})
		for range 4 {
			all.Go(func() {
				<-begin
				switch err := rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
					for range 4 {
						n.Go("child", func(ctx context.Context) error { return coir.Yield(ctx) })
					}
					return nil
				}); {
				case err == nil:
					ran.Add(1)
				case errors.Is(err, coir.ErrClosed):
					refused.Add(1)
				case cancelledByClose(err):
					cancelled.Add(1)
				default:
					t.Errorf("Run: %v", err)
				}
			})
			all.Go(func() {
				<-begin
				if err := rt.Close(context.Background()); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
		}
		close(begin)
		within(t, 2*time.Minute, "every Close and Run returned", waited(&all))
	}
	noGoroutinesAbove(t, base)
	t.Logf("ran %d, refused %d, cancelled %d", ran.Load(), refused.Load(), cancelled.Load())
}

// cancelledByClose reports whether err is the cancellation of what was still running when its runtime was closed. That
// is not ErrClosed: only later calls are refused.
func cancelledByClose(err error) bool {
	return isCancelFor(err, errors.New("coir: the runtime is being closed"))
}

// A fiber of the runtime cannot close it: it would wait for itself.
func TestCloseFromInsidePanics(t *testing.T) {
	rt := newRuntime(t)
	err := rt.Run(t.Context(), func(ctx context.Context, _ *coir.Nursery) (err error) {
		defer func() {
			if recover() == nil {
				err = errors.New("no panic")
			}
		}()
		return rt.Close(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Spec: SH-14 (an unused default runtime keeps no goroutine)
// Spec: SH-01 (roots of fiber trees are counted)
func TestDefaultRuntimeRests(t *testing.T) {
	noGoroutinesAbove(t, 0) // of ours: see there
	base := goroutineCount()
	for range sized(2, 5, 50) {
		err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
			for range 1_000 {
				n.Go("child", func(ctx context.Context) error { return coir.Sleep(ctx, time.Millisecond) })
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		noGoroutinesAbove(t, base)
	}
}

// An idle runtime that releases its resources may be used again, or closed, at that very moment. The moment is some 40
// ms after the last use; many runtimes are used again at about that time.
func TestUsedAgainWhileItRests(t *testing.T) {
	base := goroutineCount()
	var all sync.WaitGroup
	for range sized(100, 400, 2_000) {
		all.Go(func() {
			rt := coir.NewRuntime(coir.WithWorkers(1))
			for range sized(5, 20, 100) {
				if err := rt.Run(context.Background(), nothing); err != nil {
					t.Errorf("Run: %v", err)
				}
				<-time.After(38*time.Millisecond + time.Duration(rand.IntN(6_000))*time.Microsecond)
			}
			if err := rt.Run(context.Background(), nothing); err != nil {
				t.Errorf("Run: %v", err)
			}
			if err := rt.Close(context.Background()); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
	within(t, 2*time.Minute, "every runtime ran and closed", waited(&all))
	noGoroutinesAbove(t, base)
}
