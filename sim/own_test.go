package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// The library under its own simulation: small programs with the real channels, selects and nurseries. Each runs in all
// schedules with up to two preemptions, within the limit of schedules, and in some random ones. Results that are read
// after the join are in variables that each have one writer, so that the race detector reports nothing.

// own explores fn.
func own(t *testing.T, fn func(ctx context.Context, s *Sim), opts ...Option) {
	t.Helper()
	bounded, chance := 10_000, 5_000
	switch {
	case slowBuild():
		bounded, chance = 200, 100
	case testing.Short():
		bounded, chance = 2_000, 1_000
	}
	g := &guard{t: t, bounded: bounded}
	Test(t, fn, append(opts, WithSchedules(bounded+chance), WithStrategy(func(seed uint64) Strategy {
		g.Strategy, g.rest = Exhaustive(2), Portfolio(Random(seed), PCT(seed, 3), Uniform(seed))
		return g
	}))...)
	g.compare()
	if g.repeats == 0 {
		t.Error("no schedule was run again")
	}
}

// guard runs every 16th schedule again from its decisions, and expects the same steps. It uses one strategy for a
// number of schedules, or until the strategy has no more, and then rest.
type guard struct {
	Strategy
	rest    Strategy
	bounded int
	n       int // schedules of the strategy

	t       *testing.T
	w       *world
	again   bool
	script  []decision
	at      int
	hash    uint64
	steps   int
	repeats int
}

func (g *guard) Begin(schedule int) bool {
	g.compare()
	if g.w != nil && schedule%16 == 15 {
		g.again, g.at = true, 0
		g.script = append(g.script[:0], g.w.decisions[:g.w.ndec]...)
		g.hash, g.steps = g.w.hash, g.w.nsteps
		return true
	}
	g.n++
	if g.rest == nil {
		return g.Strategy.Begin(g.n - 1)
	}
	if schedule < g.bounded && g.Strategy.Begin(g.n-1) {
		return true
	}
	g.Strategy, g.rest, g.n = g.rest, nil, 1
	return g.Strategy.Begin(0)
}

// compare checks a repeated schedule once it has been run.
func (g *guard) compare() {
	if !g.again {
		return
	}
	g.again = false
	g.repeats++
	if g.w.hash != g.hash || g.w.nsteps != g.steps || g.w.ndec != len(g.script) {
		g.t.Errorf("the same decisions gave %d steps and %d decisions, then %d and %d; hash %x, then %x", g.steps, len(g.script),
			g.w.nsteps, g.w.ndec, g.hash, g.w.hash)
	}
}

//go:norace
func (g *guard) Choose(p *Fork) int {
	g.w = p.w
	if !g.again {
		return g.Strategy.Choose(p)
	}
	d := 0
	if g.at < len(g.script) {
		d = min(g.script[g.at].chosen, p.N-1)
	}
	g.at++
	return d
}

// Spec: CH-20 (a waiting operation beats a passing one)
func TestOwnNothingIsLostOrTwice(t *testing.T) {
	for _, capacity := range []int{0, 1, 2, coir.Unbounded} {
		t.Run(fmt.Sprint(capacity), func(t *testing.T) {
			own(t, func(ctx context.Context, s *Sim) {
				c := coir.NewChan[int](capacity, coir.WithName("c"))
				got := make([][]int, 2)
				err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
					for i := range got {
						n.Go("recv", func(ctx context.Context) error {
							for v, err := range c.All(ctx) {
								if err != nil {
									return err
								}
								got[i] = append(got[i], v)
							}
							return nil
						}, coir.WithIndex(i))
					}
					err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
						for i := range 2 {
							n.Go("send", func(ctx context.Context) error {
								return errors.Join(c.Send(ctx, 10*i), c.Send(ctx, 10*i+1))
							}, coir.WithIndex(i))
						}
						return nil
					})
					c.Close()
					return err
				})
				all := slices.Concat(got...)
				slices.Sort(all)
				if err != nil || !slices.Equal(all, []int{0, 1, 10, 11}) {
					s.Errorf("received %v, %v", got, err)
				}
				for _, g := range got { // one receiver sees the values of one sender in order
					if !inOrder(g, 0, 1) || !inOrder(g, 10, 11) {
						s.Errorf("out of order: %v", g)
					}
				}
				s.Sometimes(len(got[0]) == 2, "both receive two")
				s.Sometimes(len(got[0]) == 0, "one receives nothing")
			})
		})
	}
}

func inOrder(values []int, first, second int) bool {
	i, j := slices.Index(values, first), slices.Index(values, second)
	return i < 0 || j < 0 || i < j
}

// Spec: CH-34 (close is one step)
// Spec: CH-35 (close is graceful)
func TestOwnCloseAgainstSendAndReceive(t *testing.T) {
	for _, capacity := range []int{0, 1} {
		t.Run(fmt.Sprint(capacity), func(t *testing.T) {
			own(t, func(ctx context.Context, s *Sim) {
				c := coir.NewChan[int](capacity, coir.WithName("c"))
				var sent, received [2]error
				_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
					for i := range 2 {
						n.Go("send", func(ctx context.Context) error { sent[i] = c.Send(ctx, i); return nil }, coir.WithIndex(i))
						n.Go("recv", func(ctx context.Context) error { _, received[i] = c.Recv(ctx); return nil }, coir.WithIndex(i))
					}
					n.Go("close", func(context.Context) error { c.Close(); return nil })
					return nil
				})
				out, in := nils(sent[:]), nils(received[:])
				if out != in { // two receivers for two values: nothing can stay behind
					s.Errorf("%d sent, %d received: %v, %v", out, in, sent, received)
				}
				for _, err := range slices.Concat(sent[:], received[:]) {
					if err != nil && !errors.Is(err, coir.ErrClosed) {
						s.Errorf("error %v", err)
					}
				}
				s.Sometimes(in == 0, "closed before all")
				s.Sometimes(in == 1, "closed between")
				s.Sometimes(in == 2, "closed after all")
			})
		})
	}
}

func nils(errs []error) (n int) {
	for _, err := range errs {
		if err == nil {
			n++
		}
	}
	return n
}

// Spec: CH-37 (abort is the hard close)
// Spec: CH-40 (no value is lost silently)
func TestOwnAbortAccountsForEveryValue(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		var undelivered atomic.Int32
		c := coir.NewChan[int](1, coir.WithName("c"), coir.OnUndelivered(func(int) { undelivered.Add(1) }))
		var sent [3]error
		var received error
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			for i := range sent {
				n.Go("send", func(ctx context.Context) error { sent[i] = c.Send(ctx, i); return nil }, coir.WithIndex(i))
			}
			n.Go("recv", func(ctx context.Context) error { _, received = c.Recv(ctx); return nil })
			n.Go("abort", func(context.Context) error { c.Abort(nil); return nil })
			return nil
		})
		in := nils([]error{received})
		if out := nils(sent[:]); out != in+int(undelivered.Load()) || c.Len() != 0 {
			s.Errorf("%d sent, %d received, %d undelivered, %d left", out, in, undelivered.Load(), c.Len())
		}
		s.Sometimes(undelivered.Load() == 1, "a value is left in the channel")
		s.Sometimes(in == 1 && undelivered.Load() == 1, "one is received and one is left")
	})
}

// Spec: CH-18 (dropped values are counted and handed over)
func TestOwnDroppedValuesAreHandedOver(t *testing.T) {
	for _, policy := range []coir.OverflowPolicy{coir.OverflowDropOldest, coir.OverflowDropNewest, coir.OverflowFail} {
		t.Run(policy.String(), func(t *testing.T) {
			own(t, func(ctx context.Context, s *Sim) {
				var dropped atomic.Int32
				c := coir.NewChan[int](1, coir.WithOverflow(policy), coir.OnUndelivered(func(int) { dropped.Add(1) }))
				var sent [4]error
				var received error
				_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
					for i := range 2 {
						n.Go("send", func(ctx context.Context) error {
							sent[2*i] = c.Send(ctx, i)
							sent[2*i+1] = c.Send(ctx, i)
							return nil
						}, coir.WithIndex(i))
					}
					n.Go("recv", func(ctx context.Context) error { _, received = c.Recv(ctx); return nil })
					return nil
				})
				if received != nil || nils(sent[:]) != 1+int(dropped.Load())+c.Len() {
					s.Errorf("%v sent, %v received, %d dropped, %d left", sent, received, dropped.Load(), c.Len())
				}
				s.Sometimes(nils(sent[:]) < 4 || dropped.Load() > 0, "the channel is full")
			})
		})
	}
}

// Spec: NU-08 (cancel wakes each child once)
func TestOwnCancelAgainstData(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		c := coir.NewChan[int](0, coir.WithName("c"))
		var sent, received error
		var v int
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("send", func(ctx context.Context) error { sent = c.Send(ctx, 7); return nil })
			n.Go("recv", func(ctx context.Context) error { v, received = c.Recv(ctx); return nil })
			_ = coir.Run(ctx, func(_ context.Context, in *coir.Nursery) error {
				in.Go("cancel", func(context.Context) error { n.Cancel(nil); return nil })
				return nil
			})
			return nil
		})
		switch {
		case sent == nil && received == nil && v == 7:
		case errors.Is(sent, context.Canceled) && errors.Is(received, context.Canceled) && v == 0:
		default:
			s.Errorf("send: %v; receive: %d, %v", sent, v, received)
		}
		s.Sometimes(sent == nil, "the value was first")
		s.Sometimes(sent != nil, "the cancel was first")
	})
}

// Spec: SE-01 (a select completes one case)
// Spec: SE-02 (all cases claim through one word)
func TestOwnSelectOfTwoThatBecomeReady(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		a, b := coir.NewChan[int](0, coir.WithName("a")), coir.NewChan[int](1, coir.WithName("b"))
		var got []int
		var order []int
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("a", func(ctx context.Context) error { return a.Send(ctx, 1) })
			n.Go("b", func(ctx context.Context) error { return b.Send(ctx, 2) })
			n.Go("select", func(ctx context.Context) error {
				for range 2 {
					var v, w int
					i, err := coir.Select(ctx, a.RecvCase(&v), b.RecvCase(&w))
					if err != nil {
						return err
					}
					got, order = append(got, v+w), append(order, i)
				}
				return nil
			})
			return nil
		})
		sum := 0
		for _, v := range got {
			sum += v
		}
		if err != nil || len(got) != 2 || sum != 3 {
			s.Errorf("received %v, %v", got, err)
			return
		}
		s.Sometimes(order[0] == 0, "a first")
		s.Sometimes(order[0] == 1, "b first")
	})
}

// Two selects that could meet on either of two channels meet on one, once.
func TestOwnSelectsMeetOnce(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		a, b := coir.NewChan[int](0, coir.WithName("a")), coir.NewChan[int](0, coir.WithName("b"))
		var at [2]int
		var v, w int
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("send", func(ctx context.Context) (err error) {
				at[0], err = coir.Select(ctx, a.SendCase(1), b.SendCase(2))
				return err
			})
			n.Go("recv", func(ctx context.Context) (err error) {
				at[1], err = coir.Select(ctx, b.RecvCase(&v), a.RecvCase(&w))
				return err
			})
			return nil
		})
		if err != nil || at[0] != 1-at[1] || v+w != 1+at[0] {
			s.Errorf("cases %v, values %d and %d, %v", at, v, w, err)
		}
		s.Sometimes(at[0] == 0, "on a")
		s.Sometimes(at[0] == 1, "on b")
	})
}

// A waiting receiver, a selecting receiver, and a cancellation of the latter's nursery: the one value goes to one of
// them, or stays.
//
// Spec: NU-08 (cancel wakes each child once)
func TestOwnSelectAgainstCancelAndReceive(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		a, b := coir.NewChan[int](1, coir.WithName("a")), coir.NewChan[int](0, coir.WithName("b"))
		selected := errors.New("not run")
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("select", func(ctx context.Context) error {
				var v, w int
				_, selected = coir.Select(ctx, a.RecvCase(&v), b.RecvCase(&w))
				return nil
			})
			n.Go("send", func(context.Context) error { return a.TrySend(1) })
			n.Cancel(nil)
			return nil
		})
		if taken := selected == nil; taken == (a.Len() == 1) {
			s.Errorf("select: %v, and %d left", selected, a.Len())
		}
		s.Sometimes(selected == nil, "the value was first")
		s.Sometimes(selected != nil, "the cancel was first")
	})
}

// Spec: SE-21 (a Selector's events do not cost its size)
func TestOwnSelectorServesEveryChannel(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		cs := [2]*coir.Chan[int]{coir.NewChan[int](0, coir.WithName("a")), coir.NewChan[int](1, coir.WithName("b"))}
		var got [2][]int
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			for i, c := range cs {
				n.Go("send", func(ctx context.Context) error {
					err := errors.Join(c.Send(ctx, 1), c.Send(ctx, 2))
					c.Close()
					return err
				}, coir.WithIndex(i))
			}
			n.Go("selector", func(ctx context.Context) error {
				var v [2]int
				sel := coir.NewSelector()
				defer sel.Clear()
				for i, c := range cs {
					sel.Add(c.RecvCase(&v[i]))
				}
				for sel.Len() > 0 {
					i, err := sel.Wait(ctx)
					switch {
					case err == nil:
						got[i] = append(got[i], v[i])
					case !errors.Is(err, coir.ErrClosed):
						return err
					}
				}
				return nil
			})
			return nil
		})
		if want := []int{1, 2}; err != nil || !slices.Equal(got[0], want) || !slices.Equal(got[1], want) {
			s.Errorf("received %v, %v", got, err)
		}
	})
}

// A value is either passed on, or its sender learns that it was not, whenever the time limit passes.
//
// Spec: CH-23 (a deadline ends a wait with ErrTimeout)
func TestOwnTimeoutAgainstData(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		c := coir.NewChan[int](0, coir.WithName("c"))
		var sent, received error
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("send", func(ctx context.Context) error { sent = c.SendTimeout(ctx, 1, time.Second); return nil })
			n.Go("recv", func(ctx context.Context) error { _, received = c.RecvTimeout(ctx, 2*time.Second); return nil })
			return nil
		})
		if (sent == nil) != (received == nil) {
			s.Errorf("send: %v; receive: %v", sent, received)
		}
		for _, err := range []error{sent, received} {
			if err != nil && !errors.Is(err, coir.ErrTimeout) {
				s.Errorf("error %v", err)
			}
		}
		s.Sometimes(sent == nil, "in time")
		s.Sometimes(sent != nil, "too late")
	}, WithClock(ClockRacing))
}

func TestOwnSelectAgainstTime(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		c := coir.NewChan[int](1, coir.WithName("c"))
		at := -1
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("send", func(context.Context) error { return c.TrySend(1) })
			n.Go("select", func(ctx context.Context) (err error) {
				var v int
				at, err = coir.Select(ctx, c.RecvCase(&v), coir.After(time.Second))
				return err
			})
			return nil
		})
		if err != nil || c.Len() != at {
			s.Errorf("case %d, %d left, %v", at, c.Len(), err)
		}
		s.Sometimes(at == 0, "the value")
		s.Sometimes(at == 1, "the time")
	}, WithClock(ClockRacing))
}

// Spec: NU-08 (cancel wakes each child once)
func TestOwnScopeEndsAgainstData(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		c := coir.NewChan[int](1, coir.WithName("c"))
		var received error
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("recv", func(ctx context.Context) error {
				ctx, cancel := coir.WithTimeout(ctx, time.Second)
				defer cancel()
				_, received = c.Recv(ctx)
				return nil
			})
			n.Go("send", func(ctx context.Context) error { return c.Send(ctx, 1) })
			return nil
		})
		if err != nil || (received == nil) == (c.Len() == 1) {
			s.Errorf("receive: %v, %d left; %v", received, c.Len(), err)
		}
		if received != nil && !errors.Is(received, coir.ErrTimeout) {
			s.Errorf("error %v", received)
		}
		s.Sometimes(received == nil, "in time")
		s.Sometimes(received != nil, "too late")
	}, WithClock(ClockRacing))
}

// Children of a nursery with one place start others there and wait for them.
//
// Spec: NU-14 (Limit bounds the children that run)
// Spec: NU-15 (a child that waits for children gives its place up)
func TestOwnLimitWithWaitsInside(t *testing.T) {
	for _, places := range []int{1, 2} {
		t.Run(fmt.Sprint(places), func(t *testing.T) {
			own(t, func(ctx context.Context, s *Sim) {
				var active, most, ended atomic.Int32
				work := func(ctx context.Context) {
					now := active.Add(1)
					if now > most.Load() {
						most.Store(now)
					}
					_ = coir.Yield(ctx)
					active.Add(-1)
				}
				err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
					n.Limit(places)
					for i := range 2 {
						n.Go("outer", func(ctx context.Context) error {
							work(ctx)
							err := n.Go("inner", func(ctx context.Context) error {
								work(ctx)
								ended.Add(1)
								return nil
							}, coir.WithIndex(i)).Wait(ctx)
							work(ctx)
							ended.Add(1)
							return err
						}, coir.WithIndex(i))
					}
					return nil
				})
				if err != nil || ended.Load() != 4 || int(most.Load()) > places {
					s.Errorf("%d ended, %d at once, %v", ended.Load(), most.Load(), err)
				}
				s.Sometimes(int(most.Load()) == places, "all places are taken")
			})
		})
	}
}

func TestOwnLimitWithNurseriesInside(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		var ended atomic.Int32
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Limit(1)
			for i := range 2 {
				n.Go("outer", func(ctx context.Context) error {
					return coir.Run(ctx, func(_ context.Context, in *coir.Nursery) error {
						f := n.Go("sibling", func(context.Context) error { ended.Add(1); return nil }, coir.WithIndex(i))
						in.Go("inner", func(ctx context.Context) error { ended.Add(1); return f.Wait(ctx) }, coir.WithIndex(i))
						return nil
					})
				}, coir.WithIndex(i))
			}
			return nil
		})
		if err != nil || ended.Load() != 4 {
			s.Errorf("%d ended, %v", ended.Load(), err)
		}
	})
}

// Spec: NU-11 (a child's error cancels its siblings)
// Spec: NU-12 (Run returns every child's error)
func TestOwnTheFirstToFailCancelsTheOthers(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		bad := [2]error{errors.New("first"), errors.New("second")}
		c := coir.NewChan[int](0, coir.WithName("never"))
		var waited error
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("waits", func(ctx context.Context) error { _, waited = c.Recv(ctx); return waited })
			for i := range bad {
				n.Go("fails", func(ctx context.Context) error { _ = coir.Yield(ctx); return bad[i] }, coir.WithIndex(i))
			}
			return nil
		})
		if !errors.Is(err, bad[0]) || !errors.Is(err, bad[1]) || isCancelFor(waited, bad[0]) == isCancelFor(waited, bad[1]) {
			s.Errorf("run: %v; the one that waits: %v", err, waited)
		}
		s.Sometimes(isCancelFor(waited, bad[0]), "cancelled by the first")
		s.Sometimes(isCancelFor(waited, bad[1]), "cancelled by the second")
	})
}

// Spec: FB-14 (a thunk completes once, before its coroutine is free)
// Spec: FB-17 (a join is a wait like any other)
func TestOwnAllWhoWaitForAFiberAreWoken(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		var got [3]error
		want := errors.New("its error")
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			var f *coir.Fiber
			in := func(ctx context.Context) error {
				return coir.Run(ctx, func(_ context.Context, in *coir.Nursery) error {
					f = in.Go("fails", func(context.Context) error { return want })
					for i := range got {
						n.Go("waits", func(ctx context.Context) error {
							if i == 2 {
								_, _ = coir.Select(ctx, f.DoneCase(&got[i]))
							} else {
								got[i] = f.Wait(ctx)
							}
							return nil
						}, coir.WithIndex(i))
					}
					return nil
				})
			}
			_ = in(ctx)
			return nil
		})
		for _, err := range got {
			if err != want {
				s.Errorf("got %v", got)
			}
		}
	})
}

// Spec: CH-46 (the last Close of a side tells the other)
// Spec: CH-47 (the end of a peer can be waited for)
func TestOwnPipeEndsWithItsLastWriter(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		w, r := coir.Pipe[int](1, coir.WithName("pipe"))
		var got []int
		var gone error
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			for i := range 2 {
				w := w.Clone()
				n.Go("write", func(ctx context.Context) error {
					defer w.Close()
					return errors.Join(w.Send(ctx, 10*i), w.Send(ctx, 10*i+1))
				}, coir.WithIndex(i))
			}
			w.Close()
			n.Go("read", func(ctx context.Context) error {
				for v, err := range r.All(ctx) {
					if err != nil {
						return err
					}
					got = append(got, v)
				}
				_, gone = coir.Select(ctx, r.GoneCase())
				return nil
			})
			return nil
		})
		if !inOrder(got, 0, 1) || !inOrder(got, 10, 11) || err != nil || gone != nil {
			s.Errorf("received %v, %v, %v", got, err, gone)
		}
		slices.Sort(got)
		if !slices.Equal(got, []int{0, 1, 10, 11}) {
			s.Errorf("received %v", got)
		}
	})
}

// Spec: CH-46 (the last Close of a side tells the other)
func TestOwnPipeWithoutReadersTakesNothing(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		var undelivered atomic.Int32
		w, r := coir.Pipe[int](1, coir.WithName("pipe"), coir.OnUndelivered(func(int) { undelivered.Add(1) }))
		q := r.Clone()
		var sent [3]error
		var received error
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("write", func(ctx context.Context) error {
				for i := range sent {
					sent[i] = w.Send(ctx, i)
				}
				return nil
			})
			n.Go("read", func(ctx context.Context) error { _, received = r.Recv(ctx); r.Close(); return nil })
			n.Go("leave", func(context.Context) error { q.Close(); return nil })
			return nil
		})
		if received != nil || nils(sent[:]) != 1+int(undelivered.Load()) {
			s.Errorf("sent: %v; received: %v; %d undelivered", sent, received, undelivered.Load())
		}
		s.Sometimes(undelivered.Load() == 1, "a value is left")
		s.Sometimes(undelivered.Load() == 0, "none is left")
	})
}

// Spec: CH-51 (fiber handles arrive in the order sent)
func TestOwnOrderedKeepsTheOrder(t *testing.T) {
	for _, places := range []int{1, 2} {
		t.Run(fmt.Sprint(places), func(t *testing.T) {
			own(t, func(ctx context.Context, s *Sim) { // the fiber that submits the tasks needs no place
				o := coir.NewOrdered[int](1, coir.WithName("ordered"))
				var got []int
				err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
					n.Limit(places)
					n.Go("recv", func(ctx context.Context) error {
						for v, err := range o.All(ctx) {
							if err != nil {
								return err
							}
							got = append(got, v)
						}
						return nil
					})
					defer o.Close()
					for i := range 3 {
						err := o.Go(ctx, n, "task", func(ctx context.Context) (int, error) {
							for range 2 - i {
								_ = coir.Yield(ctx)
							}
							return i, nil
						}, coir.WithIndex(i))
						if err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil || !slices.Equal(got, []int{0, 1, 2}) {
					s.Errorf("received %v, %v", got, err)
				}
			})
		})
	}
}

// The fibers that take the results and submit the tasks share one place.
//
// Spec: NU-15 (a child that waits for children gives its place up)
// Spec: CH-51 (fiber handles arrive in the order sent)
func TestOwnOrderedInsideALimit(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		o := coir.NewOrdered[int](1, coir.WithName("ordered"))
		var got []int
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Limit(1)
			n.Go("recv", func(ctx context.Context) error {
				for v, err := range o.All(ctx) {
					if err != nil {
						return err
					}
					got = append(got, v)
				}
				return nil
			})
			n.Go("give", func(ctx context.Context) error {
				defer o.Close()
				for i := range 2 {
					fn := func(context.Context) (int, error) { return i, nil }
					if err := o.Go(ctx, n, "task", fn, coir.WithIndex(i)); err != nil {
						return err
					}
				}
				return nil
			})
			return nil
		})
		if err != nil || !slices.Equal(got, []int{0, 1}) {
			s.Errorf("received %v, %v", got, err)
		}
	})
}

// Spec: CH-60 (a pool lends idle values first, in order)
func TestOwnPoolLendsNoMoreThanItHas(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		var made, lent, most, thrown atomic.Int32
		p := coir.NewPool(2, func(ctx context.Context) (int, error) {
			_ = coir.Yield(ctx)
			return int(made.Add(1)), nil
		}, nil, coir.WithName("pool"), coir.OnUndelivered(func(int) { thrown.Add(1) }))
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			for i := range 3 {
				n.Go("borrow", func(ctx context.Context) error {
					v, err := p.Get(ctx)
					if err != nil {
						return err
					}
					if now := lent.Add(1); now > most.Load() {
						most.Store(now)
					}
					_ = coir.Yield(ctx)
					lent.Add(-1)
					return p.Put(v)
				}, coir.WithIndex(i))
			}
			return nil
		})
		idle := p.Len()
		p.Close()
		if err != nil || most.Load() > 2 || made.Load() > 2 || idle != int(made.Load()) || thrown.Load() != made.Load() {
			s.Errorf("%d made, %d lent at once, %d idle, %d thrown away, %v", made.Load(), most.Load(), idle, thrown.Load(), err)
		}
		s.Sometimes(made.Load() == 1, "one was enough")
		s.Sometimes(most.Load() == 2, "two at once")
	})
}

// Spec: CH-60 (a pool lends idle values first, in order)
func TestOwnPoolClosesAgainstBorrowers(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		var made, thrown atomic.Int32
		p := coir.NewPool(1, func(context.Context) (int, error) { return int(made.Add(1)), nil }, nil, coir.WithName("pool"),
			coir.OnUndelivered(func(int) { thrown.Add(1) }))
		var got [2]error
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			for i := range got {
				n.Go("borrow", func(ctx context.Context) error {
					var v int
					if v, got[i] = p.Get(ctx); got[i] != nil {
						return nil
					}
					_ = coir.Yield(ctx)
					return p.Put(v)
				}, coir.WithIndex(i))
			}
			n.Go("close", func(context.Context) error { p.Close(); return nil })
			return nil
		})
		if err != nil || thrown.Load() != made.Load() || p.Len() != 0 {
			s.Errorf("%d made, %d thrown away, %d idle, %v", made.Load(), thrown.Load(), p.Len(), err)
		}
		for _, err := range got {
			if err != nil && !errors.Is(err, coir.ErrClosed) {
				s.Errorf("borrow: %v", err)
			}
		}
		s.Sometimes(nils(got[:]) == 0, "closed before all")
		s.Sometimes(nils(got[:]) == 2, "closed after all")
	})
}
