package coir_test

// The hooks for simulation: a clock that is moved by hand, and a policy that decides the order of all steps.

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// Fibers of a runtime with its own clock wait by that clock: however long they wait, it takes no time.
//
// Spec: TM-15 (time comes in through Clock alone)
func TestFibersWaitByTheClockOfTheirRuntime(t *testing.T) {
	clock := coir.NewClock()
	rt := on(t, coir.WithWorkers(1), coir.WithClock(clock))
	order := coir.NewChan[string](coir.Unbounded)
	err := rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("sleeper", func(ctx context.Context) error {
			if err := coir.Sleep(ctx, 3*time.Hour); err != nil {
				return err
			}
			return order.Send(ctx, "slept")
		})
		n.Go("receiver", func(ctx context.Context) error {
			_, err := coir.NewChan[int](0).RecvTimeout(ctx, time.Hour)
			if !errors.Is(err, coir.ErrTimeout) {
				t.Errorf("receive without a sender: %v", err)
			}
			return order.Send(ctx, "timed out")
		})
		n.Go("scope", func(ctx context.Context) error {
			ctx, cancel := coir.WithTimeout(ctx, 2*time.Hour)
			defer cancel()
			if _, err := coir.NewChan[int](0).Recv(ctx); !errors.Is(err, coir.ErrTimeout) {
				t.Errorf("receive in a scope whose time is up: %v", err)
			}
			return order.TrySend("scope over") // the scope has ended
		})
		for clock.Len() < 3 {
			if err := coir.Yield(ctx); err != nil {
				return err
			}
		}
		for want := time.Hour; clock.AdvanceToNext(); want += time.Hour {
			if clock.Now() != want {
				t.Errorf("the clock stands at %v, want %v", clock.Now(), want)
			}
			for order.Len() < int(want/time.Hour) { // until the woken fiber has run
				if err := coir.Yield(ctx); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	order.Close()
	got, _ := collect(order.All(context.Background()))
	if want := []string{"timed out", "scope over", "slept"}; !slices.Equal(got, want) {
		t.Errorf("in this order: %v, want %v", got, want)
	}
}

// Goroutines and fibers of two runtimes move one clock concurrently: each wait by it ends, in time and once, and the
// clock moves by the sum.
//
// Spec: TM-15 (time comes in through Clock alone)
func TestClockIsMovedByMany(t *testing.T) {
	clock := coir.NewClock()
	slow := &hooked{onReady: func(*coir.Fiber) { runtime.Gosched() }} // others may run while the clock is moved
	stop := make(chan struct{})
	var movers sync.WaitGroup
	for range 3 {
		movers.Go(func() {
			for !closed(stop) {
				if !clock.AdvanceToNext() {
					runtime.Gosched()
				}
			}
		})
	}
	const fibers, rounds = 20, 30
	var all []<-chan struct{}
	for _, workers := range []int{1, 2} {
		rt := on(t, coir.WithWorkers(workers), coir.WithClock(clock), coir.WithObserver(slow))
		all = append(all, goes(func() {
			if err := rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
				for i := range fibers {
					n.Go("sleeper", func(ctx context.Context) error {
						for j := range rounds {
							d := time.Duration(i*j+1) * time.Second
							at := clock.Now()
							if err := coir.Sleep(ctx, d); err != nil {
								return err
							}
							if now := clock.Now(); now < at+d {
								t.Errorf("slept from %v to %v, and should have for %v", at, now, d)
							}
							clock.Advance(time.Millisecond)
						}
						return nil
					})
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		}))
	}
	for _, done := range all {
		within(t, time.Minute, "all have slept", done)
	}
	close(stop)
	movers.Wait()
	if clock.Len() != 0 || clock.Now() < 2*fibers*rounds*time.Millisecond {
		t.Errorf("the clock stands at %v, and %d wait", clock.Now(), clock.Len())
	}
}

// An observer that moves the clock which has just called it panics, instead of waiting for itself.
func TestClockIsNotMovedByWhatItWakes(t *testing.T) {
	clock := coir.NewClock()
	said := make(chan any, 100)
	rt := on(t, coir.WithWorkers(1), coir.WithClock(clock), coir.WithObserver(&hooked{onReady: func(*coir.Fiber) {
		defer func() {
			if r := recover(); r != nil {
				said <- r
			}
		}()
		clock.Advance(time.Second)
	}}))
	done := goes(func() {
		_ = rt.Run(context.Background(), func(ctx context.Context, _ *coir.Nursery) error {
			for len(said) == 0 { // a fiber that is woken while it parks is readied by its worker
				if err := coir.Sleep(ctx, time.Hour); err != nil {
					return err
				}
			}
			return nil
		})
	})
	eventually(t, "the clock wakes a fiber that sleeps", func() bool {
		clock.AdvanceToNext()
		return closed(done)
	})
	if text := fmt.Sprint(<-said); !strings.Contains(text, "coir: the clock is being moved already") {
		t.Error(text)
	}
}
