package desk_test

// The properties that involve several fibers, each tested under schedules of package sim. A program checks what must
// hold in all schedules, and uses Sometimes for what must occur in at least one.

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/desk"
	"github.com/coir-go/coir/sim"
)

// Five parties race for one ticket: two answers, a cancellation, the scope, and the deadline. The ticket ends in
// exactly one way, its waiter and its callback see the same result, and the desk counts what happened.
//
// Spec: TK-01 (anything may complete a ticket, once)
// Spec: TK-03 (the payload comes before the waiter runs)
// Spec: TK-04 (one completer takes a ticket out)
// Spec: TK-10 (cancel and completion share one claim)
// Spec: TK-13 (a ticket ends with its scope)
// Spec: TK-20 (OnDone runs once)
func TestTicketEndsInOneWay(t *testing.T) {
	explore(t, func(ctx context.Context, s *sim.Sim) {
		d := desk.New[int](desk.WithName("replies"))
		var won [3]bool // for the two resolvers and the canceller
		var value, called int
		var end error
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			in, cancel := coir.WithCancel(ctx)
			defer cancel()
			tk, err := d.OpenTimeout(in, time.Second)
			if err != nil {
				return err
			}
			tk.OnDone(func(int, error) { called++ })
			for i := range 2 {
				n.Go("resolver", func(context.Context) error {
					err := d.Resolve(tk.ID(), i+1)
					won[i] = err == nil
					s.Sometimes(errors.Is(err, desk.ErrLate), "an answer is late")
					s.Sometimes(errors.Is(err, desk.ErrDuplicate), "an answer comes twice")
					return nil
				}, coir.WithIndex(i))
			}
			n.Go("canceller", func(context.Context) error { won[2] = tk.Cancel(); return nil })
			n.Go("scope", func(context.Context) error { cancel(); return nil })
			value, end = tk.Wait(ctx)
			return nil
		})
		timedOut := errors.Is(end, coir.ErrTimeout)
		withScope := errors.Is(end, context.Canceled) && !won[2]
		s.Sometimes(end == nil, "it is resolved")
		s.Sometimes(timedOut, "it times out")
		s.Sometimes(won[2], "it is cancelled")
		s.Sometimes(withScope, "it ends with its scope")
		ways := 0
		for _, w := range []bool{won[0], won[1], won[2], timedOut, withScope} {
			if w {
				ways++
			}
		}
		st := d.Stats()
		if err != nil || ways != 1 || called != 1 || (value == 1) != won[0] || (value == 2) != won[1] || st.Open != 0 ||
			st.Opened != 1 || st.Resolved+st.Cancelled+st.TimedOut != 1 || st.Resolved+st.Late+st.Duplicate != 2 {
			s.Errorf("%v, %v, %d and %v, called %d times, %+v", err, won, value, end, called, st)
		}
	}, sim.WithClock(sim.ClockRacing))
}

// A scope ends while tickets are opened in it: each Open fails, or its ticket ends with the scope. The test runs all
// schedules.
//
// Spec: TK-13 (a ticket ends with its scope)
func TestOpenAgainstTheEndOfItsScope(t *testing.T) {
	res := sim.Explore(func(ctx context.Context, s *sim.Sim) {
		d := desk.New[int](desk.WithName("replies"))
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			in, cancel := coir.WithCancel(ctx)
			n.Go("canceller", func(context.Context) error { cancel(); return nil })
			for range 2 {
				tk, err := d.Open(in)
				s.Sometimes(err == nil, "it is opened")
				s.Sometimes(err != nil, "it is too late")
				if err == nil {
					_, err = tk.Wait(ctx)
				}
				if !errors.Is(err, context.Canceled) {
					s.Errorf("%v", err)
				}
			}
			return nil
		})
		if err != nil || d.Len() != 0 {
			s.Errorf("%v, %v", err, d)
		}
	}, sim.WithStrategy(func(uint64) sim.Strategy { return sim.DPOR() }), sim.WithSchedules(50_000))
	if res.Failure != nil {
		t.Fatal(res.Failure)
	}
	if !res.Complete || len(res.Never) > 0 {
		t.Errorf("complete: %v after %d schedules, never: %v", res.Complete, res.Schedules, res.Never)
	}
}

// A completion races with the end of a nursery, in all schedules, by DPOR.
func TestAnswerAgainstTheEndOfANursery(t *testing.T) {
	res := sim.Explore(func(ctx context.Context, s *sim.Sim) {
		d := desk.New[int](desk.WithName("replies"))
		ids := coir.NewChan[desk.ID](1)
		var inner, outer *desk.Ticket[int]
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("resolver", func(ctx context.Context) error {
				id, err := ids.Recv(ctx)
				if err != nil {
					return err
				}
				err = d.Resolve(id, 1)
				s.Sometimes(err == nil, "it is resolved")
				s.Sometimes(errors.Is(err, desk.ErrLate), "it is late")
				return nil
			})
			var err error
			if outer, err = d.Open(ctx); err != nil {
				return err
			}
			return coir.Run(ctx, func(ctx context.Context, _ *coir.Nursery) error {
				var err error
				if inner, err = d.Open(ctx); err != nil {
					return err
				}
				return ids.Send(ctx, inner.ID())
			})
		})
		if err != nil || d.Len() != 0 {
			s.Errorf("%v, %v", err, d)
		}
		for _, tk := range []*desk.Ticket[int]{inner, outer} {
			if _, err := tk.Wait(ctx); err != nil && !errors.Is(err, context.Canceled) {
				s.Errorf("%v", err)
			}
		}
	}, sim.WithStrategy(func(uint64) sim.Strategy { return sim.DPOR() }), sim.WithSchedules(50_000))
	if res.Failure != nil {
		t.Fatal(res.Failure)
	}
	if !res.Complete || len(res.Never) > 0 {
		t.Errorf("complete: %v after %d schedules, never: %v", res.Complete, res.Schedules, res.Never)
	}
}

// Openers wait at a full desk, and each gets a place, however the earlier tickets end.
func TestPlacesPassOn(t *testing.T) {
	explore(t, func(ctx context.Context, s *sim.Sim) {
		d := desk.New[int](desk.WithName("replies"), desk.WithLimit(1))
		ids := coir.NewChan[desk.ID](coir.Unbounded)
		var got, callers atomic.Int32
		callers.Store(3)
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			for i := range 3 {
				n.Go("caller", func(ctx context.Context) error {
					defer func() {
						if callers.Add(-1) == 0 {
							ids.Close()
						}
					}()
					tk, err := d.OpenTimeout(ctx, time.Second)
					if err != nil {
						return err
					}
					if err := ids.Send(ctx, tk.ID()); err != nil {
						return err
					}
					if i == 0 && tk.Cancel() {
						s.Sometimes(true, "one is cancelled")
						return nil
					}
					_, err = tk.Wait(ctx)
					s.Sometimes(errors.Is(err, coir.ErrTimeout), "one times out")
					if err == nil {
						got.Add(1)
					}
					return nil
				}, coir.WithIndex(i))
			}
			n.Go("resolver", func(ctx context.Context) error {
				for id, err := range ids.All(ctx) {
					if err != nil {
						return err
					}
					if err := coir.Sleep(ctx, coir.Jitter(ctx, 3*time.Second)); err != nil {
						return err
					}
					_ = d.Resolve(id, 1)
				}
				return nil
			})
			return nil
		})
		s.Sometimes(got.Load() == 3, "all are resolved")
		if st := d.Stats(); err != nil || st.Open != 0 || st.Opened != 3 || st.High != 1 || st.Resolved < uint64(got.Load()) {
			s.Errorf("%v, %+v", err, st)
		}
	})
}

// FailAll races with openers, answers and deadlines. The tickets that it ends get its error, and no ticket is open
// after the scope has ended.
func TestFailAllAgainstOpeners(t *testing.T) {
	explore(t, func(ctx context.Context, s *sim.Sim) {
		d := desk.New[int](desk.WithName("replies"))
		var lost atomic.Int32
		failed := 0
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			for i := range 2 {
				n.Go("caller", func(ctx context.Context) error {
					tk, err := d.OpenTimeout(ctx, time.Second)
					if err != nil {
						return err
					}
					n.Go("resolver", func(context.Context) error { _ = d.Resolve(tk.ID(), 1); return nil })
					_, err = tk.Wait(ctx)
					if errors.Is(err, errLost) {
						lost.Add(1)
					}
					return nil
				}, coir.WithIndex(i))
			}
			n.Go("reader", func(context.Context) error { failed = d.FailAll(errLost); return nil })
			return nil
		})
		s.Sometimes(failed == 0, "it fails none")
		s.Sometimes(failed == 2, "it fails both")
		if st := d.Stats(); err != nil || failed != int(lost.Load()) || int(st.Failed) != failed || st.Open != 0 {
			s.Errorf("%v, failed %d, lost %d, %+v", err, failed, lost.Load(), st)
		}
	})
}

// Wait, iteration and a select run while many tickets are completed.
func TestWaitersSeeTheirOwn(t *testing.T) {
	explore(t, func(ctx context.Context, s *sim.Sim) {
		d := desk.New[int](desk.WithName("replies"))
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			a, err := d.Open(ctx)
			if err != nil {
				return err
			}
			b, err := d.Open(ctx)
			if err != nil {
				return err
			}
			n.Go("a", func(context.Context) error { return d.Resolve(a.ID(), 1) })
			n.Go("b", func(context.Context) error { return d.Reject(b.ID(), errLost) })
			n.Go("inspector", func(context.Context) error {
				seen := 0
				for tk := range d.All() {
					if tk.ID() != a.ID() && tk.ID() != b.ID() {
						s.Errorf("a stranger: %v", tk)
					}
					seen++
				}
				s.Sometimes(seen == 1, "one is open")
				return nil
			})
			for left := 2; left > 0; left-- {
				var v int
				var fault error
				cases := []coir.Case{a.DoneCase(&v, &fault), b.DoneCase(&v, &fault)}
				which, err := coir.Select(ctx, cases...)
				if err != nil || which == 0 && v != 1 || which == 1 && !errors.Is(fault, errLost) {
					s.Errorf("case %d: %d, %v, %v", which, v, fault, err)
				}
				s.Sometimes(which == 1, "the second is first")
			}
			return nil
		})
		if err != nil || d.Len() != 0 {
			s.Errorf("%v, %v", err, d)
		}
	})
}

// A ticket that is never completed is a deadlock, and the report names it.
func TestReportNamesTheTicket(t *testing.T) {
	res := sim.Explore(func(ctx context.Context, _ *sim.Sim) {
		d := desk.New[int](desk.WithName("replies"))
		tk, err := d.Open(ctx, coir.WithName("order 17"))
		if err != nil {
			return
		}
		_, _ = tk.Wait(ctx)
	}, sim.WithSchedules(10))
	if res.Failure == nil || res.Failure.Kind != sim.KindDeadlock || !strings.Contains(res.Failure.Error(), "order 17") {
		t.Errorf("%v", res.Failure)
	}
}
