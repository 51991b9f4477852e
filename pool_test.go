package coir_test

// Pools: a pool never has more values than its bound, values are reused, an error frees the place, and nothing is kept
// after Close.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/invariant"
	"github.com/coir-go/coir/snapshot"
)

// conns creates numbered values, and counts them.
type conns struct {
	made atomic.Int64
	mu   sync.Mutex
	lost []int
}

func (m *conns) create(context.Context) (int, error) { return int(m.made.Add(1)), nil }

func (m *conns) lose(v int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost = append(m.lost, v)
}

// TryGet takes an idle value. It makes none, also where Get would, and leaves the place to others.
func TestPoolTryGetMakesNothing(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		var m conns
		p := coir.NewPool(1, m.create, nil, coir.WithName("conns"))
		c.did(func(ctx context.Context) {
			for range 2 {
				v, err := p.TryGet()
				if v != 0 || !errors.Is(err, coir.ErrWouldBlock) || err.Error() != "coir: receive from conns: would block" {
					t.Errorf("none is idle: %d, %v", v, err)
				}
			}
			if n := m.made.Load(); n != 0 {
				t.Errorf("%d were made", n)
			}
			if v, err := p.Get(ctx); v != 1 || err != nil || p.Put(v) != nil {
				t.Errorf("Get returned %d, %v, want 1, nil, and a Put that succeeds", v, err)
			}
			if v, err := p.TryGet(); v != 1 || err != nil {
				t.Errorf("one is idle: %d, %v", v, err)
			}
		})
	})
}

// Values are created when they are needed, up to the bound, and the value given back last is lent first.
//
// Spec: CH-60 (a pool lends idle values first, in order)
// Spec: CH-61 (a value given back is reset or thrown away)
// Spec: BU-09 (a pool makes, resets and lends buffers)
func TestPoolLendsAndUsesAgain(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		var m conns
		var resets []int
		p := coir.NewPool(3, m.create, func(v int) error { resets = append(resets, v); return nil }, coir.OnUndelivered(m.lose))
		c.did(func(ctx context.Context) {
			if m.made.Load() != 0 {
				t.Error("made before it was needed")
			}
			for range 5 {
				v, err := p.Get(ctx)
				if v != 1 || err != nil || p.Put(v) != nil {
					t.Errorf("Get returned %d, %v, want 1, nil, and a Put that succeeds", v, err)
				}
			}
			for want := 1; want <= 3; want++ {
				if v, err := p.Get(ctx); v != want || err != nil {
					t.Errorf("%d, %v; want %d", v, err, want)
				}
			}
			if v, err := p.TryGet(); v != 0 || !errors.Is(err, coir.ErrWouldBlock) {
				t.Errorf("all are lent: %d, %v", v, err)
			}
			for _, v := range []int{2, 3, 1} {
				if err := p.Put(v); err != nil {
					t.Error(err)
				}
			}
			if p.Len() != 3 {
				t.Errorf("%d are idle", p.Len())
			}
			for _, want := range []int{1, 3, 2} {
				if v, err := p.TryGet(); v != want || err != nil {
					t.Errorf("%d, %v; want %d", v, err, want)
				}
			}
		})
		if !slices.Equal(resets, []int{1, 1, 1, 1, 1, 2, 3, 1}) || m.made.Load() != 3 || len(m.lost) != 0 {
			t.Errorf("made %d, readied %v, thrown away %v", m.made.Load(), resets, m.lost)
		}
	})
}

// Waiting callers are served in the order of arrival.
//
// Spec: CH-19 (waiters are served in order)
// Spec: CH-60 (a pool lends idle values first, in order)
func TestPoolServesInOrder(t *testing.T) {
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		var m conns
		p := coir.NewPool(1, m.create, nil)
		v, err := p.Get(ctx)
		if err != nil {
			return err
		}
		const people = 20
		var served []int
		var fibers []*coir.Fiber
		for i := range people {
			f := n.Go("waits", func(ctx context.Context) error {
				v, err := p.Get(ctx)
				if err != nil {
					return err
				}
				served = append(served, i) // only the holder of the value gets here
				return p.Put(v)
			})
			yieldUntil(ctx, t, "it waits", func() bool { return f.State() == coir.StateWaiting })
			fibers = append(fibers, f)
		}
		if err := p.Put(v); err != nil {
			return err
		}
		for _, f := range fibers {
			if err := f.Wait(ctx); err != nil {
				return err
			}
		}
		if !slices.IsSorted(served) || len(served) != people || m.made.Load() != 1 {
			t.Errorf("served %v, made %d", served, m.made.Load())
		}
		return nil
	}, nil)
}

// A waiter that is cancelled takes no place with it.
func TestPoolRecvIsCancelled(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		var m conns
		p := coir.NewPool(1, m.create, nil)
		c.did(func(ctx context.Context) {
			v, err := p.Get(ctx)
			if err != nil {
				t.Error(err)
			}
			short, cancel := coir.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			if _, err := p.Get(short); !errors.Is(err, coir.ErrTimeout) {
				t.Errorf("a deadline: %v", err)
			}
			over, stop := context.WithCancelCause(ctx)
			stop(errA)
			if _, err := p.Get(over); !isCancelIn(over, err, errA) {
				t.Errorf("a cancel: %v", err)
			}
			if err := p.Put(v); err != nil {
				t.Error(err)
			}
			if v, err := p.TryGet(); v != 1 || err != nil {
				t.Errorf("TryGet returned %d, %v, want 1, nil", v, err)
			}
		})
	})
}

// If a value cannot be created, because of an error, a panic or a Goexit, its place is free for another caller.
func TestPoolCreateFails(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		var fail atomic.Bool
		fail.Store(true)
		begun, gate := make(chan struct{}), coir.NewChan[int](0)
		p := coir.NewPool(1, func(ctx context.Context) (int, error) {
			if !fail.Load() {
				return 7, nil
			}
			begun <- struct{}{}
			_, _ = gate.Recv(ctx) // it may wait
			return 1, errA
		}, nil)
		first := make(chan error, 1)
		c.do(func(ctx context.Context) {
			v, err := p.Get(ctx)
			if v == 7 {
				t.Error("it was lent something")
			}
			first <- err
		})
		<-begun
		second := make(chan outcome, 1)
		c.do(func(ctx context.Context) {
			v, err := p.Get(ctx)
			second <- outcome{v, err}
		})
		if _, err := p.TryGet(); !errors.Is(err, coir.ErrWouldBlock) {
			t.Errorf("the only place is taken: %v", err)
		}
		fail.Store(false)
		gate.Close()
		if err := <-first; !errors.Is(err, errA) {
			t.Errorf("the first: %v", err)
		}
		if o := c.outcome(second); o != (outcome{7, nil}) {
			t.Errorf("the second: %+v", o)
		}
		if err := p.Put(7); err != nil {
			t.Error(err)
		}
	})
	blows := true
	p := coir.NewPool(1, func(context.Context) (int, error) {
		if blows {
			panic(errB)
		}
		return 7, nil
	}, nil)
	func() {
		defer func() {
			if recover() != errB { //nolint:errorlint // the very value
				t.Error("the panic did not come out")
			}
		}()
		_, _ = p.Get(t.Context())
	}()
	blows = false
	if v, err := p.Get(t.Context()); v != 7 || err != nil {
		t.Errorf("after a panic: %d, %v", v, err)
	}
}

// If reset fails, the value is discarded, and another is created instead.
//
// Spec: CH-60 (a pool lends idle values first, in order)
// Spec: CH-61 (a value given back is reset or thrown away)
func TestPoolResetFails(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		var m conns
		p := coir.NewPool(2, m.create, func(v int) error {
			if v%2 == 1 {
				return errA
			}
			return nil
		}, coir.OnUndelivered(m.lose))
		c.did(func(ctx context.Context) {
			for _, want := range []int{1, 2, 2, 2} {
				v, err := p.Get(ctx)
				if v != want || err != nil {
					t.Errorf("%d, %v; want %d", v, err, want)
				}
				if err := p.Put(v); err != nil {
					t.Error(err)
				}
			}
			_, _ = p.Get(ctx)
			if v, err := p.Get(ctx); v != 3 || err != nil {
				t.Errorf("in the place of what was thrown away: %d, %v", v, err)
			}
			if _, err := p.TryGet(); !errors.Is(err, coir.ErrWouldBlock) {
				t.Errorf("above the bound: %v", err)
			}
		})
		if !slices.Equal(m.lost, []int{1}) || p.Len() != 0 {
			t.Errorf("thrown away: %v; %d idle", m.lost, p.Len())
		}
	})
}

// A value that is given to Discard, or whose reset panics, is discarded, and its place is free.
//
// Spec: CH-61 (a value given back is reset or thrown away)
func TestPoolDiscards(t *testing.T) {
	var m conns
	p := coir.NewPool(1, m.create, func(v int) error {
		if v == 2 {
			panic(errA)
		}
		return nil
	}, coir.OnUndelivered(m.lose))
	next := func(want int) {
		t.Helper()
		if v, err := p.Get(t.Context()); v != want || err != nil {
			t.Errorf("%d, %v; want %d", v, err, want)
		}
	}
	next(1)
	if err := p.Discard(1); err != nil {
		t.Error(err)
	}
	if err := p.Discard(1); err == nil {
		t.Error("given back twice")
	}
	next(2)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not come out")
			}
		}()
		_ = p.Put(2)
	}()
	next(3)
	if err := p.Put(3); err != nil {
		t.Error(err)
	}
	next(3)
	if !slices.Equal(m.lost, []int{1, 2}) {
		t.Errorf("thrown away: %v", m.lost)
	}
}

// Close ends waiting calls, and discards idle values immediately and lent ones when they are given back.
//
// Spec: CH-38 (close and abort are idempotent)
func TestPoolClose(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		var m conns
		p := coir.NewPool(3, m.create, nil, coir.OnUndelivered(m.lose), coir.WithName("database"))
		for range 3 {
			if _, err := p.Get(c.ctx); err != nil {
				t.Fatal(err)
			}
		}
		waiting := make(chan error, 2)
		for range 2 {
			c.do(func(ctx context.Context) {
				_, err := p.Get(ctx)
				waiting <- err
			})
		}
		if !p.Close() || p.Close() {
			t.Error("Close reports something else than whether this call has closed it")
		}
		c.wait()
		for range 2 {
			if err := <-waiting; !errors.Is(err, coir.ErrClosed) || !strings.Contains(err.Error(), "database") {
				t.Errorf("whoever waits or comes later: %v", err)
			}
		}
		if _, err := p.TryGet(); !errors.Is(err, coir.ErrClosed) {
			t.Errorf("TryGet: %v", err)
		}
		for v := 3; v >= 1; v-- {
			if err := p.Put(v); err != nil {
				t.Error(err)
			}
		}
		if !slices.Equal(m.lost, []int{3, 2, 1}) || p.Len() != 0 {
			t.Errorf("thrown away %v, %d idle", m.lost, p.Len())
		}
		if err := p.Put(1); err == nil {
			t.Error("given back twice")
		}

		p = coir.NewPool(3, m.create, nil, coir.OnUndelivered(m.lose))
		var lent []int
		for range 3 {
			v, _ := p.Get(c.ctx)
			lent = append(lent, v)
		}
		m.lost = nil
		_, _ = p.Put(lent[0]), p.Put(lent[1])
		p.Close()
		if !slices.Equal(m.lost, lent[:2]) {
			t.Errorf("idle when it was closed: %v; thrown away %v", lent[:2], m.lost)
		}
		_ = p.Put(lent[2])
		if !slices.Equal(m.lost, lent) {
			t.Errorf("thrown away %v", m.lost)
		}
	})
}

func TestPoolIsGivenBackTooMuch(t *testing.T) {
	var m conns
	p := coir.NewPool(2, m.create, nil, coir.WithName("database"), coir.OnUndelivered(m.lose))
	check := func() {
		t.Helper()
		if err := p.Put(9); err == nil || !strings.Contains(err.Error(), "database") {
			t.Errorf("%v", err)
		}
	}
	check()
	v, _ := p.Get(t.Context())
	if err := p.Put(v); err != nil {
		t.Error(err)
	}
	check()
	if p.Len() != 1 || len(m.lost) != 0 {
		t.Errorf("%d idle, thrown away %v", p.Len(), m.lost)
	}
	_, _ = p.Get(t.Context())
	_, _ = p.Get(t.Context())
	if _, err := p.TryGet(); !errors.Is(err, coir.ErrWouldBlock) {
		t.Errorf("above the bound: %v", err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a pool without a place was made")
			}
		}()
		coir.NewPool(0, m.create, nil)
	}()
}

// A listed pool shows which fibers and goroutines have its values, until another one gives a value back.
func TestPoolShowsWhoHasItsValues(t *testing.T) {
	coir.ListObjects(true)
	defer coir.ListObjects(false)
	rt := coir.NewRuntime()
	broken := errors.New("broken")
	var fails atomic.Bool
	create := func(context.Context) (int, error) {
		if fails.Load() {
			return 0, broken
		}
		return 1, nil
	}
	newPool := func(size int) (p *coir.Pool[int], by func() []uint64) {
		p = coir.NewPool(size, create, nil, coir.WithName(fmt.Sprint("conns ", size)))
		return p, func() []uint64 {
			o := objectIn(rt.Snapshot(snapshot.Options{}), fmt.Sprint("conns ", size))
			return o.Holders
		}
	}
	check := func(what string, got []uint64, want ...uint64) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Errorf("%s: lent to %v, not %v", what, got, want)
		}
	}
	is := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	p, by := newPool(4)
	is(rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		check("at first", by())
		me := coir.Self(ctx).ID()
		_, err := p.Get(ctx)
		is(err)
		other := n.Go("other", func(ctx context.Context) error {
			_, err := p.Get(ctx)
			return err
		})
		is(other.Wait(ctx))
		_, err = p.Get(ctx)
		is(err)
		check("with a fiber that has ended", by(), me, other.ID(), me)
		is(p.Put(1))
		check("given back", by(), me, other.ID())
		v, err := p.TryGet()
		is(err)
		is(p.Discard(v))
		check("tried and discarded", by(), me, other.ID())
		var g uint64
		wait := make(chan struct{})
		go func() {
			defer close(wait)
			_, err := p.Get(context.Background())
			is(err)
			all := by()
			g = all[len(all)-1]
			is(p.Put(1))
		}()
		<-wait
		if g < snapshot.FirstGoroutine {
			t.Errorf("a goroutine is known as %d", g)
		}
		fails.Store(true)
		for range 2 {
			if _, err := p.Get(ctx); err != nil && !errors.Is(err, broken) {
				t.Error(err)
			}
		}
		check("one was idle, and to make another failed", by(), me, other.ID(), me)
		fails.Store(false)
		is(p.Put(1))
		is(p.Put(1))
		check("another one's is left", by(), other.ID())
		is(p.Put(1))
		check("given back by another fiber", by())
		_, err = p.Get(ctx)
		is(err)
		check("it does not know any more", by())
		return p.Put(1)
	}))
	p, by = newPool(65)
	_, err := p.Get(t.Context())
	is(err)
	check("a large pool", by())
	is(p.Put(1))
}

// In builds with invariants a value that is given back twice, or that comes from elsewhere, is refused and stays the
// caller's, even while others are lent. For values without identity only their number is checked.
func TestPoolKnowsWhatItHasLent(t *testing.T) {
	if !invariant.Enabled {
		t.Skip("needs the tag coirinvariants")
	}
	type conn struct{ n int }
	refused(t, "pointers", true, func(i int) *conn { return &conn{i} })
	refused(t, "numbers", true, func(i int) int { return i })
	refused(t, "strings", true, strconv.Itoa)
	refused(t, "channels", true, func(i int) *coir.Chan[int] { return coir.NewChan[int](i) })
	refused(t, "maps", true, func(int) map[int]int { return map[int]int{} })
	refused(t, "interfaces", true, func(i int) any { return &conn{i} })
	refused(t, "structs", false, func(i int) conn { return conn{i} })
	refused(t, "slices", false, func(int) []int { return nil })
	refused(t, "functions", false, func(int) func() { return func() {} })

	same := 0
	p := coir.NewPool(2, func(context.Context) (int, error) { return same, nil }, nil) // two equal values are two
	_, _ = p.Get(t.Context())
	_, _ = p.Get(t.Context())
	for range 2 {
		if err := p.Put(same); err != nil {
			t.Error(err)
		}
	}
}

func refused[T any](t *testing.T, what string, known bool, value func(int) T) {
	t.Helper()
	made := 0
	create := func(context.Context) (T, error) { made++; return value(made), nil }
	p := coir.NewPool(3, create, nil, coir.WithName("database"))
	a, _ := p.Get(t.Context())
	b, _ := p.Get(t.Context())
	if err := p.Put(a); err != nil {
		t.Errorf("%s: %v", what, err)
	}
	for _, v := range []T{a, value(7)} {
		switch err := p.Put(v); {
		case !known && err == nil:
			return // there is no room left for b
		case !known || err == nil || !strings.Contains(err.Error(), `pool "database" was given back`):
			t.Errorf("%s: a value that was not lent: %v", what, err)
		}
	}
	again, _ := p.Get(t.Context())
	for _, v := range []T{again, b} {
		if err := p.Put(v); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	if made != 2 || p.Len() != 2 {
		t.Errorf("%s: %d were made, %d are idle", what, made, p.Len())
	}
}

// Many fibers borrow concurrently; create and reset sometimes fail, and waits are cut short. There are never more
// values than places, no two fibers share one, and in the end every value has been discarded.
//
// Spec: CH-60 (a pool lends idle values first, in order)
// Spec: CH-61 (a value given back is reset or thrown away)
func TestPoolStress(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		const places, people = 3, 10
		var alive, made, thrown atomic.Int64
		inUse := make([]atomic.Bool, 1<<20)
		p := coir.NewPool(places, func(ctx context.Context) (int, error) {
			if n := alive.Add(1); n > places {
				t.Errorf("%d values for %d places", n, places)
			}
			if rand.IntN(4) == 0 {
				breathe(ctx)
			}
			if rand.IntN(10) == 0 {
				alive.Add(-1)
				return 0, errA
			}
			return int(made.Add(1)), nil
		}, func(int) error {
			if rand.IntN(10) == 0 {
				return errB
			}
			return nil
		}, coir.OnUndelivered(func(int) {
			alive.Add(-1)
			thrown.Add(1)
		}))
		for range people {
			c.do(func(ctx context.Context) {
				for range sized(100, 1_000, 50_000) {
					sub, cancel := ctx, context.CancelFunc(func() {})
					if rand.IntN(4) == 0 {
						sub, cancel = coir.WithTimeout(ctx, time.Duration(rand.IntN(20_000)))
					}
					v, err := p.Get(sub)
					cancel()
					if err != nil {
						if !errors.Is(err, errA) && !errors.Is(err, coir.ErrTimeout) {
							t.Error(err)
						}
						continue
					}
					if inUse[v%len(inUse)].Swap(true) {
						t.Errorf("%d is lent twice", v)
					}
					breathe(ctx)
					inUse[v%len(inUse)].Store(false)
					back := p.Put
					if rand.IntN(20) == 0 {
						back = p.Discard
					}
					if err := back(v); err != nil {
						t.Error(err)
					}
				}
			})
		}
		c.wait()
		if p.Len() != int(alive.Load()) {
			t.Errorf("%d idle, %d there", p.Len(), alive.Load())
		}
		p.Close()
		if alive.Load() != 0 || made.Load() != thrown.Load() {
			t.Errorf("made %d, thrown away %d", made.Load(), thrown.Load())
		}
	})
}
