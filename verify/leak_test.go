package verify

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"go.uber.org/goleak"
)

// These tests do what a user's tests do: they call coir.Run, do not know about the runtime behind it, and call goleak
// at the end. goleak gives up after about half a second. By then the default runtime must have ended, without any call
// of Close.

// TestMain shows the other way to use goleak: once, after all tests.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(patient{m})
}

// patient runs tests, and then gives everything time to end.
type patient struct{ *testing.M }

func (p patient) Run() int {
	code := p.M.Run()
	_ = findNone()
	return code
}

// verifyNone is goleak.VerifyNone for a busy machine, where goleak's half second may pass before the goroutines can
// run. A real leak never ends.
func verifyNone(t *testing.T, options ...goleak.Option) {
	t.Helper()
	if err := findNone(options...); err != nil {
		t.Error(err)
	}
}

func findNone(options ...goleak.Option) (err error) {
	for range 10 {
		if err = goleak.Find(options...); err == nil {
			return nil
		}
	}
	return err
}

var errBroken = errors.New("broken")

func TestNoLeakAfterRun(t *testing.T) {
	tests := []struct {
		name string
		body func(t *testing.T)
	}{
		{"empty", func(t *testing.T) {
			must(t, coir.Run(t.Context(), func(context.Context, *coir.Nursery) error { return nil }))
		}},
		{"children", func(t *testing.T) {
			must(t, coir.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
				for range 1000 {
					n.Go("child", coir.Yield)
				}
				return nil
			}))
		}},
		{"nested", func(t *testing.T) {
			must(t, nested(t.Context(), 6))
		}},
		{"sleepers", func(t *testing.T) {
			must(t, coir.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
				for i := range 100 {
					n.Go("sleeper", func(ctx context.Context) error {
						return coir.Sleep(ctx, time.Duration(i)*10*time.Microsecond)
					})
				}
				return nil
			}))
		}},
		{"error", func(t *testing.T) {
			err := coir.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
				for range 100 {
					n.Go("forever", forever)
				}
				n.Go("broken", func(context.Context) error { return errBroken })
				return nil
			})
			if !errors.Is(err, errBroken) {
				t.Errorf("Run returned %v, want the child's error", err)
			}
		}},
		{"cancel from outside", func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
				for range 100 {
					n.Go("forever", forever)
				}
				cancel(errBroken)
				return nil
			})
			if !isCancelFor(err, errBroken) || context.Cause(ctx) != errBroken {
				t.Errorf("Run returned %v, want a cancel that shows its cause", err)
			}
		}},
		{"timeout", func(t *testing.T) {
			err := coir.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
				for range 100 {
					n.Go("late", func(ctx context.Context) error {
						ctx, cancel := coir.WithTimeout(ctx, time.Millisecond)
						defer cancel()
						return forever(ctx)
					})
				}
				return nil
			})
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Run returned %v, want a deadline that was exceeded", err)
			}
		}},
		{"timeout of the standard library", func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			defer cancel()
			err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
				n.Go("late", forever)
				return nil
			})
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Run returned %v, want a deadline that was exceeded", err)
			}
		}},
		{"panic in a child", func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("Run did not panic though a child did")
				}
			}()
			_ = coir.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
				for range 10 {
					n.Go("forever", forever)
				}
				n.Go("panics", func(context.Context) error { panic("broken") })
				return nil
			})
		}},
		{"panic in the body", func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("Run did not panic though its function did")
				}
			}()
			_ = coir.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
				n.Go("forever", forever)
				panic("broken")
			})
		}},
		{"Goexit in a child", func(t *testing.T) {
			_ = coir.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
				for range 10 {
					n.Go("leaves", func(context.Context) error {
						runtime.Goexit()
						return nil
					})
				}
				n.Go("stays", coir.Yield)
				return nil
			})
		}},
		{"Goexit after a park", func(t *testing.T) {
			_ = coir.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
				for range 10 {
					n.Go("leaves", func(ctx context.Context) error {
						_ = coir.Sleep(ctx, time.Microsecond)
						runtime.Goexit()
						return nil
					})
				}
				return nil
			})
		}},
		{"blocking", func(t *testing.T) {
			must(t, coir.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
				for range 50 {
					n.Go("blocking", func(ctx context.Context) error {
						_, err := coir.Blocking(ctx, nap(time.Millisecond))
						return err
					})
				}
				return nil
			}))
		}},
		{"blocked natively", func(t *testing.T) {
			must(t, coir.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
				for range 50 {
					n.Go("native", func(context.Context) error {
						time.Sleep(time.Millisecond)
						return nil
					})
				}
				return nil
			}))
		}},
		{"many callers", func(t *testing.T) {
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					for range 20 {
						if err := nested(t.Context(), 2); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			defer verifyNone(t)
			test.body(t)
		})
	}
}

// The default runtime starts again after it has ended.
func TestRunAfterTheDefaultRuntimeHasGone(t *testing.T) {
	for range 3 {
		must(t, nested(t.Context(), 3))
		verifyNone(t)
	}
}

// Run may return at any time relative to the periodic work of the runtime. Here Run ends after about 10 ms, a little
// earlier or later each time. That is when the default runtime first checks whether it is still needed. A check that
// happens after the last worker became idle, but before Run returns, must not be the last check.
func TestNoLeakWheneverRunReturns(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 40 {
		end := time.Now().Add(9800*time.Microsecond + time.Duration(r.IntN(500))*time.Microsecond)
		must(t, coir.Run(t.Context(), func(ctx context.Context, _ *coir.Nursery) error {
			for time.Now().Before(end) {
				if err := coir.Yield(ctx); err != nil {
					return err
				}
			}
			return nil
		}))
		if verifyNone(t); t.Failed() {
			return
		}
	}
}

func TestNoLeakAfterClose(t *testing.T) {
	tests := []struct {
		name string
		body func(t *testing.T, rt *coir.Runtime)
	}{
		{"never used", func(*testing.T, *coir.Runtime) {}},
		{"used", func(t *testing.T, rt *coir.Runtime) {
			must(t, rt.Run(t.Context(), func(ctx context.Context, _ *coir.Nursery) error {
				return nested(ctx, 6)
			}))
		}},
		{"Goexit", func(t *testing.T, rt *coir.Runtime) {
			_ = rt.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
				for range 100 {
					n.Go("leaves", func(ctx context.Context) error {
						_ = coir.Yield(ctx)
						runtime.Goexit()
						return nil
					})
				}
				return nil
			})
		}},
	}
	for _, test := range tests {
		for _, workers := range []int{1, 2, 4} {
			t.Run(test.name, func(t *testing.T) {
				defer verifyNone(t, goleak.IgnoreCurrent())
				rt := coir.NewRuntime(coir.WithWorkers(workers))
				test.body(t, rt)
				must(t, rt.Close(t.Context()))
			})
		}
	}
}

// Close ends fibers that still run: fibers that sleep, wait for each other, are parked forever, or are in a blocking
// call that ends.
func TestNoLeakAfterCloseUnderWay(t *testing.T) {
	defer verifyNone(t, goleak.IgnoreCurrent())
	for range 20 {
		rt := coir.NewRuntime(coir.WithWorkers(2))
		up := make(chan struct{})
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
				for range 100 {
					asleep := n.Go("asleep", forever)
					n.Go("waits", func(ctx context.Context) error { return asleep.Wait(ctx) })
					n.Go("blocking", func(ctx context.Context) error {
						_, _ = coir.Blocking(ctx, nap(time.Microsecond))
						return forever(ctx)
					})
					n.Go("runs", func(ctx context.Context) error {
						for coir.Yield(ctx) == nil {
						}
						return nil
					})
				}
				close(up)
				return nil
			})
		}()
		<-up
		must(t, rt.Close(t.Context()))
		<-ended
	}
}

// nap returns a function for coir.Blocking that sleeps natively.
func nap(d time.Duration) func() (any, error) {
	return func() (any, error) {
		time.Sleep(d)
		return nil, nil
	}
}

// forever parks until it is cancelled.
func forever(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) }

// nested opens nurseries inside each other, with two children each.
func nested(ctx context.Context, depth int) error {
	if depth == 0 {
		return coir.Yield(ctx)
	}
	return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
		for range 2 {
			n.Go("nested", func(ctx context.Context) error { return nested(ctx, depth-1) })
		}
		return nil
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
