package coir_test

// Select. It does exactly one of its cases, or none and returns an error; the other cases leave no trace in their
// channels. It is fair, or takes the first; it never meets itself; two selects that wait for each other match; it waits
// for channels, times, the ends of fibers and of pipes alike, in lists of any length.
//
// What can differ between fibers and goroutines is tried with both, and with one of each on the two sides. A crew
// starts the participants; the tests of what is built around select share it.

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
	"weak"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/hide"
	"github.com/coir-go/coir/internal/invariant"
	"github.com/coir-go/coir/internal/park"
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
// Spec: SE-01 (a select completes one case)
// Spec: SE-02 (all cases claim through one word)
// Spec: SE-03 (a losing case has no effect)
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
					t.Errorf("received %d", got[won])
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
// Spec: SE-03 (a losing case has no effect)
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
				t.Errorf("%d, %v", i, err)
			}
			return nil
		})
		yieldUntil(ctx, t, "it waits", func() bool { return f.State() == coir.StateWaiting })
		n.Cancel(errA)
		_ = f.Wait(coir.Shield(ctx))
		if s := c.Stats(); s.Send.Waiting != 0 || s.Recv.Waiting != 0 {
			t.Errorf("%+v", s)
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
			t.Errorf("%+v", s)
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
							t.Errorf("%d, %v", i, err)
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
				t.Errorf("%+v", s)
			}
		}
	})
}

// Selects that name the same channels in opposite order do not deadlock.
//
// Spec: SE-12 (channel locks are taken in the order of ids)
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
							t.Errorf("%d, %v", i, err)
							return
						}
					}
				})
			}
			c.wait()
		}
	})
}

// Each of the cases that are always ready is chosen equally often: 8 of 8, 2 of 8, and in two selects that take turns.
//
// Spec: SE-07 (select is fair)
func TestSelectIsFair(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		rounds := 10_000
		if testing.Short() && !raceEnabled {
			rounds = 2_000
		}
		ready := make([]coir.Case, 8)
		for i := range ready {
			if i%2 == 0 {
				ready[i] = coir.NewChan[int](coir.Conflated).SendCase(1)
			} else {
				ch := coir.NewChan[int](0)
				ch.Close()
				ready[i] = ch.RecvCase(nil)
			}
		}
		two := make([]coir.Case, 8)
		for i := range two {
			two[i] = coir.NewChan[int](0).RecvCase(nil)
		}
		two[2], two[5] = ready[0], ready[1]
		even := func(what string, counts []int, of ...int) {
			for _, i := range of {
				if !likely(counts[i], rounds, len(of)) {
					t.Errorf("%s: case %d was chosen %d times of %d: %v", what, i, counts[i], rounds, counts)
				}
			}
		}
		c.did(func(ctx context.Context) {
			choose := func(counts []int, cases []coir.Case) {
				i, _ := coir.Select(ctx, cases...)
				counts[i]++
			}
			all, some := make([]int, 8), make([]int, 8)
			for range rounds {
				choose(all, ready)
			}
			even("8 of 8", all, 0, 1, 2, 3, 4, 5, 6, 7)
			for range rounds {
				choose(some, two)
			}
			even("2 of 8", some, 2, 5)
			all, some = make([]int, 8), make([]int, 8)
			for range rounds {
				choose(all, ready)
				choose(some, two)
			}
			even("8 of 8 in turn with 2 of 8", all, 0, 1, 2, 3, 4, 5, 6, 7)
			even("2 of 8 in turn with 8 of 8", some, 2, 5)
			all = make([]int, 8)
			for range rounds {
				i, _ := coir.TrySelect(ready...)
				all[i]++
			}
			even("TrySelect", all, 0, 1, 2, 3, 4, 5, 6, 7)
		})
	})
}

// likely reports whether one of n things that have the same chance may well be chosen count times in so many rounds: it
// is within six standard deviations.
func likely(count, rounds, n int) bool {
	mean := float64(rounds) / float64(n)
	return math.Abs(float64(count)-mean) <= 6*math.Sqrt(mean)
}

// Each case has the same chance even if the program does more selects after one choice than after another.
//
// Spec: SE-07 (select is fair)
func TestSelectIsFairWhateverFollows(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		closed := coir.NewChan[int](0)
		closed.Close()
		ready := closed.RecvCase(nil)
		c.did(func(ctx context.Context) {
			for _, cases := range [][]coir.Case{{ready, ready, ready}, {ready, ready, ready, {}, {}}} { // in both forms
				const rounds = 5_000
				var counts [3]int
				for range rounds {
					i, _ := coir.Select(ctx, cases...)
					counts[i]++
					for range []int{1, 2, 0}[i] {
						_, _ = coir.Select(ctx, ready, ready)
					}
				}
				for i, n := range counts {
					if !likely(n, rounds, len(counts)) {
						t.Errorf("%d cases: case %d was chosen %d times of %d: %v", len(cases), i, n, rounds, counts)
					}
				}
			}
		})
	})
}

// Many members select once each, concurrently: they do not all choose the same.
//
// Spec: SE-07 (select is fair)
func TestFirstSelectsOfManyAreFair(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		const people = 4_000
		a, b := coir.NewChan[int](coir.Conflated), coir.NewChan[int](coir.Conflated)
		gate := coir.NewChan[int](0)
		var counts [2]atomic.Int64
		for range people {
			c.do(func(ctx context.Context) {
				_, _ = gate.Recv(ctx)
				i, err := coir.Select(ctx, a.SendCase(1), b.SendCase(1))
				if err != nil {
					t.Error(err)
					return
				}
				counts[i].Add(1)
			})
		}
		waitFor(t, gate, 0, people)
		gate.Close()
		c.wait()
		// Not closer: while one channel is locked, the selects that chose it pile up, each with its turn, and the turns
		// go to others. How many they are depends on the machine.
		if n := counts[0].Load(); n < people*10/100 || n > people*90/100 {
			t.Errorf("%d of %d chose the first of two", n, people)
		}
	})
}

// Spec: SE-08 (SelectPriority takes the first ready case)
func TestSelectPriorityTakesTheFirst(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		var got [5]int
		full, closed := coir.NewChan[int](1), coir.NewChan[int](0)
		_ = full.TrySend(1)
		closed.Close()
		ended := c.n.Go("ended", func(context.Context) error { return nil })
		_ = ended.Wait(context.Background())
		never := [5]coir.Case{
			coir.NewChan[int](0).RecvCase(&got[0]), full.SendCase(2), {}, coir.NewChan[int](0).SendCase(1), coir.After(time.Hour),
		}
		ready := [5]coir.Case{
			closed.RecvCase(nil), coir.NewChan[int](coir.Unbounded).SendCase(1), ended.DoneCase(nil), closed.SendCase(1),
			coir.After(0),
		}
		c.did(func(ctx context.Context) {
			for mask := 1; mask < 1<<5; mask++ {
				cases, first := never, -1
				for i := range cases {
					if mask>>i&1 == 1 {
						cases[i] = ready[i]
						if first < 0 {
							first = i
						}
					}
				}
				for range 3 {
					i, err := coir.SelectPriority(ctx, cases[:]...)
					if i != first || (first == 0 || first == 3) != errors.Is(err, coir.ErrClosed) {
						t.Errorf("with %05b ready: %d, %v", mask, i, err)
					}
				}
			}
		})
		out := make(chan outcome, 1)
		a, b := coir.NewChan[int](0), coir.NewChan[int](0)
		c.do(func(ctx context.Context) {
			i, err := coir.SelectPriority(ctx, a.RecvCase(nil), b.RecvCase(&got[1]))
			out <- outcome{i, err}
		})
		waitFor(t, b, 0, 1)
		if err := b.TrySend(5); err != nil {
			t.Fatal(err)
		}
		if o := c.outcome(out); o.index != 1 || o.err != nil || got[1] != 5 {
			t.Errorf("%+v, %d", o, got[1])
		}
		waitFor(t, a, 0, 0)
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
			t.Errorf("%+v", o)
		}
		if o := try(a.RecvCase(&v), coir.After(-1)); o != (outcome{1, nil}) {
			t.Errorf("a time that has come: %+v", o)
		}
	})
}

// Spec: SE-10 (the earliest deadline ends a select)
// Spec: SE-18 (a case can wait for anything)
// Spec: TM-14 (After is a case)
func TestSelectAfter(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		ch := coir.NewChan[int](0)
		c.did(func(ctx context.Context) {
			start := time.Now()
			i, err := coir.Select(ctx, coir.After(time.Hour), coir.After(3*time.Millisecond), ch.RecvCase(nil), coir.After(2*time.Hour))
			if d := time.Since(start); i != 1 || err != nil || d < 3*time.Millisecond {
				t.Errorf("of several the earliest: %d, %v, after %v", i, err, d)
			}
			for _, d := range []time.Duration{0, -1, math.MinInt64} {
				if i, err := coir.Select(ctx, ch.RecvCase(nil), coir.After(d)); i != 1 || err != nil {
					t.Errorf("After(%d): %d, %v", d, i, err)
				}
			}
			short, stop := coir.WithTimeout(ctx, time.Millisecond)
			defer stop()
			if i, err := coir.Select(short, coir.After(time.Hour)); i != -1 || !errors.Is(err, coir.ErrTimeout) {
				t.Errorf("the context's deadline is earlier: %d, %v", i, err)
			}
			long, stop := coir.WithTimeout(ctx, time.Hour)
			defer stop()
			if i, err := coir.Select(long, coir.After(time.Millisecond)); i != 0 || err != nil {
				t.Errorf("the context's deadline is later: %d, %v", i, err)
			}
		})
		var v int
		out := c.selects(coir.After(math.MaxInt64), ch.RecvCase(&v))
		waitFor(t, ch, 0, 1)
		if err := ch.TrySend(3); err != nil {
			t.Fatal(err)
		}
		if o := c.outcome(out); o != (outcome{1, nil}) || v != 3 {
			t.Errorf("a time that never comes: %+v, %d", o, v)
		}
	})
}

// Time against data: the sender learns that it sent if and only if the select received.
//
// Spec: SE-01 (a select completes one case)
// Spec: SE-02 (all cases claim through one word)
// Spec: SE-10 (the earliest deadline ends a select)
// Spec: SE-19 (a late completion stays with its sender)
func TestSelectTimeAgainstData(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		rounds := sized(200, 1_000, 100_000)
		ch, over := coir.NewChan[int](0), coir.NewChan[int](0)
		seen := make([]int, rounds)
		c.do(func(ctx context.Context) {
			for {
				var v int
				i, err := coir.Select(ctx, ch.RecvCase(&v), coir.After(time.Duration(rand.IntN(50_000))), over.RecvCase(nil))
				switch {
				case i == 2:
					return
				case err != nil:
					t.Errorf("%d, %v", i, err)
					return
				case i == 0:
					seen[v]++
				}
			}
		})
		sent := make([]int, rounds)
		c.do(func(ctx context.Context) {
			defer over.Close()
			for v := range sent {
				err := ch.SendTimeout(ctx, v, time.Duration(rand.IntN(50_000)))
				if err == nil {
					sent[v] = 1
				} else if !errors.Is(err, coir.ErrTimeout) {
					t.Error(err)
				}
			}
		})
		c.wait()
		both := 0
		for v := range sent {
			if sent[v] != seen[v] {
				t.Fatalf("value %d: sent %d times, received %d times", v, sent[v], seen[v])
			}
			both += sent[v]
		}
		if s := ch.Stats(); s.Sent != uint64(both) || s.Received != uint64(both) || s.Send.Waiting+s.Recv.Waiting != 0 {
			t.Errorf("%d arrived: %+v", both, s)
		}
	})
}

// A cancel against data: the same.
//
// Spec: SE-02 (all cases claim through one word)
// Spec: SE-11 (a cancel ends a select)
// Spec: SE-19 (a late completion stays with its sender)
func TestSelectCancelAgainstData(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		ch := coir.NewChan[int](0)
		cancels := coir.NewChan[context.CancelCauseFunc](0)
		sent := coir.NewChan[error](0)
		rounds := sized(200, 2_000, 100_000)
		c.do(func(ctx context.Context) {
			defer cancels.Close()
			for round := range rounds {
				scope := coir.WithCancelCause
				if round%2 == 1 {
					scope = context.WithCancelCause
				}
				sub, cancel := scope(ctx)
				if err := cancels.Send(ctx, cancel); err != nil {
					t.Error(err)
					return
				}
				got := -1
				i, err := coir.Select(sub, ch.RecvCase(&got), ch.RecvCase(&got))
				sendErr, _ := sent.Recv(ctx)
				switch {
				case i >= 0 && err == nil && sendErr == nil && got == 1:
				case i == -1 && isCancelIn(sub, err, errA) && errors.Is(sendErr, coir.ErrWouldBlock) && got == -1:
				default:
					t.Errorf("select: %d, %v, received %d; the sender: %v", i, err, got, sendErr)
					return
				}
				cancel(nil)
			}
		})
		c.do(func(ctx context.Context) {
			for cancel, err := range cancels.All(ctx) {
				if err != nil {
					return
				}
				for range rand.IntN(3) {
					breathe(ctx)
				}
				var err error
				if rand.IntN(2) == 0 {
					go cancel(errA)
					err = ch.TrySend(1)
				} else {
					err = ch.TrySend(1)
					cancel(errA)
				}
				if sent.Send(ctx, err) != nil {
					return
				}
			}
		})
		c.wait()
		waitFor(t, ch, 0, 0)
	})
}

// Close ends a waiting receive. A waiting send has been admitted: it stays, and may still be delivered, or lose to
// another case; Abort ends it.
//
// Spec: SE-17 (close wakes a receiving case, abort a sending one)
// Spec: CH-35 (close is graceful)
// Spec: CH-37 (abort is the hard close)
func TestSelectAndClose(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		for _, abort := range []bool{false, true} {
			a, b := coir.NewChan[int](0, coir.WithName("orders")), coir.NewChan[int](0)
			got := 7
			out := c.selects(b.RecvCase(nil), a.RecvCase(&got))
			waitFor(t, a, 0, 1)
			if abort {
				a.Abort(errA)
			} else {
				a.Close()
			}
			o := c.outcome(out)
			if o.index != 1 || !errors.Is(o.err, coir.ErrClosed) || errors.Is(o.err, errA) != abort || got != 7 {
				t.Errorf("a receive that waits: %+v, %d", o, got)
			}
			if s := a.Stats(); s.Recv.Waiting != 0 || s.Recv.Closed != 1 {
				t.Errorf("%+v", s)
			}
			waitFor(t, b, 0, 0)
		}
		t.Run("delivered", func(t *testing.T) {
			a, b := coir.NewChan[int](0), coir.NewChan[int](0)
			out := c.selects(b.RecvCase(nil), a.SendCase(5))
			waitFor(t, a, 1, 0)
			a.Close()
			waitFor(t, a, 1, 0)
			if v, err := a.TryRecv(); v != 5 || err != nil {
				t.Errorf("%d, %v", v, err)
			}
			if o := c.outcome(out); o != (outcome{1, nil}) {
				t.Errorf("%+v", o)
			}
			if _, err := a.TryRecv(); !errors.Is(err, coir.ErrClosed) {
				t.Error(err)
			}
		})
		t.Run("lost", func(t *testing.T) {
			a, b := coir.NewChan[int](0), coir.NewChan[int](0)
			out := c.selects(b.RecvCase(nil), a.SendCase(5), a.RecvCase(nil))
			waitFor(t, a, 1, 1)
			a.Close() // which ends the receive
			if o := c.outcome(out); o.index != 2 || !errors.Is(o.err, coir.ErrClosed) {
				t.Errorf("%+v", o)
			}
			if _, err := a.TryRecv(); !errors.Is(err, coir.ErrClosed) {
				t.Errorf("the send has lost, and there is %v", err)
			}
			a = coir.NewChan[int](0)
			out = c.selects(b.RecvCase(nil), a.SendCase(5))
			waitFor(t, a, 1, 0)
			a.Close()
			if err := b.TrySend(1); err != nil {
				t.Error(err)
			}
			if o := c.outcome(out); o != (outcome{0, nil}) {
				t.Errorf("%+v", o)
			}
			if _, err := a.TryRecv(); !errors.Is(err, coir.ErrClosed) {
				t.Errorf("the send has lost, and there is %v", err)
			}
		})
		t.Run("aborted", func(t *testing.T) {
			lost := 0
			a := coir.NewChan[int](0, coir.OnUndelivered(func(int) { lost++ }))
			b := coir.NewChan[int](0)
			out := c.selects(b.RecvCase(nil), a.SendCase(5))
			waitFor(t, a, 1, 0)
			a.Close()
			a.Abort(errB)
			if o := c.outcome(out); o.index != 1 || !errors.Is(o.err, coir.ErrClosed) || !errors.Is(o.err, errB) {
				t.Errorf("%+v", o)
			}
			waitFor(t, a, 0, 0)
			if lost != 0 {
				t.Error("the value is the sender's, and was thrown away")
			}
		})
		t.Run("before", func(t *testing.T) {
			a, b := coir.NewChan[int](1), coir.NewChan[int](0)
			_ = a.TrySend(1)
			a.Close()
			var got int
			if o := c.outcome(c.selects(b.RecvCase(nil), a.RecvCase(&got))); o != (outcome{1, nil}) || got != 1 {
				t.Errorf("a value that was left: %+v, %d", o, got)
			}
			if o := c.outcome(c.selects(a.RecvCase(&got), b.RecvCase(nil))); o.index != 0 || !errors.Is(o.err, coir.ErrClosed) {
				t.Errorf("a receive: %+v", o)
			}
			if o := c.outcome(c.selects(b.RecvCase(nil), a.SendCase(1))); o.index != 1 || !errors.Is(o.err, coir.ErrClosed) {
				t.Errorf("a send: %+v", o)
			}
		})
	})
}

// The end of a fiber is a case: of a fiber that has ended, or that will, by return, error, panic or Goexit, and on
// another runtime.
//
// Spec: SE-18 (a case can wait for anything)
// Spec: FB-17 (a join is a wait like any other)
func TestSelectFiberEnd(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		other := coir.NewRuntime()
		defer func() {
			if err := other.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}()
		for name, end := range map[string]struct {
			fn    func() error
			check func(error) bool
		}{
			"nil":    {func() error { return nil }, func(err error) bool { return err == nil }},
			"error":  {func() error { return errA }, func(err error) bool { return errors.Is(err, errA) }},
			"goexit": {func() error { runtime.Goexit(); return nil }, func(err error) bool { return errors.Is(err, coir.ErrGoexit) }},
			"panic": {func() error { panic(errB) }, func(err error) bool {
				var pe *coir.PanicError
				return errors.As(err, &pe) && errors.Is(err, errB)
			}},
		} {
			t.Run(name, func(t *testing.T) {
				gate, never := coir.NewChan[int](0), coir.NewChan[int](0)
				fibers := make(chan *coir.Fiber, 1)
				ran := goes(func() {
					defer func() { _ = recover() }() // Run panics
					_ = other.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
						fibers <- n.Go("ends", func(ctx context.Context) error {
							_, _ = gate.Recv(ctx)
							return end.fn()
						})
						return nil
					})
				})
				f := <-fibers
				waitFor(t, gate, 0, 1)
				var errs [4]error
				for i := range errs {
					errs[i] = errC
				}
				var outs []<-chan outcome
				for i := range errs {
					outs = append(outs, c.selects(never.RecvCase(nil), f.DoneCase(&errs[i]), coir.After(time.Hour)))
				}
				blind := c.selects(f.DoneCase(nil))
				waitFor(t, never, 0, len(errs))
				gate.Close()
				for i, out := range outs {
					if o := c.outcome(out); o != (outcome{1, nil}) || !end.check(errs[i]) {
						t.Errorf("%+v; the fiber's error: %v", o, errs[i])
					}
				}
				if o := c.outcome(blind); o != (outcome{0, nil}) {
					t.Errorf("%+v", o)
				}
				errs[0] = errC
				o := c.outcome(c.selects(never.RecvCase(nil), f.DoneCase(&errs[0])))
				if o != (outcome{1, nil}) || !end.check(errs[0]) {
					t.Errorf("after its end: %+v; the fiber's error: %v", o, errs[0])
				}
				waitFor(t, never, 0, 0)
				<-ran
			})
		}
		c.did(func(ctx context.Context) {
			if f := coir.Self(ctx); f != nil {
				if i, err := coir.Select(ctx, f.DoneCase(nil), coir.After(time.Millisecond)); i != 1 || err != nil {
					t.Errorf("its own end: %d, %v", i, err)
				}
			}
		})
	})
}

// A select waits for everything that it can; each event in turn happens.
//
// Spec: SE-03 (a losing case has no effect)
// Spec: SE-05 (losing registrations are removed first)
// Spec: SE-18 (a case can wait for anything)
// Spec: CH-47 (the end of a peer can be waited for)
func TestSelectOfEverySort(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		for won := range 6 {
			recv, send := coir.NewChan[int](0), coir.NewChan[string](0)
			gate := coir.NewChan[int](0)
			f := c.n.Go("ends", func(ctx context.Context) error {
				_, _ = gate.Recv(ctx)
				return nil
			})
			w, r := coir.Pipe[int](0)
			limit := time.Hour
			if won == 5 {
				limit = time.Millisecond
			}
			var v int
			var end error
			out := c.selects(recv.RecvCase(&v), send.SendCase("x"), f.DoneCase(&end), w.GoneCase(), r.GoneCase(),
				coir.After(limit))
			if won != 5 {
				waitFor(t, recv, 0, 1)
				waitFor(t, send, 1, 0)
			}
			switch won {
			case 0:
				_ = recv.TrySend(5)
			case 1:
				_, _ = send.TryRecv()
			case 2:
				gate.Close()
			case 3:
				r.Close()
			case 4:
				w.Close()
			}
			if o := c.outcome(out); o != (outcome{won, nil}) {
				t.Errorf("case %d happened: %+v", won, o)
			}
			waitFor(t, recv, 0, 0)
			waitFor(t, send, 0, 0)
			gate.Close()
			_ = f.Wait(context.Background())
			r.Close()
			w.Close()
		}
	})
}

// Spec: SE-18 (a case can wait for anything)
func TestZeroCaseNeverHappens(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		c.did(func(ctx context.Context) {
			ready := coir.NewChan[int](coir.Unbounded)
			for range 100 {
				if i, err := coir.Select(ctx, coir.Case{}, ready.SendCase(1), coir.Case{}); i != 1 || err != nil {
					t.Errorf("%d, %v", i, err)
				}
				if i, err := coir.SelectPriority(ctx, coir.Case{}, ready.RecvCase(nil)); i != 1 || err != nil {
					t.Errorf("%d, %v", i, err)
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

// Lists that are longer than a wake can name: the index is correct on both sides of that bound, for every sort of case,
// ready or waited for.
//
// Spec: SE-01 (a select completes one case)
// Spec: SE-02 (all cases claim through one word)
// Spec: SE-05 (losing registrations are removed first)
func TestSelectOfManyCases(t *testing.T) {
	const size = 1_000
	positions := []int{0, 1, park.MaxIndex - 1, park.MaxIndex, park.MaxIndex + 1, 700, size - 1}
	crews(t, func(t *testing.T, c *crew) {
		chans := make([]*coir.Chan[int], size)
		got := make([]int, size)
		cases := make([]coir.Case, size)
		for i := range chans {
			chans[i] = coir.NewChan[int](0)
			if i%2 == 0 {
				cases[i] = chans[i].RecvCase(&got[i])
			} else {
				cases[i] = chans[i].SendCase(i)
			}
		}
		meet := func(ctx context.Context, at int) {
			if at%2 == 0 {
				if err := chans[at].Send(ctx, at+5); err != nil {
					t.Error(err)
				}
			} else if v, err := chans[at].Recv(ctx); v != at || err != nil {
				t.Errorf("%d, %v", v, err)
			}
		}
		settled := func(at int, o outcome) {
			t.Helper()
			if o != (outcome{at, nil}) || at%2 == 0 && got[at] != at+5 {
				t.Errorf("case %d happened: %+v, received %d", at, o, got[at])
			}
			got[at] = 0
			for i, ch := range chans {
				if s := ch.Stats(); s.Send.Waiting+s.Recv.Waiting != 0 || got[i] != 0 {
					t.Fatalf("case %d has left something: received %d, %+v", i, got[i], s)
				}
			}
		}
		for _, at := range positions {
			c.do(func(ctx context.Context) { meet(ctx, at) })
			waitFor(t, chans[at], 1-at%2, at%2)
			o := c.outcome(c.selects(cases...))
			c.wait()
			settled(at, o)

			out := c.selects(cases...)
			waitFor(t, chans[size-1], 1, 0)
			c.did(func(ctx context.Context) { meet(ctx, at) })
			settled(at, c.outcome(out))
		}
		for range sized(5, 20, 500) { // two peers at the same time
			a, b := 2*rand.IntN(size/2), 2*rand.IntN(size/2)
			out := c.selects(cases...)
			waitFor(t, chans[size-1], 1, 0)
			var sent [2]error
			c.do(func(context.Context) { sent[0] = chans[a].TrySend(a + 5) })
			c.do(func(context.Context) { sent[1] = chans[b].TrySend(b + 5) })
			o := c.outcome(out)
			c.wait()
			if (sent[0] == nil) == (sent[1] == nil) {
				t.Fatalf("%d: %v, %d: %v", a, sent[0], b, sent[1])
			}
			if sent[0] == nil {
				settled(a, o)
			} else {
				settled(b, o)
			}
		}
		at := size - 2
		out := c.selects(cases...)
		waitFor(t, chans[size-1], 1, 0)
		chans[at].Close()
		if o := c.outcome(out); o.index != at || !errors.Is(o.err, coir.ErrClosed) {
			t.Errorf("closed: %+v", o)
		}
	})
}

// The same with the ends of fibers, and with channels between them.
//
// Spec: SE-02 (all cases claim through one word)
// Spec: SE-05 (losing registrations are removed first)
// Spec: SE-18 (a case can wait for anything)
func TestSelectOfManyFiberEnds(t *testing.T) {
	const size = 1_000
	crews(t, func(t *testing.T, c *crew) {
		gates := make([]*coir.Chan[int], size)
		errs := make([]error, size)
		cases := make([]coir.Case, size)
		never := coir.NewChan[int](0)
		for i := range cases {
			gates[i] = coir.NewChan[int](0)
			f := c.n.Go("ends", func(ctx context.Context) error {
				_, _ = gates[i].Recv(ctx)
				return nil
			}, coir.WithIndex(i))
			cases[i] = f.DoneCase(&errs[i])
		}
		cases[3], cases[size-4] = never.RecvCase(nil), never.SendCase(1)
		for _, at := range []int{0, park.MaxIndex - 1, park.MaxIndex, park.MaxIndex + 1, size - 1} {
			waitFor(t, gates[at], 0, 1)
			errs[at] = errA
			out := c.selects(cases...)
			waitFor(t, never, 1, 1)
			gates[at].Close()
			if o := c.outcome(out); o != (outcome{at, nil}) || errs[at] != nil {
				t.Errorf("fiber %d ended: %+v, %v", at, o, errs[at])
			}
			if o := c.outcome(c.selects(cases...)); o != (outcome{at, nil}) {
				t.Errorf("fiber %d has ended: %+v", at, o)
			}
			waitFor(t, never, 0, 0)
			cases[at] = coir.Case{}
		}
		for _, g := range gates {
			g.Close()
		}
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
					t.Errorf("%+v", o)
				}
				s := ch.Stats()
				if lost != p.dropped || s.Dropped-before.Dropped != uint64(min(1, p.dropped)) || s.Send.Waiting != 0 {
					t.Errorf("lost %d: %+v", lost, s)
				}
				before, lost = ch.Stats(), 0
				ready := coir.NewChan[int](coir.Unbounded)
				c.did(func(ctx context.Context) {
					if i, err := coir.SelectPriority(ctx, ready.SendCase(1), ch.SendCase(3)); i != 0 || err != nil {
						t.Errorf("%d, %v", i, err)
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
					t.Errorf("%+v", o)
				}
				if o := c.outcome(out); o != (outcome{1, nil}) || v != 9 {
					t.Errorf("%+v, %d", o, v)
				}
			})
		})
	}
}

// A completion that comes after the select has its winner stays with its sender. The select's fiber is woken once,
// after the decision, however many come.
//
// Spec: SE-04 (the winner is decided before a wake)
// Spec: SE-19 (a late completion stays with its sender)
// Spec: PK-13 (a wake of PARKING does not enqueue)
func TestSelectIsWokenOnce(t *testing.T) {
	var woken atomic.Int64
	var self atomic.Pointer[coir.Fiber]
	rt := on(t, coir.WithWorkers(2), coir.WithObserver(&hooked{
		onReady: func(f *coir.Fiber) {
			if f == self.Load() {
				woken.Add(1)
			}
		},
	}))
	err := rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for range 200 {
			chans := make([]*coir.Chan[int], 8)
			got := make([]int, len(chans))
			cases := make([]coir.Case, len(chans))
			for i := range chans {
				chans[i] = coir.NewChan[int](0)
				cases[i] = chans[i].RecvCase(&got[i])
			}
			won := -1
			woken.Store(0)
			f := n.Go("selects", func(ctx context.Context) (err error) {
				self.Store(coir.Self(ctx))
				won, err = coir.Select(ctx, cases...)
				return err
			})
			yieldUntil(ctx, t, "it waits", func() bool { return f.State() == coir.StateWaiting })
			sent := make([]bool, len(chans))
			if err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
				for i := range chans {
					n.Go("sends", func(context.Context) error {
						sent[i] = chans[i].TrySend(i+1) == nil
						return nil
					})
				}
				return f.Wait(ctx)
			}); err != nil {
				return err
			}
			for i := range chans {
				if sent[i] != (i == won) || (got[i] != 0) != (i == won) {
					t.Fatalf("case %d happened; sent %v, received %v", won, sent, got)
				}
			}
			if w := woken.Load(); w > 1 { // 0: it had not parked yet
				t.Fatalf("it was woken %d times", w)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A select that finds a case ready does not park, and registers nowhere.
//
// Spec: SE-06 (a ready case needs no registration)
func TestSelectThatIsReadyDoesNotPark(t *testing.T) {
	var parked atomic.Int64
	rt := on(t, coir.WithWorkers(1), coir.WithObserver(&hooked{onParked: func(*coir.Fiber) { parked.Add(1) }}))
	err := rt.Run(context.Background(), func(ctx context.Context, _ *coir.Nursery) error {
		a, b := coir.NewChan[int](0), coir.NewChan[int](1)
		heard := coir.NewSelector()
		heard.Add(a.SendCase(1)) // would be notified if a receiver waited
		defer heard.Close()
		before := parked.Load()
		for range 50 {
			if i, err := coir.Select(ctx, a.RecvCase(nil), b.SendCase(1)); i != 1 || err != nil {
				t.Errorf("%d, %v", i, err)
			}
			if i, err := coir.Select(ctx, a.RecvCase(nil), b.RecvCase(nil)); i != 1 || err != nil {
				t.Errorf("%d, %v", i, err)
			}
		}
		if n := parked.Load() - before; n != 0 {
			t.Errorf("it parked %d times", n)
		}
		if a.Stats().Sent != 0 {
			t.Error("it met a selector")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// While a select waits nothing is locked: all its channels can be used.
//
// Spec: SE-13 (no channel lock is held while waiting)
func TestSelectHoldsNothingWhileItWaits(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		a, full, stop := coir.NewChan[int](0), coir.NewChan[int](2), coir.NewChan[int](0)
		_, _ = full.TrySend(1), full.TrySend(2)
		out := c.selects(stop.RecvCase(nil), full.SendCase(3), stop.RecvCase(nil), coir.After(time.Hour))
		waitFor(t, full, 1, 0)
		if err := full.TrySend(9); !errors.Is(err, coir.ErrWouldBlock) {
			t.Error(err)
		}
		if err := a.TrySend(1); !errors.Is(err, coir.ErrWouldBlock) {
			t.Error(err)
		}
		if i, err := coir.TrySelect(full.SendCase(1), stop.RecvCase(nil)); i != -1 {
			t.Errorf("%d, %v", i, err)
		}
		if full.Len() != 2 || stop.Len() != 0 {
			t.Errorf("%d, %d", full.Len(), stop.Len())
		}
		stop.Close()
		if o := c.outcome(out); !errors.Is(o.err, coir.ErrClosed) || o.index != 0 && o.index != 2 {
			t.Errorf("%+v", o)
		}
	})
}

// A value sent through a select may be a pointer, or hold one: what it points to lives on after the sender's function
// has returned.
//
// Spec: SE-14 (a message goes directly, under the locks)
// Spec: SE-20 (up to 8 cases lock without allocating)
func TestSelectSendsWhatAValuePointsTo(t *testing.T) {
	type boxed struct{ p *[4]int }
	crews(t, func(t *testing.T, c *crew) {
		pointers, boxes := coir.NewChan[*[4]int](1), coir.NewChan[boxed](1)
		words, slices := coir.NewChan[string](1), coir.NewChan[[]byte](1)
		anything, calls := coir.NewChan[any](1), coir.NewChan[func() int](1)
		c.did(func(ctx context.Context) {
			for i := range 20 {
				sendsLocals(ctx, i, pointers, boxes.SendCase(boxed{&[4]int{i, i, i, i}}), words, slices, anything, calls)
				overwriteStack(30)
				p, _ := pointers.TryRecv()
				b, _ := boxes.TryRecv()
				w, _ := words.TryRecv()
				s, _ := slices.TryRecv()
				a, _ := anything.TryRecv()
				f, _ := calls.TryRecv()
				want := [4]int{i, i, i, i}
				if *p != want || *b.p != want || w != "word"+string(rune('a'+i)) || s[0] != byte(i) || *a.(*[4]int) != want || f() != i {
					t.Errorf("round %d: %v, %v, %q, %v, %v, %d", i, *p, *b.p, w, s, a, f())
					return
				}
			}
		})
	})
}

//go:noinline
func sendsLocals(ctx context.Context, i int, pointers *coir.Chan[*[4]int], box coir.Case, words *coir.Chan[string],
	slices *coir.Chan[[]byte], anything *coir.Chan[any], calls *coir.Chan[func() int],
) {
	x, y, z := [4]int{i, i, i, i}, [4]int{i, i, i, i}, i
	text := []byte{'w', 'o', 'r', 'd', byte('a' + i)}
	_, _ = coir.Select(ctx, pointers.SendCase(&x))
	_, _ = coir.TrySelect(box)
	_, _ = coir.Select(ctx, words.SendCase(string(text)))
	_, _ = coir.SelectPriority(ctx, slices.SendCase([]byte{byte(i), 2, 3}))
	_, _ = coir.TrySelect(anything.SendCase(&y))
	_, _ = coir.Select(ctx, calls.SendCase(func() int { return z }))
}

// overwriteStack uses the stack below its caller.
//
//go:noinline
func overwriteStack(depth int) int {
	var a [32]int
	for i := range a {
		a[i] = -depth
	}
	if depth == 0 {
		return a[3]
	}
	return overwriteStack(depth-1) + a[depth%len(a)]
}

// The value of a losing send case is not kept alive, while its fiber or goroutine lives on and while it waits again.
//
// Spec: SE-05 (losing registrations are removed first)
func TestSelectKeepsNothingOfItsCases(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		type big struct{ _ [1 << 10]byte }
		a, b, stop := coir.NewChan[*big](0), coir.NewChan[*big](0), coir.NewChan[int](0)
		refs := make(chan weak.Pointer[big], 3)
		c.do(func(ctx context.Context) {
			func() {
				lost, sent := new(big), new(big)
				refs <- weak.Make(lost)
				refs <- weak.Make(sent)
				if i, err := coir.Select(ctx, b.SendCase(lost), a.SendCase(sent), b.SendCase(lost)); i != 1 || err != nil {
					t.Errorf("%d, %v", i, err)
				}
				var got *big
				if i, err := coir.Select(ctx, b.RecvCase(nil), a.RecvCase(&got)); i != 1 || err != nil {
					t.Errorf("%d, %v", i, err)
				}
				refs <- weak.Make(got)
			}()
			overwriteStack(20)
			_, _ = stop.Recv(ctx)
		})
		waitFor(t, b, 2, 0)
		if _, err := a.TryRecv(); err != nil {
			t.Error(err)
		}
		waitFor(t, b, 0, 1)
		if err := a.TrySend(new(big)); err != nil {
			t.Error(err)
		}
		waitFor(t, stop, 0, 1)
		for range 3 {
			p := <-refs
			eventually(t, "what was in a case is collected", func() bool {
				runtime.GC()
				return p.Value() == nil
			})
		}
		stop.Close()
	})
}

// A child under a limit of one place that selects on the end of another child gives up its place, or the other would
// never start. It has the place again when it goes on.
//
// Spec: SE-18 (a case can wait for anything)
// Spec: NU-14 (Limit bounds the children that run)
// Spec: NU-15 (a child that waits for children gives its place up)
func TestSelectOnAFiberEndGivesThePlaceUp(t *testing.T) {
	var running, most atomic.Int64
	enter := func() {
		n := running.Add(1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
	}
	leave := func() { running.Add(-1) }
	spin := func(ctx context.Context) {
		for range 20 {
			_ = coir.Yield(ctx)
		}
	}
	rt := on(t, coir.WithWorkers(4))
	ran := goes(func() {
		err := rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
			n.Limit(1)
			for range 20 {
				n.Go("parent", func(ctx context.Context) error {
					enter()
					defer leave()
					never, closed := coir.NewChan[int](0), coir.NewChan[int](0)
					child := n.Go("child", func(ctx context.Context) error {
						enter()
						defer leave()
						spin(ctx)
						closed.Close()
						spin(ctx)
						return nil
					})
					leave()
					i, err := coir.Select(ctx, child.DoneCase(nil), never.RecvCase(nil), closed.RecvCase(nil))
					enter()
					if i != 0 && i != 2 || i == 0 && err != nil {
						t.Errorf("%d, %v", i, err)
					}
					spin(ctx)
					sel := coir.NewSelector()
					defer sel.Close()
					sel.Add(n.Go("child", func(ctx context.Context) error {
						enter()
						defer leave()
						spin(ctx)
						return nil
					}).DoneCase(nil))
					leave()
					i, err = sel.Wait(ctx)
					enter()
					if i != 0 || err != nil {
						t.Errorf("the selector: %d, %v", i, err)
					}
					spin(ctx)
					return nil
				})
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	within(t, time.Minute, "all children ended", ran)
	if most.Load() > 1 {
		t.Errorf("%d ran at once", most.Load())
	}
}

// Spec: SE-20 (up to 8 cases lock without allocating)
// Spec: CH-49 (a blocking operation allocates nothing)
func TestSelectAllocatesNothing(t *testing.T) {
	if raceEnabled || invariant.Enabled {
		t.Skip("the checks allocate")
	}
	if hidesNothing() {
		t.Skip("in this build the cases of a select are allocated")
	}
	crews(t, func(t *testing.T, c *crew) {
		var chans, back [8]*coir.Chan[int]
		for i := range chans {
			chans[i], back[i] = coir.NewChan[int](0), coir.NewChan[int](0)
		}
		over, ready := coir.NewChan[string](0), coir.NewChan[[3]int](1)
		defer over.Close()
		rendezvous := func(ctx context.Context, i int) int { // a value that the other side waits for, or soon will
			var a, b, v int
			won, _ := coir.Select(ctx, chans[0].RecvCase(&a), chans[1].RecvCase(&b), chans[2].RecvCase(&v), chans[3].RecvCase(&v),
				back[0].SendCase(i), back[1].SendCase(i+1000), over.RecvCase(nil), coir.After(time.Hour))
			return won
		}
		c.do(func(ctx context.Context) {
			ctx = uncancelled(ctx)
			var v int
			for i := 0; ; i++ {
				won, _ := coir.Select(ctx, chans[i%4].SendCase(i), chans[3-i%4].SendCase(i+1000), back[0].RecvCase(&v),
					back[1].RecvCase(&v), over.RecvCase(nil))
				if won == 4 {
					return
				}
			}
		})
		c.did(func(ctx context.Context) {
			ctx = uncancelled(ctx)
			for i := range 1000 {
				rendezvous(ctx, i)
			}
			if n := testing.AllocsPerRun(2000, func() { rendezvous(ctx, 5000) }); n != 0 {
				t.Errorf("a select that meets another: %v allocations", n)
			}
			if n := testing.AllocsPerRun(200, func() {
				var got [3]int
				_, _ = coir.Select(ctx, ready.SendCase([3]int{1, 2, 3}), over.RecvCase(nil))
				_, _ = coir.SelectPriority(ctx, over.RecvCase(nil), ready.RecvCase(&got))
				_, _ = coir.TrySelect(over.RecvCase(nil), ready.RecvCase(&got))
			}); n != 0 {
				t.Errorf("a select that is ready: %v allocations", n)
			}
		})
	})
}

// uncancelled returns a fiber's own context, or for a goroutine one that is never cancelled: a goroutine makes a
// channel for a wait that can be cancelled.
func uncancelled(ctx context.Context) context.Context {
	if coir.Self(ctx) == nil {
		return context.Background()
	}
	return ctx
}

// hidesNothing reports whether this is a build without the assembly that keeps the cases of a select on the stack.
func hidesNothing() bool {
	return testing.AllocsPerRun(10, func() {
		var a [4]int
		keep(hide.Pointer(unsafe.Pointer(&a)))
		keep(nil)
	}) != 0
}

// keep stores a pointer, so that the compiler allocates what it sees p point to. It returns the previous one.
//
//go:noinline
func keep(p unsafe.Pointer) (was unsafe.Pointer) {
	was, kept = kept, p
	return was
}

var kept unsafe.Pointer

// ---------------------------------------------------------------------------------------------------------------------

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
