package sim

import (
	"context"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
)

// pauses are ways to wait before the next try.
var pauses = map[string]func(ctx context.Context, d time.Duration) error{
	"sleep": coir.Sleep,
	"after": func(ctx context.Context, d time.Duration) error {
		_, err := coir.Select(ctx, coir.After(d))
		return err
	},
}

// backOff returns a program of two fibers that lock two mutexes in opposite orders. A fiber that does not get its
// second one at the first try unlocks the other, and tries again after its pause. It
// begins with a pause.
func backOff(pause func(context.Context, time.Duration) error, first, second time.Duration) program {
	return func(ctx context.Context, _ *Sim) {
		accounts, journal := locks.NewMutex(coir.WithName("accounts")), locks.NewMutex(coir.WithName("journal"))
		both := func(a, b *locks.Mutex, d time.Duration) func(ctx context.Context) error {
			return func(ctx context.Context) error {
				if err := pause(ctx, d); err != nil {
					return err
				}
				for {
					if err := a.Lock(ctx); err != nil {
						return err
					}
					done := b.TryLock()
					if done {
						b.Unlock()
					}
					a.Unlock()
					if done {
						return nil
					}
					if err := pause(ctx, d); err != nil {
						return err
					}
				}
			}
		}
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			n.Go("debit", both(accounts, journal, first))
			n.Go("credit", both(journal, accounts, second))
		})
	}
}

// A fiber that sleeps before it tries again leaves the others time to succeed. A schedule that has become too long must
// not take that time away, even if time races.
func TestRetriesAreNoLivelock(t *testing.T) {
	large(t, "retries of thousands of steps")
	for name, pause := range pauses {
		for what, fn := range map[string]program{
			"back off": backOff(pause, time.Millisecond, 30*time.Millisecond),
			"poll for what takes long": func(ctx context.Context, _ *Sim) {
				slots := locks.NewSemaphore(1, coir.WithName("slots"))
				slots.TryAcquire(1)
				nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
					for i := range 3 {
						n.Go("poller", func(ctx context.Context) error {
							for !slots.TryAcquire(1) {
								if err := pause(ctx, time.Millisecond); err != nil {
									return err
								}
							}
							slots.Release(1)
							return nil
						}, coir.WithIndex(i))
					}
					_ = coir.Sleep(ctx, time.Hour)
					slots.Release(1)
				})
			},
			"poll without a pause": func(ctx context.Context, _ *Sim) {
				var due coir.Event
				nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
					for i := range 2 {
						n.Go("poller", func(ctx context.Context) error {
							for !due.IsSet() {
								if err := coir.Yield(ctx); err != nil {
									return err
								}
							}
							return nil
						}, coir.WithIndex(i))
					}
					_ = pause(ctx, time.Second)
					due.Set()
				})
			},
		} {
			for _, strategy := range []func(uint64) Strategy{Default, func(uint64) Strategy { return Exhaustive(2) }} {
				res := Explore(fn, WithClock(ClockRacing), WithSteps(100), WithSchedules(2000), WithStrategy(strategy))
				if res.Failure != nil {
					t.Errorf("%s, by %s: %v", what, name, res.Failure)
				}
			}
		}
	}
}

// Fibers that sleep for the same time can keep each other from succeeding forever.
func TestEqualRetriesAreALivelock(t *testing.T) {
	large(t, "livelocks of retries")
	for name, pause := range pauses {
		for _, mode := range []ClockMode{ClockIdle, ClockRacing} {
			t.Run(name, func(t *testing.T) {
				f := found(t, KindLivelock, backOff(pause, time.Millisecond, time.Millisecond), WithClock(mode), WithSteps(400),
					WithStrategy(func(uint64) Strategy { return RoundRobin() }))
				says(t, f, "has not ended after")
			})
		}
	}
}
