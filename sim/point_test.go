package sim

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// The code of a program is between two operations. Other fibers may run before it and after it, and not only before the
// operation that it follows. If that is not enough, they may run at a Point.

// late returns a program in which one fiber does something that another can see, and then records that it has.
func late(do func(ctx context.Context, n *coir.Nursery), see func(ctx context.Context) bool) program {
	return func(ctx context.Context, s *Sim) {
		var mu sync.Mutex
		noted, missed := false, false
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			n.Go("does", func(ctx context.Context) error {
				do(ctx, n)
				mu.Lock()
				noted = true
				mu.Unlock()
				return nil
			})
			n.Go("sees", func(ctx context.Context) error {
				if see(ctx) {
					mu.Lock()
					missed = !noted
					mu.Unlock()
				}
				return nil
			})
		})
		if missed {
			s.Errorf("seen before it was noted")
		}
	}
}

// Spec: SM-01 (a policy is told before each operation)
func TestWhatFollowsAnOperationIsNotOneStepWithIt(t *testing.T) {
	type does = func(ctx context.Context, n *coir.Nursery)
	type sees = func(ctx context.Context) bool
	sent := func(c *coir.Chan[int]) sees { // to a channel that was full
		return func(ctx context.Context) bool { return c.Send(ctx, 2) == nil }
	}
	full := func() *coir.Chan[int] {
		c := coir.NewChan[int](1)
		_ = c.TrySend(1)
		return c
	}
	received := func(c *coir.Chan[int]) sees {
		return func(ctx context.Context) bool { _, err := c.Recv(ctx); return err == nil }
	}
	closed := func(c *coir.Chan[int]) sees {
		return func(ctx context.Context) bool { _, err := c.Recv(ctx); return errors.Is(err, coir.ErrClosed) }
	}
	for _, c := range []struct {
		name string
		make func() (does, sees)
	}{
		{"Send, rendezvous", func() (does, sees) {
			c := coir.NewChan[int](0)
			return func(ctx context.Context, _ *coir.Nursery) { _ = c.Send(ctx, 1) }, received(c)
		}},
		{"Send", func() (does, sees) {
			c := coir.NewChan[int](1)
			return func(ctx context.Context, _ *coir.Nursery) { _ = c.Send(ctx, 1) }, received(c)
		}},
		{"Send, unbounded", func() (does, sees) {
			c := coir.NewChan[int](coir.Unbounded)
			return func(ctx context.Context, _ *coir.Nursery) { _ = c.Send(ctx, 1) }, received(c)
		}},
		{"Send that drops", func() (does, sees) {
			c := coir.NewChan[int](1, coir.WithOverflow(coir.OverflowDropOldest))
			_ = c.TrySend(2)
			return func(ctx context.Context, _ *coir.Nursery) { _ = c.Send(ctx, 1) }, func(ctx context.Context) bool { v, _ := c.Recv(ctx); return v == 1 }
		}},
		{"SendMany", func() (does, sees) {
			c := coir.NewChan[int](1)
			return func(ctx context.Context, _ *coir.Nursery) { _, _ = c.SendMany(ctx, []int{1}) }, received(c)
		}},
		{"TrySend", func() (does, sees) {
			c := coir.NewChan[int](1)
			return func(context.Context, *coir.Nursery) { _ = c.TrySend(1) }, received(c)
		}},
		{"Recv", func() (does, sees) {
			c := full()
			return func(ctx context.Context, _ *coir.Nursery) { _, _ = c.Recv(ctx) }, sent(c)
		}},
		{"RecvMany", func() (does, sees) {
			c := full()
			return func(ctx context.Context, _ *coir.Nursery) { _, _ = c.RecvMany(ctx, make([]int, 1)) }, sent(c)
		}},
		{"TryRecv", func() (does, sees) {
			c := full()
			return func(context.Context, *coir.Nursery) { _, _ = c.TryRecv() }, sent(c)
		}},
		{"Select", func() (does, sees) {
			c := coir.NewChan[int](1)
			return func(ctx context.Context, _ *coir.Nursery) { _, _ = coir.Select(ctx, c.SendCase(1)) }, received(c)
		}},
		{"TrySelect", func() (does, sees) {
			c := coir.NewChan[int](1)
			return func(context.Context, *coir.Nursery) { _, _ = coir.TrySelect(c.SendCase(1)) }, received(c)
		}},
		{"Close", func() (does, sees) {
			c := coir.NewChan[int](0)
			return func(context.Context, *coir.Nursery) { c.Close() }, closed(c)
		}},
		{"Abort", func() (does, sees) {
			c := coir.NewChan[int](0)
			return func(context.Context, *coir.Nursery) { c.Abort(nil) }, closed(c)
		}},
		{"Writer.Close", func() (does, sees) {
			w, r := coir.Pipe[int](1)
			return func(context.Context, *coir.Nursery) { w.Close() }, func(ctx context.Context) bool {
				_, err := r.Recv(ctx)
				return err != nil
			}
		}},
		{"Reader.Close", func() (does, sees) {
			w, r := coir.Pipe[int](1)
			return func(context.Context, *coir.Nursery) { r.Close() }, func(context.Context) bool { return w.TrySend(1) != nil }
		}},
		{"the last Reader is gone", func() (does, sees) {
			w, r := coir.Pipe[int](1)
			return func(context.Context, *coir.Nursery) { r.Close() }, func(ctx context.Context) bool {
				_, err := coir.Select(ctx, w.GoneCase())
				return err == nil
			}
		}},
		{"Writer.Clone", func() (does, sees) {
			w, r := coir.Pipe[int](1)
			return func(context.Context, *coir.Nursery) { w.Clone() }, func(context.Context) bool {
				w.Close()
				_, err := r.TryRecv()
				return err == coir.ErrWouldBlock // there is another one
			}
		}},
		{"Selector.Add", func() (does, sees) {
			sel, c := coir.NewSelector(), full()
			return func(context.Context, *coir.Nursery) { sel.Add(c.RecvCase(nil)) }, func(ctx context.Context) bool {
				_, err := sel.Wait(ctx)
				return err == nil
			}
		}},
		{"Selector.Remove", func() (does, sees) {
			sel, c := coir.NewSelector(), full()
			id := sel.Add(c.RecvCase(nil))
			return func(context.Context, *coir.Nursery) { sel.Remove(id) }, func(context.Context) bool { return sel.Len() == 0 }
		}},
		{"Selector.Wait", func() (does, sees) {
			sel, c := coir.NewSelector(), full()
			sel.Add(c.RecvCase(nil))
			return func(ctx context.Context, _ *coir.Nursery) { _, _ = sel.Wait(ctx) }, sent(c)
		}},
		{"Go", func() (does, sees) {
			var started atomic.Bool
			return func(_ context.Context, n *coir.Nursery) {
				n.Go("started", func(context.Context) error { started.Store(true); return nil })
			}, func(context.Context) bool { return started.Load() }
		}},
		{"the cancel of a scope", func() (does, sees) {
			var scope atomic.Pointer[context.Context]
			return func(ctx context.Context, _ *coir.Nursery) {
				ctx, cancel := coir.WithCancelCause(ctx)
				scope.Store(&ctx)
				cancel(nil)
			}, func(context.Context) bool { ctx := scope.Load(); return ctx != nil && (*ctx).Err() != nil }
		}},
		{"the cancel of a scope with a time", func() (does, sees) {
			var scope atomic.Pointer[context.Context]
			return func(ctx context.Context, _ *coir.Nursery) {
				ctx, cancel := coir.WithTimeout(ctx, time.Hour)
				scope.Store(&ctx)
				cancel()
			}, func(context.Context) bool { ctx := scope.Load(); return ctx != nil && (*ctx).Err() != nil }
		}},
		{"Nursery.Cancel", func() (does, sees) {
			return func(_ context.Context, n *coir.Nursery) { n.Cancel(nil) }, func(ctx context.Context) bool { return ctx.Err() != nil }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fn := func(ctx context.Context, s *Sim) {
				do, see := c.make()
				late(do, see)(ctx, s)
			}
			res := Explore(fn)
			if res.Failure == nil || res.Failure.Kind != KindError {
				t.Fatalf("by default: %v after %d schedules", res.Failure, res.Schedules)
			}
			if f, err := Replay(res.Failure.Token, fn); err != nil || f == nil || f.Kind != KindError {
				t.Errorf("its token: %v, %v", f, err)
			}
			if res := Explore(fn, WithStrategy(func(uint64) Strategy { return Exhaustive(2) })); res.Failure == nil {
				t.Errorf("with at most two preemptions: none in %d schedules", res.Schedules)
			}
		})
	}
}

// electing returns a program in which fibers read an atomic and then write it, without an operation in between.
func electing(between func(ctx context.Context)) program {
	return func(ctx context.Context, s *Sim) {
		var owner, owners atomic.Int32
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			for i := range 2 {
				n.Go("candidate", func(ctx context.Context) error {
					if owner.Load() == 0 {
						between(ctx)
						owner.Store(int32(i + 1))
						owners.Add(1)
					}
					return nil
				}, coir.WithIndex(i))
			}
		})
		if n := owners.Load(); n != 1 {
			s.Errorf("%d owners", n)
		}
	}
}

func TestPointDividesAStep(t *testing.T) {
	for name, strategy := range map[string]func(uint64) Strategy{
		"default":    Default,
		"exhaustive": func(uint64) Strategy { return Exhaustive(1) },
		"dpor":       func(uint64) Strategy { return DPOR() },
	} {
		if res := Explore(electing(coir.Point), WithStrategy(strategy)); res.Failure == nil || res.Failure.Kind != KindError {
			t.Errorf("%s: %v in %d schedules", name, res.Failure, res.Schedules)
		}
	}
	all := WithStrategy(func(uint64) Strategy { return Exhaustive(-1) })
	if res := Explore(electing(func(context.Context) {}), all); res.Failure != nil || !res.Complete {
		t.Errorf("without a point: %v", res.Failure)
	}
}

func TestPointIsNothingOutside(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { coir.Point(t.Context()) }); n != 0 {
		t.Errorf("in a goroutine: %v allocations", n)
	}
	err := coir.Run(t.Context(), func(ctx context.Context, _ *coir.Nursery) error {
		if n := testing.AllocsPerRun(100, func() { coir.Point(ctx) }); n != 0 {
			t.Errorf("in a fiber: %v allocations", n)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestAdvanceIsAnOperation(t *testing.T) {
	fn := func(ctx context.Context, s *Sim) {
		var moved, missed atomic.Bool
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			n.Go("sleeps", func(ctx context.Context) error {
				_ = coir.Sleep(ctx, time.Second)
				missed.Store(!moved.Load())
				return nil
			})
			n.Go("moves", func(context.Context) error {
				s.Advance(time.Second)
				moved.Store(true)
				return nil
			})
		})
		if missed.Load() {
			s.Errorf("it woke before that was noted")
		}
	}
	if res := Explore(fn); res.Failure == nil || res.Failure.Kind != KindError {
		t.Errorf("%v in %d schedules", res.Failure, res.Schedules)
	}
}
