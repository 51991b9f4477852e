package coir_test

// Nurseries: who may start fibers, when fibers start under a limit, that waiting inside a limit cannot starve it, how
// far a cancellation reaches, and that only memory bounds depth and number.

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/race"
)

// Spec: NU-05 (a completed nursery takes no child)
func TestGoAfterRunPanics(t *testing.T) {
	rt := one(t)
	left := goroutines(t)
	var kept *coir.Nursery
	_ = rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error { kept = n; return nil })
	for range 10 {
		func() {
			defer func() {
				text, _ := recover().(string)
				if !strings.HasPrefix(text, "coir: ") || !strings.Contains(text, "late") || !strings.Contains(text, "Run") {
					t.Errorf("panicked with %q: not a sentence that names the fiber and what went wrong", text)
				}
			}()
			kept.Go("late", func(context.Context) error { t.Error("it ran"); return nil })
		}()
	}
	if err := rt.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	left()
}

// The owner counts its children in 16 bits, and those beyond them elsewhere: all are counted, and waited for.
//
// Spec: NU-01 (a nursery completes after every child)
// Spec: NU-04 (a child is counted before it runs)
func TestMoreChildrenThanTheOwnerCounts(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector does not support that many goroutines")
	}
	const children = 1<<16 + 10
	ran := 0
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		for range children {
			n.Go("child", func(context.Context) error {
				ran++
				return nil
			})
		}
		if want := fmt.Sprintf("fibers: %d)", children); !strings.HasSuffix(n.String(), want) {
			t.Errorf("it is %s, want %s", n, want)
		}
		return nil
	}, nil)
	if ran != children {
		t.Errorf("%d children ran before Run returned, want %d", ran, children)
	}
}

// Fibers may be started while the nursery is open by the body, children, children of children, and goroutines.
//
// Spec: NU-01 (a nursery completes after every child)
// Spec: NU-02 (Run returns when its nursery is complete)
// Spec: NU-04 (a child is counted before it runs)
// Spec: NU-18 (a spawned fiber is never orphaned)
func TestWhoStartsFibers(t *testing.T) {
	for _, workers := range []int{1, 2} {
		rt := on(t, coir.WithWorkers(workers))
		var ran atomic.Int64
		if err := rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
			var grow func(depth int) func(context.Context) error
			grow = func(depth int) func(context.Context) error {
				return func(ctx context.Context) error {
					ran.Add(1)
					if depth > 0 {
						n.Go("sibling", grow(depth-1))
						_ = coir.Yield(ctx)
						n.Go("sibling", grow(depth-1))
					}
					return nil
				}
			}
			n.Go("first", grow(9))
			goroutine(ctx, func() {
				for range 100 {
					n.Go("from outside", grow(0))
				}
			})
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if ran.Load() != 1<<10-1+100 {
			t.Errorf("%d ran before Run returned, want %d", ran.Load(), 1<<10-1+100)
		}
	}
}

// Never more fibers than the limit run at the same time, and each starts.
//
// Spec: NU-14 (Limit bounds the children that run)
func TestLimitBounds(t *testing.T) {
	for _, workers := range []int{1, 2, 4} {
		for _, places := range []int{1, 3, 16} {
			rt := on(t, coir.WithWorkers(workers))
			var now, most, ran atomic.Int64
			if err := rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
				n.Limit(places)
				for i := range 300 {
					n.Go("task", func(ctx context.Context) error {
						if at := now.Add(1); at > most.Load() {
							most.Store(at)
						}
						defer now.Add(-1)
						ran.Add(1)
						if i%7 == 0 {
							return coir.Sleep(ctx, 10*time.Microsecond) // keeps its place
						}
						return coir.Yield(ctx)
					})
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			if ran.Load() != 300 || most.Load() > int64(places) {
				t.Errorf("%d workers, %d places: %d ran, %d at once", workers, places, ran.Load(), most.Load())
			}
		}
	}
}

// Fibers that wait for a place start in the order of their Go.
//
// Spec: NU-14 (Limit bounds the children that run)
func TestLimitKeepsTheOrder(t *testing.T) {
	for _, places := range []int{1, 4} {
		undisturbed(t, one, func(rt *coir.Runtime) error { return beginInOrder(rt, places) })
	}
}

func beginInOrder(rt *coir.Runtime, places int) error {
	const n = 200
	var mu sync.Mutex
	var begun []int
	if err := rt.Run(context.Background(), func(_ context.Context, nursery *coir.Nursery) error {
		nursery.Limit(places)
		for i := range n {
			nursery.Go("task", func(ctx context.Context) error {
				mu.Lock()
				begun = append(begun, i)
				mu.Unlock()
				return coir.Yield(ctx)
			})
		}
		return nil
	}); err != nil {
		return err
	}
	if places == 1 && !slices.IsSorted(begun) {
		return fmt.Errorf("one place, and they began as %v", begun)
	}
	// With several places the scheduler orders the fibers that have one, so they are a few apart.
	for at, i := range begun {
		if apart := max(at-i, i-at); apart > 4*places {
			return fmt.Errorf("%d places: task %d began as number %d", places, i, at)
		}
	}
	return nil
}

// The main test of limits: 16 places, 100 tasks that each start 100 children under the same limit and wait for them,
// one by one or in their own nursery. A task that waits gives up its place, so the program always ends.
//
// Spec: NU-15 (a child that waits for children gives its place up)
// Spec: SC-49 (a waiting fiber leaves its worker)
func TestNestedWaitingEnds(t *testing.T) {
	const places = 16
	repetitions, tasks := 50, 100
	switch {
	case testing.Short():
		repetitions = 5
	case race.Enabled:
		repetitions = 10
	}
	for _, workers := range []int{1, 2, 4} {
		t.Run(fmt.Sprintf("%d workers", workers), func(t *testing.T) {
			rt := on(t, coir.WithWorkers(workers))
			for range repetitions {
				var children atomic.Int64
				if err := rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
					n.Limit(places)
					for i := range tasks {
						n.Go("task", func(ctx context.Context) error {
							if i%2 == 0 {
								return waitsForEach(ctx, n, tasks, &children)
							}
							return waitsInside(ctx, n, tasks, &children)
						})
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				if children.Load() != int64(tasks*tasks) {
					t.Fatalf("%d children ran", children.Load())
				}
			}
		})
	}
}

// waitsForEach starts children in n and waits for each.
func waitsForEach(ctx context.Context, n *coir.Nursery, count int, children *atomic.Int64) error {
	fibers := make([]*coir.Fiber, count)
	for i := range fibers {
		fibers[i] = n.Go("child", func(ctx context.Context) error {
			children.Add(1)
			return coir.Yield(ctx)
		})
	}
	for _, f := range fibers {
		if err := f.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// waitsInside opens a nursery whose fibers wait for children of n, and joins it.
func waitsInside(ctx context.Context, n *coir.Nursery, count int, children *atomic.Int64) error {
	return coir.Run(ctx, func(_ context.Context, inner *coir.Nursery) error {
		for range 4 {
			inner.Go("group", func(ctx context.Context) error { return waitsForEach(ctx, n, count/4, children) })
		}
		return nil
	})
}

// A place that is given up in a wait serves another fiber meanwhile, and the waiter has one again before it continues.
//
// Spec: NU-14 (Limit bounds the children that run)
// Spec: NU-15 (a child that waits for children gives its place up)
func TestPlaceIsGivenUpAndTakenAgain(t *testing.T) {
	for name, waitFor := range map[string]func(ctx context.Context, n *coir.Nursery, f func(context.Context) error) error{
		"Wait": func(ctx context.Context, n *coir.Nursery, f func(context.Context) error) error {
			return n.Go("other", f).Wait(ctx)
		},
		"nested Run": func(ctx context.Context, n *coir.Nursery, f func(context.Context) error) error {
			return coir.Run(ctx, func(_ context.Context, inner *coir.Nursery) error {
				inner.Go("other", func(ctx context.Context) error { return n.Go("other", f).Wait(ctx) })
				return nil
			})
		},
		"Wait in a nested body": func(ctx context.Context, n *coir.Nursery, f func(context.Context) error) error {
			return coir.Run(ctx, func(ctx context.Context, _ *coir.Nursery) error { return n.Go("other", f).Wait(ctx) })
		},
		"Run of another runtime": func(ctx context.Context, n *coir.Nursery, f func(context.Context) error) error {
			rt := coir.NewRuntime()
			defer blocking(ctx, func() { _ = rt.Close(context.Background()) })
			return rt.Run(ctx, func(ctx context.Context, _ *coir.Nursery) error { return n.Go("other", f).Wait(ctx) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			rt := on(t, coir.WithWorkers(2))
			var now atomic.Int64
			in := func() {
				if at := now.Add(1); at > 1 {
					t.Errorf("%d run at once, under a limit of one", at)
				}
			}
			if err := rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
				n.Limit(1)
				for range 20 {
					n.Go("waiter", func(ctx context.Context) error {
						in()
						now.Add(-1)
						if err := waitFor(ctx, n, func(ctx context.Context) error {
							in()
							defer now.Add(-1)
							return coir.Yield(ctx)
						}); err != nil {
							return err
						}
						in()
						defer now.Add(-1)
						return coir.Yield(ctx)
					})
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A cancelled wait returns immediately, above the limit if need be: otherwise the holder of the place could never be
// stopped. Once the fiber has ended, the limit holds again.
//
// Spec: NU-14 (Limit bounds the children that run)
// Spec: NU-15 (a child that waits for children gives its place up)
// Spec: NU-20 (a join cut short leaves the fiber running)
func TestLimitUnderCancelledWaits(t *testing.T) {
	onOne(t, func(ctx context.Context, _ *coir.Nursery) error {
		return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Limit(1)
			const impatient = 50
			for range impatient {
				gate, open := coir.WithCancelCause(coir.Shield(ctx))
				f := n.Go("impatient", func(ctx context.Context) error {
					slow := n.Go("slow", func(context.Context) error { return parkAt(gate) })
					short, cancel := coir.WithTimeout(ctx, 10*time.Microsecond)
					defer cancel()
					if err := slow.Wait(short); !errors.Is(err, coir.ErrTimeout) {
						t.Errorf("Wait returned %v, want ErrTimeout", err)
					}
					open(nil) // only this lets slow end, which has the only place
					return slow.Wait(ctx)
				})
				if err := f.Wait(ctx); err != nil {
					return err
				}
			}
			var now atomic.Int64
			for range impatient {
				n.Go("later", func(ctx context.Context) error {
					if at := now.Add(1); at > 1 {
						t.Errorf("%d run at once", at)
					}
					defer now.Add(-1)
					return coir.Yield(ctx)
				})
			}
			return nil
		})
	}, nil)
}

// Fibers that wait for a place when the nursery is cancelled still start, see the cancellation, and end.
//
// Spec: NU-01 (a nursery completes after every child)
// Spec: NU-06 (cancel wakes every parked child)
func TestCancelWithALine(t *testing.T) {
	rt := on(t, coir.WithWorkers(2))
	var ran atomic.Int64
	err := rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Limit(3)
		for range 100 {
			n.Go("task", func(ctx context.Context) error {
				ran.Add(1)
				return coir.Sleep(ctx, time.Hour)
			})
		}
		_ = coir.Yield(ctx)
		n.Cancel(errA)
		return nil
	})
	if !isCancelFor(err, errA) || ran.Load() != 100 {
		t.Fatalf("%v, %d ran", err, ran.Load())
	}
}

func TestLimitIsForBeforeTheFirstGo(t *testing.T) {
	onOne(t, func(_ context.Context, n *coir.Nursery) error {
		for _, wrong := range []func(){
			func() { n.Limit(0) },
			func() { n.Go("child", func(context.Context) error { return nil }); n.Limit(5) },
		} {
			func() {
				defer func() {
					if text, _ := recover().(string); !strings.HasPrefix(text, "coir: Nursery.Limit") {
						t.Errorf("panicked with %q", text)
					}
				}()
				wrong()
			}()
		}
		return nil
	}, nil)
}

// Cancel ends every wait below, once, for the first cause, and no wait above.
//
// Spec: FB-16 (a cancelled fiber is woken by the ordinary claim)
// Spec: NU-06 (cancel wakes every parked child)
// Spec: NU-07 (a running child sees the cancel at its next operation)
// Spec: NU-08 (cancel wakes each child once)
// Spec: NU-09 (cancel goes down the tree only)
// Spec: NU-10 (the first cause of a cancel stays)
func TestCancel(t *testing.T) {
	for _, workers := range []int{1, 2} {
		rt := on(t, coir.WithWorkers(workers))
		var woken atomic.Int64
		sees := func(err error) error { //nolint:unparam // so that a fiber can return it
			if isCancelFor(err, errA) && !strings.Contains(err.Error(), errB.Error()) {
				woken.Add(1)
			} else {
				t.Errorf("a wait ended with %v", err)
			}
			return nil
		}
		err := rt.Run(context.Background(), func(ctx context.Context, outer *coir.Nursery) error {
			// Not a sibling: a fiber that is woken first may end, and then its end is what the other waited for.
			target := outer.Go("target", func(ctx context.Context) error { _ = coir.Sleep(ctx, time.Hour); return nil })
			defer outer.Cancel(nil)
			err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				var waiting []*coir.Fiber
				add := func(n *coir.Nursery, fn func(ctx context.Context) error) {
					waiting = append(waiting, n.Go("waits", func(ctx context.Context) error { return sees(fn(ctx)) }))
				}
				add(n, func(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) })
				add(n, func(ctx context.Context) error { return target.Wait(ctx) })
				add(n, func(ctx context.Context) error {
					c, cancel := coir.WithTimeout(ctx, time.Hour)
					defer cancel()
					return coir.Sleep(c, time.Hour)
				})
				add(n, func(ctx context.Context) error {
					return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
						n.Go("below", func(ctx context.Context) error { return sees(coir.Sleep(ctx, time.Hour)) })
						return coir.Sleep(ctx, time.Hour)
					})
				})
				yieldUntil(ctx, t, "all wait", func() bool {
					return !slices.ContainsFunc(waiting, func(f *coir.Fiber) bool { return f.State() != coir.StateWaiting })
				})
				n.Cancel(errA)
				n.Cancel(errB)
				n.Go("begins afterwards", func(ctx context.Context) error { return sees(coir.Yield(ctx)) })
				return sees(coir.Yield(ctx))
			})
			if ctx.Err() != nil {
				t.Error("the cancel went up")
			}
			return err
		})
		if err != nil || woken.Load() != 7 {
			t.Errorf("Run: %v, %d of 7 saw the cancel", err, woken.Load())
		}
	}
}

// A nursery that is stopped on purpose, by Cancel(nil), has not failed if its function and its fibers return no error
// but that cancellation.
//
// Spec: NU-06 (cancel wakes every parked child)
func TestCancelOnPurpose(t *testing.T) {
	sleeps := func(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) }
	echoes := []func(ctx context.Context) error{
		sleeps,
		func(ctx context.Context) error { return fmt.Errorf("asleep: %w", sleeps(ctx)) },
		func(ctx context.Context) error { return errors.Join(sleeps(ctx), ctx.Err()) },
		func(ctx context.Context) error {
			_, err := coir.NewChan[int](0, coir.WithName("jobs")).Recv(ctx)
			return err
		},
		func(ctx context.Context) error {
			inner := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error { n.Go("sleeps", sleeps); return nil })
			if inner != context.Canceled { //nolint:errorlint // the very value is promised
				t.Errorf("a nursery inside returns %v", inner)
			}
			return inner
		},
		func(ctx context.Context) error {
			std, stop := context.WithCancel(ctx)
			defer stop()
			return sleeps(std)
		},
	}
	for _, x := range []struct {
		name   string
		cancel []error
		also   error // of a child that failed on its own
		want   error
	}{
		{"on purpose", []error{nil}, nil, nil},
		{"on purpose, and later for a cause", []error{nil, errA}, nil, nil},
		{"beside an error", []error{nil}, errB, errB},
		{"for a cause, and later on purpose", []error{errA, nil}, nil, cancelFor{errA}},
		{"for context.Canceled", []error{context.Canceled}, nil, context.Canceled},
	} {
		t.Run(x.name, func(t *testing.T) {
			err := one(t).Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
				if x.cancel[0] != nil {
					n.Go("echo", sleeps)
				} else {
					for i, f := range echoes {
						n.Go("echo", f, coir.WithIndex(i))
					}
				}
				_ = coir.Yield(ctx)
				for _, cause := range x.cancel {
					n.Cancel(cause)
				}
				//nolint:errorlint // the very value is promised
				if x.cancel[0] == nil && (ctx.Err() != context.Canceled || context.Cause(ctx) != context.Canceled) {
					t.Errorf("%v, for %v", ctx.Err(), context.Cause(ctx))
				}
				n.Go("late", func(context.Context) error { return x.also })
				return sleeps(ctx)
			})
			if !isWanted(err, x.want) || x.also != nil && err != x.also { //nolint:errorlint // the very value is promised
				t.Errorf("Run returned %v, want %v", err, x.want)
			}
		})
	}
}

// A goroutine can cancel a nursery, too.
//
// Spec: NU-06 (cancel wakes every parked child)
func TestCancelFromOutside(t *testing.T) {
	rt := one(t)
	opened := make(chan *coir.Nursery, 1)
	result := make(chan error, 1)
	go func() {
		result <- rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
			opened <- n
			return coir.Sleep(ctx, time.Hour)
		})
	}()
	(<-opened).Cancel(errA)
	if err := <-result; !isCancelFor(err, errA) {
		t.Fatal(err)
	}
}

// Spec: NU-03 (a child lives within its parent)
// Spec: FB-32 (memory alone bounds the number of fibers)
func TestDeepNesting(t *testing.T) {
	const levels = 1000
	for _, workers := range []int{1, 2} {
		rt := on(t, coir.WithWorkers(workers))
		var deepest, ended atomic.Int64
		var dive func(ctx context.Context, level int) error
		dive = func(ctx context.Context, level int) error {
			return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				n.Go("deeper", func(ctx context.Context) error {
					defer ended.Add(1)
					if level < levels {
						return dive(ctx, level+1)
					}
					deepest.Store(int64(level))
					return coir.Sleep(ctx, time.Hour)
				})
				if level == 1 {
					yieldUntil(ctx, t, "the bottom is reached", func() bool { return deepest.Load() == levels })
					n.Cancel(errA)
				}
				return nil
			})
		}
		err := rt.Run(context.Background(), func(ctx context.Context, _ *coir.Nursery) error { return dive(ctx, 1) })
		if !isCancelFor(err, errA) || ended.Load() != levels {
			t.Errorf("%d levels ended: %v", ended.Load(), err)
		}
	}
}

// Spec: FB-32 (memory alone bounds the number of fibers)
// Spec: NU-01 (a nursery completes after every child)
func TestManyChildren(t *testing.T) {
	children := 100_000
	if testing.Short() || race.Enabled {
		children = 5_000 // one goroutine each under the race detector, which allows 8,128
	}
	for _, workers := range []int{1, 2} {
		rt := on(t, coir.WithWorkers(workers))
		var ran atomic.Int64
		if err := rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
			for range children {
				n.Go("child", func(ctx context.Context) error {
					ran.Add(1)
					return coir.Yield(ctx)
				})
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if ran.Load() != int64(children) {
			t.Fatalf("%d ran", ran.Load())
		}
	}
}

// A fiber may run things on another runtime. It is parked meanwhile; its cancellation reaches there; results come back.
//
// Spec: NU-02 (Run returns when its nursery is complete)
// Spec: NU-09 (cancel goes down the tree only)
func TestRunOnAnotherRuntime(t *testing.T) {
	first, second := one(t), one(t)
	err := first.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		ticks := 0
		ticker := n.Go("ticker", func(ctx context.Context) error {
			for coir.Yield(ctx) == nil {
				ticks++
			}
			return nil
		})
		mine := coir.Self(ctx)
		err := second.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			if coir.Self(ctx) == mine {
				t.Error("the same fiber on two runtimes")
			}
			n.Go("child", func(ctx context.Context) error { return coir.Sleep(ctx, time.Millisecond) })
			// Back to the first runtime, which continues while this one waits.
			return first.Run(ctx, func(ctx context.Context, _ *coir.Nursery) error { return coir.Sleep(ctx, time.Millisecond) })
		})
		if err != nil {
			t.Error(err)
		}
		panics := func() (r any) {
			defer func() { r = recover() }()
			return second.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
				n.Go("bomb", func(context.Context) error { panic(errC) })
				return nil
			})
		}
		if pe, ok := panics().(*coir.PanicError); !ok || !errors.Is(pe, errC) {
			t.Error("the panic did not come over")
		}
		n.Go("canceller", func(ctx context.Context) error {
			_ = coir.Yield(ctx)
			n.Cancel(errA)
			return nil
		})
		err = second.Run(ctx, func(ctx context.Context, _ *coir.Nursery) error { return coir.Sleep(ctx, time.Hour) })
		if !isCancelIn(ctx, err, errA) {
			t.Errorf("the cancel did not come over: %v", err)
		}
		if err := ticker.Wait(context.Background()); err != nil || ticks == 0 {
			t.Errorf("%v after %d ticks", err, ticks)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A fiber that is started by code inside Blocking runs while that code blocks.
func TestGoInsideBlocking(t *testing.T) {
	rt := on(t, coir.WithWorkers(1))
	if err := rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		partner := n.Go("partner", func(ctx context.Context) error {
			for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); { // until slices are short
				_ = coir.Yield(ctx)
			}
			return nil
		})
		for partner.State() != coir.StateEnded {
			_ = coir.Yield(ctx)
		}
		blocking(ctx, func() {
			// Native code that takes long enough for the scheduler to become idle meanwhile.
			for end := time.Now().Add(50 * time.Millisecond); time.Now().Before(end); runtime.Gosched() {
			}
			ran := make(chan struct{})
			n.Go("child", func(context.Context) error { close(ran); return nil })
			select {
			case <-ran:
			case <-time.After(patience):
				t.Error("a fiber that was started in Blocking did not run while it blocked")
			}
		})
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// A fiber, a context or a nursery that is kept after the nursery has ended keeps nothing alive that the functions which
// ran there captured, or waited under, however they ended.
func TestEndedNurseryKeepsNothing(t *testing.T) {
	type big struct{ b [1 << 12]byte }
	type key struct{}
	type kept struct {
		mu   sync.Mutex
		ctx  []context.Context
		n    []*coir.Nursery
		f    []*coir.Fiber
		refs []weak.Pointer[big]
	}
	thing := func(k *kept) *big {
		k.mu.Lock()
		defer k.mu.Unlock()
		v := new(big)
		k.refs = append(k.refs, weak.Make(v))
		return v
	}
	noted := func(ctx context.Context, n *coir.Nursery, k *kept) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.ctx, k.n, k.f = append(k.ctx, ctx), append(k.n, n), append(k.f, coir.Self(ctx))
	}
	programs := map[string]func(rt *coir.Runtime, k *kept){
		"body and child": func(rt *coir.Runtime, k *kept) {
			v, w := thing(k), thing(k)
			_ = rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
				v.b[0]++
				noted(ctx, n, k)
				n.Go("child", func(ctx context.Context) error {
					w.b[0]++
					noted(ctx, n, k)
					return nil
				})
				return nil
			})
		},
		"failed, in a nursery inside": func(rt *coir.Runtime, k *kept) {
			_ = rt.Run(context.Background(), func(ctx context.Context, _ *coir.Nursery) error {
				v, w := thing(k), thing(k)
				return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
					v.b[0]++
					noted(ctx, n, k)
					n.Limit(1)
					n.Go("child", func(ctx context.Context) error {
						w.b[0]++
						noted(ctx, n, k)
						return errA
					})
					return coir.Sleep(ctx, time.Hour)
				})
			})
		},
		"panicked": func(rt *coir.Runtime, k *kept) {
			defer func() { _ = recover() }()
			v, w := thing(k), thing(k)
			_ = rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
				v.b[0]++
				noted(ctx, n, k)
				n.Go("child", func(ctx context.Context) error {
					w.b[0]++
					noted(ctx, n, k)
					panic("child")
				})
				panic("body")
			})
		},
		"left by Goexit": func(rt *coir.Runtime, k *kept) {
			<-goes(func() {
				v, w := thing(k), thing(k)
				_ = rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
					v.b[0]++
					noted(ctx, n, k)
					n.Go("child", func(ctx context.Context) error {
						w.b[0]++
						noted(ctx, n, k)
						runtime.Goexit()
						return nil
					})
					runtime.Goexit()
					return nil
				})
			})
		},
		"waited under a scope": func(rt *coir.Runtime, k *kept) {
			_ = rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
				n.Go("child", func(ctx context.Context) error {
					noted(ctx, n, k)
					ctx, cancel := coir.WithTimeout(context.WithValue(ctx, key{}, thing(k)), time.Microsecond)
					defer cancel()
					return coir.Sleep(ctx, time.Hour)
				})
				return nil
			})
		},
	}
	for name, program := range programs {
		rt := one(t)
		var k kept
		program(rt, &k)
		for i, p := range k.refs {
			eventually(t, fmt.Sprintf("%s: value %d is collected", name, i), func() bool {
				runtime.GC()
				return p.Value() == nil
			})
		}
		if len(k.refs) == 0 || len(k.f) == 0 {
			t.Errorf("%s: nothing was tried", name)
		}
		runtime.KeepAlive(&k)
	}
}

// The kept context of a nursery inside a cancelled one shows how it was cancelled, even if nothing looked at it while
// it was open.
//
// Spec: NU-10 (the first cause of a cancel stays)
func TestKeptContextOfANurseryThatWasNotLookedAt(t *testing.T) {
	cause := errors.New("the cause")
	var kept context.Context
	open := func(ctx context.Context) error {
		return coir.Run(ctx, func(ctx context.Context, _ *coir.Nursery) error {
			kept = ctx
			return nil
		})
	}
	err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		n.Cancel(cause)
		return open(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := context.Cause(kept); got != cause { //nolint:errorlint // the very value is promised
		t.Errorf("the cause is %v", got)
	}
	err = coir.Run(t.Context(), func(ctx context.Context, _ *coir.Nursery) error {
		ctx, cancel := coir.WithTimeout(ctx, 0)
		defer cancel()
		return open(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := kept.Err(); got != context.DeadlineExceeded { //nolint:errorlint // the very value is promised
		t.Errorf("the error is %v", got)
	}
}
