package coir_test

// What a select can wait for besides values: times, cancellations, closed channels, the ends of fibers and of pipes, in
// lists of any length.

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/park"
)

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
					t.Errorf("Select returned %d, %v, want no error", i, err)
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

// A cancellation against data: the same.
//
// Spec: SE-11 (a cancel ends a select)
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
				t.Errorf("a.Stats() = %+v, want Recv.Waiting 0, Recv.Closed 1", s)
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
				t.Errorf("TryRecv returned %d, %v, want 5, nil", v, err)
			}
			if o := c.outcome(out); o != (outcome{1, nil}) {
				t.Errorf("the operation returned %+v, want {1 <nil>}", o)
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
				t.Errorf("the operation returned %+v, want index 2, coir.ErrClosed", o)
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
				t.Errorf("the operation returned %+v, want {0 <nil>}", o)
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
				t.Errorf("the operation returned %+v, want index 1, coir.ErrClosed and errB", o)
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
					t.Errorf("the operation returned %+v, want {0 <nil>}", o)
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
				t.Errorf("Recv returned %d, %v, want %d, nil", v, err, at)
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
				t.Fatalf("TrySend on channel %d returned %v, on channel %d %v; want one success", a, sent[0], b, sent[1])
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

// A child under a limit of one place that selects on the end of another child gives up its place, or the other would
// never start. It has the place again when it continues.
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
						t.Errorf("Select returned %d, %v, want 0 without an error, or 2", i, err)
					}
					spin(ctx)
					sel := coir.NewSelector()
					defer sel.Clear()
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
