package coir_test

// What a program can find out about a fiber: its name, its number, where it was started, its state, how it ended, and
// which fiber is calling.

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// Spec: FB-09 (a fiber has a name, a nursery and a state)
func TestFiberNames(t *testing.T) {
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		nothing := func(context.Context) error { return nil }
		for f, want := range map[*coir.Fiber]string{
			n.Go("plain", nothing):                         "plain",
			n.Go("zero", nothing, coir.WithIndex(0)):       "zero[0]",
			n.Go("many", nothing, coir.WithIndex(1234567)): "many[1234567]",
			n.Go("", nothing):                              "",
			n.Go("twice", nothing, coir.WithIndex(1)):      "twice[1]",
			n.Go("twice", nothing, coir.WithIndex(1)):      "twice[1]", // fibers may share a name
		} {
			if f.Name() != want {
				t.Errorf("%q, want %q", f.Name(), want)
			}
		}
		return nil
	}, nil)
}

// Numbers are unique over runtimes, and across the life of fibers.
//
// Spec: FB-08 (a fiber id is never reused)
func TestFiberIDs(t *testing.T) {
	var mu sync.Mutex
	seen := map[uint64]bool{}
	note := func(f *coir.Fiber) {
		mu.Lock()
		defer mu.Unlock()
		if f.ID() == 0 || seen[f.ID()] {
			t.Errorf("%d twice", f.ID())
		}
		seen[f.ID()] = true
	}
	var all sync.WaitGroup
	for range 2 {
		rt := on(t, coir.WithWorkers(2))
		all.Go(func() {
			_ = rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
				note(coir.Self(ctx))
				for range 1000 {
					note(n.Go("child", func(ctx context.Context) error { return coir.Yield(ctx) }))
				}
				goroutine(ctx, func() {
					for range 100 {
						note(n.Go("from outside", func(context.Context) error { return nil }))
					}
				})
				return nil
			})
		})
	}
	all.Wait()
	if len(seen) != 2*1101 {
		t.Errorf("%d fibers", len(seen))
	}
}

// Site is the line that calls Go, however the call is wrapped.
func TestFiberSite(t *testing.T) {
	here := func() int {
		_, _, line, _ := runtime.Caller(1)
		return line
	}
	check := func(f *coir.Fiber, line int) {
		t.Helper()
		if want := fmt.Sprintf("fiber_test.go:%d", line); filepath.Base(f.SpawnSite()) != want {
			t.Errorf("%s, want %s", f.SpawnSite(), want)
		}
	}
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		nothing := func(context.Context) error { return nil }
		a, line := n.Go("a", nothing), here()
		check(a, line)
		b, line := n.Go("b", nothing, coir.WithIndex(1)), here()
		check(b, line)
		spawn := func() (*coir.Fiber, int) { return n.Go("c", nothing), here() }
		check(spawn())
		check(spawnInlined(n))
		goroutine(ctx, func() {
			d, line := n.Go("d", nothing), here()
			check(d, line)
		})
		if site := coir.Self(ctx).SpawnSite(); strings.HasPrefix(site, ":") {
			t.Errorf("the fiber that Run made has the site %q", site)
		}
		return nil
	}, nil)
}

// TestOrderedSite: a fiber of an ordered queue shows the line that called Go, not one of the library.
func TestOrderedSite(t *testing.T) {
	err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		q := coir.NewOrdered[string](1)
		site := func(ctx context.Context) (string, error) { return filepath.Base(coir.Self(ctx).SpawnSite()), nil }
		_, _, line, _ := runtime.Caller(0)
		if err := q.Go(ctx, n, "task", site); err != nil {
			return err
		}
		got, err := q.Recv(ctx)
		if want := fmt.Sprintf("fiber_test.go:%d", line+1); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func spawnInlined(n *coir.Nursery) (*coir.Fiber, int) {
	_, _, line, _ := runtime.Caller(0)
	return n.Go("inlined", func(context.Context) error { return nil }), line + 1
}

// From birth to end a fiber is pending, active, waiting, active, ended.
//
// Spec: FB-09 (a fiber has a name, a nursery and a state)
// Spec: FB-15 (a fiber ends itself)
func TestFiberStates(t *testing.T) {
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		gate, open := coir.WithCancelCause(ctx)
		var inside atomic.Int64
		f := n.Go("watched", func(ctx context.Context) error {
			inside.Store(int64(coir.Self(ctx).State()))
			_ = coir.Yield(ctx)
			_ = coir.Yield(ctx)
			return parkAt(gate)
		})
		if s := f.State(); s != coir.StatePending {
			t.Errorf("it has not begun, and is %v", s)
		}
		_ = coir.Yield(ctx)
		if s := f.State(); s != coir.StateActive || coir.State(inside.Load()) != coir.StateActive {
			t.Errorf("it has yielded, and is %v; inside it was %v", s, coir.State(inside.Load()))
		}
		yieldUntil(ctx, t, "it waits", func() bool { return f.State() == coir.StateWaiting })
		open(nil)
		if err := f.Wait(ctx); err != nil {
			t.Error(err)
		}
		if s := f.State(); s != coir.StateEnded {
			t.Errorf("it has ended, and is %v", s)
		}
		if s := coir.Self(ctx).State(); s != coir.StateActive {
			t.Errorf("I am %v, want %v", s, coir.StateActive)
		}
		return nil
	}, nil)
	for s, want := range map[coir.State]string{
		coir.StatePending: "pending", coir.StateActive: "active", coir.StateWaiting: "waiting", coir.StateEnded: "ended",
	} {
		if s.String() != want {
			t.Errorf("%d prints as %q", int(s), s.String())
		}
	}
}

// A fiber that waits for a place has not started.
//
// Spec: FB-09 (a fiber has a name, a nursery and a state)
// Spec: NU-14 (Limit bounds the children that run)
func TestFiberInLineIsPending(t *testing.T) {
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		n.Limit(1)
		gate, open := coir.WithCancelCause(ctx)
		n.Go("first", func(context.Context) error { return parkAt(gate) })
		second := n.Go("second", func(context.Context) error { return nil })
		for range 10 {
			_ = coir.Yield(ctx)
		}
		if s := second.State(); s != coir.StatePending {
			t.Errorf("it is %v, want %v", s, coir.StatePending)
		}
		open(nil)
		return second.Wait(ctx)
	}, nil)
}

func TestSelf(t *testing.T) {
	if coir.Self(context.Background()) != nil {
		t.Error("a goroutine is no fiber")
	}
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		me := coir.Self(ctx)
		if me == nil {
			t.Fatal("the body of Run is a fiber")
		}
		var inside *coir.Fiber
		f := n.Go("child", func(ctx context.Context) error { inside = coir.Self(ctx); return nil })
		if err := f.Wait(ctx); err != nil || inside != f {
			t.Errorf("Self is %v, Go returned %v", inside, f)
		}
		return coir.Run(ctx, func(ctx context.Context, _ *coir.Nursery) error {
			if coir.Self(ctx) != me {
				t.Error("a nested body runs in the fiber that called Run")
			}
			blocking(ctx, func() {
				if coir.Self(ctx) != me {
					t.Error("in Blocking it is still the fiber")
				}
			})
			return nil
		})
	}, nil)
}

// Blocking calls its function and returns its results, for every caller, even in a context that has ended.
func TestBlockingReturnsWhatItsFunctionReturned(t *testing.T) {
	check := func(ctx context.Context) {
		v, err := coir.Blocking(ctx, func() (int, error) { return 7, errA })
		if v != 7 || err != errA {
			t.Errorf("Blocking returned %d, %v", v, err)
		}
	}
	onOne(t, func(ctx context.Context, _ *coir.Nursery) error {
		check(ctx)
		inner, cancel := coir.WithCancel(ctx)
		cancel()
		check(inner)
		goroutine(ctx, func() {
			check(ctx)
			check(inner)
			check(context.Background())
		})
		return nil
	}, nil)
}

// Every waiter gets the same result, before and after the end, fibers and goroutines alike.
//
// Spec: FB-14 (a thunk completes once, before its coroutine is free)
// Spec: FB-17 (a join is a wait like any other)
// Spec: FB-18 (a fiber's error stays readable)
// Spec: NU-19 (every joiner gets the same error)
func TestManyWaitForOne(t *testing.T) {
	for _, workers := range []int{1, 2} {
		rt := on(t, coir.WithWorkers(workers))
		var f *coir.Fiber
		var all sync.WaitGroup
		err := rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
			gate, open := coir.WithCancelCause(coir.Shield(ctx))
			f = n.Go("fails", func(context.Context) error {
				_ = parkAt(gate)
				return errA
			})
			var waiting []*coir.Fiber
			for range 50 {
				waiting = append(waiting, n.Go("waits", func(context.Context) error {
					if err := f.Wait(context.Background()); err != errA { //nolint:errorlint // the very value is promised
						t.Errorf("a fiber was told %v", err)
					}
					return nil
				}))
			}
			for range 10 {
				all.Go(func() {
					if err := f.Wait(context.Background()); err != errA { //nolint:errorlint // the very value is promised
						t.Errorf("a goroutine was told %v", err)
					}
				})
			}
			yieldUntil(ctx, t, "they wait", func() bool {
				return waiting[0].State() == coir.StateWaiting && waiting[49].State() == coir.StateWaiting
			})
			open(nil)
			return nil
		})
		all.Wait()
		if !errors.Is(err, errA) || f.Wait(context.Background()) != errA { //nolint:errorlint // the very value is promised
			t.Errorf("Run: %v, Wait afterwards: %v", err, f.Wait(context.Background()))
		}
	}
}

// A wait that is given up leaves the fiber unchanged, and does not disturb the next wait.
//
// Spec: NU-20 (a join cut short leaves the fiber running)
func TestWaitIsGivenUp(t *testing.T) {
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		gate, open := coir.WithCancelCause(ctx)
		f := n.Go("slow", func(context.Context) error { return parkAt(gate) })
		for range 20 {
			short, cancel := coir.WithTimeout(ctx, 50*time.Microsecond)
			if err := f.Wait(short); !errors.Is(err, coir.ErrTimeout) {
				t.Errorf("Wait returned %v, want ErrTimeout", err)
			}
			cancel()
		}
		if s := f.State(); s != coir.StateWaiting {
			t.Errorf("it is %v, want %v", s, coir.StateWaiting)
		}
		open(nil)
		return f.Wait(ctx)
	}, nil)
}

func TestFiberThatWaitsForItself(t *testing.T) {
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		handle := make(chan *coir.Fiber, 1)
		f := n.Go("narcissus", func(ctx context.Context) error {
			err := (<-handle).Wait(ctx)
			if err == nil || !strings.Contains(err.Error(), "narcissus") {
				t.Errorf("Wait returned %v, want an error that names narcissus", err)
			}
			return nil
		})
		handle <- f
		return f.Wait(ctx)
	}, nil)
}

// watcher is an observer that asks each fiber everything that it can.
type watcher struct {
	mu     sync.Mutex
	events map[string]int
}

func (w *watcher) note(event string, f *coir.Fiber) {
	state := f.State()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events[event]++
	_ = fmt.Sprint(f.Name(), f.ID(), f.SpawnSite(), state)
}

func (w *watcher) FiberStarted(f *coir.Fiber)        { w.note("started", f) }
func (w *watcher) FiberParked(f *coir.Fiber)         { w.note("parked", f) }
func (w *watcher) FiberReady(f, _ *coir.Fiber)       { w.note("ready", f) }
func (w *watcher) FiberEnded(f *coir.Fiber, _ error) { w.note("ended", f) }
func (w *watcher) FiberStalled(s coir.Stall)         { w.note("stalled", s.Fiber) }

// An observer may ask a fiber for its state wherever it is called: under a limit, in a cancellation, at an end.
//
// Spec: OB-13 (an Observer sees every fiber event)
func TestObserverMayAsk(t *testing.T) {
	w := &watcher{events: map[string]int{}}
	rt := coir.NewRuntime(coir.WithWorkers(1), coir.WithObserver(w)) // closed only if it did not hang
	done := goes(func() {
		_ = rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
			n.Limit(2)
			for range 10 {
				n.Go("task", func(ctx context.Context) error {
					_ = n.Go("sub", func(ctx context.Context) error { return coir.Yield(ctx) }).Wait(ctx)
					return coir.Sleep(ctx, time.Hour)
				})
			}
			for range 100 {
				_ = coir.Yield(ctx)
			}
			n.Cancel(errA)
			return nil
		})
	})
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("hangs: an observer that asks for a fiber's state waits for a lock that its caller holds")
	}
	if err := rt.Close(context.Background()); err != nil {
		t.Error(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.events["started"] != 21 || w.events["ended"] != 21 || w.events["parked"] == 0 || w.events["ready"] == 0 {
		t.Errorf("the events are %v, want 21 started, 21 ended, and some parked and ready", w.events)
	}
}

// TestFiberLeavesItsWorkerAtAnOperationOnly: what asks and does not operate lets no other fiber run; the next operation
// does.
//
// Spec: FB-01 (a fiber leaves its worker only at an operation)
func TestFiberLeavesItsWorkerAtAnOperationOnly(t *testing.T) {
	rt := one(t)
	if err := rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		var ran atomic.Bool
		c := coir.NewChan[int](1)
		f := n.Go("other", func(context.Context) error {
			ran.Store(true)
			return nil
		})
		for i := range 10_000 {
			self := coir.Self(ctx)
			_ = fmt.Sprint(i, self.Name(), self.State(), self.ID(), f.State(), c.Len(), c.Cap(), ctx.Err(), n)
			_, _ = rt.Stats(), c.Stats()
			if ran.Load() {
				t.Fatalf("another fiber ran, though this one did nothing that lets it: round %d", i)
			}
		}
		yieldUntil(ctx, t, "the other fiber has run", ran.Load)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
