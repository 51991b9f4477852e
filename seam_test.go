package coir_test

// The doors: a clock that is moved by hand, and a policy that decides the order of everything.

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// Fibers of a runtime with a clock of its own wait by that clock: however long they wait, it takes no time.
//
// Spec: TM-15
func TestFibersWaitByTheClockOfTheirRuntime(t *testing.T) {
	clock := coir.NewClock()
	rt := on(t, coir.Workers(1), coir.WithClock(clock))
	order := coir.NewChan[string](coir.Unlimited)
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
			return order.TrySend("scope over") // the scope is over
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
			for order.Len() < int(want/time.Hour) { // until whoever that was for has run
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
	got := slices.Collect(order.All(context.Background()))
	if want := []string{"timed out", "scope over", "slept"}; !slices.Equal(got, want) {
		t.Errorf("in this order: %v, want %v", got, want)
	}
}
