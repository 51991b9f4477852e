package coir_test

// How fibers end. If a fiber panics, Run panics with the frames of the panic. Goexit ends only one fiber. The first
// error cancels the siblings, and no error is lost except those that only repeat the cancellation. After each of these
// every sibling has ended, and when the runtime is closed no goroutine is left.

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// panicOf calls f, which must panic with a *coir.PanicError.
func panicOf(t *testing.T, f func() error) (pe *coir.PanicError) {
	t.Helper()
	defer func() {
		t.Helper()
		switch r := recover().(type) {
		case *coir.PanicError:
			pe = r
		default:
			t.Fatalf("came out as %T: %v", r, r)
		}
	}()
	err := f()
	t.Fatalf("returned %v, and should have panicked", err)
	return nil
}

//go:noinline
func explodesDeepInside(v any) { panic(v) }

//go:noinline
func callsWhatExplodes(v any) { explodesDeepInside(v) }

// Spec: FB-24 (a panic is recovered in its fiber)
// Spec: NU-13 (a child's panic is raised from Run)
func TestPanicComesOutOfRun(t *testing.T) {
	for _, workers := range []int{1, 2} {
		rt := on(t, coir.WithWorkers(workers))
		var ended atomic.Int64
		pe := panicOf(t, func() error {
			return rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
				for i := range 20 {
					n.Go("sibling", func(ctx context.Context) error {
						defer ended.Add(1)
						return coir.Sleep(ctx, time.Hour)
					}, coir.WithIndex(i))
				}
				n.Go("bomb", func(ctx context.Context) error {
					_ = coir.Yield(ctx)
					callsWhatExplodes("boom")
					return nil
				}, coir.WithIndex(7))
				return nil
			})
		})
		if ended.Load() != 20 {
			t.Errorf("%d of 20 siblings had ended when the panic came out", ended.Load())
		}
		if pe.Fiber != "bomb[7]" || pe.Value != "boom" || pe.Unwrap() != nil {
			t.Errorf("fiber %q, value %v", pe.Fiber, pe.Value)
		}
		for _, part := range []string{"bomb[7]", "boom", "explodesDeepInside", "callsWhatExplodes", "ends_test.go:"} {
			if !strings.Contains(pe.Error(), part) {
				t.Errorf("the text does not have %q:\n%s", part, pe.Error())
			}
		}
	}
}

// Spec: FB-24 (a panic is recovered in its fiber)
// Spec: NU-01 (a nursery completes after every child)
func TestPanicInTheBodyOfRun(t *testing.T) {
	rt := one(t)
	var ended atomic.Int64
	pe := panicOf(t, func() error {
		return rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
			for range 5 {
				n.Go("child", func(ctx context.Context) error {
					defer ended.Add(1)
					err := coir.Sleep(ctx, time.Hour)
					for range 20 { // it does not end as soon as it is cancelled
						_ = coir.Yield(coir.Shield(ctx))
					}
					return err
				})
			}
			_ = coir.Yield(ctx)
			callsWhatExplodes(errA)
			return nil
		})
	})
	if ended.Load() != 5 {
		t.Errorf("%d of 5 children had ended", ended.Load())
	}
	if !errors.Is(pe, errA) {
		t.Error("the panic's error is not found in it")
	}
	if !strings.Contains(pe.Error(), "explodesDeepInside") {
		t.Errorf("no panicking frames in:\n%s", pe.Error())
	}
}

// Through nested nurseries the first stack is kept: it shows where the panic happened.
//
// Spec: FB-24 (a panic is recovered in its fiber)
// Spec: NU-13 (a child's panic is raised from Run)
func TestNestedPanicKeepsTheInnermostStack(t *testing.T) {
	rt := one(t)
	pe := panicOf(t, func() error {
		return rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
			n.Go("outer", func(ctx context.Context) error {
				return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
					n.Go("middle", func(ctx context.Context) error {
						return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
							n.Go("inner", func(context.Context) error {
								callsWhatExplodes(errB)
								return nil
							})
							return nil
						})
					})
					return nil
				})
			})
			return nil
		})
	})
	if pe.Fiber != "inner" || !errors.Is(pe, errB) || !strings.Contains(pe.Error(), "explodesDeepInside") {
		t.Fatalf("came from %s:\n%s", pe.Fiber, pe.Error())
	}
}

// A fiber that recovers the panic of a Run inside it has handled it: if it returns the panic as an error, it is an
// error.
func TestRecoveredPanicIsAnError(t *testing.T) {
	contained := func(ctx context.Context) (err error) {
		defer func() {
			if r := recover(); r != nil {
				err = r.(error)
			}
		}()
		return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("bomb", func(context.Context) error { panic(errA) })
			return nil
		})
	}
	raisedAgain := func(t *testing.T) {
		if r := recover(); r != nil {
			t.Errorf("an error that a fiber returned came out of Run as a panic: %T", r)
		}
	}
	t.Run("in a child", func(t *testing.T) {
		defer raisedAgain(t)
		onOne(t, func(_ context.Context, n *coir.Nursery) error {
			n.Go("careful", contained)
			return nil
		}, errA)
	})
	t.Run("in the body", func(t *testing.T) {
		defer raisedAgain(t)
		onOne(t, func(ctx context.Context, _ *coir.Nursery) error { return contained(ctx) }, errA)
	})
}

// Wait returns a panic as an error, before Run panics.
//
// Spec: NU-19 (every joiner gets the same error)
func TestWaitForAFiberThatPanics(t *testing.T) {
	rt := one(t)
	pe := panicOf(t, func() error {
		return rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
			err := n.Go("bomb", func(context.Context) error { panic(errA) }).Wait(context.Background())
			var pe *coir.PanicError
			if !errors.As(err, &pe) || !errors.Is(err, errA) {
				t.Errorf("Wait returned %v, want errA", err)
			}
			return nil
		})
	})
	if !errors.Is(pe, errA) {
		t.Error(pe)
	}
}

// Spec: FB-24 (a panic is recovered in its fiber)
func TestPanicAndGoexitInBlocking(t *testing.T) {
	rt := one(t)
	pe := panicOf(t, func() error {
		return rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
			exits := n.Go("exits", func(ctx context.Context) error {
				blocking(ctx, runtime.Goexit)
				return nil
			})
			if err := exits.Wait(ctx); !errors.Is(err, coir.ErrGoexit) {
				t.Error(err)
			}
			n.Go("bomb", func(ctx context.Context) error {
				blocking(ctx, func() { explodesDeepInside("boom") })
				return nil
			})
			return nil
		})
	})
	if !strings.Contains(pe.Error(), "explodesDeepInside") {
		t.Error(pe)
	}
}

// Spec: FB-25 (Goexit ends one fiber alone)
func TestGoexitEndsThatFiberAlone(t *testing.T) {
	for _, workers := range []int{1, 2} {
		rt := on(t, coir.WithWorkers(workers))
		deferred, ended := false, 0
		err := rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
			gate, open := coir.WithCancelCause(ctx)
			siblings := make([]*coir.Fiber, 10)
			for i := range siblings {
				siblings[i] = n.Go("sibling", func(context.Context) error { return parkAt(gate) })
			}
			exits := n.Go("exits", func(ctx context.Context) error {
				defer func() { deferred = true }()
				_ = coir.Yield(ctx)
				runtime.Goexit()
				return errA
			})
			if err := exits.Wait(ctx); err != coir.ErrGoexit { //nolint:errorlint // the very value is promised
				t.Errorf("Wait returned %v, want ErrGoexit", err)
			}
			if ctx.Err() != nil {
				t.Error("the nursery was cancelled")
			}
			open(nil)
			for _, f := range siblings {
				if f.Wait(ctx) == nil {
					ended++
				}
			}
			return nil
		})
		if err != nil || !deferred || ended != 10 {
			t.Errorf("Run: %v; deferred calls ran: %v; siblings that went on: %d", err, deferred, ended)
		}
	}
}

// An error is what a function returns. Returning the error of a Wait for a fiber that exited is not a Goexit.
//
// Spec: FB-25 (Goexit ends one fiber alone)
func TestReturnedErrGoexitIsAnError(t *testing.T) {
	rt := one(t)
	exits := func(context.Context) error { runtime.Goexit(); return nil }
	for name, body := range map[string]func(ctx context.Context, n *coir.Nursery) error{
		"by the body": func(ctx context.Context, n *coir.Nursery) error { return n.Go("exits", exits).Wait(ctx) },
		"by a child": func(ctx context.Context, n *coir.Nursery) error {
			n.Go("asks", func(ctx context.Context) error { return n.Go("exits", exits).Wait(ctx) })
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			returned := make(chan error, 1)
			native := goes(func() { returned <- rt.Run(context.Background(), body) })
			<-native
			select {
			case err := <-returned:
				if !errors.Is(err, coir.ErrGoexit) {
					t.Errorf("Run returned %v", err)
				}
			default:
				t.Error("Run ended the goroutine that called it")
			}
		})
	}
}

// Goexit in the function of Run ends the goroutine that called Run, as if it had been called there, but not before the
// children have ended.
//
// Spec: FB-25 (Goexit ends one fiber alone)
func TestGoexitInTheBodyOfRun(t *testing.T) {
	rt := one(t)
	ended, deferred, returned := false, false, false
	<-goes(func() {
		defer func() { deferred = true }()
		_ = rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
			n.Go("child", func(ctx context.Context) error {
				defer func() { ended = true }()
				return coir.Sleep(ctx, time.Hour)
			})
			_ = coir.Yield(ctx)
			runtime.Goexit()
			return nil
		})
		returned = true
	})
	if !ended || !deferred || returned {
		t.Errorf("child ended: %v, deferred calls ran: %v, Run returned: %v", ended, deferred, returned)
	}
	if err := rt.Run(context.Background(), func(context.Context, *coir.Nursery) error { return errA }); !errors.Is(err, errA) {
		t.Errorf("the runtime afterwards: %v", err)
	}
}

// Goexit in a Run inside a fiber ends that fiber, with the nurseries that it has opened.
//
// Spec: FB-25 (Goexit ends one fiber alone)
// Spec: NU-01 (a nursery completes after every child)
// Spec: NU-03 (a child lives within its parent)
func TestGoexitInANestedRun(t *testing.T) {
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		ended := false
		f := n.Go("exits", func(ctx context.Context) error {
			return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				n.Go("child", func(ctx context.Context) error {
					defer func() { ended = true }()
					return coir.Sleep(ctx, time.Hour)
				})
				_ = coir.Yield(ctx)
				runtime.Goexit()
				return nil
			})
		})
		if err := f.Wait(ctx); !errors.Is(err, coir.ErrGoexit) || !ended {
			t.Errorf("Wait: %v, child ended: %v", err, ended)
		}
		return coir.Yield(ctx)
	}, nil)
}

// Coroutines that went through Goexit are reused, many in a row, and are released with the others.
//
// Spec: FB-25 (Goexit ends one fiber alone)
// Spec: SH-08 (after close no goroutine is left)
// Spec: SH-09 (coroutines exit one after the other)
func TestManyGoexits(t *testing.T) {
	for _, workers := range []int{1, 2} {
		rt := on(t, coir.WithWorkers(workers))
		total := 2000
		if testing.Short() {
			total = 500
		}
		var ran atomic.Int64
		for range 3 {
			if err := rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
				for i := range total {
					n.Go("exits", func(ctx context.Context) error {
						ran.Add(1)
						if i%2 == 0 {
							_ = coir.Yield(ctx)
						}
						if i%5 > 0 {
							runtime.Goexit()
						}
						return nil
					})
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		if ran.Load() != int64(3*total) {
			t.Fatalf("%d of %d ran", ran.Load(), 3*total)
		}
	}
}

// failer is the part of testing.T that FailNow needs.
type failer struct{ failed atomic.Bool }

func (f *failer) FailNow() {
	f.failed.Store(true)
	runtime.Goexit()
}

// A test fails in a fiber: that fiber ends there, and the test function continues to its end.
//
// Spec: FB-25 (Goexit ends one fiber alone)
func TestFailNowInAFiber(t *testing.T) {
	var fake failer
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("checks", func(ctx context.Context) error {
			if err := coir.Sleep(ctx, time.Millisecond); err == nil {
				fake.FailNow()
			}
			return errA
		})
		return nil
	}, nil)
	if !fake.failed.Load() {
		t.Fatal("not failed")
	}
}

// Spec: NU-06 (cancel wakes every parked child)
// Spec: NU-11 (a child's error cancels its siblings)
// Spec: NU-12 (Run returns every child's error)
func TestFirstErrorCancelsTheSiblings(t *testing.T) {
	for _, workers := range []int{1, 2} {
		var parked, running error
		err := on(t, coir.WithWorkers(workers)).Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
			a := n.Go("parked", func(ctx context.Context) error {
				parked = coir.Sleep(ctx, time.Hour)
				return fmt.Errorf("cleaning up: %w", errB)
			})
			n.Go("running", func(ctx context.Context) error {
				for running == nil {
					running = coir.Yield(ctx)
				}
				return fmt.Errorf("%w and %w", errC, running)
			})
			yieldUntil(ctx, t, "it waits", func() bool { return a.State() == coir.StateWaiting })
			n.Go("fails", func(context.Context) error { return errA })
			n.Go("echoes", func(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) })
			n.Go("echoes wrapped", func(ctx context.Context) error { return fmt.Errorf("asleep: %w", coir.Sleep(ctx, time.Hour)) })
			n.Go("echoes joined", func(ctx context.Context) error { return errors.Join(coir.Sleep(ctx, time.Hour), ctx.Err()) })
			return nil
		})
		for _, e := range []error{parked, running} {
			if !isCancelFor(e, errA) {
				t.Errorf("a sibling saw %v, want a cancel for %v", e, errA)
			}
		}
		for _, want := range []error{errA, errB, errC} {
			if !errors.Is(err, want) {
				t.Errorf("%v is not found in what Run returned: %v", want, err)
			}
		}
		joined, ok := err.(interface{ Unwrap() []error })
		if !ok {
			t.Fatalf("Run returned %v", err)
		}
		if all := joined.Unwrap(); len(all) != 3 || all[0] != errA { //nolint:errorlint // the very value is promised
			t.Errorf("Run returned %d errors, want the three that are more than an echo, the first one first: %q", len(all), all)
		}
	}
}

// A single error is returned as it is.
//
// Spec: NU-12 (Run returns every child's error)
func TestOneErrorIsReturnedAsItIs(t *testing.T) {
	rt := one(t)
	for name, body := range map[string]func(context.Context, *coir.Nursery) error{
		"of the body": func(context.Context, *coir.Nursery) error { return errA },
		"of a child": func(_ context.Context, n *coir.Nursery) error {
			n.Go("a", func(context.Context) error { return errA })
			return nil
		},
		"of a nesting": func(ctx context.Context, _ *coir.Nursery) error {
			return coir.Run(ctx, func(context.Context, *coir.Nursery) error { return errA })
		},
		"with echoes": func(ctx context.Context, n *coir.Nursery) error {
			n.Go("echo", func(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) })
			_ = coir.Yield(ctx)
			return errA
		},
	} {
		if err := rt.Run(context.Background(), body); err != errA { //nolint:errorlint // the very value is promised
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := rt.Run(context.Background(), func(context.Context, *coir.Nursery) error { return nil }); err != nil {
		t.Error(err)
	}
}

// A thousand fibers fail at the same time: no error is missing.
//
// Spec: NU-12 (Run returns every child's error)
func TestEveryErrorIsFound(t *testing.T) {
	const n = 1000
	errs := make([]error, n)
	err := on(t, coir.WithWorkers(2)).Run(context.Background(), func(_ context.Context, nursery *coir.Nursery) error {
		for i := range n {
			errs[i] = fmt.Errorf("error %d", i)
			nursery.Go("fails", func(ctx context.Context) error {
				_ = coir.Yield(ctx)
				return errs[i]
			})
		}
		return nil
	})
	for i, e := range errs {
		if !errors.Is(err, e) {
			t.Fatalf("error %d is missing", i)
		}
	}
}

// Run panics with one of several panics; errors beside it do not hide it.
//
// Spec: NU-13 (a child's panic is raised from Run)
func TestPanicBesideErrors(t *testing.T) {
	rt := on(t, coir.WithWorkers(2))
	for range 20 {
		pe := panicOf(t, func() error {
			return rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
				for i := range 10 {
					n.Go("ends", func(context.Context) error {
						if i%2 == 0 {
							panic(errB)
						}
						return errA
					})
				}
				return errC
			})
		})
		if !errors.Is(pe, errB) || pe.Value != errB {
			t.Fatal(pe)
		}
		also, ok := pe.Also.(interface{ Unwrap() []error })
		if !ok || len(also.Unwrap()) != 10 { // the other four panics, the five errors, and the function's own
			t.Fatalf("also failed: %v", pe.Also)
		}
		for _, e := range []error{errA, errC} {
			if !errors.Is(pe, e) || !errors.Is(pe.Also, e) || !strings.Contains(pe.Error(), "also failed:") {
				t.Fatalf("%v is not found in %v", e, pe)
			}
		}
	}
}

// The value of a panic in the function of Run does not depend on the caller of Run.
//
// Spec: FB-24 (a panic is recovered in its fiber)
func TestPanicInTheBodyIsTheSameForAll(t *testing.T) {
	var none *coir.PanicError
	for _, value := range []any{"boom", errB, none} {
		body := func(ctx context.Context, n *coir.Nursery) error {
			f := n.Go("fails", func(context.Context) error { return errA })
			_ = f.Wait(coir.Shield(ctx))
			callsWhatExplodes(value)
			return nil
		}
		check := func(run func(context.Context, func(context.Context, *coir.Nursery) error) error, ctx context.Context, fiber string) {
			t.Helper()
			pe := panicOf(t, func() error { return run(ctx, body) })
			if pe == nil || pe.Value != value || pe.Fiber != fiber || !strings.Contains(string(pe.Stack), "explodesDeepInside") {
				t.Fatalf("%v comes out as %v", value, pe)
			}
			if !errors.Is(pe, errA) || pe.Also != errA { //nolint:errorlint // the very value is promised
				t.Errorf("the child's error is not in it: %v", pe.Also)
			}
		}
		rt := one(t)
		check(rt.Run, context.Background(), "main")
		check(coir.Run, context.Background(), "main")
		onOne(t, func(ctx context.Context, n *coir.Nursery) error {
			return n.Go("caller", func(ctx context.Context) error {
				check(coir.Run, ctx, "caller")
				check(rt.Run, ctx, "main") // on another runtime
				return nil
			}).Wait(ctx)
		}, nil)
	}
}

// A Goexit of the function hides neither the errors of the children nor a panic. That Run does not return, so the Run
// of the nursery around it reports them.
//
// Spec: FB-25 (Goexit ends one fiber alone)
// Spec: NU-12 (Run returns every child's error)
// Spec: NU-13 (a child's panic is raised from Run)
func TestGoexitHidesNothing(t *testing.T) {
	exits := func(child func() error) func(context.Context) error {
		return func(ctx context.Context) error {
			return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				_ = n.Go("child", func(context.Context) error { return child() }).Wait(coir.Shield(ctx))
				n.Go("echo", func(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) })
				runtime.Goexit()
				return nil
			})
		}
	}
	t.Run("an error", func(t *testing.T) {
		onOne(t, func(ctx context.Context, n *coir.Nursery) error {
			err := n.Go("exits", exits(func() error { return errA })).Wait(coir.Shield(ctx))
			if !errors.Is(err, coir.ErrGoexit) || !errors.Is(err, errA) || errors.Is(err, context.Canceled) {
				t.Errorf("Wait returned %v, want ErrGoexit", err)
			}
			return nil
		}, errA)
	})
	t.Run("a panic", func(t *testing.T) {
		rt := one(t)
		pe := panicOf(t, func() error {
			return rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
				n.Go("exits", exits(func() error { panic(errB) }))
				return nil
			})
		})
		if pe.Fiber != "child" || pe.Value != errB {
			t.Error(pe)
		}
	})
	t.Run("a panic, in a goroutine", func(t *testing.T) {
		rt := one(t)
		pe := panicOf(t, func() error {
			return rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
				_ = n.Go("child", func(context.Context) error { panic(errB) }).Wait(coir.Shield(ctx))
				runtime.Goexit()
				return nil
			})
		})
		if pe.Fiber != "child" || pe.Value != errB {
			t.Error(pe)
		}
	})
}

// A coroutine that is reused after a Goexit is one level deeper each time, so it is not reused forever.
//
// Spec: FB-25 (Goexit ends one fiber alone)
func TestManyGoexitsKeepStacksSmall(t *testing.T) {
	rounds := 20_000
	if testing.Short() {
		rounds = 2_000
	}
	rt := on(t, coir.WithWorkers(1))
	var before, after runtime.MemStats
	err := rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		exit := func() error {
			return n.Go("exit", func(context.Context) error { runtime.Goexit(); return nil }).Wait(ctx)
		}
		for range 100 {
			_ = exit()
		}
		runtime.ReadMemStats(&before)
		for range rounds {
			if err := exit(); !errors.Is(err, coir.ErrGoexit) {
				t.Errorf("exit returned %v, want ErrGoexit", err)
			}
		}
		runtime.ReadMemStats(&after)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if grown := int64(after.StackInuse) - int64(before.StackInuse); grown > 64<<20 {
		t.Fatalf("stacks grew by %d KiB over %d Goexits", grown>>10, rounds)
	}
}
