package sim_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/soak"
	"github.com/coir-go/coir/sim"
)

// Correct programs in which a fiber waits under a context that is not its own: a scope that another fiber made, the
// context of an outer nursery, or one of package context. In every schedule the cancellation must end each wait.
var underOthers = map[string]func(ctx context.Context, s *sim.Sim){
	"a scope, cancelled": func(ctx context.Context, s *sim.Sim) {
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			ch := coir.NewChan[int](0, coir.WithName("ch"))
			scope, cancel := coir.WithCancelCause(ctx)
			n.Go("stopper", func(context.Context) error { cancel(nil); return nil })
			return n.Go("worker", func(context.Context) error {
				if _, err := ch.Recv(scope); !errors.Is(err, context.Canceled) {
					s.Errorf("Recv returned %v", err)
				}
				return nil
			}).Wait(ctx)
		})
	},
	"a scope, out of time": func(ctx context.Context, s *sim.Sim) {
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			ch := coir.NewChan[int](0, coir.WithName("ch"))
			scope, cancel := coir.WithTimeout(ctx, time.Second)
			defer cancel()
			return n.Go("worker", func(context.Context) error {
				if _, err := ch.Recv(scope); !errors.Is(err, coir.ErrTimeout) || s.Now() != time.Second {
					s.Errorf("Recv returned %v at %v", err, s.Now())
				}
				return nil
			}).Wait(ctx)
		})
	},
	"a context of package context in a scope, out of time": func(ctx context.Context, s *sim.Sim) {
		scope, cancel := coir.WithTimeout(ctx, time.Second)
		defer cancel()
		std, stop := context.WithCancel(scope)
		defer stop()
		ch := coir.NewChan[int](0, coir.WithName("ch"))
		if _, err := ch.Recv(std); !errors.Is(err, coir.ErrTimeout) || s.Now() != time.Second {
			s.Errorf("Recv returned %v at %v", err, s.Now())
		}
	},
	"a nursery in such a context": func(ctx context.Context, s *sim.Sim) {
		scope, cancel := coir.WithTimeout(ctx, time.Second)
		defer cancel()
		std, stop := context.WithTimeout(scope, time.Hour)
		defer stop()
		err := coir.Run(std, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("sleeps", func(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) })
			return nil
		})
		if !errors.Is(err, coir.ErrTimeout) || s.Now() != time.Second {
			s.Errorf("Run returned %v at %v", err, s.Now())
		}
	},
	"an outer nursery": func(ctx context.Context, s *sim.Sim) {
		bug := errors.New("bug")
		err := coir.Run(ctx, func(outer context.Context, n *coir.Nursery) error {
			ch := coir.NewChan[int](0, coir.WithName("ch"))
			n.Go("group", func(ctx context.Context) error {
				return coir.Run(ctx, func(_ context.Context, m *coir.Nursery) error {
					m.Go("waits", func(context.Context) error { _, err := ch.Recv(outer); return err })
					return nil
				})
			})
			n.Go("fails", func(context.Context) error { return bug })
			return nil
		})
		if !errors.Is(err, bug) {
			s.Errorf("Run returned %v", err)
		}
	},
	"a nursery in another's scope": func(ctx context.Context, s *sim.Sim) {
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			ch := coir.NewChan[int](0, coir.WithName("ch"))
			scope, cancel := coir.WithCancelCause(ctx)
			n.Go("group", func(context.Context) error {
				err := coir.Run(scope, func(_ context.Context, m *coir.Nursery) error {
					m.Go("waits", func(ctx context.Context) error { _, err := ch.Recv(ctx); return err })
					return nil
				})
				if !errors.Is(err, context.Canceled) {
					s.Errorf("Run returned %v", err)
				}
				return nil
			})
			n.Go("stop", func(context.Context) error { cancel(nil); return nil })
			return nil
		})
	},
	"package context, sleeping": func(ctx context.Context, s *sim.Sim) {
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			c, cancel := context.WithCancel(ctx)
			defer cancel()
			n.Go("canceller", func(context.Context) error { cancel(); return nil })
			if err := coir.Sleep(c, time.Hour); !errors.Is(err, context.Canceled) || s.Now() != 0 {
				s.Errorf("Sleep returned %v at %v", err, s.Now())
			}
			return nil
		})
	},
	"package context, receiving": func(ctx context.Context, s *sim.Sim) {
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			ch := coir.NewChan[int](0, coir.WithName("ch"))
			c, cancel := context.WithCancel(ctx)
			defer cancel()
			n.Go("canceller", func(context.Context) error { cancel(); return nil })
			if _, err := ch.Recv(c); !errors.Is(err, context.Canceled) {
				s.Errorf("Recv returned %v", err)
			}
			return nil
		})
	},
	"package context around Run": func(ctx context.Context, s *sim.Sim) {
		c, cancel := context.WithCancel(ctx)
		err := coir.Run(c, func(_ context.Context, n *coir.Nursery) error {
			n.Go("sleeps", func(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) })
			cancel()
			return nil
		})
		if !errors.Is(err, context.Canceled) || s.Now() != 0 {
			s.Errorf("Run returned %v at %v", err, s.Now())
		}
	},
	"package context around a supervisor": func(ctx context.Context, s *sim.Sim) {
		ctx, cancel := context.WithCancel(ctx)
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			ch := coir.NewChan[int](0, coir.WithName("ch"))
			n.Go("worker", func(ctx context.Context) error { _, err := ch.Recv(ctx); return err })
			n.Go("stopper", func(context.Context) error { cancel(); return nil })
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			s.Errorf("Run returned %v", err)
		}
	},
}

// make soak runs 10,000 seeds of each program on both clocks, without a false alarm.
//
// Spec: FB-16 (a cancelled fiber is woken by the ordinary claim)
func TestWaitsUnderOthersContextsEnd(t *testing.T) {
	seeds := uint64(2_500)
	switch {
	case soak.On():
		seeds = 10_000
	case testing.Short():
		seeds = 100
	}
	for name, program := range underOthers {
		t.Run(name, func(t *testing.T) {
			for seed := range seeds {
				if f := sim.Run(seed, program); f != nil {
					t.Fatalf("seed %d: %v", seed, f)
				}
			}
			bound := func(n int) sim.Option {
				return sim.WithStrategy(func(uint64) sim.Strategy { return sim.Exhaustive(n) })
			}
			all := sim.WithSchedules(100_000)
			if r := sim.Explore(program, bound(1), all); r.Failure != nil || !r.Complete {
				t.Errorf("explored: complete %v, %v", r.Complete, r.Failure)
			}
			if timed[name] {
				return // on racing time a sleep may end before its cancel
			}
			if r := sim.Explore(program, bound(1), all, sim.WithClock(sim.ClockRacing)); r.Failure != nil || !r.Complete {
				t.Errorf("on racing time: complete %v, %v", r.Complete, r.Failure)
			}
		})
	}
}

var timed = map[string]bool{
	"a scope, out of time": true, "package context, sleeping": true, "package context around Run": true,
	"a nursery in such a context": true,
}

// Deadlines under which no fiber waits pass one after the other, and the simulation continues.
func TestDeadlinesThatNothingWaitsUnder(t *testing.T) {
	for _, mode := range []sim.ClockMode{sim.ClockIdle, sim.ClockRacing} {
		sim.Test(t, func(ctx context.Context, s *sim.Sim) {
			for i := range 4 {
				_, cancel := coir.WithTimeout(ctx, time.Duration(i+1)*time.Second)
				defer cancel()
			}
			if err := coir.Sleep(ctx, time.Minute); err != nil || s.Now() < time.Minute {
				s.Errorf("Sleep returned %v at %v", err, s.Now())
			}
		}, sim.WithClock(mode), sim.WithSchedules(20))
	}
}

// noted is a user's context, with memory that its creator has written.
type noted struct {
	context.Context
	asked int
}

func (c *noted) Err() error {
	if c.asked < 0 {
		return nil
	}
	return c.Context.Err()
}

// A step of one fiber reads the contexts under which others wait. The race detector must see these reads as ordered
// after what the waiting fiber did before, as with package context, whose cancel reads the children of a context.
func TestAContextThatAnotherFiberLooksAtIsNoRace(t *testing.T) {
	res := sim.Explore(func(ctx context.Context, _ *sim.Sim) {
		parent, cancel := context.WithCancel(ctx)
		parent.Done() // makes the channel: a fiber that asks for it later takes no lock of package context, which would order it
		ch := coir.NewChan[int](0)
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("waits", func(context.Context) error {
				_, _ = ch.Recv(&noted{Context: parent, asked: 1})
				return nil
			})
			n.Go("cancels", func(ctx context.Context) error {
				cancel()
				_ = coir.Yield(ctx)
				return nil
			})
			return nil
		})
	}, sim.WithSchedules(100))
	if res.Failure != nil {
		t.Error(res.Failure)
	}
}
