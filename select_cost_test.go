package coir_test

// The costs of a select: it is woken once, does not park if a case is ready, does not allocate, and keeps no memory for
// its cases.

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"
	"weak"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/hide"
	"github.com/coir-go/coir/internal/invariant"
)

// If a completion comes after the select has its winner, the value stays with its sender. The select's fiber is woken
// once, after the decision, however many completions come.
//
// Spec: SE-04 (the winner is decided before a wake)
// Spec: SE-19 (a late completion stays with its sender)
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
		defer heard.Clear()
		before := parked.Load()
		for range 50 {
			if i, err := coir.Select(ctx, a.RecvCase(nil), b.SendCase(1)); i != 1 || err != nil {
				t.Errorf("Select returned %d, %v, want 1, nil", i, err)
			}
			if i, err := coir.Select(ctx, a.RecvCase(nil), b.RecvCase(nil)); i != 1 || err != nil {
				t.Errorf("Select returned %d, %v, want 1, nil", i, err)
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
			t.Errorf("TrySelect returned %d, %v, want -1 and ErrWouldBlock", i, err)
		}
		if full.Len() != 2 || stop.Len() != 0 {
			t.Errorf("the channels hold %d and %d values, want 2 and 0", full.Len(), stop.Len())
		}
		stop.Close()
		if o := c.outcome(out); !errors.Is(o.err, coir.ErrClosed) || o.index != 0 && o.index != 2 {
			t.Errorf("the operation returned %+v, want index 0 or 2, coir.ErrClosed", o)
		}
	})
}

// A value sent through a select may be a pointer, or hold one: what it points to lives on after the sender's function
// has returned.
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
					t.Errorf("Select returned %d, %v, want 1, nil", i, err)
				}
				var got *big
				if i, err := coir.Select(ctx, b.RecvCase(nil), a.RecvCase(&got)); i != 1 || err != nil {
					t.Errorf("Select returned %d, %v, want 1, nil", i, err)
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
