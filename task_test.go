package coir_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// kindsOfFibers has the options for the two ways to run a child.
var kindsOfFibers = map[string][]coir.FiberOption{"fiber": nil, "goroutine": {coir.WithGoroutine()}}

// All callers that wait for a task get its value, however they wait.
func TestTask(t *testing.T) {
	for name, opts := range kindsOfFibers {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(ctx context.Context, r reporter) {
				err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
					task := coir.Start(n, "answer", func(ctx context.Context) (int, error) {
						return 42, coir.Yield(ctx)
					}, append(opts, coir.WithIndex(1))...)
					if f := task.Fiber(); f.Name() != "answer[1]" || !strings.Contains(f.SpawnSite(), "task_test.go:") {
						r.Errorf("the fiber is %v of %s", f, f.SpawnSite())
					}
					n.Go("selects", func(ctx context.Context) error {
						v, end := 0, errA
						if _, err := coir.Select(ctx, task.DoneCase(&v, &end)); err != nil || end != nil || v != 42 {
							r.Errorf("a select returned %d, %v, %v", v, end, err)
						}
						if i, err := coir.TrySelect(task.DoneCase(nil, nil)); i != 0 || err != nil {
							r.Errorf("a second select returned %d, %v", i, err)
						}
						return nil
					})
					if v, err := task.Wait(ctx); v != 42 || err != nil {
						r.Errorf("Wait returned %d, %v", v, err)
					}
					if s := task.String(); s != "coir.Task[int](answer[1], ended)" {
						r.Errorf("it describes itself as %q", s)
					}
					return nil
				})
				if err != nil {
					r.Errorf("Run returned %v", err)
				}
			})
		})
	}
}

// However a task fails, no wait for it hangs, and there is no value.
func TestTaskThatFails(t *testing.T) {
	for name, c := range map[string]struct {
		fn   func(ctx context.Context) (int, error)
		want func(error) bool
	}{
		"error":  {func(context.Context) (int, error) { return 1, errA }, func(err error) bool { return err == errA }},                        //nolint:errorlint // itself
		"panic":  {func(context.Context) (int, error) { panic("oops") }, func(err error) bool { _, ok := err.(*coir.PanicError); return ok }}, //nolint:errorlint // itself
		"goexit": {func(context.Context) (int, error) { runtime.Goexit(); return 1, nil }, func(err error) bool { return errors.Is(err, coir.ErrGoexit) }},
		"cancel": {func(ctx context.Context) (int, error) { return 1, coir.WaitCancel(ctx) }, func(err error) bool { return errors.Is(err, context.Canceled) }},
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(ctx context.Context, r reporter) {
				defer func() {
					if v := recover(); (v != nil) != (name == "panic") {
						r.Errorf("Run panicked with %v", v)
					}
				}()
				err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
					task := coir.Start(n, "fails", c.fn)
					if name == "cancel" {
						n.Cancel(nil)
					}
					shielded := coir.Shield(ctx)
					if v, err := task.Wait(shielded); v != 0 || !c.want(err) {
						r.Errorf("Wait returned %d, %v", v, err)
					}
					v, end := 7, error(nil)
					if _, err := coir.Select(shielded, task.DoneCase(&v, &end)); err != nil || v != 0 || !c.want(end) {
						r.Errorf("a select returned %d, %v, %v", v, end, err)
					}
					return nil
				})
				if (err != nil) != (name == "error") {
					r.Errorf("Run returned %v", err)
				}
			})
		})
	}
}

// A wait for a task ends with its context, and leaves the task running.
func TestTaskWaitIsGivenUp(t *testing.T) {
	everywhere(t, func(ctx context.Context, r reporter) {
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			var go_ coir.Event
			task := coir.Start(n, "late", func(ctx context.Context) (string, error) { return "late", go_.Wait(ctx) })
			in, cancel := coir.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			if v, err := task.Wait(in); v != "" || !errors.Is(err, coir.ErrTimeout) {
				r.Errorf("Wait returned %q, %v", v, err)
			}
			go_.Set()
			if v, err := task.Wait(ctx); v != "late" || err != nil {
				r.Errorf("Wait returned %q, %v", v, err)
			}
			return nil
		})
		if err != nil {
			r.Errorf("Run returned %v", err)
		}
	})
}

// A wait for a task gives up the place under a limit, in a select too.
//
// Spec: NU-15 (a child that waits for children gives its place up)
func TestTaskUnderALimit(t *testing.T) {
	everywhere(t, func(ctx context.Context, r reporter) {
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Limit(1)
			n.Go("waits", func(ctx context.Context) error {
				one := coir.Start(n, "one", func(context.Context) (int, error) { return 1, nil })
				two := coir.Start(n, "two", func(context.Context) (int, error) { return 2, nil })
				a, b := 0, 0
				if _, err := coir.Select(ctx, one.DoneCase(&a, nil)); err != nil {
					return err
				}
				b, err := two.Wait(ctx)
				if a != 1 || b != 2 {
					r.Errorf("got %d and %d", a, b)
				}
				return err
			})
			return nil
		})
		if err != nil {
			r.Errorf("Run returned %v", err)
		}
	})
}

// A child whose failure is its own cancels no sibling, and Run returns what failed.
//
// Spec: NU-23 (an isolated failure cancels no sibling)
func TestIsolatedFailure(t *testing.T) {
	for name, opts := range kindsOfFibers {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(ctx context.Context, r reporter) {
				var ran atomic.Int32
				err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
					for _, err := range []error{errA, nil, errWhy} {
						n.Go("job", func(ctx context.Context) error {
							if e := coir.Yield(ctx); e != nil {
								r.Errorf("cancelled: %v", e)
							}
							ran.Add(1)
							return err
						}, append(opts, coir.WithIsolatedFailure())...)
					}
					return nil
				})
				if !errors.Is(err, errA) || !errors.Is(err, errWhy) || ran.Load() != 3 {
					r.Errorf("%d ran, and Run returned %v", ran.Load(), err)
				}
			})
		})
	}
	t.Run("panic", func(t *testing.T) {
		everywhere(t, func(ctx context.Context, r reporter) {
			finished := false
			defer func() {
				if pe, ok := recover().(*coir.PanicError); !ok || pe.Value != "oops" || !errors.Is(pe, errA) || !finished {
					r.Errorf("Run panicked with %v, finished: %v", pe, finished)
				}
			}()
			err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				p := n.Go("panics", func(context.Context) error { panic("oops") }, coir.WithIsolatedFailure())
				_ = n.Go("fails", func(context.Context) error { return errA }, coir.WithIsolatedFailure()).Wait(ctx)
				_ = p.Wait(ctx)
				finished = ctx.Err() == nil
				return nil
			})
			r.Errorf("Run returned %v", err)
		})
	})
}

// The first success wins, and the others are cancelled and have ended.
func TestRace(t *testing.T) {
	everywhere(t, func(ctx context.Context, r reporter) {
		var running atomic.Int32
		loses := func(ctx context.Context) (string, error) {
			running.Add(1)
			defer running.Add(-1)
			return "late", coir.WaitCancel(ctx)
		}
		fails := func(context.Context) (string, error) { return "", errA }
		wins := func(ctx context.Context) (string, error) { return "won", coir.Yield(ctx) }
		v, err := coir.Race(ctx, loses, fails, wins, loses)
		if v != "won" || err != nil || running.Load() != 0 {
			r.Errorf("it returned %q, %v with %d running", v, err, running.Load())
		}
		v, err = coir.Race(ctx, wins, wins)
		if v != "won" || err != nil {
			r.Errorf("of two winners it returned %q, %v", v, err)
		}
		v, err = coir.Race(ctx, fails, func(context.Context) (string, error) { return "x", errWhy })
		if v != "" || !errors.Is(err, errA) || !errors.Is(err, errWhy) {
			r.Errorf("of two that fail it returned %q, %v", v, err)
		}
		v, err = coir.Race[string](ctx)
		if v != "" || err == nil {
			r.Errorf("of none it returned %q, %v", v, err)
		}
		v, err = coir.Race(ctx, func(context.Context) (string, error) { runtime.Goexit(); return "x", nil })
		if v != "" || !errors.Is(err, coir.ErrGoexit) {
			r.Errorf("of a Goexit it returned %q, %v", v, err)
		}
		in, cancel := coir.WithCancelCause(ctx)
		cancel(errStop)
		v, err = coir.Race(in, loses, loses)
		if v != "" || !isCancelFor(err, errStop) {
			r.Errorf("in a cancelled context it returned %q, %v", v, err)
		}
	})
}

func TestRacePanics(t *testing.T) {
	everywhere(t, func(ctx context.Context, r reporter) {
		defer func() {
			if pe, ok := recover().(*coir.PanicError); !ok || pe.Value != "oops" || pe.Fiber != "race[1]" {
				r.Errorf("it panicked with %v", pe)
			}
		}()
		v, err := coir.Race(ctx,
			func(ctx context.Context) (int, error) { return 1, coir.Yield(ctx) },
			func(context.Context) (int, error) { panic("oops") })
		r.Errorf("it returned %d, %v", v, err)
	})
}

// Map returns values in order, whatever order the calls end in, and never calls more than limit at a time.
func TestMap(t *testing.T) {
	for name, opts := range kindsOfFibers {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(ctx context.Context, r reporter) {
				for _, limit := range []int{1, 2, 9} {
					var now atomic.Int32
					items := []int{3, 1, 2, 0, 4}
					got, err := coir.Map(ctx, limit, slices.Values(items), func(ctx context.Context, i int) (string, error) {
						if at := int(now.Add(1)); at > limit {
							r.Errorf("%d at once, under a limit of %d", at, limit)
						}
						defer now.Add(-1)
						for range i {
							if err := coir.Yield(ctx); err != nil {
								return "", err
							}
						}
						return fmt.Sprint(i), nil
					}, opts...)
					if err != nil || !slices.Equal(got, []string{"3", "1", "2", "0", "4"}) {
						r.Errorf("limit %d: got %q, %v", limit, got, err)
					}
				}
				if got, err := coir.Map(ctx, 1, slices.Values([]int(nil)), func(context.Context, int) (int, error) { return 0, nil }); err != nil || len(got) != 0 {
					r.Errorf("of no items it returned %v, %v", got, err)
				}
			})
		})
	}
}

// naturals counts up for good, and counts how many were taken.
func naturals(taken *int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := 0; ; i++ {
			if *taken = i + 1; !yield(i) {
				return
			}
		}
	}
}

// The first error ends even an endless sequence, and cancels the calls that run.
func TestForEachEndsWithAnError(t *testing.T) {
	everywhere(t, func(ctx context.Context, r reporter) {
		taken := 0
		var cancelled atomic.Int32
		err := coir.ForEach(ctx, 3, naturals(&taken), func(ctx context.Context, i int) error {
			switch i {
			case 0, 1:
				err := coir.WaitCancel(ctx)
				if isCancelFor(err, errA) {
					cancelled.Add(1)
				}
				return err
			case 4:
				return errA
			}
			return nil
		})
		if err != errA || cancelled.Load() != 2 || taken != 5 { //nolint:errorlint // the others only say that they were cancelled
			r.Errorf("it returned %v, %d were cancelled, %d items taken", err, cancelled.Load(), taken)
		}
		in, cancel := coir.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		err = coir.ForEach(in, 2, naturals(&taken), func(ctx context.Context, _ int) error { return coir.Sleep(ctx, time.Hour) })
		if !errors.Is(err, coir.ErrTimeout) {
			r.Errorf("after its time it returned %v", err)
		}
	})
}

// A Goexit or a panic of a call is not taken for success.
func TestMapOfCallsThatDoNotReturn(t *testing.T) {
	everywhere(t, func(ctx context.Context, r reporter) {
		ran := 0
		got, err := coir.Map(ctx, 1, slices.Values([]int{0, 1, 2}), func(_ context.Context, i int) (int, error) {
			if ran++; i == 1 {
				runtime.Goexit()
			}
			return i, nil
		})
		if got != nil || !errors.Is(err, coir.ErrGoexit) || ran != 3 {
			r.Errorf("it returned %v, %v after %d calls", got, err, ran)
		}
		defer func() {
			if pe, ok := recover().(*coir.PanicError); !ok || pe.Fiber != "each[1]" {
				r.Errorf("it panicked with %v", pe)
			}
		}()
		err = coir.ForEach(ctx, 2, slices.Values([]int{0, 1, 2}), func(_ context.Context, i int) error {
			if i == 1 {
				panic("oops")
			}
			return nil
		})
		r.Errorf("it returned %v", err)
	})
}

func TestLimitOfMapIsPositive(t *testing.T) {
	panicsWith(t, "a limit of 0 lets nothing run", func() {
		_ = coir.ForEach(context.Background(), 0, slices.Values([]int{1}), func(context.Context, int) error { return nil })
	})
}

// ForEach takes an item only when there is room for its call, and none after a call has failed or panicked: what it has
// taken, it has called. A call that exits leaves its place to the next.
func TestForEachCallsWhatItTakes(t *testing.T) {
	for how, want := range map[string]int{"fails": 4, "panics": 4, "exits": 10} {
		t.Run(how, func(t *testing.T) {
			for range 200 {
				taken, called := 0, 0
				items := func(yield func(int) bool) {
					for i := range 10 {
						if taken++; !yield(i) {
							return
						}
					}
				}
				func() {
					defer func() { _ = recover() }()
					_ = coir.ForEach(context.Background(), 1, items, func(_ context.Context, i int) error {
						called++
						switch {
						case i != 3:
						case how == "fails":
							return errors.New("no")
						case how == "panics":
							panic("no")
						default:
							runtime.Goexit()
						}
						return nil
					})
				}()
				if taken != want || called != want {
					t.Fatalf("took %d items and called %d, want %d", taken, called, want)
				}
			}
		})
	}
}
