package coir_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
)

// Spec: NU-21 (a shield delays a cancel)
func TestGraceBeginsAtTheEnd(t *testing.T) {
	for name, derive := range contextsToWatch {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := derive(context.WithValue(t.Context(), key("k"), "v"))
				work, cancel := coir.WithGrace(ctx, time.Minute)
				defer cancel()
				time.Sleep(time.Hour)
				if work.Err() != nil || work.Value(key("k")) != "v" {
					t.Errorf("before the end: %v, %v", work.Err(), work.Value(key("k")))
				}
				end()
				time.Sleep(time.Minute - 1)
				if err := coir.Yield(work); err != nil || ctx.Err() == nil {
					t.Errorf("just before the end of the grace: %v, %v", err, ctx.Err())
				}
				time.Sleep(time.Millisecond)
				if err := coir.Yield(work); !errors.Is(err, coir.ErrTimeout) {
					t.Errorf("at the end of the grace: %v", err)
				}
				if !errors.Is(work.Err(), context.DeadlineExceeded) || !errors.Is(context.Cause(work), context.DeadlineExceeded) {
					t.Errorf("at the end of the grace: %v, %v", work.Err(), context.Cause(work))
				}
				late, stop := coir.WithGrace(ctx, time.Minute) // in a context that has ended
				began := time.Now()
				if err := coir.WaitCancel(late); !errors.Is(err, coir.ErrTimeout) || time.Since(began) != time.Minute {
					t.Errorf("%v after %v", err, time.Since(began))
				}
				stop()
			})
		})
	}
}

// Spec: NU-10 (the first cause of a cancel stays)
func TestGraceIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, ended := range []bool{false, true} {
			ctx, end := coir.WithCancel(t.Context())
			if ended {
				end()
			}
			work, cancel := coir.WithGrace(ctx, time.Minute)
			cancel()
			if err := coir.Yield(work); !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled: %v", err)
			}
			end()
			time.Sleep(time.Hour)
			cancel()
			if err := coir.Yield(work); !errors.Is(err, context.Canceled) {
				t.Errorf("cancelled long ago: %v", err)
			}
		}
		never, cancel := coir.WithGrace(context.Background(), 0)
		if never.Err() != nil {
			t.Errorf("a context that never ends: %v", never.Err())
		}
		cancel()
		gone, stop := coir.WithCancel(t.Context())
		stop()
		work, cancel := coir.WithGrace(gone, -time.Second)
		defer cancel()
		if !errors.Is(work.Err(), context.DeadlineExceeded) {
			t.Errorf("a grace below 0: %v", work.Err())
		}
	})
}

// Without a grace, the scope ends in the call that ends the context, or at once if the context has ended.
func TestGraceOfNothing(t *testing.T) {
	for _, d := range []time.Duration{0, -time.Second} {
		ctx, end := coir.WithCancel(t.Context())
		early, cancelEarly := coir.WithGrace(ctx, d)
		var told calls
		var w coir.Watch
		stop := context.AfterFunc(early, func() {})
		if err := w.Start(early, &told); err != nil {
			t.Errorf("d = %v, before the end: %v", d, err)
		}
		end()
		late, cancelLate := coir.WithGrace(ctx, d)
		for name, work := range map[string]context.Context{"early": early, "late": late} {
			select {
			case <-work.Done():
			default:
				t.Errorf("d = %v, %s: the scope is not done", d, name)
			}
			if err := coir.Ended(work); !errors.Is(err, coir.ErrTimeout) || work.Err() != context.DeadlineExceeded {
				t.Errorf("d = %v, %s: %v, %v", d, name, err, work.Err())
			}
		}
		if told.n.Load() != 1 || !errors.Is(told.err, coir.ErrTimeout) || stop() {
			t.Errorf("d = %v: the watch got %d calls, with %v", d, told.n.Load(), told.err)
		}
		cancelEarly()
		cancelLate()
		if err := coir.Ended(early); !errors.Is(err, coir.ErrTimeout) {
			t.Errorf("d = %v, after the cancel function: %v", d, err)
		}
	}
}

// Under sim, a scope without a grace needs no time to end: a fiber that only yields sees the end.
func TestGraceOfNothingInASimulation(t *testing.T) {
	for _, kind := range []string{"ended", "scope", "standard"} {
		t.Run(kind, func(t *testing.T) {
			res := sim.Explore(func(ctx context.Context, s *sim.Sim) {
				_ = coir.Run(coir.Shield(ctx), func(ctx context.Context, n *coir.Nursery) error {
					in, end := coir.WithCancel(ctx)
					if kind == "standard" {
						in, end = context.WithCancel(ctx)
					}
					if kind == "ended" {
						end()
					}
					work, cancel := coir.WithGrace(in, 0)
					defer cancel()
					waiter := n.Go("waiter", func(context.Context) error {
						if err := coir.WaitCancel(work); !errors.Is(err, coir.ErrTimeout) {
							s.Errorf("%v", err)
						}
						return nil
					})
					end()
					for coir.Yield(work) == nil {
						if kind != "standard" {
							s.Errorf("the context has ended, and the scope has not")
						}
					}
					return waiter.Wait(ctx)
				})
			}, sim.WithSchedules(undersim()))
			if res.Failure != nil {
				t.Fatal(res.Failure)
			}
		})
	}
}

// The end of the context, the end of the grace and calls of the cancel function meet in any order, and leave no timer.
func TestGraceEndsOnce(t *testing.T) {
	clock := coir.NewClock()
	rt := coir.NewRuntime(coir.WithClock(clock))
	defer func() { _ = rt.Close(context.Background()) }()
	err := rt.Run(t.Context(), func(ctx context.Context, _ *coir.Nursery) error {
		for range sized(200, 2_000, 20_000) {
			in, end := coir.WithCancel(ctx)
			work, cancel := coir.WithGrace(in, time.Second)
			var all sync.WaitGroup
			all.Go(end)
			all.Go(cancel)
			all.Go(cancel)
			all.Go(func() { clock.Advance(time.Second) })
			_, _ = coir.Blocking(ctx, func() (any, error) { all.Wait(); return nil, nil })
			if work.Err() == nil || clock.Len() > 0 {
				return fmt.Errorf("%v, and %d timers", work.Err(), clock.Len())
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Under sim, the grace begins in the step in which the context ends, and takes virtual time.
func TestGraceInASimulation(t *testing.T) {
	for mode, opts := range map[string][]sim.Option{
		"idle":   {sim.WithClock(sim.ClockIdle)},
		"racing": {sim.WithClock(sim.ClockRacing)},
		"dpor":   {sim.WithStrategy(func(uint64) sim.Strategy { return sim.DPOR() })},
	} {
		t.Run(mode, func(t *testing.T) {
			res := sim.Explore(func(ctx context.Context, s *sim.Sim) {
				err := coir.Run(coir.Shield(ctx), func(ctx context.Context, n *coir.Nursery) error {
					in, end := coir.WithCancel(ctx)
					work, cancel := coir.WithGrace(in, 10*time.Second)
					defer cancel()
					n.Go("end", func(ctx context.Context) error {
						defer end()
						return coir.Sleep(ctx, time.Second)
					})
					short := n.Go("short", func(context.Context) error { return coir.Sleep(work, 2*time.Second) })
					err := coir.Run(work, func(ctx context.Context, n *coir.Nursery) error {
						return n.Go("long", coir.WaitCancel).Wait(ctx)
					})
					if !errors.Is(err, coir.ErrTimeout) || mode != "racing" && s.Now() != 11*time.Second {
						s.Errorf("%v after %v", err, s.Now())
					}
					if err := short.Wait(ctx); err != nil && mode != "racing" {
						s.Errorf("the short work was cut: %v", err)
					}
					return nil
				})
				if mode != "racing" && err != nil {
					s.Errorf("%v", err)
				}
			}, append(opts, sim.WithSchedules(undersim()))...)
			if res.Failure != nil {
				t.Fatal(res.Failure)
			}
		})
	}
}
