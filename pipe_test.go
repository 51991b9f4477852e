package coir_test

// Pipes: a pipe is a channel that counts its endpoints. Closing the last endpoint of a side ends the channel, in a way
// that depends on the side, and wakes the waiters on the other side.

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// The channel is open for as long as there is a writer, and delivers its values after that.
//
// Spec: CH-46 (the last Close of a side tells the other)
func TestLastWriterClosesThePipe(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		w, r := coir.Pipe[int](8, coir.WithName("orders"))
		writers := []*coir.Writer[int]{w}
		for range 3 {
			writers = append(writers, writers[len(writers)-1].Clone())
		}
		for i, w := range writers {
			if err := w.TrySend(i); err != nil {
				t.Fatal(err)
			}
			if !w.Close() || w.Close() {
				t.Error("Close reports something else than whether this call has closed it")
			}
			if over := r.Stats().Closed; over != (i == len(writers)-1) {
				t.Errorf("%d of %d writers are closed: the channel is closed: %v", i+1, len(writers), over)
			}
		}
		c.did(func(ctx context.Context) {
			if got, err := collect(r.All(ctx)); err != nil || !slices.Equal(got, []int{0, 1, 2, 3}) {
				t.Errorf("received %v, want %v", got, []int{0, 1, 2, 3})
			}
			if _, err := r.Recv(ctx); !errors.Is(err, coir.ErrClosed) || !strings.Contains(err.Error(), "orders") {
				t.Errorf("Recv returned %v, want ErrClosed", err)
			}
		})
		if r.Stats() != w.Stats() || r.Stats().Name != "orders" {
			t.Errorf("the two sides count differently: %+v, %+v", r.Stats(), w.Stats())
		}
		r.Close()
	})
}

// A waiting receiver learns that the last writer is gone; a waiting sender was admitted, and is delivered.
//
// Spec: CH-46 (the last Close of a side tells the other)
// Spec: CH-35 (close is graceful)
// Spec: CH-36 (a drained closed channel ends its receivers)
func TestLastWriterAndThoseWhoWait(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		w, r := coir.Pipe[int](0)
		out := make(chan outcome, 1)
		recv := func(ctx context.Context) {
			v, err := r.Recv(ctx)
			out <- outcome{v, err}
		}
		c.do(recv)
		eventually(t, "it waits", func() bool { return r.Stats().Recv.Waiting == 1 })
		w.Close()
		if o := c.outcome(out); !errors.Is(o.err, coir.ErrClosed) {
			t.Errorf("the operation returned %+v, want coir.ErrClosed", o)
		}
		w, r = coir.Pipe[int](0)
		c.do(func(ctx context.Context) {
			if err := w.Send(ctx, 5); err != nil {
				t.Error(err)
			}
		})
		eventually(t, "it waits", func() bool { return w.Stats().Send.Waiting == 1 })
		w.Close()
		c.did(recv)
		if o := c.outcome(out); o != (outcome{5, nil}) {
			t.Errorf("the operation returned %+v, want {5 <nil>}", o)
		}
		c.did(recv)
		if o := c.outcome(out); !errors.Is(o.err, coir.ErrClosed) {
			t.Errorf("the operation returned %+v, want coir.ErrClosed", o)
		}
	})
}

// Without a reader, waiting writers and later ones fail immediately. Values that the channel held go to OnUndelivered,
// and those of waiting writers stay theirs.
//
// Spec: CH-46 (the last Close of a side tells the other)
// Spec: CH-37 (abort is the hard close)
// Spec: CH-40 (no value is lost silently)
func TestLastReaderEndsThePipe(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		var lost []int
		w, r := coir.Pipe[int](2, coir.OnUndelivered(func(v int) { lost = append(lost, v) }))
		r2 := r.Clone()
		_, _ = w.TrySend(1), w.TrySend(2)
		const waiting = 40 // more than are woken at a time
		errs := make(chan error, waiting)
		for i := range waiting {
			c.do(func(ctx context.Context) { errs <- w.Send(ctx, 10+i) })
		}
		eventually(t, "all wait", func() bool { return w.Stats().Send.Waiting == waiting })
		r.Close()
		if s := w.Stats(); s.Closed || s.Send.Waiting != waiting {
			t.Fatalf("a reader is left: %+v", s)
		}
		r2.Close()
		c.wait()
		for range waiting {
			if err := <-errs; !errors.Is(err, coir.ErrClosed) {
				t.Errorf("a writer that waited: %v", err)
			}
		}
		c.did(func(ctx context.Context) {
			if err := w.Send(ctx, 99); !errors.Is(err, coir.ErrClosed) {
				t.Errorf("a later writer: %v", err)
			}
			if i, err := coir.Select(ctx, coir.After(time.Hour), w.SendCase(99)); i != 1 || !errors.Is(err, coir.ErrClosed) {
				t.Errorf("a later select: %d, %v", i, err)
			}
		})
		if !slices.Equal(lost, []int{1, 2}) {
			t.Errorf("undelivered: %v", lost)
		}
		if s := w.Stats(); s.Len != 0 || s.Dropped != 2 || s.Send.Waiting != 0 {
			t.Errorf("w.Stats() = %+v, want Len 0, Dropped 2, Send.Waiting 0", s)
		}
		w.Close()
	})
}

func TestEndpointAfterClose(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		w, r := coir.Pipe[int](4, coir.WithName("orders"))
		w2, r2 := w.Clone(), r.Clone()
		w.Close()
		r.Close()
		c.did(func(ctx context.Context) {
			errs := map[string]error{"Send": w.Send(ctx, 1), "TrySend": w.TrySend(1), "SendTimeout": w.SendTimeout(ctx, 1, time.Hour)}
			_, errs["SendMany"] = w.SendMany(ctx, []int{1, 2})
			_, errs["SendCase"] = coir.Select(ctx, w.SendCase(1))
			_, errs["Recv"] = r.Recv(ctx)
			_, errs["TryRecv"] = r.TryRecv()
			_, errs["RecvTimeout"] = r.RecvTimeout(ctx, time.Hour)
			_, errs["RecvMany"] = r.RecvMany(ctx, make([]int, 2))
			_, errs["RecvBatch"] = r.RecvBatch(ctx, make([]int, 2), time.Hour)
			_, errs["RecvCase"] = coir.Select(ctx, r.RecvCase(nil))
			_, errs["the clone's Recv"] = r.Clone().Recv(ctx)
			errs["the clone's Send"] = w.Clone().Send(ctx, 1)
			for op, err := range errs {
				if !errors.Is(err, coir.ErrClosed) || !strings.Contains(err.Error(), "orders") {
					t.Errorf("%s: %v", op, err)
				}
			}
			if w.Clone().Close() || r.Clone().Close() {
				t.Error("the clone of a closed endpoint was open")
			}
			for _, err := range r.All(ctx) {
				if err != nil {
					return
				}
				t.Error("received through a closed endpoint")
			}
			// The others continue.
			if n, err := w2.SendMany(ctx, []int{1, 2, 3, 4}); n != 4 || err != nil {
				t.Errorf("SendMany returned %d, %v, want 4, nil", n, err)
			}
			into := make([]int, 3)
			if n, err := r2.RecvMany(ctx, into); n != 3 || err != nil {
				t.Errorf("RecvMany returned %d, %v, want 3, nil", n, err)
			}
			if v, err := r2.RecvTimeout(ctx, time.Hour); v != 4 || err != nil {
				t.Errorf("RecvTimeout returned %d, %v, want 4, nil", v, err)
			}
			if err := w2.SendTimeout(ctx, 5, time.Hour); err != nil {
				t.Error(err)
			}
		})
		r2.Close()
		w2.Close()
		if w2.Clone().TrySend(1) == nil || r2.Clone().Close() {
			t.Error("a clone of what is gone is open")
		}
	})
}

// Many can wait for the other side to be gone, before and after that.
//
// Spec: CH-46 (the last Close of a side tells the other)
// Spec: CH-47 (the end of a peer can be waited for)
// Spec: SE-18 (a case can wait for anything)
func TestPipeGone(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		for side := range 2 {
			w, r := coir.Pipe[int](1)
			w2, r2 := w.Clone(), r.Clone()
			never := coir.NewChan[int](0)
			gone, shut := w.GoneCase, []func() bool{r.Close, r2.Close}
			if side == 1 {
				gone, shut = r.GoneCase, []func() bool{w.Close, w2.Close}
			}
			const waiting = 100
			var outs []<-chan outcome
			for range waiting {
				outs = append(outs, c.selects(never.RecvCase(nil), gone()))
			}
			waitFor(t, never, 0, waiting)
			if err := w.TrySend(7); err != nil {
				t.Error(err)
			}
			shut[0]()
			if s := never.Stats(); s.Recv.Waiting != waiting {
				t.Errorf("one endpoint is left, and only %d wait", s.Recv.Waiting)
			}
			if i, err := coir.TrySelect(gone()); i != -1 {
				t.Errorf("TrySelect returned %d, %v, want -1 and ErrWouldBlock", i, err)
			}
			shut[1]()
			for _, out := range outs {
				if o := c.outcome(out); o != (outcome{1, nil}) {
					t.Errorf("the operation returned %+v, want {1 <nil>}", o)
				}
			}
			if o := c.outcome(c.selects(never.RecvCase(nil), gone())); o != (outcome{1, nil}) {
				t.Errorf("Select returned %+v, want {1 <nil>}", o)
			}
			if side == 1 {
				if v, err := r.TryRecv(); v != 7 || err != nil {
					t.Errorf("the writers have gone, and what they sent: %d, %v", v, err)
				}
			}
			waitFor(t, never, 0, 0)
			w.Close()
			w2.Close()
			r.Close()
			r2.Close()
		}
	})
}

// A fiber that has learned that the other side is gone finds the channel closed.
//
// Spec: CH-46 (the last Close of a side tells the other)
// Spec: CH-47 (the end of a peer can be waited for)
func TestGoneComesAfterTheEnd(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		for range sized(200, 2_000, 100_000) {
			w, r := coir.Pipe[int](1)
			w2, r2 := coir.Pipe[int](1)
			c.do(func(context.Context) {
				r.Close()
				w2.Close()
			})
			c.do(func(ctx context.Context) {
				for {
					if i, _ := coir.TrySelect(w.GoneCase()); i == 0 {
						break
					}
					breathe(ctx)
				}
				if err := w.TrySend(1); !errors.Is(err, coir.ErrClosed) {
					t.Errorf("the readers have gone, and TrySend gives %v", err)
				}
				for {
					if i, _ := coir.TrySelect(r2.GoneCase()); i == 0 {
						break
					}
					breathe(ctx)
				}
				if _, err := r2.TryRecv(); !errors.Is(err, coir.ErrClosed) {
					t.Errorf("the writers have gone, and TryRecv gives %v", err)
				}
			})
			c.wait()
			if t.Failed() {
				return
			}
		}
	})
}

// Both sides close at the same time: each learns of the other, once.
//
// Spec: CH-48 (each side's end is announced once)
func TestBothSidesOfAPipeCloseAtOnce(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		for range sized(100, 500, 20_000) {
			w, r := coir.Pipe[int](0)
			sel := coir.NewSelector()
			sel.Add(w.GoneCase())
			sel.Add(r.GoneCase())
			out := c.selects(w.GoneCase())
			back := c.selects(r.GoneCase())
			c.do(func(context.Context) { w.Close() })
			c.do(func(context.Context) { r.Close() })
			a, b := c.outcome(c.waits(sel)), c.outcome(c.waits(sel))
			if a.index+b.index != 1 || a.err != nil || b.err != nil {
				t.Fatalf("Wait returned %+v, then %+v, want 0 and 1 in any order, without errors", a, b)
			}
			if sel.Len() != 0 {
				t.Fatalf("%d cases are left", sel.Len())
			}
			if o, o2 := c.outcome(out), c.outcome(back); o != (outcome{0, nil}) || o2 != o {
				t.Fatalf("the selects returned %+v and %+v, want {0 <nil>} of both", o, o2)
			}
			c.wait()
		}
	})
}

// Endpoints are cloned and closed concurrently. Each value is received, undelivered, or refused.
//
// Spec: CH-40 (no value is lost silently)
// Spec: CH-46 (the last Close of a side tells the other)
func TestPipeStress(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		for _, capacity := range []int{0, 3, coir.Unbounded} {
			const people = 4
			each := sized(100, 1_000, 50_000)
			seen := make([]atomic.Int32, people*each)
			w, r := coir.Pipe[int](capacity, coir.OnUndelivered(func(v int) { seen[v].Add(1) }))
			var refused atomic.Int64
			for me := range people {
				mine, theirs := w.Clone(), r.Clone()
				c.do(func(ctx context.Context) {
					defer func() { mine.Close() }()
					for v := me * each; v < (me+1)*each; v++ {
						next := mine.Clone()
						mine.Close()
						mine = next
						if err := mine.Send(ctx, v); errors.Is(err, coir.ErrClosed) {
							refused.Add(1)
							seen[v].Add(1)
						} else if err != nil {
							t.Error(err)
						}
					}
				})
				c.do(func(ctx context.Context) {
					defer func() { theirs.Close() }()
					for range each * 3 / 4 { // so that the readers go first
						next := theirs.Clone()
						theirs.Close()
						theirs = next
						v, err := theirs.Recv(ctx)
						if err != nil {
							t.Error(err)
							return
						}
						seen[v].Add(1)
					}
				})
			}
			w.Close()
			r.Close()
			c.wait()
			for v := range seen {
				if n := seen[v].Load(); n != 1 {
					t.Fatalf("value %d was accounted for %d times", v, n)
				}
			}
			s := w.Stats()
			if !s.Closed || s.Len != 0 || s.Sent != s.Received+s.Dropped || s.Sent+uint64(refused.Load()) != uint64(len(seen)) {
				t.Errorf("capacity %d, refused %d: %+v", capacity, refused.Load(), s)
			}
		}
	})
}

// Every kind of channel has every operation: none returns errors.ErrUnsupported.
//
// Spec: CH-45 (every kind has every operation)
func TestEveryKindHasEveryOperation(t *testing.T) {
	for _, capacity := range []int{0, 1, 5, coir.Unbounded, coir.Conflated} {
		crews(t, func(t *testing.T, c *crew) {
			w, r := coir.Pipe[int](capacity)
			sel := coir.NewSelector()
			for name, op := range map[string]struct {
				send, recv func(ctx context.Context) error
			}{
				"plain": {
					func(ctx context.Context) error { return w.Send(ctx, 1) },
					func(ctx context.Context) error { _, err := r.Recv(ctx); return err },
				},
				"timed": {
					func(ctx context.Context) error { return w.SendTimeout(ctx, 1, time.Minute) },
					func(ctx context.Context) error { _, err := r.RecvTimeout(ctx, time.Minute); return err },
				},
				"many": {
					func(ctx context.Context) error { _, err := w.SendMany(ctx, []int{1}); return err },
					func(ctx context.Context) error { _, err := r.RecvMany(ctx, make([]int, 2)); return err },
				},
				"select": {
					func(ctx context.Context) error { _, err := coir.Select(ctx, w.SendCase(1)); return err },
					func(ctx context.Context) error { _, err := coir.Select(ctx, r.RecvCase(nil)); return err },
				},
				"selector": {
					func(ctx context.Context) error { return w.Send(ctx, 1) },
					func(ctx context.Context) error {
						defer sel.Remove(sel.Add(r.RecvCase(nil)))
						_, err := sel.Wait(ctx)
						return err
					},
				},
			} {
				errs := make([]error, 2)
				c.do(func(ctx context.Context) { errs[0] = op.send(ctx) })
				c.do(func(ctx context.Context) { errs[1] = op.recv(ctx) })
				c.wait()
				if err := errors.Join(errs...); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
			if _, err := r.TryRecv(); !errors.Is(err, coir.ErrWouldBlock) {
				t.Errorf("TryRecv: %v", err)
			}
			if err := w.TrySend(1); err != nil && (capacity != 0 || !errors.Is(err, coir.ErrWouldBlock)) {
				t.Errorf("TrySend: %v", err)
			}
			w.Close()
			r.Close()
		})
	}
}
