package coir_test

// Select. It performs exactly one of its cases, or none and returns an error; the other cases leave no trace in their
// channels. It never communicates with itself, and two selects that wait for each other match. select_choice_test.go
// tests which case it chooses, select_events_test.go what else it waits for, and select_cost_test.go what it costs.
//
// Behaviour that can differ between fibers and goroutines is tested with both, and with one of each on the two sides. A
// crew starts the participants; the tests of Selector and others share it.

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/coir-go/coir"
)

// Every mixture of ready and other cases: one of the ready ones happens, and no other channel changes.
//
// Spec: SE-01 (a select completes one case)
// Spec: SE-03 (a losing case has no effect)
// Spec: SE-06 (a ready case needs no registration)
func TestSelectDoesOneReadyCase(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		c.did(func(ctx context.Context) {
			for ready := 1; ready < 1<<6; ready++ {
				chans := make([]*coir.Chan[int], 6) // receives from the even ones, sends to the odd ones
				got := make([]int, len(chans))
				cases := make([]coir.Case, len(chans))
				for i := range chans {
					chans[i] = coir.NewChan[int](1)
					can := ready>>i&1 == 1
					if i%2 == 0 == can {
						_ = chans[i].TrySend(10 + i)
					}
					if i%2 == 0 {
						cases[i] = chans[i].RecvCase(&got[i])
					} else {
						cases[i] = chans[i].SendCase(20 + i)
					}
				}
				before := statsOf(chans)
				won, err := coir.Select(ctx, cases...)
				if err != nil || won < 0 || ready>>won&1 == 0 {
					t.Errorf("with %06b ready: %d, %v", ready, won, err)
					return
				}
				if won%2 == 0 {
					before[won].Received++
					before[won].Len--
					if got[won] != 10+won {
						t.Errorf("received %d from channel %d", got[won], won)
					}
				} else {
					before[won].Sent++
					before[won].SentBytes += uint64(unsafe.Sizeof(0))
					before[won].Len++
					before[won].High = 1
					if v, err := chans[won].TryRecv(); v != 20+won || err != nil {
						t.Errorf("channel %d was sent %d, %v", won, v, err)
					}
					before[won].Received++
					before[won].Len--
				}
				sameStats(t, chans, before)
			}
		})
	})
}

// The same where the select has to wait: the peer of one case comes.
//
// Spec: SE-05 (losing registrations are removed first)
// Spec: SE-13 (no channel lock is held while waiting)
// Spec: SE-14 (a message goes directly, under the locks)
func TestSelectDoesOneCaseThatItWaitedFor(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		for won := range 8 {
			chans := make([]*coir.Chan[int], 8) // receives from the even ones, sends to the odd ones; every other pair has a buffer
			got := make([]int, len(chans))
			cases := make([]coir.Case, len(chans))
			for i := range chans {
				chans[i] = coir.NewChan[int](i / 2 % 2)
				if i%2 == 0 {
					cases[i] = chans[i].RecvCase(&got[i])
				} else {
					_ = chans[i].TrySend(10 + i)
					cases[i] = chans[i].SendCase(20 + i)
				}
			}
			before := statsOf(chans)
			out := c.selects(cases...)
			for i := range chans {
				waitFor(t, chans[i], i%2, 1-i%2)
			}
			ch, buffered := chans[won], won/2%2 == 1
			var peer int // what the other side got
			c.did(func(ctx context.Context) {
				var err error
				if won%2 == 0 {
					err = ch.Send(ctx, 30+won)
				} else {
					peer, err = ch.Recv(ctx)
				}
				if err != nil {
					t.Errorf("the peer: %v", err)
				}
			})
			if o := c.outcome(out); o.index != won || o.err != nil {
				t.Fatalf("case %d was met, and select gives %d, %v", won, o.index, o.err)
			}
			switch {
			case won%2 == 0:
				if got[won] != 30+won {
					t.Errorf("received %d, want %d", got[won], 30+won)
				}
			case buffered: // the oldest came out, and our value moved in
				if v, err := ch.TryRecv(); peer != 10+won || v != 20+won || err != nil {
					t.Errorf("received %d, then %d, %v", peer, v, err)
				}
				before[won].Len = 0
				before[won].Received++
			default:
				if peer != 20+won {
					t.Errorf("the peer received %d", peer)
				}
			}
			before[won].Sent++
			before[won].SentBytes += uint64(unsafe.Sizeof(0))
			before[won].Received++
			sameStats(t, chans, before) // High also shows that a value handed over was never in the buffer
			for i := range got {
				if i != won && got[i] != 0 {
					t.Errorf("case %d lost, and stored %d", i, got[i])
				}
			}
		}
	})
}

// A select that ends without any of its cases: the channels are unchanged, and nothing has been counted.
//
// Spec: SE-05 (losing registrations are removed first)
// Spec: SE-09 (TrySelect never waits)
// Spec: SE-10 (the earliest deadline ends a select)
// Spec: SE-11 (a cancel ends a select)
func TestSelectThatFailsLeavesNoTrace(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		chans := []*coir.Chan[int]{coir.NewChan[int](0), coir.NewChan[int](0), coir.NewChan[int](1), coir.NewChan[int](1)}
		_ = chans[3].TrySend(1)
		got := 7
		cases := []coir.Case{
			chans[0].RecvCase(&got), chans[1].SendCase(1), chans[2].RecvCase(&got), chans[3].SendCase(2), chans[0].SendCase(3),
		}
		before := statsOf(chans)
		check := func(what string, index int, err error, want error) {
			t.Helper()
			if index != -1 || !isWanted(err, want) {
				t.Errorf("%s: %d, %v; want %v", what, index, err, want)
			}
			sameStats(t, chans, before)
		}
		c.did(func(ctx context.Context) {
			i, err := coir.TrySelect(cases...)
			check("TrySelect", i, err, coir.ErrWouldBlock)
			short, stop := coir.WithTimeout(ctx, time.Millisecond)
			i, err = coir.Select(short, cases...)
			check("a deadline of coir", i, err, coir.ErrTimeout)
			stop()
			foreign, stop := context.WithTimeout(ctx, time.Millisecond)
			i, err = coir.Select(foreign, cases...)
			check("a deadline", i, err, coir.ErrTimeout)
			stop()
			over, cancel := context.WithCancelCause(ctx)
			cancel(errA)
			i, err = coir.SelectPriority(over, cases...)
			check("a context that is over", i, err, cancelFor{errA})
			i, err = coir.Select(over, append(cases, coir.After(0))...)
			check("a context that is over, with a case that is ready", i, err, cancelFor{errA})
			if i, err := coir.Select(ctx, append(cases, coir.After(time.Millisecond))...); i != len(cases) || err != nil {
				t.Errorf("After: %d, %v", i, err)
			}
			sameStats(t, chans, before)
		})
		for name, scope := range map[string]func(context.Context) (context.Context, context.CancelCauseFunc){
			"scope": coir.WithCancelCause, "standard": context.WithCancelCause,
		} {
			cancels := make(chan context.CancelCauseFunc, 1)
			out := make(chan outcome, 1)
			c.do(func(ctx context.Context) {
				ctx, cancel := scope(ctx)
				defer cancel(nil)
				cancels <- cancel
				i, err := coir.Select(ctx, cases...)
				out <- outcome{i, err}
			})
			cancel := <-cancels
			waitFor(t, chans[0], 1, 1)
			waitFor(t, chans[3], 1, 0)
			cancel(errB)
			o := c.outcome(out)
			check(name+" cancelled", o.index, o.err, cancelFor{errB})
		}
		if got != 7 {
			t.Errorf("something was received: %d", got)
		}
	})
}

// Cancelling a nursery ends the selects of its fibers.
//
// Spec: SE-11 (a cancel ends a select)
func TestSelectEndsWithTheNursery(t *testing.T) {
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		c := coir.NewChan[int](0)
		f := n.Go("selects", func(ctx context.Context) error {
			i, err := coir.Select(ctx, c.RecvCase(nil), c.SendCase(1))
			if i != -1 || !isCancelIn(ctx, err, errA) {
				t.Errorf("Select returned %d, %v, want -1 and a cancel for %v", i, err, errA)
			}
			return nil
		})
		yieldUntil(ctx, t, "it waits", func() bool { return f.State() == coir.StateWaiting })
		n.Cancel(errA)
		_ = f.Wait(coir.Shield(ctx))
		if s := c.Stats(); s.Send.Waiting != 0 || s.Recv.Waiting != 0 {
			t.Errorf("c.Stats() = %+v, want Send.Waiting 0, Recv.Waiting 0", s)
		}
		return nil
	}, nil)
}

// A channel in many cases, on both sides, is locked once and registered for each case; the select does not meet itself.
//
// Spec: SE-12 (channel locks are taken in the order of ids)
// Spec: SE-16 (a select never matches itself)
func TestSelectHasTheSameChannelManyTimes(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		ch := coir.NewChan[int](0)
		var a, b int
		cases := []coir.Case{ch.SendCase(1), ch.RecvCase(&a), ch.SendCase(2), ch.RecvCase(&b), ch.SendCase(3)}
		if i, err := coir.TrySelect(cases...); i != -1 || err != coir.ErrWouldBlock { //nolint:errorlint // the very value is promised
			t.Fatalf("it met itself: %d, %v", i, err)
		}
		for range 50 {
			a, b = 0, 0
			out := c.selects(cases...)
			waitFor(t, ch, 3, 2)
			c.did(func(ctx context.Context) {
				if err := ch.Send(ctx, 9); err != nil {
					t.Error(err)
				}
			})
			o := c.outcome(out)
			if o.err != nil || o.index == 1 && (a != 9 || b != 0) || o.index == 3 && (a != 0 || b != 9) || o.index != 1 && o.index != 3 {
				t.Fatalf("%+v, with %d and %d received", o, a, b)
			}
			waitFor(t, ch, 0, 0)
			out = c.selects(cases...)
			waitFor(t, ch, 3, 2)
			var v int
			c.did(func(ctx context.Context) { v, _ = ch.Recv(ctx) })
			if o := c.outcome(out); o.err != nil || o.index != 2*(v-1) {
				t.Fatalf("%+v, and %d came out", o, v)
			}
			waitFor(t, ch, 0, 0)
		}
		if s := ch.Stats(); s.Sent != 100 || s.Received != 100 {
			t.Errorf("ch.Stats() = %+v, want Sent 100, Received 100", s)
		}
		full := coir.NewChan[int](1) // a later select may take out what this one puts in
		c.did(func(ctx context.Context) {
			for i := range 100 {
				v := -1
				won, err := coir.Select(ctx, full.RecvCase(&v), full.SendCase(i), full.RecvCase(&v), full.SendCase(i))
				if err != nil || i%2 == 0 != (won%2 == 1) || i%2 == 1 && v != i-1 {
					t.Errorf("round %d: %d, %v, %d", i, won, err, v)
				}
			}
		})
	})
}

// An even number of selects, each of which sends and receives on every channel: they meet in pairs of a sender and a
// receiver, and none is left.
//
// Spec: SE-01 (a select completes one case)
// Spec: SE-02 (all cases claim through one word)
// Spec: SE-15 (two selects match with one case each)
// Spec: SE-16 (a select never matches itself)
func TestSelectsThatWaitForEachOtherMatch(t *testing.T) {
	for _, chans := range []int{1, 3} {
		crews(t, func(t *testing.T, c *crew) {
			for range sized(50, 200, 5_000) {
				const people = 6
				var chs [3]*coir.Chan[int]
				for i := range chans {
					chs[i] = coir.NewChan[int](0)
				}
				var sent [people]bool
				var got [people]int
				for me := range people {
					c.do(func(ctx context.Context) {
						var cases []coir.Case
						for _, i := range rand.Perm(chans) {
							cases = append(cases, chs[i].SendCase(me), chs[i].RecvCase(&got[me]))
						}
						got[me] = -1
						i, err := coir.Select(ctx, cases...)
						if err != nil {
							t.Errorf("Select returned %d, %v, want no error", i, err)
						}
						sent[me] = i%2 == 0
					})
				}
				c.wait()
				var received [people]bool
				for me, from := range got {
					switch {
					case sent[me] != (from == -1):
						t.Fatalf("%d sent %v, and received from %d", me, sent[me], from)
					case from == -1:
					case from == me || !sent[from] || received[from]:
						t.Fatalf("%d received from %d: sent %v, got %v", me, from, sent, got)
					default:
						received[from] = true
					}
				}
				if sent != received {
					t.Fatalf("sent %v, received %v", sent, received)
				}
				for i := range chans {
					waitFor(t, chs[i], 0, 0)
				}
			}
		})
	}
}

// All members select over all channels: each receives from every channel, and sends its next value to some, in any
// order, sometimes with a time limit or without waiting. Every value is received exactly once.
//
// Spec: SE-01 (a select completes one case)
// Spec: SE-02 (all cases claim through one word)
// Spec: SE-03 (a losing case has no effect)
// Spec: SE-12 (channel locks are taken in the order of ids)
// Spec: SE-15 (two selects match with one case each)
func TestSelectStress(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		const people = 12
		each := sized(200, 2_000, 100_000)
		chans := make([]*coir.Chan[int], 7)
		for i := range chans {
			chans[i] = coir.NewChan[int]([]int{0, 0, 1, 3}[i%4])
		}
		over := coir.NewChan[struct{}](0)
		seen := make([]atomic.Int32, people*each)
		var received atomic.Int64
		for me := range people {
			c.do(func(ctx context.Context) {
				rng := rand.New(rand.NewPCG(uint64(me), 1))
				next, end := me*each, (me+1)*each
				var got int
				var cases []coir.Case
				for {
					cases = append(cases[:0], over.RecvCase(nil))
					for _, ch := range chans {
						cases = append(cases, ch.RecvCase(&got))
					}
					firstSend := len(cases)
					if next < end {
						for range 1 + rng.IntN(3) {
							cases = append(cases, chans[rng.IntN(len(chans))].SendCase(next))
						}
					}
					firstOther := len(cases)
					if rng.IntN(4) == 0 {
						cases = append(cases, coir.After(time.Duration(rng.IntN(20_000))))
					}
					where := make([]int, len(cases)) // where[i] is the index of case i before the shuffle
					for i := range where {
						where[i] = i
					}
					rng.Shuffle(len(cases), func(i, j int) {
						cases[i], cases[j] = cases[j], cases[i]
						where[i], where[j] = where[j], where[i]
					})
					var i int
					var err error
					switch rng.IntN(8) {
					case 0:
						i, err = coir.TrySelect(cases...)
					case 1:
						i, err = coir.SelectPriority(ctx, cases...)
					default:
						i, err = coir.Select(ctx, cases...)
					}
					if i < 0 {
						if !errors.Is(err, coir.ErrWouldBlock) {
							t.Errorf("select: %v", err)
							return
						}
						breathe(ctx)
						continue
					}
					switch was := where[i]; {
					case was == 0:
						return
					case err != nil:
						t.Errorf("case %d: %v", was, err)
						return
					case was < firstSend:
						seen[got].Add(1)
						if received.Add(1) == int64(len(seen)) {
							over.Close()
						}
					case was < firstOther:
						next++
					}
				}
			})
		}
		c.wait()
		for v := range seen {
			if n := seen[v].Load(); n != 1 {
				t.Fatalf("value %d was received %d times", v, n)
			}
		}
		for _, ch := range chans {
			if s := ch.Stats(); s.Len != 0 || s.Sent != s.Received || s.Send.Waiting != 0 || s.Recv.Waiting != 0 {
				t.Errorf("ch.Stats() = %+v, want Len 0, Sent = Received, Send.Waiting 0, Recv.Waiting 0", s)
			}
		}
	})
}

// Selects that name the same channels in opposite order do not deadlock.
//
// Spec: CH-54 (channel ids order their locks)
func TestSelectsInOppositeOrder(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		const size = 20 // long enough for both ways of sorting
		rounds := sized(1_000, 5_000, 500_000)
		for _, size := range []int{2, 8, size} {
			chans := make([]*coir.Chan[int], size)
			for i := range chans {
				chans[i] = coir.NewChan[int](i % 2)
			}
			for side := range 4 { // two send, two receive; one of each in forward order
				c.do(func(ctx context.Context) {
					var v int
					cases := make([]coir.Case, size)
					for i := range cases {
						at := i
						if side%2 == 1 {
							at = size - 1 - i
						}
						if side < 2 {
							cases[i] = chans[at].SendCase(1)
						} else {
							cases[i] = chans[at].RecvCase(&v)
						}
					}
					for range rounds {
						if i, err := coir.Select(ctx, cases...); err != nil {
							t.Errorf("Select returned %d, %v, want no error", i, err)
							return
						}
					}
				})
			}
			c.wait()
		}
	})
}

// Spec: SE-06 (a ready case needs no registration)
// Spec: SE-09 (TrySelect never waits)
func TestTrySelect(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		a, b := coir.NewChan[int](0), coir.NewChan[int](1)
		var v int
		try := func(cases ...coir.Case) (o outcome) {
			c.did(func(context.Context) { o.index, o.err = coir.TrySelect(cases...) })
			return o
		}
		nothing := outcome{-1, coir.ErrWouldBlock}
		for _, cases := range [][]coir.Case{
			nil, {{}}, {a.RecvCase(&v)}, {a.SendCase(1), a.RecvCase(&v), b.RecvCase(&v)}, {coir.After(1)},
		} {
			if o := try(cases...); o != nothing {
				t.Errorf("%d cases: %+v", len(cases), o)
			}
		}
		if o := try(a.SendCase(1), b.SendCase(2), coir.Case{}); o != (outcome{1, nil}) {
			t.Errorf("room: %+v", o)
		}
		if o := try(a.SendCase(1), b.SendCase(3), b.RecvCase(&v)); o != (outcome{2, nil}) || v != 2 {
			t.Errorf("a value: %+v, %d", o, v)
		}
		out := c.selects(a.SendCase(4))
		waitFor(t, a, 1, 0)
		if o := try(b.RecvCase(&v), a.RecvCase(&v)); o != (outcome{1, nil}) || v != 4 {
			t.Errorf("somebody who waits: %+v, %d", o, v)
		}
		if o := c.outcome(out); o != (outcome{0, nil}) {
			t.Errorf("the operation returned %+v, want {0 <nil>}", o)
		}
		if o := try(a.RecvCase(&v), coir.After(-1)); o != (outcome{1, nil}) {
			t.Errorf("a time that has come: %+v", o)
		}
	})
}

func TestZeroCaseNeverHappens(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		c.did(func(ctx context.Context) {
			ready := coir.NewChan[int](coir.Unbounded)
			for range 100 {
				if i, err := coir.Select(ctx, coir.Case{}, ready.SendCase(1), coir.Case{}); i != 1 || err != nil {
					t.Errorf("Select returned %d, %v, want 1, nil", i, err)
				}
				if i, err := coir.SelectPriority(ctx, coir.Case{}, ready.RecvCase(nil)); i != 1 || err != nil {
					t.Errorf("SelectPriority returned %d, %v, want 1, nil", i, err)
				}
			}
			for _, cases := range [][]coir.Case{nil, {}, {{}}, {{}, {}}} {
				short, stop := coir.WithTimeout(ctx, time.Millisecond)
				if i, err := coir.Select(short, cases...); i != -1 || !errors.Is(err, coir.ErrTimeout) {
					t.Errorf("%d cases: %d, %v", len(cases), i, err)
				}
				stop()
			}
		})
	})
}

// Sends to channels on which a sender never waits: if the select chooses the case, the policy decides what happens; if
// not, nothing happens.
//
// Spec: SE-03 (a losing case has no effect)
// Spec: CH-17 (the overflow policy decides a full send)
// Spec: CH-18 (dropped values are counted and handed over)
// Spec: CH-58 (a failing overflow is ErrWouldBlock)
func TestSelectSendsByPolicy(t *testing.T) {
	for _, p := range []struct {
		name    string
		cap     int
		over    coir.OverflowPolicy
		err     error
		left    int // the value held after 1 and 2 were sent to capacity 1; 0: none
		dropped int // the value given to OnUndelivered; 0: none
	}{
		{"drop oldest", 1, coir.OverflowDropOldest, nil, 2, 1},
		{"drop newest", 1, coir.OverflowDropNewest, nil, 1, 2},
		{"fail", 1, coir.OverflowFail, coir.ErrWouldBlock, 1, 0},
		{"conflated", coir.Conflated, coir.OverflowWait, nil, 2, 1},
		{"rendezvous, drop oldest", 0, coir.OverflowDropOldest, nil, 0, 2},
		{"rendezvous, drop newest", 0, coir.OverflowDropNewest, nil, 0, 2},
		{"rendezvous, fail", 0, coir.OverflowFail, coir.ErrWouldBlock, 0, 0},
	} {
		t.Run(p.name, func(t *testing.T) {
			crews(t, func(t *testing.T, c *crew) {
				lost := 0
				ch := coir.NewChan[int](p.cap, coir.WithOverflow(p.over), coir.OnUndelivered(func(v int) { lost = v }))
				never := coir.NewChan[int](0)
				if p.cap != 0 {
					_ = ch.TrySend(1)
				}
				before := ch.Stats()
				if o := c.outcome(c.selects(never.RecvCase(nil), ch.SendCase(2))); o != (outcome{1, p.err}) {
					t.Errorf("the operation returned %+v, want {1 %v}", o, p.err)
				}
				s := ch.Stats()
				if lost != p.dropped || s.Dropped-before.Dropped != uint64(min(1, p.dropped)) || s.Send.Waiting != 0 {
					t.Errorf("lost %d: %+v", lost, s)
				}
				before, lost = ch.Stats(), 0
				ready := coir.NewChan[int](coir.Unbounded)
				c.did(func(ctx context.Context) {
					if i, err := coir.SelectPriority(ctx, ready.SendCase(1), ch.SendCase(3)); i != 0 || err != nil {
						t.Errorf("SelectPriority returned %d, %v, want 0, nil", i, err)
					}
				})
				if ch.Stats() != before || lost != 0 {
					t.Errorf("the case has lost, and %d was: %+v, before %+v", lost, ch.Stats(), before)
				}
				if v, err := ch.TryRecv(); v != p.left || (err == nil) != (p.left != 0) {
					t.Errorf("it holds %d, %v", v, err)
				}
				var v int // a waiting receiver gets the value, whatever the policy
				out := c.selects(never.RecvCase(nil), ch.RecvCase(&v))
				waitFor(t, ch, 0, 1)
				if o := c.outcome(c.selects(ch.SendCase(9), never.RecvCase(nil))); o != (outcome{0, nil}) {
					t.Errorf("the operation returned %+v, want {0 <nil>}", o)
				}
				if o := c.outcome(out); o != (outcome{1, nil}) || v != 9 {
					t.Errorf("Select returned %+v and received %d, want {1 <nil>} and 9", o, v)
				}
			})
		})
	}
}

func statsOf[T any](chans []*coir.Chan[T]) []coir.ChanStats {
	all := make([]coir.ChanStats, len(chans))
	for i, ch := range chans {
		all[i] = ch.Stats()
	}
	return all
}

// sameStats fails if the counters of a channel differ from those expected.
func sameStats[T any](t *testing.T, chans []*coir.Chan[T], want []coir.ChanStats) {
	t.Helper()
	for i, ch := range chans {
		if s := ch.Stats(); s != want[i] {
			t.Errorf("channel %d: %+v; want %+v", i, s, want[i])
		}
	}
}
