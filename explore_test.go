//go:build coirinterleave

package coir

// The real code of channels and select, in every order of its memory accesses. The senders and receivers are fibers
// without a scheduler. Their operations are the same, except for the switch: there the thread waits to be woken.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/coir-go/coir/internal/channel"
	"github.com/coir-go/coir/internal/interleave"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/soak"
	"github.com/coir-go/coir/internal/xatomic"
)

// scene is a nursery whose fibers are threads.
type scene struct{ n *Nursery }

func newScene() *scene {
	s := &scene{newNursery()}
	s.n.init(context.Background(), NewRuntime(WithWorkers(1)), nil, &s.make().Fiber)
	s.n.tie()
	return s
}

// bare is a fiber that is its caller's thread.
type bare struct {
	Fiber
	turn xatomic.Sema
}

func (b *bare) Ready(*park.Parker, park.Place) { b.turn.Post() }
func (b *bare) Late(*park.Parker)              {}

func (b *bare) Park() {
	if b.task.Commit() {
		b.turn.Wait()
	}
}

func (s *scene) make() *bare {
	b := &bare{turn: xatomic.NewSema()}
	b.nursery, b.budget = s.n, budget
	b.task.Bare(b)
	return b
}

// fiber makes a fiber, a child of the nursery.
func (s *scene) fiber() *bare {
	s.n.spawned++
	return s.make()
}

// here returns the context of the fiber that the calling thread runs as.
func (b *bare) here() context.Context {
	b.task.Embody()
	return (*fiberContext)(&b.Fiber)
}

func send(b *bare, c *Chan[int], v int) error { return c.Send(b.here(), v) }

func recv(b *bare, c *Chan[int]) (int, error) { return c.Recv(b.here()) }

func selects(b *bare, how selectPolicy, cases ...Case) (int, error) {
	return choose(b.here(), cases, how)
}

type selectFunc func(b *bare, how selectPolicy, cases ...Case) (int, error)

// eachSelect runs a test with both forms of a select: the fast path, and the general path, which an extra zero Case
// forces.
func eachSelect(t *testing.T, test func(*testing.T, selectFunc)) {
	t.Run("few", func(t *testing.T) { test(t, selects) })
	t.Run("general", func(t *testing.T) {
		test(t, func(b *bare, how selectPolicy, cases ...Case) (int, error) {
			return selects(b, how, append(cases, Case{})...)
		})
	})
}

// ledger records the fate of each value.
type ledger struct{ sent, received, failed, lost []int }

func (l *ledger) send(b *bare, c *Chan[int], v int) {
	if err := send(b, c, v); err == nil {
		l.sent = append(l.sent, v)
	} else {
		l.failed = append(l.failed, v)
	}
}

func (l *ledger) recv(b *bare, c *Chan[int]) {
	if v, err := recv(b, c); err == nil {
		l.received = append(l.received, v)
	} else if v != 0 {
		interleave.Failf("a receive failed with %v, and has %d", err, v)
	}
}

func (l *ledger) lose(v int) { l.lost = append(l.lost, v) }

// check drains the channels and checks that each sent value was received or lost, once, and that nothing waits.
func (l *ledger) check(cs ...*Chan[int]) {
	for _, c := range cs {
		for v, err := c.TryRecv(); err == nil; v, err = c.TryRecv() {
			l.received = append(l.received, v)
		}
		if c.ch.Waits() {
			interleave.Failf("somebody is still in a queue")
		}
		if n := c.Len(); n != 0 {
			interleave.Failf("it counts %d values and has none", n)
		}
	}
	got := slices.Concat(l.received, l.lost)
	slices.Sort(got)
	slices.Sort(l.sent)
	if !slices.Equal(got, l.sent) {
		interleave.Failf("sent %v, received %v, lost %v, failed %v", l.sent, l.received, l.lost, l.failed)
	}
}

var errStopped = errors.New("stop")

// Close and cancel against a send and a receive.
//
// Spec: CH-34 (close is one step)
// Spec: NU-08 (cancel wakes each child once)
func TestExploreCloseAgainstSendRecvCancel(t *testing.T) {
	for _, capacity := range []int{0, 1} {
		for _, last := range []string{"close", "abort"} {
			t.Run(fmt.Sprintf("%d %s", capacity, last), func(t *testing.T) {
				interleave.Check(t, interleave.Config{}, func() {
					s, l := newScene(), new(ledger)
					c := NewChan[int](capacity, OnUndelivered(l.lose))
					a, b := s.fiber(), s.fiber()
					interleave.Go("send", func() { l.send(a, c, 1) })
					interleave.Go("recv", func() { l.recv(b, c) })
					interleave.Go(last, func() {
						if last == "close" {
							c.Close()
						} else {
							c.Abort(errStopped)
						}
					})
					interleave.Go("cancel", func() { s.n.Cancel(errStopped) })
					interleave.JoinAll()
					l.check(c)
				})
			})
		}
	}
}

// A close against a send and two receives: every operation returns.
//
// Spec: CH-34 (close is one step)
// Spec: CH-36 (a drained closed channel ends its receivers)
func TestExploreCloseEndsWaits(t *testing.T) {
	for _, capacity := range []int{0, 1} {
		t.Run(fmt.Sprint(capacity), func(t *testing.T) {
			interleave.Check(t, interleave.Config{}, func() {
				s, l := newScene(), new(ledger)
				c := NewChan[int](capacity)
				a, b, d := s.fiber(), s.fiber(), s.fiber()
				interleave.Go("send", func() { l.send(a, c, 1) })
				interleave.Go("recv a", func() { l.recv(b, c) })
				interleave.Go("recv b", func() { l.recv(d, c) })
				interleave.Go("close", func() { c.Close() })
				interleave.JoinAll()
				l.check(c)
			})
		})
	}
}

// Two senders and two receivers.
//
// Spec: CH-05 (a taken value resumes one sender)
// Spec: CH-09 (a send prefers a waiting receiver)
// Spec: PK-23 (a waiter is published under its object's lock)
// Spec: PK-30 (the result is written before the word changes)
func TestExploreSendersAndReceivers(t *testing.T) {
	for _, capacity := range []int{0, 1} {
		t.Run(fmt.Sprint(capacity), func(t *testing.T) {
			interleave.Check(t, interleave.Config{}, func() {
				s, l := newScene(), new(ledger)
				c := NewChan[int](capacity)
				for i := range 2 {
					from, to := s.fiber(), s.fiber()
					interleave.Go("send", func() { l.send(from, c, 1+i) })
					interleave.Go("recv", func() { l.recv(to, c) })
				}
				interleave.JoinAll()
				l.check(c)
				if len(l.received) != 2 {
					interleave.Failf("received %v", l.received)
				}
			})
		})
	}
}

// A receive is cancelled, or not, and the same fiber receives again: its cell was withdrawn before it is reused.
//
// Spec: CH-28 (an ended wait is unlinked before it returns)
// Spec: CH-56 (a cancelled wait takes no value and no place)
// Spec: PK-28 (an aborted wait is unpublished first)
func TestExploreWaitAfterACancelledOne(t *testing.T) {
	for _, capacity := range []int{0, 1} {
		t.Run(fmt.Sprint(capacity), func(t *testing.T) {
			interleave.Check(t, interleave.Config{}, func() {
				s, l := newScene(), new(ledger)
				a, b := s.fiber(), s.fiber()
				c := NewChan[int](capacity)
				own := new(scope)
				own.init(context.Background(), s.n.rt, nil, &b.Fiber)
				interleave.Go("recv", func() {
					b.task.Embody()
					v, err := c.Recv((*scopeContext)(own))
					if err != nil {
						v, err = c.Recv(b.here())
					}
					if err != nil {
						interleave.Failf("%v", err)
					}
					l.received = append(l.received, v)
				})
				interleave.Go("send", func() { l.send(a, c, 1) })
				interleave.Go("cancel", func() { own.cancel(plainCancel, nil) })
				interleave.JoinAll()
				l.check(c)
			})
		})
	}
}

// A fiber that has waited under its nursery's scope waits under a scope that the nursery's cancellation does not reach:
// the cancel does not end that wait.
func TestExploreCancelAgainstAShieldedWait(t *testing.T) {
	interleave.Check(t, interleave.Config{}, func() {
		s := newScene()
		a, b := s.fiber(), s.fiber()
		a.waitUnder(&s.n.scope)
		b.waitUnder(&s.n.scope)
		c := NewChan[int](0)
		var shield scope
		shield.init(context.Background(), s.n.rt, nil, &b.Fiber)
		interleave.Go("recv", func() {
			b.task.Embody()
			if _, err := c.Recv((*scopeContext)(&shield)); err != nil {
				interleave.Failf("%v", err)
			}
		})
		interleave.Go("send", func() {
			a.task.Embody()
			var own scope
			own.init(context.Background(), s.n.rt, nil, &a.Fiber)
			if err := c.Send((*scopeContext)(&own), 1); err != nil {
				interleave.Failf("%v", err)
			}
		})
		interleave.Go("cancel", func() { s.n.Cancel(errStopped) })
		interleave.JoinAll()
		new(ledger).check(c)
	})
}

// A select waits on two channels while both become ready: it takes one, and the other's sender continues to wait until
// the main thread takes its value.
func TestExploreSelectOnTwoChannels(t *testing.T) { eachSelect(t, exploreSelectOnTwoChannels) }

func exploreSelectOnTwoChannels(t *testing.T, selects selectFunc) {
	for _, how := range []selectPolicy{fairly, byOrder} {
		for _, cancels := range []bool{false, true} {
			t.Run(fmt.Sprintf("by order %v, cancel %v", how, cancels), func(t *testing.T) {
				if cancels && how == byOrder && !soak.On() {
					t.Skip("200,000 executions: in long runs")
				}
				cfg := interleave.Config{}
				if cancels && strings.Contains(t.Name(), "/general/") && !soak.On() {
					cfg.Bound = 2 // as many again: completely in long runs
				}
				interleave.Check(t, cfg, func() {
					s, l := newScene(), new(ledger)
					c, d := NewChan[int](0), NewChan[int](0)
					x, a, b, m := s.fiber(), s.fiber(), s.fiber(), s.fiber()
					took := -1
					interleave.Go("select", func() {
						var v int
						i, err := selects(x, how, c.RecvCase(&v), d.RecvCase(&v))
						if took = i; err == nil {
							l.received = append(l.received, v)
						}
						switch {
						case cancels:
						case i == 0:
							l.recv(m, d)
						case i == 1:
							l.recv(m, c)
						}
					})
					interleave.Go("send c", func() { l.send(a, c, 1) })
					interleave.Go("send d", func() { l.send(b, d, 2) })
					if cancels {
						interleave.Go("cancel", func() { s.n.Cancel(errStopped) })
					}
					interleave.JoinAll()
					l.check(c, d)
					if !cancels && (took < 0 || len(l.received) != 2) {
						interleave.Failf("took %d, received %v", took, l.received)
					}
				})
			})
		}
	}
}

// A select waits on two channels, and one of them becomes ready while it registers. The reduction assumes that what a
// lock guards is used with the lock held; a bound on preemptions does not, so this one is explored in both ways.
//
// Spec: SE-04 (the winner is decided before a wake)
// Spec: SE-13 (no channel lock is held while waiting)
// Spec: PK-23 (a waiter is published under its object's lock)
func TestExploreSelectMissesNothing(t *testing.T) { eachSelect(t, exploreSelectMissesNothing) }

func exploreSelectMissesNothing(t *testing.T, selects selectFunc) {
	for _, cfg := range []interleave.Config{{}, {Bound: 3}} {
		interleave.Check(t, cfg, func() {
			s, l := newScene(), new(ledger)
			c, d := NewChan[int](0), NewChan[int](1)
			x, a := s.fiber(), s.fiber()
			interleave.Go("select", func() {
				var v int
				for range 2 {
					if _, err := selects(x, fairly, c.RecvCase(&v), d.RecvCase(&v)); err != nil {
						interleave.Failf("%v", err)
					}
					l.received = append(l.received, v)
				}
			})
			interleave.Go("send", func() {
				l.send(a, c, 1)
				l.send(a, d, 2)
			})
			interleave.JoinAll()
			l.check(c, d)
		})
	}
}

// Two selects meet on two channels, each sends on one and receives from the other: both sides agree on which.
//
// Spec: SE-12 (channel locks are taken in the order of ids)
func TestExploreTwoSelectsMeet(t *testing.T) { eachSelect(t, exploreTwoSelectsMeet) }

func exploreTwoSelectsMeet(t *testing.T, selects selectFunc) {
	interleave.Check(t, interleave.Config{}, func() {
		s := newScene()
		c, d := NewChan[int](0), NewChan[int](0)
		var got [2]int
		var took [2]int
		one := func(i int, out, in *Chan[int]) func() {
			b := s.fiber()
			return func() {
				k, err := selects(b, fairly, out.SendCase(1+i), in.RecvCase(&got[i]))
				if err != nil {
					interleave.Failf("%v", err)
				}
				took[i] = k
			}
		}
		interleave.Go("a", one(0, c, d))
		interleave.Go("b", one(1, d, c))
		interleave.JoinAll()
		if took[0] == took[1] || took[0] == 0 && got != [2]int{0, 1} || took[0] == 1 && got != [2]int{2, 0} {
			interleave.Failf("took %v, got %v", took, got)
		}
		new(ledger).check(c, d)
	})
}

// A selector begins to watch a channel while a select looks at it, locks it and waits there. The selector is told.
//
// Spec: SE-21 (a Selector's events do not cost its size)
func TestExploreSelectTellsSelector(t *testing.T) { eachSelect(t, exploreSelectTellsSelector) }

func exploreSelectTellsSelector(t *testing.T, selects selectFunc) {
	interleave.Check(t, interleave.Config{}, func() {
		s := newScene()
		c, d := NewChan[int](0), NewChan[int](0)
		sel := NewSelector()
		b := s.fiber()
		var v, w int
		interleave.Go("select", func() {
			if i, err := selects(b, fairly, d.RecvCase(&w), c.SendCase(1)); i != 1 || err != nil {
				interleave.Failf("took %d: %v", i, err)
			}
		})
		interleave.Go("selector", func() {
			sel.Add(c.RecvCase(&v))
			if _, err := sel.Wait(context.Background()); err != nil {
				interleave.Failf("%v", err)
			}
		})
		interleave.JoinAll()
		if v != 1 {
			interleave.Failf("got %d", v)
		}
	})
}

// A selector is notified of a channel that becomes ready while the selector goes to sleep, and of the close.
//
// Spec: SE-21 (a Selector's events do not cost its size)
// Spec: SE-23 (a registration stays until used up)
func TestExploreSelectorIsTold(t *testing.T) {
	interleave.Check(t, interleave.Config{}, func() {
		s := newScene()
		c := NewChan[int](1)
		sel := NewSelector()
		var v int
		sel.Add(c.RecvCase(&v))
		b := s.fiber()
		var got []int
		interleave.Go("selector", func() {
			for {
				_, err := sel.Wait(context.Background())
				if err != nil {
					return
				}
				got = append(got, v)
			}
		})
		interleave.Go("send", func() {
			for i := range 2 {
				if err := send(b, c, 1+i); err != nil {
					interleave.Failf("%v", err)
				}
			}
			c.Close()
		})
		interleave.JoinAll()
		if !slices.Equal(got, []int{1, 2}) {
			interleave.Failf("got %v", got)
		}
	})
}

// A whole runtime: goroutine, worker, fibers, switch. Every order with up to that many preemptions.
func TestExploreRuntime(t *testing.T) {
	interleave.Check(t, interleave.Config{Bound: 2}, func() {
		rt := NewRuntime(WithWorkers(2))
		c := NewChan[int](0)
		sum := 0
		err := rt.Run(context.Background(), func(ctx context.Context, n *Nursery) error {
			n.Go("send", func(ctx context.Context) error {
				defer c.Close()
				return c.Send(ctx, 1)
			})
			for v, err := range c.All(ctx) {
				if err != nil {
					return err
				}
				sum += v
			}
			return nil
		})
		if err != nil || sum != 1 {
			interleave.Failf("%v, sum %d", err, sum)
		}
		if err := rt.Close(context.Background()); err != nil {
			interleave.Failf("%v", err)
		}
		interleave.JoinAll()
	})
}

// Goroutines wait under a scope that is not their own while it is cancelled and a value comes: each wait ends, the
// value arrives once or stays the sender's, and no node is left in the scope.
//
// Spec: CH-56 (a cancelled wait takes no value and no place)
// Spec: FB-16 (a cancelled fiber is woken by the ordinary claim)
func TestExploreGuestsOfAScope(t *testing.T) {
	interleave.Check(t, interleave.Config{}, func() {
		s := newScene()
		sc := new(scope)
		sc.init(context.Background(), s.n.rt, nil, nil)
		ctx := (*scopeContext)(sc)
		c := NewChan[int](0)
		var sent, received error
		interleave.Go("recv", func() { _, received = c.Recv(ctx) })
		interleave.Go("send", func() { sent = c.Send(ctx, 1) })
		interleave.Go("cancel", func() { sc.cancel(plainCancel, nil) })
		interleave.JoinAll()
		if (sent == nil) != (received == nil) {
			interleave.Failf("the send returned %v, the receive %v", sent, received)
		}
		if !sc.cold().guests.Empty() {
			interleave.Failf("the scope has a guest left")
		}
		new(ledger).check(c)
	})
}

// inside makes the scope of a nursery that b opens under parent.
func (b *bare) inside(parent *scope) *Nursery {
	n := newNursery()
	n.init((*scopeContext)(parent), parent.rt, parent, &b.Fiber)
	return n
}

// A nursery is opened inside a nursery that is cancelled. Its scope is tied at the first look: by its owner, which
// begins to wait, or by another thread. The wait ends in every order, and a thread that finds the outer scope cancelled
// finds the inner one cancelled too.
//
// Spec: NU-06 (cancel wakes every parked child)
// Spec: NU-09 (cancel goes down the tree only)
func TestExploreTieAgainstCancel(t *testing.T) {
	interleave.Check(t, interleave.Config{}, func() {
		s := newScene()
		a := s.fiber()
		in := a.inside(&s.n.scope)
		c := NewChan[int](0)
		interleave.Go("recv", func() {
			a.task.Embody()
			if _, err := c.Recv((*scopeContext)(&in.scope)); !errors.Is(err, context.Canceled) {
				interleave.Failf("ended with %v", err)
			}
		})
		interleave.Go("ask", func() {
			if s.n.done() && !in.done() {
				interleave.Failf("the nursery is cancelled, and the one inside it is not")
			}
		})
		interleave.Go("cancel", func() { s.n.Cancel(errStopped) })
		interleave.JoinAll()
		if in.ending().cause != errStopped {
			interleave.Failf("it was cancelled for %v", in.ending().cause)
		}
		in.endJoined()
		if in.cold().linked || s.n.cold().inner != nil {
			interleave.Failf("it is still in its parent's list")
		}
		new(ledger).check(c)
	})
}

// A nursery that no fiber has waited in ends, while another thread looks at its context and the parent is cancelled.
// Afterwards it is cancelled, and not in its parent's list.
func TestExploreTieAgainstEnd(t *testing.T) {
	interleave.Check(t, interleave.Config{}, func() {
		s := newScene()
		in := s.fiber().inside(&s.n.scope)
		in.cold() // TestExploreTieAgainstCancel explores how it is made
		interleave.Go("ask", func() { in.done() })
		interleave.Go("end", func() {
			in.endJoined()
			if !in.done() {
				interleave.Failf("it has ended, and is not cancelled")
			}
		})
		interleave.Go("cancel", func() { s.n.Cancel(errStopped) })
		interleave.JoinAll()
		if in.cold().linked || s.n.cold().inner != nil {
			interleave.Failf("it is still in its parent's list")
		}
		if e := in.ending(); e.cause != nil && e.cause != errStopped {
			interleave.Failf("it was cancelled for %v", e.cause)
		}
	})
}

// Children wait for the first time while their nursery is cancelled: each wait ends, once, and no child stays in the
// ring.
//
// Spec: NU-06 (cancel wakes every parked child)
// Spec: NU-08 (cancel wakes each child once)
func TestExploreFirstWaitAgainstCancel(t *testing.T) {
	interleave.Check(t, interleave.Config{}, func() {
		s := newScene()
		for range 2 {
			b, c := s.fiber(), NewChan[int](0)
			interleave.Go("recv", func() {
				if _, err := recv(b, c); !errors.Is(err, context.Canceled) {
					interleave.Failf("ended for %v", err)
				}
				b.finish(returned, nil)
			})
		}
		interleave.Go("cancel", func() { s.n.Cancel(errStopped) })
		interleave.JoinAll()
		if s.n.coldPart().children != nil || s.n.coldPart().listed != 0 || s.n.live() != 0 {
			interleave.Failf("%d are in the ring, %d live", s.n.coldPart().listed, s.n.live())
		}
	})
}

// The owner of a nursery joins while its child ends, and another fiber starts one more: either the join waits for that
// one too, or it is refused.
//
// Spec: NU-01 (a nursery completes after every child)
// Spec: NU-05 (a completed nursery takes no child)
func TestExploreJoinAgainstEnd(t *testing.T) {
	interleave.Check(t, interleave.Config{}, func() {
		s := newScene()
		owner := (*bare)(unsafe.Pointer(s.n.owner))
		a, b := s.fiber(), s.make()
		var ended xatomic.Int32
		var before int32 // the join returned
		want := int32(2)
		end := func(f *bare) {
			ended.Add(1)
			f.finish(returned, nil)
		}
		interleave.Go("join", func() {
			if own := s.n.closeEmpty(); own != 0 && s.n.beginJoin(own) {
				owner.task.Park()
			}
			if !s.n.closed() {
				interleave.Failf("joined, and not closed")
			}
			before = ended.Load()
		})
		interleave.Go("end", func() { end(a) })
		interleave.Go("stray", func() {
			if s.n.admit() {
				end(b)
			} else {
				want = 1
			}
		})
		interleave.JoinAll()
		if before != want || s.n.live() != 0 {
			interleave.Failf("joined when %d of %d had ended, %d live", before, want, s.n.live())
		}
	})
}

// Two fibers wait for a third while it ends, and their nursery is cancelled: each wait ends, by either.
func TestExploreWaitAgainstEnd(t *testing.T) {
	for _, cancels := range []bool{false, true} {
		t.Run(fmt.Sprintf("cancel %v", cancels), func(t *testing.T) {
			interleave.Check(t, interleave.Config{}, func() {
				s := newScene()
				f := s.fiber()
				for range 2 {
					b := s.fiber()
					interleave.Go("wait", func() {
						err := f.Wait(b.here())
						if err == nil && !f.ended() || err != nil && !cancels {
							interleave.Failf("ended with %v", err)
						}
					})
				}
				if cancels {
					interleave.Go("cancel", func() { s.n.Cancel(errStopped) })
				}
				interleave.Go("end", func() { f.finish(returned, nil) })
				interleave.JoinAll()
				if !f.joiners.Empty() {
					interleave.Failf("a joiner is left")
				}
			})
		})
	}
}

// Fibers wait for an event while it is set, and their nursery is cancelled: each wait ends, by the one or the other,
// one Set is told that it was the first, and no node stays in the queue. Each case is explored completely. Two waiters,
// two sets and a cancellation together have some 190,000 executions, and run with COIR_SOAK.
func TestExploreWaitAgainstSet(t *testing.T) {
	for _, c := range []struct {
		waiters, sets int
		cancels, long bool
	}{
		{waiters: 2, sets: 2},
		{waiters: 2, cancels: true}, // nothing but the waiters themselves empties the queue
		{waiters: 1, sets: 2, cancels: true},
		{waiters: 2, sets: 1, cancels: true},
		{waiters: 2, sets: 2, cancels: true, long: true},
	} {
		t.Run(fmt.Sprintf("%d waiters, %d sets, cancel %v", c.waiters, c.sets, c.cancels), func(t *testing.T) {
			if c.long && !soak.On() {
				t.Skip("takes half a minute; set COIR_SOAK=1")
			}
			interleave.Check(t, interleave.Config{}, func() {
				s := newScene()
				e := new(Event)
				for range c.waiters {
					b := s.fiber()
					interleave.Go("wait", func() {
						if err := e.Wait(b.here()); err == nil && !e.IsSet() || err != nil && !c.cancels {
							interleave.Failf("ended with %v", err)
						}
					})
				}
				if c.cancels {
					interleave.Go("cancel", func() { s.n.Cancel(errStopped) })
				}
				first := 0
				set := func() {
					if e.Set() {
						first++
					}
				}
				for range c.sets {
					interleave.Go("set", set)
				}
				interleave.JoinAll()
				if first != min(c.sets, 1) || !e.once.waiters.Empty() {
					interleave.Failf("%d sets were the first, %d wait", first, e.once.waiters.Len())
				}
			})
		})
	}
}

// asyncFiber is the fiber of an async operation, which is a thread of an exploration: it completes the operation once
// the wait has ended.
type asyncFiber struct {
	async[int]
	turn xatomic.Sema
}

func (b *asyncFiber) Ready(*park.Parker, park.Place) { b.turn.Post() }
func (b *asyncFiber) Late(*park.Parker)              {}
func (b *asyncFiber) Park()                          {}

// async makes an operation of c. Its own thread completes it.
func (s *scene) async(c *Chan[int], side channel.Side, v int, ended func(v int, err error)) *asyncFiber {
	s.n.spawned++
	b := &asyncFiber{turn: xatomic.NewSema()}
	b.c, b.side, b.cell.Value = c, side, v
	b.f.nursery, b.f.budget = s.n, budget
	b.f.task.Bare(b)
	interleave.Go("async", func() {
		b.turn.Wait()
		ended(b.end())
	})
	return b
}

// A send that began without a wait, against a receive and a cancellation, and a receive against a send and a
// cancellation: a value is passed on if and only if its send succeeds, and the fiber of the operation is readied once.
func TestExploreAsync(t *testing.T) {
	for _, cancels := range []bool{false, true} {
		t.Run(fmt.Sprintf("send, cancel %v", cancels), func(t *testing.T) {
			interleave.Check(t, interleave.Config{}, func() {
				s, l, c := newScene(), new(ledger), NewChan[int](0)
				x := s.fiber()
				op := s.async(c, sending, 1, func(_ int, err error) {
					if err == nil {
						l.sent = append(l.sent, 1)
					} else {
						l.failed = append(l.failed, 1)
					}
				})
				interleave.Go("begin", func() { op.do(nil) })
				interleave.Go("recv", func() { l.recv(x, c) })
				if cancels {
					interleave.Go("cancel", func() { s.n.Cancel(errStopped) })
				}
				interleave.JoinAll()
				l.check(c)
				if len(l.sent)+len(l.failed) != 1 || !cancels && len(l.received) != 1 {
					interleave.Failf("sent %v, failed %v, received %v", l.sent, l.failed, l.received)
				}
			})
		})
		t.Run(fmt.Sprintf("receive, cancel %v", cancels), func(t *testing.T) {
			interleave.Check(t, interleave.Config{}, func() {
				s, l, c := newScene(), new(ledger), NewChan[int](0)
				x, ends := s.fiber(), 0
				op := s.async(c, receiving, 0, func(v int, err error) {
					ends++
					if err == nil {
						l.received = append(l.received, v)
					}
				})
				interleave.Go("begin", func() { op.do(nil) })
				interleave.Go("send", func() { l.send(x, c, 1) })
				if cancels {
					interleave.Go("cancel", func() { s.n.Cancel(errStopped) })
				}
				interleave.JoinAll()
				l.check(c)
				if ends != 1 || !cancels && len(l.received) != 1 {
					interleave.Failf("%d ends, sent %v, received %v", ends, l.sent, l.received)
				}
			})
		})
	}
}
