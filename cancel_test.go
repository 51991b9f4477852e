package coir_test

// Cancellation. A cancellation wakes each fiber that waits under it, once, through the same claim as every other end of
// a wait. When the awaited event, a cancellation and a deadline race, one of them wins, the wait returns its error, and
// no fiber is left behind. With the tag coirinvariants the scheduler panics if a fiber is enqueued twice.

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/soak"
)

// Spec: NU-06 (cancel wakes every parked child)
// Spec: NU-08 (cancel wakes each child once)
// Spec: PK-15 (the winner of a PARKED wait enqueues it once)
// Spec: PK-34 (cancellation is a wake like any other)
// Spec: FB-16 (a cancelled fiber is woken by the ordinary claim)
func TestCancelWakesEachOnce(t *testing.T) {
	fibers := sized(20_000, 100_000, 100_000)
	woken := make([]atomic.Int32, fibers) // how often each fiber was readied
	index := map[*coir.Fiber]int{}
	var counting atomic.Bool
	obs := &hooked{}
	obs.onReady = func(f *coir.Fiber) {
		if counting.Load() {
			if i, ok := index[f]; ok {
				woken[i].Add(1)
			}
		}
	}
	rt := newRuntime(t, coir.WithObserver(obs))
	var returned [3]atomic.Int64 // by how it waited: Wait, Sleep, a scope of its own
	err := rt.Run(t.Context(), func(ctx context.Context, outer *coir.Nursery) error {
		never := outer.Go("never", func(ctx context.Context) error {
			_ = coir.Sleep(ctx, time.Hour)
			return nil
		})
		defer outer.Cancel(nil)
		return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			all := make([]*coir.Fiber, fibers)
			for i := range all {
				all[i] = n.Go("waiter", func(ctx context.Context) error {
					var err error
					switch i % 3 {
					case 0:
						err = never.Wait(ctx)
					case 1:
						err = coir.Sleep(ctx, time.Hour)
					case 2:
						c, cancel := coir.WithTimeout(ctx, time.Hour)
						err = never.Wait(c)
						cancel()
					}
					if !isCancelIn(ctx, err, errStop) {
						t.Errorf("wait %d ended with %v", i%3, err)
					}
					returned[i%3].Add(1)
					return nil
				}, coir.WithIndex(i))
				index[all[i]] = i
			}
			for _, f := range all {
				for f.State() != coir.StateWaiting {
					if err := coir.Yield(ctx); err != nil {
						return err
					}
				}
			}
			counting.Store(true)
			start := time.Now()
			n.Cancel(errStop)
			n.Cancel(errors.New("a later cause"))
			t.Logf("cancel of %d: %v", fibers, time.Since(start))
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := returned[0].Load() + returned[1].Load() + returned[2].Load(); n != int64(fibers) {
		t.Fatalf("%d waits returned, of %d", n, fibers)
	}
	notified := 0
	for i := range woken {
		switch woken[i].Load() {
		case 1:
		case 0:
			notified++ // its park had not been committed: the committer put it back
		default:
			t.Fatalf("fiber %d was readied %d times", i, woken[i].Load())
		}
	}
	if notified > 10 {
		t.Errorf("%d fibers that waited were never readied", notified)
	}
}

// Each wait is for a child that may end at any moment, under a deadline and in a scope that may end at the same moment.
//
// Spec: PK-12 (the winner's reason carries kind and index)
// Spec: PK-14 (a wake between arm and commit is not lost)
// Spec: PK-18 (commit and wake never enqueue twice)
// Spec: PK-29 (no spurious returns)
// Spec: TM-11 (a late timer changes nothing)
// Spec: NU-20 (a join cut short leaves the fiber running)
// Spec: SC-08 (a fiber is enqueued once for each wake)
func TestOneOutcomeOfEachWait(t *testing.T) {
	waits := sized(50_000, 200_000, 10_000_000)
	for unit := time.Microsecond; ; unit *= 4 {
		data, cancelled, timedOut := raceForWaits(t, waits, unit)
		if min(data, cancelled, timedOut) >= int64(waits)/1000 {
			return
		}
		if unit > time.Millisecond {
			t.Fatal("the race was won too rarely by one side to show anything")
		}
		// On this machine a turn takes longer than all of these times: make them longer.
	}
}

// raceForWaits makes the three sides race, with times of up to 400 units, and counts the winners.
func raceForWaits(t *testing.T, waits int, unit time.Duration) (_, _, _ int64) {
	const fibers = 200
	rt := newRuntime(t)
	var data, cancelled, timedOut atomic.Int64
	start := time.Now()
	err := rt.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
		for i := range fibers {
			n.Go("waiter", func(ctx context.Context) error {
				r := rand.New(rand.NewPCG(uint64(i), 2))
				for range waits / fibers {
					var ended atomic.Bool
					c, cancel := coir.WithCancelCause(ctx)
					c, stop := coir.WithTimeout(c, time.Duration(r.IntN(400))*unit)
					sleep, yields, cancelSleep := r.IntN(3) == 0, r.IntN(4), r.IntN(3) == 0
					d, e := time.Duration(r.IntN(400))*unit, time.Duration(r.IntN(400))*unit
					child := n.Go("child", func(ctx context.Context) error {
						pause(ctx, sleep, d, yields)
						ended.Store(true)
						return nil
					})
					n.Go("canceller", func(ctx context.Context) error {
						pause(ctx, cancelSleep, e, yields)
						cancel(errStop)
						return nil
					})
					switch err := child.Wait(c); {
					case err == nil:
						data.Add(1)
						if !ended.Load() {
							t.Error("Wait returned nil before the child had ended")
						}
					case isCancelFor(err, errStop):
						cancelled.Add(1)
						if !isCancelIn(c, err, errStop) {
							t.Errorf("Wait was cancelled, its context says %v, for %v", c.Err(), context.Cause(c))
						}
					case errors.Is(err, coir.ErrTimeout) && !errors.Is(err, context.Canceled):
						timedOut.Add(1)
						if !errors.Is(c.Err(), context.DeadlineExceeded) {
							t.Errorf("Wait timed out, its context says %v", c.Err())
						}
					default:
						t.Errorf("Wait: %v", err)
					}
					stop()
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := data.Load(), cancelled.Load(), timedOut.Load()
	t.Logf("%d waits in %v: %d data, %d cancelled, %d timed out", waits, time.Since(start), a, b, c)
	if n := int64(waits / fibers * fibers); a+b+c != n {
		t.Fatalf("%d outcomes of %d waits", a+b+c, n)
	}
	return a, b, c
}

// pause lets some time pass, by the clock or by turns.
func pause(ctx context.Context, sleep bool, d time.Duration, yields int) {
	if sleep {
		_ = coir.Sleep(ctx, d)
		return
	}
	for range yields {
		_ = coir.Yield(ctx)
	}
}

// Many fibers and goroutines wait for one fiber, each with a deadline near that fiber's end: waiters that leave the
// queue race with the fiber that empties it.
//
// Spec: PK-25 (unpublishing is idempotent)
// Spec: PK-36 (a waker touches only what it has claimed)
// Spec: PK-38 (guests use the same word)
// Spec: FB-14 (a thunk completes once, before its coroutine is free)
// Spec: FB-20 (an operation blocks a goroutine as one)
func TestManyWaitForOneAndLeave(t *testing.T) {
	rounds := sized(300, 2_000, 100_000)
	const joiners = 16
	rt := newRuntime(t)
	var data, timedOut atomic.Int64
	for range rounds {
		err := rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
			end := time.Now().Add(400 * time.Microsecond)
			child := n.Go("child", func(ctx context.Context) error { return coir.Sleep(ctx, time.Until(end)) })
			join := func(ctx context.Context) error {
				c, stop := coir.WithDeadline(ctx, end.Add(time.Duration(rand.IntN(100)-50)*time.Microsecond))
				defer stop()
				switch err := child.Wait(c); {
				case err == nil:
					data.Add(1)
				case errors.Is(err, coir.ErrTimeout):
					timedOut.Add(1)
				default:
					return err
				}
				return nil
			}
			for range joiners {
				n.Go("joiner", join)
			}
			guests := make(chan error, 2)
			for range cap(guests) {
				go func() { guests <- join(ctx) }()
			}
			var errs []error
			blocking(ctx, func() {
				for range cap(guests) {
					errs = append(errs, <-guests)
				}
			})
			return errors.Join(errs...)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d data, %d timed out", data.Load(), timedOut.Load())
	if n := int64(rounds * (joiners + 2)); data.Load()+timedOut.Load() != n {
		t.Fatalf("%d outcomes of %d waits", data.Load()+timedOut.Load(), n)
	}
}

// Two fibers wait for a third, and the second is cancelled at the moment when that ends: it leaves the queue while the
// first is being woken.
//
// Spec: PK-25 (unpublishing is idempotent)
// Spec: FB-14 (a thunk completes once, before its coroutine is free)
func TestLeavingTheLineAtTheEnd(t *testing.T) {
	rounds := sized(50, 300, 20_000)
	const groups = 100
	rt := newRuntime(t)
	var first, second atomic.Int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range rounds {
			err := rt.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
				for range 2 {
					n.Go("spawner", func(ctx context.Context) error {
						for range groups {
							leaveAtTheEnd(n, &first, &second)
							_ = coir.Yield(ctx)
						}
						return nil
					})
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	}()
	limit := 2 * time.Minute
	if soak.On() {
		limit = 10 * time.Minute
	}
	within(t, limit, "all groups ended", done)
	if n := int64(rounds * 2 * groups); first.Load() != n || second.Load() != n {
		t.Fatalf("%d and %d waits of %d returned", first.Load(), second.Load(), n)
	}
}

func leaveAtTheEnd(n *coir.Nursery, first, second *atomic.Int64) {
	child := n.Go("child", func(ctx context.Context) error {
		pause(ctx, false, 0, rand.IntN(3))
		return nil
	})
	n.Go("first", func(ctx context.Context) error {
		defer first.Add(1)
		return child.Wait(ctx)
	})
	var cancel atomic.Pointer[context.CancelCauseFunc]
	n.Go("second", func(ctx context.Context) error {
		defer second.Add(1)
		c, stop := coir.WithCancelCause(ctx)
		cancel.Store(&stop)
		if err := child.Wait(c); err != nil && !isCancelIn(c, err, errStop) {
			return err
		}
		return nil
	})
	n.Go("canceller", func(ctx context.Context) error {
		for cancel.Load() == nil {
			_ = coir.Yield(ctx)
		}
		pause(ctx, false, 0, rand.IntN(3))
		(*cancel.Load())(errStop)
		return nil
	})
}

// A nursery is cancelled while its fibers wait for each other, begin, sleep, and end.
//
// Spec: NU-01 (a nursery completes after every child)
// Spec: NU-06 (cancel wakes every parked child)
// Spec: NU-08 (cancel wakes each child once)
func TestCancelAtAnyMoment(t *testing.T) {
	rounds := sized(1_000, 10_000, 500_000)
	rt := newRuntime(t)
	for round := range rounds {
		var live atomic.Int64
		err := rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
			var last *coir.Fiber
			for i := range 16 {
				before := last
				live.Add(1)
				last = n.Go("link", func(ctx context.Context) error {
					defer live.Add(-1)
					switch {
					case before == nil:
						return coir.Sleep(ctx, time.Hour)
					case i%4 == 1:
						return coir.Run(ctx, func(ctx context.Context, _ *coir.Nursery) error { return before.Wait(ctx) })
					case i%4 == 2:
						c, cancel := coir.WithCancelCause(ctx)
						defer cancel(nil)
						return before.Wait(c)
					}
					return before.Wait(ctx)
				})
			}
			for range rand.IntN(20) {
				_ = coir.Yield(ctx)
			}
			n.Cancel(errStop)
			return nil
		})
		if !isCancelFor(err, errStop) {
			t.Fatalf("round %d: Run returned %v", round, err)
		}
		if live.Load() != 0 {
			t.Fatalf("round %d: Run returned with %d fibers alive", round, live.Load())
		}
	}
}

// pair is two fibers that wake each other for as long as both want to: each waits in its own scope, and is woken by the
// cancel of that scope.
type pair struct {
	never *coir.Fiber // what both wait for, until one wants to stop
	end   context.CancelCauseFunc
	over  atomic.Bool
	wake  [2]atomic.Pointer[context.CancelCauseFunc]
}

func newPair(ctx context.Context, n *coir.Nursery) *pair {
	p := new(pair)
	c, end := coir.WithCancelCause(ctx)
	p.end = end
	p.never = n.Go("never", func(context.Context) error {
		_ = coir.Sleep(c, 24*time.Hour)
		return nil
	})
	return p
}

// play is one side. It runs until turn returns false, on this side or on the other. At any time at least one side is
// awake: a side that waits has left its cancel function where the other side, which leaves its own first, must find it.
func (p *pair) play(ctx context.Context, side int, turn func() bool) {
	for turn() && !p.over.Load() {
		c, cancel := coir.WithCancelCause(ctx)
		p.wake[side].Store(&cancel)
		if other := p.wake[1-side].Swap(nil); other != nil {
			(*other)(nil)
		}
		_ = p.never.Wait(c)
		cancel(nil)
	}
	p.over.Store(true)
	p.end(nil)
}

// TestCancelCostsOneClaimAChild counts the claims: those that won, and those that came late.
//
// Spec: NU-22 (a cancel costs one claim a child)
func TestCancelCostsOneClaimAChild(t *testing.T) {
	const children = 1000
	rt := one(t)
	if err := rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		never := coir.NewEvent()
		for range children {
			n.Go("waiter", func(ctx context.Context) error { return never.Wait(ctx) })
		}
		for rt.Stats().Runnable > 0 {
			if err := coir.Yield(ctx); err != nil {
				return err
			}
		}
		before := rt.Stats()
		n.Cancel(nil)
		after := rt.Stats()
		if won, late := after.Woken-before.Woken, after.Late-before.Late; won != children || late != 0 {
			t.Errorf("a cancel of %d children made %d claims that won and %d that came late", children, won, late)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

// TestChildrenEndDuringACancel: a cancellation that is stopped at its second child holds nothing that the first needs
// to end.
//
// Spec: NU-22 (a cancel costs one claim a child)
func TestChildrenEndDuringACancel(t *testing.T) {
	var n *coir.Nursery
	var all string // n with all its children
	var woken atomic.Int32
	var cancelling atomic.Bool
	obs := &hooked{onReady: func(*coir.Fiber) {
		if !cancelling.Load() || woken.Add(1) != 2 {
			return
		}
		for end := time.Now().Add(patience); n.String() == all; runtime.Gosched() {
			if time.Now().After(end) {
				t.Error("the first child does not end while the second is being cancelled")
				return
			}
		}
	}}
	rt := newRuntime(t, coir.WithWorkers(2), coir.WithObserver(obs))
	never := coir.NewEvent()
	if err := rt.Run(t.Context(), func(_ context.Context, in *coir.Nursery) error {
		n = in
		var waiters []*coir.Fiber
		for range 3 {
			waiters = append(waiters, n.Go("waiter", func(ctx context.Context) error { return never.Wait(ctx) }))
		}
		for _, f := range waiters {
			for f.State() != coir.StateWaiting {
				runtime.Gosched()
			}
		}
		all = n.String()
		cancelling.Store(true)
		n.Cancel(nil)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
