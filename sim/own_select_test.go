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

// Select under simulation: the claims of select_test.go in the root that do not need goroutines or real time, each as a
// program in which decisions replace the luck of the original. own_test.go has the claims about channels that become
// ready; TestUnderSimulation in the root runs the conformance suite of channels under simulation as it is.

var errGone = errors.New("gone")

// still checks that no operation waits on any of the channels.
func still(s *Sim, chans ...*coir.Chan[int]) {
	for i, c := range chans {
		if st := c.Stats(); st.Send.Waiting != 0 || st.Recv.Waiting != 0 {
			s.Errorf("an operation waits at channel %d: %+v", i, st)
		}
	}
}

// In every mixture of cases that are ready and cases that are not, one of the ready cases happens, and no other channel
// changes.
//
// Spec: SE-01 (a select completes one case)
// Spec: SE-03 (a losing case has no effect)
// Spec: SE-06 (a ready case needs no registration)
func TestOwnSelectDoesOneReadyCase(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		ready := 1 + s.Intn(1<<4-1)
		var chans [4]*coir.Chan[int] // receives from the even ones, sends to the odd ones
		var got [4]int
		var cases [4]coir.Case
		for i := range chans {
			chans[i] = coir.NewChan[int](1)
			if can := ready>>i&1 == 1; i%2 == 0 == can {
				_ = chans[i].TrySend(10 + i)
			}
			if i%2 == 0 {
				cases[i] = chans[i].RecvCase(&got[i])
			} else {
				cases[i] = chans[i].SendCase(20 + i)
			}
		}
		won, err := coir.Select(ctx, cases[:]...)
		if err != nil || won < 0 || ready>>won&1 == 0 {
			s.Errorf("with %04b ready: %d, %v", ready, won, err)
			return
		}
		for i, c := range chans {
			full := ready>>i&1 == 1 == (i%2 == 0) != (i == won)
			if full != (c.Len() == 1) || got[i] != 0 && i != won {
				s.Errorf("with %04b ready case %d happened, and channel %d holds %d, received %d", ready, won, i, c.Len(), got[i])
			}
		}
		for i := range chans {
			s.Sometimes(won == i, fmt.Sprint("case ", i))
		}
	})
}

// A select is cancelled or times out while peers may arrive: either exactly one of its cases happens, or none of its
// cases has an effect.
//
// Spec: SE-02 (all cases claim through one word)
// Spec: SE-05 (losing registrations are removed first)
// Spec: SE-11 (a cancel ends a select)
// Spec: SE-19 (a late completion stays with its sender)
func TestOwnSelectThatFailsLeavesNoTrace(t *testing.T) {
	for _, by := range []string{"cancel", "deadline"} {
		t.Run(by, func(t *testing.T) {
			own(t, func(ctx context.Context, s *Sim) {
				a, b, c := coir.NewChan[int](0), coir.NewChan[int](0), coir.NewChan[int](1)
				got, won := 7, -2
				var err error
				var sent error
				var taken int
				_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
					n.Go("select", func(ctx context.Context) error {
						if by == "cancel" {
							sub, cancel := coir.WithCancelCause(ctx)
							n.Go("cancel", func(context.Context) error { cancel(errGone); return nil })
							ctx = sub
						} else {
							sub, cancel := coir.WithTimeout(ctx, time.Second)
							defer cancel()
							ctx = sub
						}
						won, err = coir.Select(ctx, a.RecvCase(&got), b.SendCase(5), c.RecvCase(&got))
						return nil
					})
					n.Go("sends", func(context.Context) error { sent = a.TrySend(1); return nil })
					n.Go("receives", func(context.Context) error { taken, _ = b.TryRecv(); return nil })
					return nil
				})
				want := [3]error{nil, coir.ErrWouldBlock, nil} // sent, and what the select returns
				switch won {
				case 0:
					if got != 1 || sent != nil || taken != 0 || err != nil {
						s.Errorf("received %d, sent: %v, taken %d, %v", got, sent, taken, err)
					}
				case 1:
					if got != 7 || !errors.Is(sent, want[1]) || taken != 5 || err != nil {
						s.Errorf("received %d, sent: %v, taken %d, %v", got, sent, taken, err)
					}
				case -1:
					ended := isCancelFor(err, errGone) || errors.Is(err, coir.ErrTimeout)
					if got != 7 || !errors.Is(sent, want[1]) || taken != 0 || !ended {
						s.Errorf("received %d, sent: %v, taken %d, %v", got, sent, taken, err)
					}
				default:
					s.Errorf("case %d, %v", won, err)
				}
				still(s, a, b, c)
				s.Sometimes(won == 0, "received")
				s.Sometimes(won == 1, "sent")
				s.Sometimes(won == -1, "neither")
			}, WithClock(ClockRacing))
		})
	}
}

// A channel in many cases, on both sides: the select does not meet itself, but meets another fiber.
//
// Spec: SE-12 (channel locks are taken in the order of ids)
// Spec: SE-16 (a select never matches itself)
func TestOwnSelectHasTheSameChannelManyTimes(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		c := coir.NewChan[int](0)
		var a, b, v, won int
		sends := s.Intn(2) == 1
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("select", func(ctx context.Context) (err error) {
				won, err = coir.Select(ctx, c.SendCase(1), c.RecvCase(&a), c.SendCase(2), c.RecvCase(&b))
				return err
			})
			n.Go("peer", func(ctx context.Context) (err error) {
				if sends {
					return c.Send(ctx, 9)
				}
				v, err = c.Recv(ctx)
				return err
			})
			return nil
		})
		got := [4]int{a, b, v, won}
		if err != nil || !slices.Contains([][4]int{{9, 0, 0, 1}, {0, 9, 0, 3}, {0, 0, 1, 0}, {0, 0, 2, 2}}, got) || sends != (v == 0) {
			s.Errorf("case %d, %v: stored %d and %d, the peer received %d", won, err, a, b, v)
		}
		still(s, c)
		for i := range 4 {
			s.Sometimes(won == i, fmt.Sprint("case ", i))
		}
	})
}

// Each of an even number of selects sends and receives on every channel, in some order: they meet in pairs, and none is
// left.
//
// Spec: SE-01 (a select completes one case)
// Spec: SE-02 (all cases claim through one word)
// Spec: SE-12 (channel locks are taken in the order of ids)
// Spec: SE-15 (two selects match with one case each)
// Spec: SE-16 (a select never matches itself)
func TestOwnSelectsMatchInPairs(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		const people = 4
		chans := [2]*coir.Chan[int]{coir.NewChan[int](0, coir.WithName("a")), coir.NewChan[int](0, coir.WithName("b"))}
		var won [people]int
		var got [people]int
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			for me := range people {
				n.Go("select", func(ctx context.Context) (err error) {
					c, d := chans[me%2], chans[1-me%2]
					won[me], err = coir.Select(ctx, c.SendCase(me+1), c.RecvCase(&got[me]), d.SendCase(me+1), d.RecvCase(&got[me]))
					return err
				}, coir.WithIndex(me))
			}
			return nil
		})
		var sent, received []int
		for me := range people {
			if won[me]%2 == 0 {
				sent = append(sent, me+1)
			}
			if got[me] != 0 {
				received = append(received, got[me])
			}
			if got[me] == me+1 || won[me]%2 == 0 == (got[me] != 0) {
				s.Errorf("%d: case %d, received %d", me, won[me], got[me])
			}
		}
		slices.Sort(received)
		if err != nil || !slices.Equal(sent, received) {
			s.Errorf("sent %v, received %v, %v", sent, received, err)
		}
		still(s, chans[:]...)
	})
}

// SelectPriority takes the first case that is ready. If it waits, it takes the case that becomes ready first.
//
// Spec: SE-08 (SelectPriority takes the first ready case)
func TestOwnSelectPriorityTakesTheFirst(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		a, b := coir.NewChan[int](1), coir.NewChan[int](1)
		var order []int
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("a", func(context.Context) error { return a.TrySend(1) })
			n.Go("b", func(context.Context) error { return b.TrySend(1) })
			n.Go("select", func(ctx context.Context) error {
				for range 2 {
					both := a.Len() == 1 && b.Len() == 1
					i, err := coir.SelectPriority(ctx, a.RecvCase(nil), b.RecvCase(nil))
					if err != nil {
						return err
					}
					if both && i != 0 {
						s.Errorf("both were there, and it took the second")
					}
					order = append(order, i)
				}
				return nil
			})
			return nil
		})
		if err != nil || len(order) != 2 || order[0] == order[1] {
			s.Errorf("took %v, %v", order, err)
			return
		}
		s.Sometimes(order[0] == 0, "the first")
		s.Sometimes(order[0] == 1, "the second, which was alone")
	})
}

// TrySelect never waits, and either meets another fiber or changes nothing. Once it was not an operation of the
// schedule, and made its choice at random.
//
// Spec: SE-06 (a ready case needs no registration)
// Spec: SE-09 (TrySelect never waits)
func TestOwnTrySelect(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		a, b := coir.NewChan[int](0), coir.NewChan[int](1)
		var v, i int
		var err, sent error
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("a", func(ctx context.Context) error { sent = a.SendTimeout(ctx, 4, time.Second); return nil })
			n.Go("b", func(context.Context) error { return b.TrySend(5) })
			n.Go("try", func(context.Context) error { i, err = coir.TrySelect(a.RecvCase(&v), b.RecvCase(&v)); return nil })
			return nil
		})
		ok := errors.Is(err, coir.ErrWouldBlock) && i == -1 && v == 0 && sent != nil && b.Len() == 1
		switch i {
		case 0:
			ok = err == nil && v == 4 && sent == nil && b.Len() == 1
		case 1:
			ok = err == nil && v == 5 && errors.Is(sent, coir.ErrTimeout) && b.Len() == 0
		}
		if !ok {
			s.Errorf("case %d, %v: %d; sent: %v; %d left", i, err, v, sent, b.Len())
		}
		for k := -1; k <= 1; k++ {
			s.Sometimes(i == k, fmt.Sprint("case ", k))
		}
	})
}

// Close ends a receive that waits in a select, and leaves a send that waits, which may still be delivered or lose to
// another case; Abort ends both.
//
// Spec: SE-17 (close wakes a receiving case, abort a sending one)
// Spec: CH-37 (abort is the hard close)
func TestOwnSelectAgainstTheEndOfAChannel(t *testing.T) {
	for _, abort := range []bool{false, true} {
		t.Run(map[bool]string{false: "close", true: "abort"}[abort], func(t *testing.T) {
			own(t, func(ctx context.Context, s *Sim) {
				a, b := coir.NewChan[int](0, coir.WithName("a")), coir.NewChan[int](0, coir.WithName("b"))
				var v, won, out int
				var err, received error
				_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
					n.Go("select", func(ctx context.Context) error {
						won, err = coir.Select(ctx, a.SendCase(5), b.RecvCase(&v))
						return nil
					})
					n.Go("end", func(context.Context) error {
						if abort {
							a.Abort(errGone)
						} else {
							a.Close()
						}
						return nil
					})
					n.Go("receive", func(ctx context.Context) error {
						out, received = a.Recv(ctx)
						_ = b.TrySend(6)
						return nil
					})
					return nil
				}) // a select without a peer left would be a deadlock
				ok := false
				switch {
				case won == 0 && err == nil:
					ok = out == 5 && received == nil && v == 0
				case won == 0:
					ok = errors.Is(err, coir.ErrClosed) && errors.Is(err, errGone) == abort && errors.Is(received, coir.ErrClosed) && v == 0
				case won == 1:
					ok = err == nil && v == 6 && out == 0 && errors.Is(received, coir.ErrClosed)
				}
				if !ok {
					s.Errorf("case %d, %v: %d; received %d, %v", won, err, v, out, received)
				}
				still(s, a, b)
				s.Sometimes(won == 0 && err == nil, "delivered")
				s.Sometimes(won == 0 && err != nil, "refused")
			})
		})
	}
}

// A select with a case of each kind reports the case that happens first, and leaves the others unchanged.
//
// Spec: SE-05 (losing registrations are removed first)
// Spec: SE-18 (a case can wait for anything)
// Spec: CH-47 (the end of a peer can be waited for)
// Spec: FB-17 (a join is a wait like any other)
func TestOwnSelectOfEverySort(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		recv, send := coir.NewChan[int](0, coir.WithName("recv")), coir.NewChan[int](0, coir.WithName("send"))
		w, r := coir.Pipe[int](0)
		var v, out, won int
		var end, err, sent error
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			ended := n.Go("ends", func(context.Context) error { return nil })
			n.Go("select", func(ctx context.Context) error {
				won, err = coir.Select(ctx, recv.RecvCase(&v), send.SendCase(5), ended.DoneCase(&end), w.GoneCase(),
					coir.After(time.Second))
				return nil
			})
			n.Go("sends", func(context.Context) error { sent = recv.TrySend(4); return nil })
			n.Go("receives", func(context.Context) error { out, _ = send.TryRecv(); return nil })
			n.Go("reader", func(context.Context) error { r.Close(); return nil })
			return nil
		})
		if err != nil || (won == 0) != (v == 4) || (won == 0) != (sent == nil) || (won == 1) != (out == 5) || end != nil {
			s.Errorf("case %d, %v: received %d, sent %v, taken %d, end %v", won, err, v, sent, out, end)
		}
		still(s, recv, send)
		w.Close()
		for i := range 5 {
			s.Sometimes(won == i, fmt.Sprint("case ", i))
		}
	}, WithClock(ClockRacing))
}

// A send of a select to a full channel follows the channel's policy.
//
// Spec: CH-18 (dropped values are counted and handed over)
func TestOwnSelectSendsByPolicy(t *testing.T) {
	for _, policy := range []coir.OverflowPolicy{coir.OverflowDropOldest, coir.OverflowDropNewest} {
		t.Run(policy.String(), func(t *testing.T) {
			own(t, func(ctx context.Context, s *Sim) {
				var dropped atomic.Int32
				c := coir.NewChan[int](1, coir.WithOverflow(policy), coir.OnUndelivered(func(v int) { dropped.Add(int32(v)) }))
				never := coir.NewChan[int](0)
				var received int
				err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
					for i := range 2 {
						n.Go("select", func(ctx context.Context) error {
							at, err := coir.Select(ctx, never.RecvCase(nil), c.SendCase(1<<i))
							if at != 1 {
								s.Errorf("case %d", at)
							}
							return err
						}, coir.WithIndex(i))
					}
					n.Go("recv", func(ctx context.Context) (err error) { received, err = c.Recv(ctx); return err })
					return nil
				})
				left, _ := c.TryRecv()
				if err != nil || received+int(dropped.Load())+left != 3 {
					s.Errorf("received %d, dropped %d, left %d, %v", received, dropped.Load(), left, err)
				}
				s.Sometimes(dropped.Load() != 0, "one is dropped")
				s.Sometimes(dropped.Load() == 0, "none is dropped")
			})
		})
	}
}
