package pace_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/pace"
	"github.com/coir-go/coir/sim"
)

// onVirtualTime runs fn in a simulation, so that the examples take no time.
func onVirtualTime(fn func(ctx context.Context, n *coir.Nursery) error) {
	sim.Explore(func(ctx context.Context, s *sim.Sim) {
		if err := coir.Run(ctx, fn); err != nil {
			s.Errorf("%v", err)
		}
	}, sim.WithSchedules(1))
}

// A fiber does something every second. It was busy for a while and missed some ticks.
func ExampleTicker() {
	onVirtualTime(func(ctx context.Context, _ *coir.Nursery) error {
		tick := pace.NewTicker(time.Second)
		for i := range 4 {
			n, err := tick.Wait(ctx)
			if err != nil {
				return err
			}
			fmt.Println("ticks:", n)
			if i == 1 {
				if err := coir.Sleep(ctx, 3500*time.Millisecond); err != nil {
					return err
				}
			}
		}
		return nil
	})
	// Output:
	// ticks: 1
	// ticks: 1
	// ticks: 3
	// ticks: 1
}

// A batch is written when it is full, and otherwise at the next tick.
func ExampleTicker_WaitCase() {
	onVirtualTime(func(ctx context.Context, n *coir.Nursery) error {
		lines := coir.NewChan[string](10)
		n.Go("source", func(ctx context.Context) error {
			defer lines.Close()
			for _, line := range []string{"a", "b", "c"} {
				if err := lines.Send(ctx, line); err != nil {
					return err
				}
			}
			return coir.Sleep(ctx, time.Minute)
		})
		flush := pace.NewTicker(time.Second, coir.WithName("flush"))
		var batch []string
		for {
			var line string
			which, err := coir.SelectPriority(ctx, lines.RecvCase(&line), flush.WaitCase(nil))
			switch {
			case err != nil:
				return nil // no more lines
			case which == 0:
				batch = append(batch, line)
			}
			if len(batch) == 2 || which == 1 && len(batch) > 0 {
				fmt.Println("write", batch)
				batch = nil
			}
		}
	})
	// Output:
	// write [a b]
	// write [c]
}

// Two calls are made immediately, and then one each second.
func ExampleLimiter() {
	onVirtualTime(func(ctx context.Context, _ *coir.Nursery) error {
		api := pace.NewLimiter(time.Second, 2, coir.WithName("api"))
		began := coir.Now(ctx)
		for range 4 {
			if err := api.Wait(ctx); err != nil {
				return err
			}
			fmt.Println("call at", coir.Now(ctx)-began)
		}
		fmt.Println("another one now:", api.TryWaitN(1))
		return nil
	})
	// Output:
	// call at 0s
	// call at 0s
	// call at 1s
	// call at 2s
	// another one now: false
}

// A server that is down at first is called again, after a wait that grows.
func ExampleRetry() {
	onVirtualTime(func(ctx context.Context, _ *coir.Nursery) error {
		calls := 0
		err := pace.Retry(ctx, 5, 100*time.Millisecond, 10*time.Second, func(context.Context) error {
			if calls++; calls < 3 {
				return errors.New("connection refused")
			}
			return nil
		})
		fmt.Println("calls:", calls, "error:", err)
		return nil
	})
	// Output: calls: 3 error: <nil>
}

// An error that no retry can mend ends the retries.
func ExamplePermanent() {
	onVirtualTime(func(ctx context.Context, _ *coir.Nursery) error {
		err := pace.Retry(ctx, 5, 100*time.Millisecond, 10*time.Second, func(context.Context) error {
			return pace.Permanent(errors.New("no such user"))
		})
		fmt.Println(err)
		return nil
	})
	// Output: no such user
}
