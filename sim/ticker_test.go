package sim

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/chart"
	"github.com/coir-go/coir/internal/report"
	"github.com/coir-go/coir/locks"
)

// limited is a service with a rate limit: a ticker fills a bucket of tokens, and workers take one for each job. Jobs
// that fail are queued again, by the worker itself, so that all workers wait to send when the queue is full. That
// happens after some hundred steps. The ticker continues, and so does a monitor that receives each tick.
func limited(workers, jobs int) program {
	return func(ctx context.Context, s *Sim) {
		tokens := coir.NewChan[int](2, coir.WithName("tokens"))
		queue := coir.NewChan[int](2, coir.WithName("queue"))
		beats := coir.NewChan[int](1, coir.WithName("beats"))
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			n.Go("ticker", func(ctx context.Context) error {
				for {
					if err := coir.Sleep(ctx, 10*time.Millisecond); err != nil {
						return err
					}
					_ = tokens.TrySend(1)
					_ = beats.TrySend(1)
				}
			})
			n.Go("monitor", func(ctx context.Context) error {
				for {
					if _, err := beats.Recv(ctx); err != nil {
						return err
					}
				}
			})
			for i := range workers {
				n.Go("worker", func(ctx context.Context) error {
					for {
						job, err := queue.Recv(ctx)
						if err != nil {
							return err
						}
						if _, err := tokens.Recv(ctx); err != nil {
							return err
						}
						if job%3 == 0 { // it fails
							if err := queue.Send(ctx, job+1); err != nil {
								return err
							}
						}
					}
				}, coir.WithIndex(i))
			}
			for job := range jobs {
				if queue.Send(ctx, job*s.Intn(2)) != nil {
					return
				}
			}
		})
	}
}

// A ticker keeps a program from ending, and a deadlock beside it is reported as one, with its cause: what each fiber
// did last, and not the last of 20,000 steps.
func TestADeadlockBesideATickerIsADeadlock(t *testing.T) {
	f := found(t, KindDeadlock, limited(4, 200), WithStrategy(Random))
	if f.Steps != 20_000 {
		t.Errorf("it has %d steps", f.Steps)
	}
	says(t, f, "only tickers can continue: ticker, monitor. No other fiber has moved since step ",
		"  main waits to send to queue (capacity 2, full), at sim/ticker_test.go:",
		"  worker[0..3] wait to send to queue (capacity 2, full), at sim/ticker_test.go:",
		"from which only worker[0..3] received, and now wait to send to it",
		"... ticker sleep 10ms, try send tokens → would block, try send beats: ", " times more, until step ",
		"| send queue * ", "  channels: queue (sim/ticker_test.go:", ", capacity 2, full), beats (sim/ticker_test.go:", ", capacity 1, empty)")
	saysNot(t, f, "livelock", "  ticker waits", "  monitor waits", "may have")
	if n := strings.Count(f.Error(), "\n"); n > 110 {
		t.Errorf("the report has %d lines", n)
	}
	since := regexp.MustCompile(`since step (\d+)\n`).FindStringSubmatch(f.Error())
	if since == nil || len(since[1]) > 4 {
		t.Fatalf("since %v:\n%v", since, f)
	}
	// The step at which all fibers stop is in the table, and in the chart.
	says(t, f, fmt.Sprintf("%s | ", since[1]))
	if page := chartOf(t, f); !strings.Contains(page, `"Folds":[{`) {
		t.Error("the chart has no folds")
	}
	all := newReport(f).chart().Steps
	if !slices.ContainsFunc(all, func(s chart.Step) bool { return fmt.Sprint(s.Number) == since[1] && s.Until == len(all) }) {
		t.Error("the step at which all stop is not in the chart")
	}
}

// Clients that retry keep themselves from ending. A server that waits for their requests does not make that a deadlock.
func TestRetriesBesideAnIdleServerAreALivelock(t *testing.T) {
	_ = found(t, KindLivelock, func(ctx context.Context, _ *Sim) {
		requests, busy := coir.NewChan[int](0, coir.WithName("requests")), locks.NewMutex(coir.WithName("busy"))
		_ = busy.Lock(ctx)
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			n.Go("server", func(ctx context.Context) error {
				for {
					if _, err := requests.Recv(ctx); err != nil {
						return err
					}
				}
			})
			n.Go("client", func(ctx context.Context) error {
				if err := requests.Send(ctx, 1); err != nil {
					return err
				}
				for !busy.TryLock() {
					if err := coir.Sleep(ctx, time.Millisecond); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}, WithSteps(200))
}

// A fiber that spins is a livelock, whatever else waits.
func TestSpinningBesideADeadlockIsALivelock(t *testing.T) {
	for _, mode := range []ClockMode{ClockIdle, ClockRacing} {
		_ = found(t, KindLivelock, func(ctx context.Context, _ *Sim) {
			c := coir.NewChan[int](0, coir.WithName("c"))
			nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
				n.Go("stuck", func(ctx context.Context) error { return c.Send(ctx, 1) })
				n.Go("sleeper", func(ctx context.Context) error {
					for coir.Sleep(ctx, time.Second) == nil {
					}
					return nil
				})
				for coir.Yield(ctx) == nil {
				}
			})
		}, WithSteps(500), WithClock(mode))
	}
}

// A channel whose only receivers wait to send to it is a cycle, even of one fiber.
func TestReportNamesAJam(t *testing.T) {
	f := found(t, KindDeadlock, func(ctx context.Context, _ *Sim) {
		c := coir.NewChan[int](1, coir.WithName("c"))
		_ = c.Send(ctx, 1)
		_, _ = c.Recv(ctx)
		_, _ = c.Send(ctx, 2), c.Send(ctx, 3)
	})
	says(t, f, "  cycle:\n    main waits to send to c (capacity 1, full), from which only this fiber received, and now waits to send to it\n",
		"  main waits to send to c (capacity 1, full), at sim/ticker_test.go:")
	saysNot(t, f, "no fiber is left", "no other")
	f = found(t, KindDeadlock, func(ctx context.Context, _ *Sim) {
		c := coir.NewChan[int](2, coir.WithName("c"))
		_, _ = c.Send(ctx, 1), c.Send(ctx, 2)
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			for i := range 2 {
				n.Go("worker", func(ctx context.Context) error {
					for {
						v, err := c.Recv(ctx)
						if err != nil {
							return err
						}
						_, _ = c.Send(ctx, v), c.Send(ctx, v)
					}
				}, coir.WithIndex(i))
			}
		})
	})
	says(t, f, "  cycle:\n    worker[0] waits to send to c (capacity 2, full), from which only worker[0], worker[1] received, and now wait to send to it\n",
		"\n    worker[1] waits to send to c (capacity 2, full), from which only")
}

// The table of a long trace has the end, the errors, and the last steps of each fiber.
func TestLongTraces(t *testing.T) {
	f := found(t, KindError, func(ctx context.Context, s *Sim) {
		var names []*coir.Chan[int]
		for i := range 300 {
			names = append(names, coir.NewChan[int](1, coir.WithName(fmt.Sprint("c", i))))
		}
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			n.Go("early", func(ctx context.Context) error { return names[299].Send(ctx, 1) })
			for i, c := range names[:299] {
				_ = c.Send(ctx, 1)
				if i == 150 {
					s.Errorf("in the middle")
				}
			}
		})
	}, WithSchedules(1), WithStrategy(func(uint64) Strategy { return RoundRobin() }))
	says(t, f, "| go early", "| send c299 ", "| error: in the middle ", "| send c298 ", "| join ", " left out\n")
	if n := strings.Count(f.Error(), "\n"); n > report.MostRows+15 {
		t.Errorf("the report has %d lines:\n%v", n, f)
	}
}
