package sim

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// A cancellation is one step, and so is a deadline: a fiber that it wakes does not run before it has ended all other
// waits. So the second fiber never closes the channel while the first one still waits on it. On other runtimes that can
// happen, as the package's documentation says. If sim shows it one day, this test fails: change the documentation too.
func TestACancelEndsItsWaitsInOneStep(t *testing.T) {
	large(t, "all schedules of four programs")
	for name, end := range map[string]func(ctx context.Context) (context.Context, func()){
		"deadline": func(ctx context.Context) (context.Context, func()) {
			ctx, _ = coir.WithTimeout(ctx, time.Second)
			return ctx, func() {}
		},
		"cancel": func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := coir.WithCancelCause(ctx)
			return ctx, func() { cancel(errGone) }
		},
	} {
		for _, mode := range []ClockMode{ClockIdle, ClockRacing} {
			seen := map[string]bool{}
			res := Explore(func(ctx context.Context, _ *Sim) {
				a, b := coir.NewChan[int](0), coir.NewChan[int](0)
				var first error
				inside, ends := end(ctx)
				_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
					n.Go("first", func(context.Context) error { _, first = b.Recv(inside); return nil })
					n.Go("second", func(context.Context) error { _, _ = a.Recv(inside); b.Close(); return nil })
					ends()
					return nil
				})
				switch {
				case errors.Is(first, coir.ErrClosed):
					seen["closed"] = true
				case errors.Is(first, coir.ErrTimeout) || errors.Is(first, context.Canceled):
					seen["ended"] = true
				default:
					seen[first.Error()] = true
				}
			}, WithStrategy(func(uint64) Strategy { return Exhaustive(-1) }), WithSchedules(100_000), WithClock(mode))
			if res.Failure != nil || !res.Complete {
				t.Fatalf("%s: complete %v after %d schedules: %v", name, res.Complete, res.Schedules, res.Failure)
			}
			if got := slices.Sorted(maps.Keys(seen)); !slices.Equal(got, []string{"ended"}) {
				t.Errorf("%s, clock %d: %v in %d schedules", name, mode, got, res.Schedules)
			}
		}
	}
}
