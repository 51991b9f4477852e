package sim

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/pace"
)

// Contexts of package context in a simulation. Sim controls what fibers do with them. It does not control deadlines in
// real time and cancellations by goroutines, and the report says so.

// underStandard are the ways in which a fiber depends on a context of package context. Each runs fn under a context
// that ends with std.
var underStandard = map[string]func(std context.Context, fn func(ctx context.Context) error) error{
	"direct": func(std context.Context, fn func(ctx context.Context) error) error { return fn(std) },
	"derived": func(std context.Context, fn func(ctx context.Context) error) error {
		ctx, cancel := context.WithCancel(context.WithValue(std, key("k"), "v"))
		defer cancel()
		return fn(ctx)
	},
	"scope": func(std context.Context, fn func(ctx context.Context) error) error {
		ctx, cancel := coir.WithCancelCause(std)
		defer cancel(nil)
		return fn(ctx)
	},
	"timed scope": func(std context.Context, fn func(ctx context.Context) error) error {
		ctx, cancel := coir.WithTimeout(std, time.Hour)
		defer cancel()
		return fn(ctx)
	},
	"run": func(std context.Context, fn func(ctx context.Context) error) error {
		return coir.Run(std, func(ctx context.Context, _ *coir.Nursery) error { return fn(ctx) })
	},
	"child": func(std context.Context, fn func(ctx context.Context) error) error {
		return coir.Run(std, func(_ context.Context, n *coir.Nursery) error { n.Go("child", fn); return nil })
	},
	"derived from a scope in it": func(std context.Context, fn func(ctx context.Context) error) error {
		scope, cancel := coir.WithCancelCause(std)
		defer cancel(nil)
		ctx, stop := context.WithCancel(scope)
		defer stop()
		return fn(ctx)
	},
}

type key string

// firstWay lets each fiber run until it waits, the oldest first.
func firstWay(uint64) Strategy { return Exhaustive(0) }

// A fiber's cancellation of a context of package context races with data like any other operation, in all orders, and
// each order can be replayed.
func TestCancelOfPackageContextIsControlled(t *testing.T) {
	for _, above := range []bool{false, true} {
		for name, under := range underStandard {
			t.Run(fmt.Sprintf("%s, above %v", name, above), func(t *testing.T) {
				own(t, func(ctx context.Context, s *Sim) {
					c := coir.NewChan[int](0, coir.WithName("c"))
					base := ctx
					if above {
						base = context.Background()
					}
					std, cancel := context.WithCancelCause(base)
					var sent, received error
					var v int
					err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
						n.Go("recv", func(context.Context) error {
							received = under(std, func(ctx context.Context) (err error) { v, err = c.Recv(ctx); return err })
							return nil
						})
						n.Go("send", func(context.Context) error {
							sent = under(std, func(ctx context.Context) error { return c.Send(ctx, 7) })
							return nil
						})
						n.Go("cancel", func(context.Context) error { cancel(errGone); return nil })
						return nil
					})
					switch {
					case sent == nil && received == nil && v == 7:
					case isCancelIn(std, sent, errGone) && isCancelIn(std, received, errGone) && v == 0:
					default:
						s.Errorf("send: %v; receive: %d, %v", sent, v, received)
					}
					if err != nil || s.Now() != 0 {
						s.Errorf("run: %v, at %v", err, s.Now())
					}
					s.Sometimes(sent == nil, "the value was first")
					s.Sometimes(sent != nil, "the cancel was first")
				})
			})
		}
	}
}

// The cancellation takes effect before the next operation of the fiber that called it: that operation no longer meets a
// receiver, in any order of the fibers.
func TestCancelOfPackageContextTakesEffectAtTheNextStep(t *testing.T) {
	for name, under := range underStandard {
		t.Run(name, func(t *testing.T) {
			own(t, func(ctx context.Context, s *Sim) {
				c := coir.NewChan[int](0, coir.WithName("c"))
				std, cancel := context.WithCancelCause(context.Background())
				var received error
				_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
					n.Go("recv", func(context.Context) error {
						received = under(std, func(ctx context.Context) error { _, err := c.Recv(ctx); return err })
						return nil
					})
					n.Go("cancel", func(context.Context) error {
						cancel(errGone)
						if err := c.TrySend(1); !errors.Is(err, coir.ErrWouldBlock) {
							s.Errorf("after the cancel: %v", err)
						}
						return nil
					})
					return nil
				})
				if !isCancelFor(received, errGone) {
					s.Errorf("received: %v", received)
				}
			})
		})
	}
}

// The deadline of a scope is measured on the simulation's clock, also for contexts that package context derives from
// it.
func TestDeadlineOfAScopeIsControlledThroughPackageContext(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		scope, cancelScope := coir.WithTimeout(ctx, 10*time.Second)
		defer cancelScope()
		std, cancelStd := context.WithCancel(context.WithValue(scope, key("k"), "v"))
		defer cancelStd()
		c := coir.NewChan[int](0, coir.WithName("c"))
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			for i, ctx := range []context.Context{std, scope} {
				n.Go("waits", func(context.Context) error {
					if _, err := c.Recv(ctx); !errors.Is(err, coir.ErrTimeout) || errors.Is(err, context.Canceled) {
						s.Errorf("context %d: %v", i, err)
					}
					return nil
				}, coir.WithIndex(i))
			}
			return nil
		})
		if err != nil {
			s.Errorf("run: %v", err)
		}
		if s.Now() != 10*time.Second {
			s.Errorf("at %v", s.Now())
		}
	})
}

// A use of a context with a deadline of package context is reported, with its place, in every run: whether the deadline
// has passed, passes during the schedule, or is far away, and whether the operation waits.
func TestDeadlineOfPackageContextIsTold(t *testing.T) {
	ops := map[string]func(ctx context.Context, full *coir.Chan[int]) error{
		"waits":  func(ctx context.Context, full *coir.Chan[int]) error { return full.Send(ctx, 1) },
		"sleeps": func(ctx context.Context, _ *coir.Chan[int]) error { return coir.Sleep(ctx, time.Millisecond) },
		"does not wait": func(ctx context.Context, full *coir.Chan[int]) error {
			_, err := full.Recv(ctx)
			return err
		},
		"selects": func(ctx context.Context, full *coir.Chan[int]) error {
			var v int
			_, err := coir.Select(ctx, full.RecvCase(&v))
			return err
		},
		"asks": func(ctx context.Context, _ *coir.Chan[int]) error { return coir.Ended(ctx) },
	}
	for _, limit := range []time.Duration{-time.Second, 0, time.Millisecond, time.Hour} {
		for name, under := range underStandard {
			for does, op := range ops {
				t.Run(fmt.Sprintf("%s, %s, %v", name, does, limit), func(t *testing.T) {
					f := found(t, KindUncontrolled, func(ctx context.Context, _ *Sim) {
						std, cancel := context.WithTimeout(context.Background(), limit)
						defer cancel()
						full := coir.NewChan[int](1, coir.WithName("full"))
						_ = full.Send(ctx, 0)
						_ = under(std, func(ctx context.Context) error { return op(ctx, full) })
					}, WithStrategy(firstWay), WithSchedules(1))
					says(t, f, "a fiber uses a context with a deadline of package context, which passes in real time, at ",
						"sim/outside_test.go:", "use coir.WithTimeout")
					saysNot(t, f, "asm_", "runtime/", "coir/scope.go", "coir/nursery.go", "coir/chan.go", "context/context.go")
				})
			}
		}
	}
}

// The same holds for a deadline that package context adds to a scope's, if it is earlier. One that is not adds none.
func TestEarlierDeadlineOfPackageContextIsTold(t *testing.T) {
	run := func(limit time.Duration) *Failure {
		return Explore(func(ctx context.Context, _ *Sim) {
			scope, cancel := coir.WithTimeout(ctx, time.Minute)
			defer cancel()
			std, stop := context.WithTimeout(scope, limit)
			defer stop()
			_ = coir.Sleep(std, time.Millisecond)
		}, WithStrategy(firstWay), WithSchedules(1)).Failure
	}
	if f := run(30 * time.Second); f == nil || f.Kind != KindUncontrolled {
		t.Errorf("an earlier deadline: %v", f)
	}
	if f := run(time.Hour); f != nil {
		t.Errorf("a later deadline: %v", f)
	}
}

// A goroutine that cancels a context of package context is not controlled. If it does so when no fiber can run, the
// report says what happened, and where the context was used. It is never silent.
func TestCancelOfPackageContextByAGoroutineIsTold(t *testing.T) {
	for name, under := range underStandard {
		if name == "timed scope" {
			continue // its time would pass immediately
		}
		t.Run(name, func(t *testing.T) {
			told := false
			for end := time.Now().Add(20 * time.Second); !told; {
				if time.Now().After(end) {
					t.Fatal("it is never told")
				}
				f := Explore(func(ctx context.Context, _ *Sim) {
					std, cancel := context.WithCancel(context.Background())
					defer cancel()
					main := coir.Self(ctx)
					c := coir.NewChan[int](0, coir.WithName("c"))
					done := make(chan struct{})
					_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
						n.Go("waits", func(context.Context) error {
							return under(std, func(ctx context.Context) error { _, err := c.Recv(ctx); return err })
						})
						go func() {
							defer close(done)
							for main.State() != coir.StateWaiting || c.Stats().Recv.Waiting == 0 {
								runtime.Gosched()
							}
							cancel()
						}()
						return nil
					})
					<-done
				}, WithStrategy(firstWay), WithSchedules(1)).Failure
				if f == nil {
					t.Fatal("it passes, though a goroutine has ended a wait")
				}
				switch f.Kind {
				case KindUncontrolled:
					told = true
					says(t, f, "a goroutine that is not a fiber of the simulation has cancelled the context used at sim/outside_test.go:")
					saysNot(t, f, "asm_", "context/context.go")
				case KindDeadlock: // the cancellation was too late: the machine is busy
				case KindBlocked: // it was before both were parked, and sim reports the program's own <-done
				default:
					t.Fatal(f)
				}
			}
		})
	}
}

// A goroutine that cancels a scope of the simulation is reported like one that uses any other object.
//
// Spec: SM-06 (an outside goroutine is reported)
func TestCancelOfAScopeByAGoroutineIsTold(t *testing.T) {
	f := found(t, KindUncontrolled, func(ctx context.Context, _ *Sim) {
		scope, cancel := coir.WithCancelCause(ctx)
		done := make(chan struct{})
		go func() { defer close(done); cancel(errGone) }()
		<-done
		_ = coir.Yield(scope)
	}, WithStrategy(firstWay), WithSchedules(1))
	says(t, f, "a goroutine that is not a fiber of the simulation does cancel", "sim/outside_test.go:")
	if strings.Contains(f.Error(), "deadline") {
		t.Error(f)
	}
}

// A goroutine that runs only the library is reported with the place of its go statement, never with one in the Go
// runtime.
func TestGoroutineOfTheLibraryAloneHasAPlace(t *testing.T) {
	f := Run(1, func(ctx context.Context, _ *Sim) {
		c := coir.NewChan[int](0, coir.WithName("jobs"))
		go c.Send(ctx, 1) //nolint:errcheck // it is stray, and its error does not matter
		_, _ = c.Recv(ctx)
	})
	if f == nil || !strings.Contains(f.Error(), "sim/outside_test.go:") || strings.Contains(f.Error(), "asm_") {
		t.Errorf("the place is not told:\n%v", f)
	}
}

// A goroutine that selects on objects that fibers use is reported whatever its cases are, even if the fibers use them
// only in a select.
//
// Spec: SM-06 (an outside goroutine is reported)
func TestASelectOutsideIsReportedForEachKindOfCase(t *testing.T) {
	for name, made := range map[string]func() (of func() coir.Case, use func(ctx context.Context)){
		"event": func() (func() coir.Case, func(context.Context)) {
			e := coir.NewEvent(coir.WithName("shared"))
			return e.DoneCase, func(context.Context) { e.Set() }
		},
		"promise": func() (func() coir.Case, func(context.Context)) {
			p := coir.NewPromise[int](coir.WithName("shared"))
			return func() coir.Case { return p.DoneCase(nil, nil) }, func(context.Context) { p.Resolve(1) }
		},
		"lock": func() (func() coir.Case, func(context.Context)) {
			m := locks.NewMutex(coir.WithName("shared"))
			return m.LockCase, func(context.Context) { m.TryLock() }
		},
		"cond": func() (func() coir.Case, func(context.Context)) {
			c := coir.NewCond(coir.WithName("shared"))
			return c.WaitCase, func(context.Context) { c.Lock(); c.Signal(); c.Unlock() }
		},
		"ticker": func() (func() coir.Case, func(context.Context)) {
			k := pace.NewTicker(time.Hour, coir.WithName("shared"))
			return func() coir.Case { return k.WaitCase(nil) }, func(ctx context.Context) { _, _ = k.Wait(ctx) }
		},
	} {
		for _, bySelect := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, used in a select: %v", name, bySelect), func(t *testing.T) {
				f := found(t, KindUncontrolled, func(ctx context.Context, _ *Sim) {
					shared, use := made()
					if bySelect {
						_, _ = coir.TrySelect(shared())
					} else {
						use(ctx)
					}
					done := make(chan struct{})
					go func() {
						defer close(done)
						_, _ = coir.TrySelect(coir.After(time.Hour), shared())
					}()
					<-done
				})
				says(t, f, "a goroutine that is not a fiber of the simulation does try select shared, at sim/outside_test.go:")
			})
		}
	}
}

// A call of Run of another runtime by a fiber is reported, with its place, before that runtime runs anything.
//
// Spec: SM-06 (an outside goroutine is reported)
func TestAnotherRuntimeIsTold(t *testing.T) {
	for name, fn := range map[string]func(context.Context) error{
		"short":  func(context.Context) error { return nil },
		"sleeps": func(ctx context.Context) error { return coir.Sleep(ctx, time.Millisecond) },
		"long":   func(ctx context.Context) error { return coir.Sleep(ctx, 48*time.Hour) },
	} {
		for where, inside := range map[string]func(ctx context.Context, do func(context.Context)){
			"alone":      func(ctx context.Context, do func(context.Context)) { do(ctx) },
			"in a fiber": beside,
		} {
			t.Run(name+", "+where, func(t *testing.T) {
				at := line(5)
				f := found(t, KindUncontrolled, func(ctx context.Context, _ *Sim) {
					inside(ctx, func(ctx context.Context) {
						rt := coir.NewRuntime()
						defer func() { _ = rt.Close(context.Background()) }()
						_ = rt.Run(ctx, func(ctx context.Context, _ *coir.Nursery) error {
							t.Error("it runs")
							return fn(ctx)
						})
					})
				})
				says(t, f, "another runtime runs at "+at, "use coir.Run and the simulation's ctx")
			})
		}
	}
}
