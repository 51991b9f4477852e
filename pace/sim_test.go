package pace_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/pace"
	"github.com/coir-go/coir/sim"
)

// program is a program to explore.
type program = func(ctx context.Context, s *sim.Sim)

// fails explores a program that must fail, and checks the report.
func fails(t *testing.T, p program, kind sim.Kind, words ...string) {
	t.Helper()
	res := sim.Explore(p, sim.WithSchedules(2500))
	if res.Failure == nil {
		t.Fatalf("no failure in %d schedules", res.Schedules)
	}
	text := res.Failure.Error()
	if res.Failure.Kind != kind {
		t.Errorf("a %s, want a %s:\n%s", res.Failure.Kind, kind, text)
	}
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("the report does not say %q:\n%s", w, text)
		}
	}
}

// holds explores a program that must not fail in any schedule.
func holds(t *testing.T, p program, opts ...sim.Option) {
	t.Helper()
	res := sim.Explore(p, append([]sim.Option{sim.WithSchedules(2500)}, opts...)...)
	if res.Failure != nil {
		t.Fatal(res.Failure)
	}
	if !res.Complete && res.Schedules < 2500 {
		t.Errorf("only %d schedules", res.Schedules)
	}
	if len(res.Never) > 0 {
		t.Errorf("never: %v", res.Never)
	}
}

// heartbeat ticks until it is cancelled.
func heartbeat(ctx context.Context) error {
	beat := pace.NewTicker(time.Second, coir.WithName("heartbeat"))
	for {
		if _, err := beat.Wait(ctx); err != nil {
			return err
		}
	}
}

// A ticker must not hide that the rest of the program is stuck, whether the program waits for it alone or in a select.
func TestTicksHideNoDeadlock(t *testing.T) {
	lost := func(beat func(ctx context.Context) error) program {
		return func(ctx context.Context, _ *sim.Sim) {
			orders := coir.NewChan[int](0, coir.WithName("orders"))
			_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				n.Go("heartbeat", beat)
				n.Go("worker", func(ctx context.Context) error {
					_, err := orders.Recv(ctx)
					return err
				})
				return nil
			})
		}
	}
	t.Run("wait", func(t *testing.T) {
		fails(t, lost(heartbeat), sim.KindDeadlock,
			"only tickers can continue", "heartbeat waits for the next tick of heartbeat",
			"worker    waits to receive from orders")
	})
	t.Run("select", func(t *testing.T) {
		stop := coir.NewEvent(coir.WithName("stop"))
		fails(t, lost(func(ctx context.Context) error {
			beat := pace.NewTicker(time.Second, coir.WithName("heartbeat"))
			for {
				if which, err := coir.Select(ctx, stop.DoneCase(), beat.WaitCase(nil)); which <= 0 {
					return err
				}
			}
		}), sim.KindDeadlock, "heartbeat waits in a select for the event stop, or for the next tick of heartbeat")
	})
	t.Run("ticks that others see", func(t *testing.T) {
		fails(t, lost(func(ctx context.Context) error {
			pulse := coir.NewChan[int](coir.Conflated)
			return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				n.Go("monitor", func(ctx context.Context) error {
					for _, err := range pulse.All(ctx) {
						if err != nil {
							return err
						}
					}
					return nil
				})
				beat := pace.NewTicker(time.Second)
				for {
					if _, err := beat.Wait(ctx); err != nil {
						return err
					}
					if err := pulse.Send(ctx, 1); err != nil {
						return err
					}
				}
			})
		}), sim.KindDeadlock, "worker", "waits to receive from orders")
	})
}

// A ticker must not use up the steps of the schedule while other fibers sleep for a long time.
func TestTicksMakeNoLivelock(t *testing.T) {
	holds(t, func(ctx context.Context, s *sim.Sim) {
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("heartbeat", heartbeat)
			for range 40 {
				if err := coir.Sleep(ctx, time.Hour); err != nil {
					return err
				}
			}
			n.Cancel(nil)
			return nil
		})
		if s.Now() != 40*time.Hour {
			s.Errorf("it took %v", s.Now())
		}
	})
}

// A program in which only ticks make progress is not deadlocked.
func TestTicksThatMatterCome(t *testing.T) {
	holds(t, func(ctx context.Context, s *sim.Sim) {
		items, batches := coir.NewChan[int](coir.Unbounded), coir.NewChan[int](0)
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("batcher", func(ctx context.Context) error {
				flush := pace.NewTicker(time.Second, coir.WithName("flush"))
				held := 0
				for {
					var v, ticks int
					which, err := coir.Select(ctx, items.RecvCase(&v), flush.WaitCase(&ticks))
					switch {
					case errors.Is(err, coir.ErrClosed):
						return nil
					case err != nil:
						return err
					case which == 0:
						held += v
					case held > 0:
						if err := batches.Send(ctx, held); err != nil {
							return err
						}
						held = 0
					}
				}
			})
			for range 10 {
				for range 3 {
					if err := items.Send(ctx, 1); err != nil {
						return err
					}
				}
				for sum := 0; sum < 3; {
					got, err := batches.Recv(ctx)
					if err != nil {
						return err
					}
					sum += got
				}
			}
			items.Close()
			return nil
		})
		if err != nil {
			s.Errorf("%v", err)
		}
	})
}

// The report of a schedule names the waiting fibers, and their numbers of tokens.
func TestReportNamesTokens(t *testing.T) {
	fails(t, func(ctx context.Context, _ *sim.Sim) {
		api := pace.NewLimiter(time.Second, 5, coir.WithName("api"))
		if !api.TryWaitN(5) {
			return
		}
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			for i := range 2 {
				n.Go("caller", func(ctx context.Context) error { return api.WaitN(ctx, 3) }, coir.WithIndex(i))
			}
			n.Go("bomb", func(ctx context.Context) error {
				if err := coir.Sleep(ctx, time.Second); err != nil {
					return err
				}
				panic("now")
			})
			return nil
		})
	}, sim.KindPanic, "wait api", "now")
}
