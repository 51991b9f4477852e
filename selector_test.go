package coir_test

// Selector: cases that stay registered. It keeps the promises of select (one receiver for each value, no trace of what
// did not happen). In addition, cases come and go during a wait, nothing happens after Remove, ready cases are served
// in turn, and many cases cost no more than few.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/invariant"
)

// waits makes a member wait once.
func (c *crew) waits(sel *coir.Selector) <-chan outcome {
	out := make(chan outcome, 1)
	c.do(func(ctx context.Context) {
		i, err := sel.Wait(ctx)
		out <- outcome{i, err}
	})
	return out
}

// quiet fails if the selector reports anything.
func (c *crew) quiet(sel *coir.Selector) {
	c.t.Helper()
	var o outcome
	c.did(func(ctx context.Context) {
		ctx, cancel := coir.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		o.index, o.err = sel.Wait(ctx)
	})
	if o.index != -1 || !errors.Is(o.err, coir.ErrTimeout) {
		c.t.Errorf("the selector reports %+v", o)
	}
}

// A case reports event after event, until its channel is closed and holds no more values.
//
// Spec: SE-21 (a Selector's events do not cost its size)
// Spec: SE-23 (a registration stays until used up)
func TestSelectorKeepsItsCases(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		sel := coir.NewSelector()
		a, b := coir.NewChan[int](0), coir.NewChan[string](4)
		var v int
		var s string
		if i, j := sel.Add(a.RecvCase(&v)), sel.Add(b.RecvCase(&s)); i != 0 || j != 1 || sel.Len() != 2 {
			t.Fatalf("numbers %d and %d, %d cases", i, j, sel.Len())
		}
		c.quiet(sel)
		for i := range 50 {
			out := c.waits(sel)
			c.did(func(ctx context.Context) { _ = a.Send(ctx, i) })
			if o := c.outcome(out); o != (outcome{0, nil}) || v != i {
				t.Fatalf("round %d: %+v, %d", i, o, v)
			}
			if err := b.TrySend(fmt.Sprint(i)); err != nil {
				t.Fatal(err)
			}
			if o := c.outcome(c.waits(sel)); o != (outcome{1, nil}) || s != fmt.Sprint(i) {
				t.Fatalf("round %d: Wait returned %+v and received %q, want {1 <nil>} and %q", i, o, s, fmt.Sprint(i))
			}
		}
		_, _ = b.TrySend("x"), b.TrySend("y")
		b.Close()
		for _, want := range []string{"x", "y"} {
			if o := c.outcome(c.waits(sel)); o != (outcome{1, nil}) || s != want {
				t.Errorf("Wait returned %+v and received %q, want {1 <nil>} and %q", o, s, want)
			}
		}
		if o := c.outcome(c.waits(sel)); o.index != 1 || !errors.Is(o.err, coir.ErrClosed) || sel.Len() != 1 {
			t.Errorf("closed: %+v, %d cases", o, sel.Len())
		}
		if sel.Remove(1) {
			t.Error("a case that was used up is removed")
		}
		c.quiet(sel)
		if i := sel.Add(b.RecvCase(&s)); i != 2 {
			t.Errorf("a number is used again: %d", i)
		}
		if o := c.outcome(c.waits(sel)); o.index != 2 || !errors.Is(o.err, coir.ErrClosed) {
			t.Errorf("closed before it was added: %+v", o)
		}
		a.Abort(errA)
		if o := c.outcome(c.waits(sel)); o.index != 0 || !errors.Is(o.err, errA) || sel.Len() != 0 {
			t.Errorf("aborted: %+v, %d cases", o, sel.Len())
		}
	})
}

// A send, a time and an end happen once.
//
// Spec: SE-18 (a case can wait for anything)
// Spec: SE-23 (a registration stays until used up)
func TestSelectorDoesSomeThingsOnce(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		sel := coir.NewSelector()
		ch := coir.NewChan[int](2)
		sel.Add(ch.SendCase(5))
		if o := c.outcome(c.waits(sel)); o != (outcome{0, nil}) || sel.Len() != 0 || ch.Len() != 1 {
			t.Errorf("a send: %+v, %d cases, %d in the channel", o, sel.Len(), ch.Len())
		}
		_ = ch.TrySend(6)
		sel.Add(ch.SendCase(7)) // there is no room
		c.quiet(sel)
		out := c.waits(sel)
		if v, err := ch.TryRecv(); v != 5 || err != nil {
			t.Errorf("TryRecv returned %d, %v, want 5, nil", v, err)
		}
		if o := c.outcome(out); o != (outcome{1, nil}) || ch.Len() != 2 {
			t.Errorf("a send that waited: %+v, %d in the channel", o, ch.Len())
		}
		ch.Close()
		sel.Add(ch.SendCase(8))
		if o := c.outcome(c.waits(sel)); o.index != 2 || !errors.Is(o.err, coir.ErrClosed) || sel.Len() != 0 {
			t.Errorf("a send to what is closed: %+v, %d cases", o, sel.Len())
		}

		start := time.Now()
		c.did(func(context.Context) {
			sel.Add(coir.After(time.Hour))
			sel.Add(coir.After(5 * time.Millisecond))
			sel.Add(coir.After(time.Millisecond))
			sel.Add(coir.After(-1))
		})
		late := time.Since(start) >= time.Millisecond // then one may have fired before the next was added
		var times []int
		for range 3 {
			o := c.outcome(c.waits(sel))
			if o.err != nil {
				t.Errorf("times: %+v", o)
			}
			times = append(times, o.index)
		}
		if late {
			slices.Sort(times)
			slices.Reverse(times)
		}
		if !slices.Equal(times, []int{6, 5, 4}) {
			t.Errorf("times: %v, want 6, 5 and 4", times)
		}
		if d := time.Since(start); d < 5*time.Millisecond || sel.Len() != 1 {
			t.Errorf("after %v, %d cases", d, sel.Len())
		}
		if !sel.Remove(3) || sel.Len() != 0 {
			t.Errorf("%d cases", sel.Len())
		}

		gate := coir.NewChan[int](0)
		f := c.n.Go("ends", func(ctx context.Context) error {
			_, _ = gate.Recv(ctx)
			return nil
		})
		w, r := coir.Pipe[int](0)
		end := errA
		sel.Add(f.DoneCase(&end))
		sel.Add(w.GoneCase())
		sel.Add(coir.Case{})
		c.quiet(sel)
		out = c.waits(sel)
		gate.Close()
		if o := c.outcome(out); o != (outcome{7, nil}) || end != nil {
			t.Errorf("the end of a fiber: %+v, %v", o, end)
		}
		out = c.waits(sel)
		r.Close()
		w.Close()
		if o := c.outcome(out); o != (outcome{8, nil}) {
			t.Errorf("the end of a reader: %+v", o)
		}
		end = errA
		sel.Add(f.DoneCase(&end))
		sel.Add(w.GoneCase())
		for _, want := range []int{10, 11} {
			if o := c.outcome(c.waits(sel)); o != (outcome{want, nil}) {
				t.Errorf("what has ended: %+v", o)
			}
		}
		c.quiet(sel)
		if sel.Len() != 1 || end != nil {
			t.Errorf("%d cases; the fiber's error: %v", sel.Len(), end)
		}
	})
}

// Cases come and go while another member waits.
//
// Spec: SE-21 (a Selector's events do not cost its size)
// Spec: SE-24 (a removed case does not happen)
func TestSelectorAddAndRemoveWhileAnotherWaits(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		sel := coir.NewSelector()
		a, b := coir.NewChan[int](1), coir.NewChan[int](1)
		var v int
		for round := range 100 {
			first := sel.Add(a.RecvCase(&v))
			out := c.waits(sel)
			for range rand.IntN(3) {
				runtime.Gosched()
			}
			if !sel.Remove(first) || sel.Remove(first) || sel.Remove(-1) || sel.Remove(1<<30) {
				t.Fatal("Remove reports something else than whether the case was there")
			}
			if err := a.TrySend(1); err != nil {
				t.Fatal(err)
			}
			var second int
			if round%2 == 0 {
				second = sel.Add(b.RecvCase(&v))
				_ = b.TrySend(2)
			} else {
				_ = b.TrySend(2)
				second = sel.Add(b.RecvCase(&v))
			}
			if o := c.outcome(out); o != (outcome{second, nil}) || v != 2 {
				t.Fatalf("round %d: %+v, %d; want case %d", round, o, v, second)
			}
			if got, err := a.TryRecv(); got != 1 || err != nil {
				t.Fatalf("after Remove: %d, %v", got, err)
			}
			sel.Remove(second)
		}
	})
}

// Once Remove has returned the case does not happen. If Remove reports that the case was there, a send has not
// happened; if not, it has, and Wait reports it.
//
// Spec: SE-24 (a removed case does not happen)
func TestNothingHappensAfterRemove(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		rounds := sized(500, 5_000, 200_000)
		sel := coir.NewSelector()
		stop := coir.NewChan[int](0)
		last := sel.Add(stop.RecvCase(nil))
		reported := make(map[int]int) // how often
		c.do(func(ctx context.Context) {
			for {
				i, err := sel.Wait(ctx)
				if i == last || i < 0 {
					return
				}
				if err != nil {
					t.Errorf("case %d: %v", i, err)
				}
				reported[i]++
			}
		})
		happened := make(map[int]int)
		c.did(func(context.Context) {
			for range rounds {
				ch := coir.NewChan[int](2)
				id := sel.Add(ch.SendCase(1))
				for range rand.IntN(20) {
					runtime.Gosched()
				}
				there := sel.Remove(id)
				sent := ch.Len()
				if there != (sent == 0) {
					t.Errorf("Remove reports %v, and the channel holds %d values", there, sent)
					return
				}
				happened[id] = sent
				id = sel.Add(ch.RecvCase(nil))
				_ = ch.TrySend(2)
				for range rand.IntN(20) {
					runtime.Gosched()
				}
				if !sel.Remove(id) {
					t.Error("a receive is used up, and the channel is open")
					return
				}
				left := ch.Len()
				happened[id] = sent + 1 - left
				if left < 2 {
					_ = ch.TrySend(3)
					left++
				}
				runtime.Gosched()
				if ch.Len() != left {
					t.Error("received after Remove")
					return
				}
			}
		})
		stop.Close()
		c.wait()
		for id, n := range happened {
			if reported[id] != n {
				t.Fatalf("case %d happened %d times, and was reported %d times", id, n, reported[id])
			}
		}
	})
}

// Cases that are always ready are served in turn.
//
// Spec: SE-21 (a Selector's events do not cost its size)
func TestSelectorServesInTurn(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		sel := coir.NewSelector()
		const size, rounds = 8, 100
		got := make([]int, size)
		for i := range size {
			ch := coir.NewChan[int](coir.Unbounded)
			for v := range rounds {
				_ = ch.TrySend(v)
			}
			sel.Add(ch.RecvCase(&got[i]))
		}
		c.did(func(ctx context.Context) {
			for round := range rounds {
				var served [size]bool
				for range size {
					i, err := sel.Wait(ctx)
					if err != nil || served[i] || got[i] != round {
						t.Errorf("round %d: case %d, %v, received %d, served before: %v", round, i, err, got[i], served)
						return
					}
					served[i] = true
				}
			}
		})
	})
}

// A channel with several selectors, and a receiver: each value goes to one of them.
//
// Spec: SE-21 (a Selector's events do not cost its size)
// Spec: SE-22 (a Selector tries again before it reports)
func TestSeveralSelectorsOnOneChannel(t *testing.T) {
	for _, capacity := range []int{0, 1, 8} {
		crews(t, func(t *testing.T, c *crew) {
			total := sized(500, 5_000, 200_000)
			ch := coir.NewChan[int](capacity)
			seen := make([]atomic.Int32, total)
			for range 3 {
				sel := coir.NewSelector()
				var a, b int
				first := sel.Add(ch.RecvCase(&a))
				sel.Add(ch.RecvCase(&b))
				c.do(func(ctx context.Context) {
					defer sel.Clear()
					for sel.Len() > 0 {
						i, err := sel.Wait(ctx)
						switch {
						case errors.Is(err, coir.ErrClosed):
						case err != nil:
							t.Error(err)
							return
						case i == first:
							seen[a].Add(1)
						default:
							seen[b].Add(1)
						}
					}
				})
			}
			c.do(func(ctx context.Context) {
				for v, err := range ch.All(ctx) {
					if err != nil {
						return
					}
					seen[v].Add(1)
				}
			})
			c.do(func(ctx context.Context) {
				for v := range total {
					if err := ch.Send(ctx, v); err != nil {
						t.Error(err)
					}
				}
				ch.Close()
			})
			c.wait()
			for v := range seen {
				if n := seen[v].Load(); n != 1 {
					t.Fatalf("value %d was received %d times", v, n)
				}
			}
		})
	}
}

// Spec: SE-21 (a Selector's events do not cost its size)
func TestSelectorWithManyCases(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		const size = 10_000
		sel := coir.NewSelector()
		chans, got := make([]*coir.Chan[int], size), make([]int, size)
		for i := range chans {
			chans[i] = coir.NewChan[int](1)
			sel.Add(chans[i].RecvCase(&got[i]))
		}
		c.do(func(ctx context.Context) {
			for _, i := range rand.Perm(size) {
				if err := chans[i].Send(ctx, i+1); err != nil {
					t.Error(err)
				}
			}
		})
		c.did(func(ctx context.Context) {
			seen := make([]bool, size)
			for range size {
				i, err := sel.Wait(ctx)
				if err != nil || seen[i] || got[i] != i+1 {
					t.Errorf("case %d, %v: received %d, seen before %v", i, err, got[i], seen[i])
					return
				}
				seen[i] = true
			}
		})
		sel.Clear()
		if sel.Len() != 0 {
			t.Errorf("%d cases after Close", sel.Len())
		}
	})
}

// An event among a thousand times as many cases takes about as long: a scan would take a thousand times as long.
//
// Spec: SE-21 (a Selector's events do not cost its size)
func TestSelectorEventCostsTheSame(t *testing.T) {
	onOne(t, func(ctx context.Context, _ *coir.Nursery) error {
		cost := func(size int) time.Duration {
			sel := coir.NewSelector()
			defer sel.Clear()
			chans := make([]*coir.Chan[int], size)
			for i := range chans {
				chans[i] = coir.NewChan[int](1)
				sel.Add(chans[i].RecvCase(nil))
			}
			best := time.Hour
			for range 10 {
				start := time.Now()
				for range 500 {
					i := rand.IntN(size)
					_ = chans[i].TrySend(1)
					if got, err := sel.Wait(ctx); got != i || err != nil {
						t.Errorf("Wait returned %d, %v, want %d, nil", got, err, i)
					}
				}
				best = min(best, time.Since(start))
			}
			return best
		}
		few, many := cost(16), cost(16_000)
		t.Logf("500 events: %v among 16 cases, %v among 16,000", few, many)
		if many > 50*few {
			t.Errorf("500 events take %v among 16 cases, and %v among 16,000", few, many)
		}
		return nil
	}, nil)
}

func TestSelectorHasOneWaiter(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		for range 50 {
			sel := coir.NewSelector()
			outs := make(chan outcome, 2)
			for range 2 {
				c.do(func(ctx context.Context) {
					i, err := sel.Wait(ctx)
					outs <- outcome{i, err}
				})
			}
			o := c.outcome(outs)
			if o.index != -1 || o.err == nil || !strings.Contains(o.err.Error(), "one waiter at a time") {
				t.Fatalf("the second: %+v", o)
			}
			sel.Add(coir.After(0))
			if o := c.outcome(outs); o != (outcome{0, nil}) {
				t.Fatalf("the first: %+v", o)
			}
		}
	})
}

// A wait that is cancelled takes nothing: the next wait gets what comes.
//
// Spec: SE-11 (a cancel ends a select)
// Spec: SE-21 (a Selector's events do not cost its size)
func TestSelectorWaitIsCancelled(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		sel := coir.NewSelector()
		ch := coir.NewChan[int](1)
		var v int
		sel.Add(ch.RecvCase(&v))
		for round := range sized(50, 300, 20_000) {
			scope := coir.WithCancelCause
			if round%2 == 1 {
				scope = context.WithCancelCause
			}
			cancels, out := make(chan context.CancelCauseFunc, 1), make(chan outcome, 1)
			c.do(func(ctx context.Context) {
				ctx, cancel := scope(ctx)
				defer cancel(nil)
				cancels <- cancel
				i, err := sel.Wait(ctx)
				out <- outcome{i, err}
			})
			cancel := <-cancels
			for range rand.IntN(3) {
				runtime.Gosched()
			}
			sent := round%3 != 0
			if sent {
				go func() { _ = ch.TrySend(round) }()
			}
			cancel(errA)
			o := c.outcome(out)
			if o.index == -1 && isCancelFor(o.err, errA) {
				if !sent {
					continue
				}
				o = c.outcome(c.waits(sel))
			}
			if o != (outcome{0, nil}) || v != round {
				t.Fatalf("round %d: %+v, %d", round, o, v)
			}
		}
		_ = ch.TrySend(7)
		over, cancel := context.WithCancel(context.Background())
		cancel()
		if i, err := sel.Wait(over); i != -1 || !errors.Is(err, context.Canceled) || ch.Len() != 1 {
			t.Errorf("a context that is over: %d, %v, %d left", i, err, ch.Len())
		}
	})
}

// A case that is no longer ready is not reported: another receiver took the value, or another sender the room.
//
// Spec: SE-22 (a Selector tries again before it reports)
func TestSelectorTriesAgain(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		sel := coir.NewSelector()
		values, room := coir.NewChan[int](1), coir.NewChan[int](1)
		_ = room.TrySend(1)
		v := 7
		sel.Add(values.RecvCase(&v))
		sel.Add(room.SendCase(2))
		for range 20 {
			_ = values.TrySend(3)
			_, _ = values.TryRecv()
			_, _ = room.TryRecv()
			_ = room.TrySend(4)
		}
		c.quiet(sel)
		if v != 7 || values.Stats().Received != 20 || room.Stats().Sent != 21 || sel.Len() != 2 {
			t.Errorf("received %d, and %d in all; sent %d; %d cases are left; want 7, 20, 21, 2",
				v, values.Stats().Received, room.Stats().Sent, sel.Len())
		}
		out := make(chan outcome, 1) // a waiting operation comes first
		c.do(func(ctx context.Context) {
			v, err := values.Recv(ctx)
			out <- outcome{v, err}
		})
		waitFor(t, values, 0, 1)
		_ = values.TrySend(5)
		if o := c.outcome(out); o != (outcome{5, nil}) {
			t.Errorf("the operation returned %+v, want {5 <nil>}", o)
		}
		c.quiet(sel)
	})
}

// On a channel without a buffer a case of a selector meets waiting operations and selects, but no Try operation and no
// other selector.
//
// Spec: SE-21 (a Selector's events do not cost its size)
func TestSelectorAndRendezvous(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		sel, other := coir.NewSelector(), coir.NewSelector()
		in, out := coir.NewChan[int](0), coir.NewChan[int](0)
		var v int
		recv := sel.Add(in.RecvCase(&v))
		if err := in.TrySend(1); !errors.Is(err, coir.ErrWouldBlock) {
			t.Errorf("TrySend: %v", err)
		}
		other.Add(in.SendCase(1))
		c.quiet(sel)
		c.quiet(other)
		other.Clear()
		for i := range 10 {
			c.do(func(ctx context.Context) {
				if err := in.Send(ctx, i); err != nil {
					t.Error(err)
				}
			})
			waitFor(t, in, i+1, 0)
		}
		for i := range 10 {
			if o := c.outcome(c.waits(sel)); o != (outcome{recv, nil}) || v != i {
				t.Errorf("Wait returned %+v and received %d, want %d", o, v, i)
			}
		}
		c.wait()
		never := coir.NewChan[int](0)
		selected := c.selects(never.RecvCase(nil), in.SendCase(11))
		if o := c.outcome(c.waits(sel)); o != (outcome{recv, nil}) || v != 11 {
			t.Errorf("Wait returned %+v and received %d, want {%d <nil>} and 11", o, v, recv)
		}
		if o := c.outcome(selected); o != (outcome{1, nil}) {
			t.Errorf("the select: %+v", o)
		}

		send := sel.Add(out.SendCase(12))
		if _, err := out.TryRecv(); !errors.Is(err, coir.ErrWouldBlock) {
			t.Errorf("TryRecv: %v", err)
		}
		waits := c.waits(sel)
		c.did(func(ctx context.Context) {
			if v, err := out.Recv(ctx); v != 12 || err != nil {
				t.Errorf("Recv returned %d, %v, want 12, nil", v, err)
			}
		})
		if o := c.outcome(waits); o != (outcome{send, nil}) {
			t.Errorf("the operation returned %+v, want the index of the send, no error", o)
		}
		send = sel.Add(out.SendCase(13))
		selected = c.selects(never.RecvCase(nil), out.RecvCase(&v))
		if o := c.outcome(c.waits(sel)); o != (outcome{send, nil}) {
			t.Errorf("the operation returned %+v, want the index of the send, no error", o)
		}
		if o := c.outcome(selected); o != (outcome{1, nil}) || v != 13 {
			t.Errorf("the select: %+v, %d", o, v)
		}
		// A sender that was admitted before Close is received from after it.
		c.do(func(ctx context.Context) { _ = in.Send(ctx, 14) })
		waitFor(t, in, 1, 0)
		in.Close()
		if o := c.outcome(c.waits(sel)); o != (outcome{recv, nil}) || v != 14 {
			t.Errorf("Wait returned %+v and received %d, want {%d <nil>} and 14", o, v, recv)
		}
		if o := c.outcome(c.waits(sel)); o.index != recv || !errors.Is(o.err, coir.ErrClosed) {
			t.Errorf("the operation returned %+v, want the index of the receive, coir.ErrClosed", o)
		}
	})
}

// Sends to channels on which a sender never waits happen immediately.
//
// Spec: CH-17 (the overflow policy decides a full send)
// Spec: CH-58 (a failing overflow is ErrWouldBlock)
// Spec: SE-23 (a registration stays until used up)
func TestSelectorSendsByPolicy(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		for _, p := range []coir.OverflowPolicy{coir.OverflowDropOldest, coir.OverflowDropNewest, coir.OverflowFail} {
			lost := 0
			ch := coir.NewChan[int](1, coir.WithOverflow(p), coir.OnUndelivered(func(v int) { lost = v }))
			_ = ch.TrySend(1)
			sel := coir.NewSelector()
			sel.Add(ch.SendCase(2))
			o := c.outcome(c.waits(sel))
			v, _ := ch.TryRecv()
			got := [2]int{v, lost}
			want := map[coir.OverflowPolicy][2]int{
				coir.OverflowDropOldest: {2, 1}, coir.OverflowDropNewest: {1, 2}, coir.OverflowFail: {1, 0},
			}[p]
			fails := errors.Is(o.err, coir.ErrWouldBlock)
			if o.index != 0 || got != want || fails != (p == coir.OverflowFail) || sel.Len() != 0 {
				t.Errorf("%v: %+v, kept and lost %v, want %v; %d cases", p, o, got, want, sel.Len())
			}
		}
	})
}

// Spec: SE-24 (a removed case does not happen)
func TestSelectorClose(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		sel := coir.NewSelector()
		chans := make([]*coir.Chan[int], 20)
		for i := range chans {
			chans[i] = coir.NewChan[int](1)
			sel.Add(chans[i].RecvCase(nil))
			if i%2 == 0 {
				_ = chans[i].TrySend(1)
			}
		}
		f := c.n.Go("ends", func(context.Context) error { return nil })
		sel.Add(f.DoneCase(nil))
		sel.Add(coir.After(0))
		sel.Add(coir.After(time.Hour))
		sel.Clear()
		sel.Clear()
		if sel.Len() != 0 {
			t.Errorf("%d cases", sel.Len())
		}
		for i, ch := range chans {
			if i%2 == 1 {
				_ = ch.TrySend(1)
			}
		}
		c.quiet(sel)
		for i, ch := range chans {
			if ch.Len() != 1 {
				t.Errorf("channel %d holds %d", i, ch.Len())
			}
		}
		id := sel.Add(chans[0].RecvCase(nil))
		if o := c.outcome(c.waits(sel)); o != (outcome{id, nil}) || id != len(chans)+3 {
			t.Errorf("used again: case %d, %+v", id, o)
		}
	})
}

// Cases are added while others are removed, all of them together by Close. Cases of another selector on the same
// channels stay.
//
// Spec: SE-21 (a Selector's events do not cost its size)
func TestSelectorAddAgainstClose(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		chans := make([]*coir.Chan[int], 4)
		keeper, sel := coir.NewSelector(), coir.NewSelector()
		for i := range chans {
			chans[i] = coir.NewChan[int](1)
		}
		gate := coir.NewChan[int](0)
		f := c.n.Go("ends", func(ctx context.Context) error {
			_, _ = gate.Recv(ctx)
			return nil
		})
		for i := range chans {
			keeper.Add(chans[i].RecvCase(nil))
		}
		rounds := sized(500, 5_000, 200_000)
		c.do(func(ctx context.Context) {
			for i := range rounds {
				sel.Add(chans[i%len(chans)].RecvCase(nil))
				sel.Add(coir.After(time.Hour))
				sel.Add(coir.NewChan[int](1).SendCase(1))
				sel.Add(f.DoneCase(nil))
				breathe(ctx)
			}
		})
		for range 2 {
			c.do(func(ctx context.Context) {
				for id := range rounds {
					sel.Remove(4 * id) // maybe one that is being added
					if id%8 == 0 {
						sel.Clear()
					}
					breathe(ctx)
				}
			})
		}
		c.wait()
		sel.Clear()
		gate.Close()
		for i, ch := range chans {
			_ = ch.TrySend(1)
			if o, err := keeper.Wait(context.Background()); o != i || err != nil {
				t.Errorf("channel %d: %d, %v", i, o, err)
			}
		}
		keeper.Clear()
	})
}

// A removed case keeps nothing alive, even if it was ready and nothing waits.
//
// Spec: SE-24 (a removed case does not happen)
func TestSelectorKeepsNothingAfterRemove(t *testing.T) {
	type big struct{ _ [1 << 10]byte }
	sel := coir.NewSelector()
	ch := coir.NewChan[*big](1)
	full := coir.NewChan[*big](1)
	_ = full.TrySend(nil)
	var refs []weak.Pointer[big]
	for _, c := range []*coir.Chan[*big]{ch, full} {
		for range 3 {
			v := new(big)
			refs = append(refs, weak.Make(v))
			sel.Remove(sel.Add(c.SendCase(v)))
		}
	}
	for _, p := range refs {
		eventually(t, "what a removed case wanted to send is collected", func() bool {
			runtime.GC()
			return p.Value() == nil
		})
	}
	runtime.KeepAlive(sel)
	runtime.KeepAlive(ch)
	runtime.KeepAlive(full)
}

// Many channels and senders, and cases that come and go at random while one member waits: every value is received
// exactly once.
//
// Spec: SE-01 (a select completes one case)
// Spec: SE-21 (a Selector's events do not cost its size)
// Spec: SE-22 (a Selector tries again before it reports)
func TestSelectorStress(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		const people = 6
		each := sized(200, 2_000, 100_000)
		chans := make([]*coir.Chan[int], 16)
		for i := range chans {
			chans[i] = coir.NewChan[int]([]int{0, 1, 4, coir.Unbounded}[i%4])
		}
		sel := coir.NewSelector()
		var book sync.Mutex // a case is in places before it is looked up
		places := make(map[int]*int)
		add := func(ch *coir.Chan[int]) int {
			book.Lock()
			defer book.Unlock()
			p := new(int)
			id := sel.Add(ch.RecvCase(p))
			places[id] = p
			return id
		}
		ids := make([]int, len(chans))
		for i, ch := range chans {
			ids[i] = add(ch)
		}
		seen := make([]atomic.Int32, people*each)
		var over atomic.Bool
		c.do(func(ctx context.Context) {
			defer over.Store(true)
			for range seen {
				id, err := sel.Wait(ctx)
				if err != nil {
					t.Errorf("Wait returned %d, %v, want no error", id, err)
					return
				}
				book.Lock()
				p := places[id]
				book.Unlock()
				seen[*p].Add(1)
			}
		})
		c.do(func(ctx context.Context) { // moves cases, and leaves each channel with one
			rng := rand.New(rand.NewPCG(1, 2))
			for !over.Load() {
				i := rng.IntN(len(chans))
				if !sel.Remove(ids[i]) {
					t.Error("a case that was there is not removed")
					return
				}
				for range rng.IntN(3) {
					breathe(ctx)
				}
				ids[i] = add(chans[i])
				breathe(ctx)
			}
		})
		for me := range people {
			c.do(func(ctx context.Context) {
				rng := rand.New(rand.NewPCG(uint64(me), 3))
				for v := me * each; v < (me+1)*each; {
					ch := chans[rng.IntN(len(chans))]
					switch rng.IntN(4) {
					case 0:
						if i, err := coir.Select(ctx, ch.SendCase(v), chans[rng.IntN(len(chans))].SendCase(v)); err != nil {
							t.Errorf("Select returned %d, %v, want no error", i, err)
							return
						}
						v++
					case 1:
						if ch.SendTimeout(ctx, v, time.Duration(rng.IntN(20_000))) == nil {
							v++
						}
					default:
						if err := ch.Send(ctx, v); err != nil {
							t.Error(err)
							return
						}
						v++
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
		if sel.Len() != len(chans) {
			t.Errorf("%d cases", sel.Len())
		}
		sel.Clear()
	})
}

// Spec: SE-21 (a Selector's events do not cost its size)
// Spec: CH-49 (a blocking operation allocates nothing)
func TestSelectorWaitAllocatesNothing(t *testing.T) {
	if raceEnabled || invariant.Enabled {
		t.Skip("the checks allocate")
	}
	if hidesNothing() {
		t.Skip("in this build to find out who waits allocates")
	}
	crews(t, func(t *testing.T, c *crew) {
		sel := coir.NewSelector()
		var got [4]int
		var chans [4]*coir.Chan[int]
		for i := range chans {
			chans[i] = coir.NewChan[int](i % 2)
			sel.Add(chans[i].RecvCase(&got[i]))
		}
		var over atomic.Bool
		c.do(func(ctx context.Context) {
			ctx = uncancelled(ctx)
			for i := 0; !over.Load(); i++ {
				_ = chans[i%len(chans)].SendTimeout(ctx, i, time.Hour)
			}
		})
		c.did(func(ctx context.Context) {
			ctx = uncancelled(ctx)
			wait := func() {
				if _, err := sel.Wait(ctx); err != nil {
					t.Error(err)
				}
			}
			for range 1000 {
				wait()
			}
			if n := testing.AllocsPerRun(2000, wait); n != 0 {
				t.Errorf("%v allocations", n)
			}
			over.Store(true)
			for _, ch := range chans {
				ch.Close()
			}
			for sel.Len() > 0 {
				_, _ = sel.Wait(ctx)
			}
		})
	})
}

// A dropped selector is collected with everything that its cases hold, whatever they wait for and however long that
// lives, even if a case leads back to the selector. Its registrations are removed.
//
// Spec: SE-25 (a dropped selector is collected)
func TestDroppedSelectorIsCollected(t *testing.T) {
	type machine struct { // a program's use of a selector, with references in all directions
		sel *coir.Selector
		in  int
		_   [1 << 12]byte
	}
	rt := on(t, coir.WithWorkers(2))
	clock := coir.NewClock()
	timed := on(t, coir.WithWorkers(1), coir.WithClock(clock))
	if err := rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		empty, full := coir.NewChan[int](0), coir.NewChan[*machine](1)
		_ = full.TrySend(nil)
		w, r := coir.Pipe[int](1)
		gate := coir.NewChan[int](0)
		f := n.Go("lives on", func(ctx context.Context) error { _, _ = gate.Recv(ctx); return nil })
		adds := make(chan *machine) // for those that use another clock
		added := make(chan struct{})
		timer := goes(func() {
			_ = timed.Run(context.Background(), func(context.Context, *coir.Nursery) error {
				for m := range adds {
					m.sel.Add(coir.After(time.Hour))
					added <- struct{}{}
				}
				return nil
			})
		})
		cases := map[string]func(m *machine){
			"nothing":         func(*machine) {},
			"a receive":       func(m *machine) { m.sel.Add(empty.RecvCase(&m.in)) },
			"a send":          func(m *machine) { m.sel.Add(full.SendCase(m)) },
			"a ready receive": func(m *machine) { m.sel.Add(full.RecvCase(nil)) },
			"a fiber":         func(m *machine) { m.sel.Add(f.DoneCase(nil)) },
			"a side": func(m *machine) {
				m.sel.Add(w.GoneCase())
				m.sel.Add(r.GoneCase())
			},
			"a time":                  func(m *machine) { m.sel.Add(coir.After(time.Hour)) },
			"a time of another clock": func(m *machine) { adds <- m; <-added },
			"a channel of its own": func(m *machine) {
				own := coir.NewChan[*machine](4, coir.OnUndelivered(func(*machine) { m.in++ }))
				_ = own.TrySend(m)
				m.sel.Add(own.SendCase(m))
				m.sel.Add(own.RecvCase(nil))
			},
			"a pipe of its own": func(m *machine) {
				w, r := coir.Pipe[*machine](4, coir.OnUndelivered(func(*machine) { m.in++ }))
				_ = w.TrySend(m)
				m.sel.Add(w.GoneCase())
				m.sel.Add(r.GoneCase())
			},
			"what has happened": func(m *machine) {
				id := m.sel.Add(coir.After(0))
				if got, err := m.sel.Wait(ctx); got != id || err != nil {
					t.Errorf("Wait returned %d, %v, want %d, nil", got, err, id)
				}
				m.sel.Remove(m.sel.Add(f.DoneCase(nil)))
			},
		}
		refs := map[string]weak.Pointer[machine]{}
		func() { // its variables are dropped when it returns
			all := &machine{sel: coir.NewSelector()}
			refs["everything"] = weak.Make(all)
			for what, add := range cases {
				m := &machine{sel: coir.NewSelector()}
				refs[what] = weak.Make(m)
				add(m)
				if what != "what has happened" { // if others are ready, it need not be this case
					add(all)
				}
			}
		}()
		blocking(ctx, func() {
			for what, p := range refs {
				eventually(t, "a selector registered for "+what+" is collected", func() bool {
					runtime.GC()
					return p.Value() == nil
				})
			}
			eventually(t, "the clock is rid of the times", func() bool { runtime.GC(); return clock.Len() == 0 })
		})
		// Everything that it was registered with still works, also for another selector.
		next := coir.NewSelector()
		var v int
		id := next.Add(empty.RecvCase(&v))
		done := next.Add(f.DoneCase(nil))
		n.Go("sends", func(ctx context.Context) error { return empty.Send(ctx, 7) })
		if got, err := next.Wait(ctx); got != id || v != 7 || err != nil {
			t.Errorf("Wait returned %d, %v and received %d, want %d, nil and 7", got, err, v, id)
		}
		gate.Close()
		if got, err := next.Wait(ctx); got != done || err != nil {
			t.Errorf("Wait returned %d, %v, want %d, nil", got, err, done)
		}
		next.Clear()
		if _, err := full.TryRecv(); err != nil {
			t.Error(err)
		}
		w.Close()
		r.Close()
		close(adds)
		blocking(ctx, func() { <-timer })
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// Selectors that are dropped one after the other do not accumulate in a channel that nothing happens to.
//
// Spec: SE-25 (a dropped selector is collected)
func TestDroppedSelectorsDoNotPileUp(t *testing.T) {
	const batches, batch = 20, 1_000
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	idle := coir.NewChan[int](0)
	add := func() { coir.NewSelector().Add(idle.RecvCase(nil)) }
	add()
	before := heap()
	for range batches {
		for range batch {
			add()
		}
		runtime.GC()
	}
	eventually(t, "a tenth of what the selectors took is left", func() bool {
		for range batch {
			add()
		}
		return heap() < before+batches*batch*400/10
	})
	runtime.KeepAlive(idle)
}

// An event on a channel that many sleeping selectors watch wakes each of them, and allocates nothing.
//
// Spec: SE-21 (a Selector's events do not cost its size)
func TestManySelectorsOnOneChannel(t *testing.T) {
	const selectors = 200
	rt := one(t)
	err := rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		c, stop := coir.NewChan[int](coir.Conflated), coir.NewChan[int](0)
		var woken atomic.Int32
		for range selectors {
			n.Go("wait", func(ctx context.Context) error {
				s := coir.NewSelector()
				var v int
				s.Add(c.RecvCase(&v))
				last := s.Add(stop.RecvCase(nil))
				for {
					i, err := s.Wait(ctx)
					if i == last {
						woken.Add(1)
						return nil
					}
					if err != nil {
						return err
					}
				}
			})
		}
		round := func() {
			_ = c.Send(ctx, 1) // all are notified, and one receives it
			for range 3 {
				_ = coir.Yield(ctx)
			}
		}
		for range 30 {
			round()
		}
		if got := testing.AllocsPerRun(20, round); got > 1 && !raceEnabled && !hidesNothing() {
			t.Errorf("%v allocations for an event that %d selectors are told of", got, selectors)
		}
		stop.Close()
		for woken.Load() < selectors {
			if err := coir.Yield(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
