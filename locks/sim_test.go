package locks_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/sim"
)

const schedules = 2500

var errStopped = errors.New("stopped")

func dpor(uint64) sim.Strategy { return sim.DPOR() }

// complete explores fn in all orders that make a difference, and fails the test if there are too many.
func complete(t *testing.T, fn func(ctx context.Context, s *sim.Sim)) {
	t.Helper()
	res := sim.Explore(fn, sim.WithStrategy(dpor), sim.WithSchedules(100_000))
	if res.Failure != nil {
		t.Fatal(res.Failure)
	}
	if !res.Complete || len(res.Never) > 0 {
		t.Errorf("%d schedules, complete: %v; never so: %q", res.Schedules, res.Complete, res.Never)
	}
	t.Logf("%d schedules", res.Schedules)
}

// nursery runs body and ignores the errors of its fibers, because some of them are cancelled.
func nursery(ctx context.Context, body func(ctx context.Context, n *coir.Nursery)) {
	_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		body(ctx, n)
		return nil
	})
}

// guard checks how many permits of a lock are taken.
type guard struct {
	s      *sim.Sim
	l      lock
	taken  atomic.Int64
	writes int // written by holders of all permits, so that the race detector sees whether they are ordered
}

// hold takes n from the guard, yields, and returns n.
func (g *guard) hold(ctx context.Context, n int) {
	if now := g.taken.Add(int64(n)); now > int64(g.l.size) {
		g.s.Errorf("%d of %d are taken", now, g.l.size)
	}
	if n == g.l.size {
		g.writes++
	}
	defer func() {
		g.taken.Add(int64(-n))
		g.l.put(n)
	}()
	_ = coir.Yield(ctx)
}

// free checks that everything is free and that there are no waiters.
func (g *guard) free() {
	if g.taken.Load() != 0 || !g.l.try(g.l.size) {
		g.s.Errorf("not all is free: %s", g.l.describe())
	}
}

// Fibers take locks with a plain call, with a try, in a select with a channel, with priority and with a deadline, while
// one of them is cancelled.
func TestLocksUnderSimulation(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			sim.Test(t, func(ctx context.Context, s *sim.Sim) {
				g := &guard{s: s, l: k.make()}
				amount := func() int { return g.l.amounts[s.Intn(len(g.l.amounts))] }
				c := coir.NewChan[int](0, coir.WithName("c"))
				nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
					n.Go("plain", func(ctx context.Context) error {
						for range 2 {
							n := amount()
							if err := g.l.take(ctx, n); err != nil {
								s.Errorf("ended with %v", err)
							}
							g.hold(ctx, n)
						}
						return nil
					})
					n.Go("try", func(ctx context.Context) error {
						n := amount()
						if g.l.try(n) {
							g.hold(ctx, n)
						}
						if i, err := coir.TrySelect(g.l.takeCase(n)); i == 0 && err == nil {
							g.hold(ctx, n)
						}
						return nil
					})
					n.Go("select", func(ctx context.Context) error {
						n := amount()
						switch i, err := coir.Select(ctx, c.RecvCase(nil), g.l.takeCase(n)); {
						case err != nil:
							s.Errorf("ended with %v", err)
						case i == 1:
							g.hold(ctx, n)
							_, err := c.Recv(ctx)
							return err
						}
						return nil
					})
					n.Go("send", func(ctx context.Context) error { return c.Send(ctx, 1) })
					n.Go("deadline", func(ctx context.Context) error {
						n := amount()
						in, cancel := coir.WithTimeout(ctx, time.Second)
						defer cancel()
						i, err := coir.SelectPriority(in, g.l.takeCase(n), coir.After(time.Millisecond))
						switch {
						case i == 0 && err == nil:
							g.hold(ctx, n)
						case i == 1:
							if g.l.take(in, n) == nil {
								g.hold(ctx, n)
							}
						}
						return nil
					})
					n.Go("cancelled", func(ctx context.Context) error {
						nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
							n.Go("waiter", func(ctx context.Context) error {
								n := amount()
								err := g.l.take(ctx, n)
								if err == nil {
									g.hold(ctx, n)
								}
								s.Sometimes(err != nil, "a cancel comes first")
								s.Sometimes(err == nil, "a cancel comes late")
								return nil
							})
							n.Cancel(errStopped)
						})
						return nil
					})
				})
				g.free()
			}, sim.WithSchedules(schedules))
		})
	}
}

// A few fibers use each lock, in all orders that make a difference.
func TestLocksInEveryOrder(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			complete(t, func(ctx context.Context, s *sim.Sim) {
				g := &guard{s: s, l: k.make()}
				c := coir.NewChan[int](1)
				nursery(ctx, func(_ context.Context, n *coir.Nursery) {
					n.Go("plain", func(ctx context.Context) error {
						if g.l.take(ctx, g.l.size) == nil {
							g.hold(ctx, g.l.size)
						}
						return nil
					})
					n.Go("select", func(ctx context.Context) error {
						i, err := coir.Select(ctx, g.l.takeCase(1), c.RecvCase(nil))
						if i == 0 && err == nil {
							g.hold(ctx, 1)
						}
						s.Sometimes(i == 0, "takes")
						s.Sometimes(i == 1, "receives")
						return nil
					})
					n.Go("send", func(ctx context.Context) error { return c.Send(ctx, 1) })
				})
				g.free()
			})
		})
	}
}

// A waiter is cancelled, in all orders: either it takes the lock, or it leaves and the next waiter takes it.
func TestCancelInEveryOrder(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			complete(t, func(ctx context.Context, s *sim.Sim) {
				g := &guard{s: s, l: k.make()}
				nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
					_ = g.l.take(ctx, 1)
					in, cancel := coir.WithCancel(ctx)
					n.Go("large", func(context.Context) error {
						err := g.l.take(in, g.l.size)
						if err == nil {
							g.l.put(g.l.size)
						}
						s.Sometimes(err == nil, "takes")
						s.Sometimes(err != nil, "leaves")
						return nil
					})
					n.Go("small", func(ctx context.Context) error {
						if err := g.l.take(ctx, 1); err != nil {
							s.Errorf("ended with %v", err)
						}
						g.l.put(1)
						return nil
					})
					n.Go("cancel", func(context.Context) error {
						cancel()
						return nil
					})
					g.l.put(1)
				})
				g.free()
			})
		})
	}
}

// Waiters are served in the order of arrival, in any schedule. Time advances only when no fiber can run, so each fiber
// arrives when those before it are waiting. One of them leaves.
func TestWaitersAreServedInOrder(t *testing.T) {
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			sim.Test(t, func(ctx context.Context, s *sim.Sim) {
				l := k.make()
				var served []int
				leaves := s.Intn(5)
				nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
					_ = l.take(ctx, l.size)
					for i := range 5 {
						n.Go("waiter", func(ctx context.Context) error {
							if err := coir.Sleep(ctx, time.Duration(1+i)*time.Millisecond); err != nil {
								return err
							}
							if i == leaves {
								i, err := coir.Select(ctx, l.takeCase(1), coir.After(10*time.Millisecond))
								if i != 1 {
									s.Errorf("took what is held: %d, %v", i, err)
								}
								return nil
							}
							if err := l.take(ctx, l.size); err != nil {
								return err
							}
							served = append(served, i)
							_ = coir.Yield(ctx)
							l.put(l.size)
							return nil
						}, coir.WithIndex(i))
					}
					_ = coir.Sleep(ctx, 20*time.Millisecond)
					l.put(l.size)
				})
				if len(served) != 4 || !slices.IsSorted(served) {
					s.Errorf("served in the order %v", served)
				}
			}, sim.WithSchedules(schedules))
		})
	}
}

// Half of the waits of a Once are cancelled. fn is called until it succeeds, never twice at the same time, and never
// again after that.
func TestOnceUnderSimulation(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		o := locks.NewOnce(coir.WithName("config"))
		runs, calls, value := 0, 0, ""
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			in, cancel := coir.WithCancel(ctx)
			for i := range 3 {
				n.Go("user", func(ctx context.Context) error {
					if i == 1 {
						ctx = in
					}
					err := o.Do(ctx, func(ctx context.Context) error {
						runs++
						calls++
						defer func() { runs-- }()
						if runs > 1 || value != "" {
							s.Errorf("called again, or twice at a time")
						}
						if err := coir.Yield(ctx); err != nil {
							return err
						}
						if calls == 1 {
							return errStopped
						}
						value = "loaded"
						return nil
					})
					if err == nil && value != "loaded" {
						s.Errorf("done, without a value")
					}
					s.Sometimes(errors.Is(err, errStopped), "fn fails")
					s.Sometimes(errors.Is(err, context.Canceled), "a wait is cancelled")
					s.Sometimes(err == nil && i == 1, "one that may be cancelled succeeds")
					return nil
				}, coir.WithIndex(i))
			}
			n.Go("cancel", func(context.Context) error {
				cancel()
				return nil
			})
		})
	}, sim.WithSchedules(schedules))
}

// DPOR explores both orders of two calls of Do, because checking whether the action was done is an operation.
func TestOnceInEveryOrder(t *testing.T) {
	complete(t, func(ctx context.Context, s *sim.Sim) {
		var o locks.Once
		calls := 0
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			for i := range 2 {
				n.Go("user", func(ctx context.Context) error {
					return o.Do(ctx, func(context.Context) error {
						calls++
						s.Sometimes(i == 0, "the first calls")
						s.Sometimes(i == 1, "the second calls")
						return nil
					})
				}, coir.WithIndex(i))
			}
		})
		if calls != 1 {
			s.Errorf("%d calls", calls)
		}
	})
}

// In each of two rounds three fibers arrive, and a fourth may give up before it has been counted.
func TestBarrierUnderSimulation(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		b := locks.NewBarrier(3, coir.WithName("start"))
		var came [2]atomic.Int32
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			gaveUp := coir.NewEvent(coir.WithName("gave up"))
			n.Go("hasty", func(ctx context.Context) error {
				in, cancel := coir.WithTimeout(ctx, time.Millisecond)
				defer cancel()
				_, _, err := b.Wait(in)
				if err == nil {
					s.Errorf("a barrier of 3 opened for one and two")
				}
				gaveUp.Set()
				return nil
			})
			for i := range 3 {
				n.Go("member", func(ctx context.Context) error {
					if i > 0 {
						if err := gaveUp.Wait(ctx); err != nil {
							return err
						}
					}
					for want := range 2 {
						came[want].Add(1)
						round, _, err := b.Wait(ctx)
						if err != nil || round != want || came[want].Load() != 3 {
							s.Errorf("round %d instead of %d, %d have come, %v", round, want, came[want].Load(), err)
						}
					}
					return nil
				}, coir.WithIndex(i))
			}
		})
	}, sim.WithSchedules(schedules))
}

// DPOR explores both orders of a Wait and a cancellation by a fiber that the caller has just released.
func TestBarrierAgainstCancel(t *testing.T) {
	came, canceled := 0, 0
	r := sim.Explore(func(ctx context.Context, s *sim.Sim) {
		b := locks.NewBarrier(1, coir.WithName("start"))
		in, cancel := coir.WithCancel(ctx)
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			begin := coir.NewEvent(coir.WithName("begin"))
			n.Go("canceller", func(ctx context.Context) error {
				defer cancel()
				return begin.Wait(ctx)
			})
			n.Go("member", func(context.Context) error {
				begin.Set()
				switch _, _, err := b.Wait(in); {
				case err == nil:
					came++
				case errors.Is(err, context.Canceled):
					canceled++
				default:
					s.Errorf("%v", err)
				}
				return nil
			})
		})
	}, sim.WithStrategy(dpor))
	if r.Failure != nil || !r.Complete || came == 0 || canceled == 0 {
		t.Errorf("complete %v, %d came and %d were cancelled: %v", r.Complete, came, canceled, r.Failure)
	}
}

// The Lock of a Locker cannot return an error. When sim has found a deadlock and ends the waits, waiters in such a Lock
// do not continue as if they held the lock: their Unlock would panic, and the report would begin with that panic.
func TestDeadlockOfLockersIsTheReport(t *testing.T) {
	for _, deferred := range []bool{true, false} {
		res := sim.Explore(func(ctx context.Context, _ *sim.Sim) {
			accounts, journal := locks.NewMutex(coir.WithName("accounts")), locks.NewMutex(coir.WithName("journal"))
			moved := 0
			both := func(a, b *locks.Mutex) func(context.Context) error {
				return func(ctx context.Context) error {
					first, second := a.Locker(ctx), b.Locker(ctx)
					first.Lock()
					if deferred {
						defer first.Unlock()
					}
					second.Lock()
					moved++
					second.Unlock()
					if !deferred {
						first.Unlock()
					}
					return nil
				}
			}
			nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
				n.Go("bank", func(ctx context.Context) error {
					nursery(ctx, func(_ context.Context, n *coir.Nursery) {
						n.Go("debit", both(accounts, journal))
						n.Go("credit", both(journal, accounts))
					})
					return nil
				})
			})
		})
		f := res.Failure
		if f == nil || f.Kind != sim.KindDeadlock || strings.Contains(f.Error(), "panic") || !strings.Contains(f.Error(), "cycle:") {
			t.Errorf("want a deadlock with its cycle and nothing else, got: %v", f)
		}
	}
}
