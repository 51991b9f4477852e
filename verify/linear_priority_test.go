package verify

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/soak"
)

// For a short time after a wait has timed out, its cell stays in the queue and makes the channel look ready. A select
// by order that finds such a cell for its first case must go on to the other cases, and must not wait. In this test the
// last case is always ready, so the select must never be seen waiting.
//
// The order of operations does not reveal this fault, because the start of a wait cannot be observed, and the time is
// short: the wait must start and time out between the select's first check of the channel and the lock. So this test
// makes that time long: the channel is locked after many others, and the receiver that has timed out is a fiber whose
// worker is busy.
//
// Spec: SE-06 (a ready case needs no registration)
func TestPriorityGoesOnToTheNextCase(t *testing.T) {
	const others = 1000
	rounds := int64(3000)
	switch {
	case soak.On():
		rounds = 100_000
	case testing.Short():
		rounds = 500
	}
	full := coir.NewChan[int](1)
	cases := make([]coir.Case, 1, others+2)
	for range others {
		cases = append(cases, coir.NewChan[int](0).RecvCase(nil))
	}
	cases = append(cases, full.RecvCase(nil))
	first := coir.NewChan[int](0)
	cases[0] = first.SendCase(1)

	rt := coir.NewRuntime(coir.WithWorkers(1))
	defer closeSoon(t, rt)
	var done, seen atomic.Int64
	var all sync.WaitGroup
	all.Go(func() {
		_ = rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
			n.Go("receiver", func(ctx context.Context) error {
				for done.Load() < rounds {
					_, _ = first.RecvTimeout(ctx, time.Microsecond)
				}
				return nil
			})
			n.Go("busy", func(ctx context.Context) error {
				for done.Load() < rounds {
					for began := time.Now(); time.Since(began) < 100*time.Microsecond; {
					}
					_ = coir.Yield(ctx)
				}
				return nil
			})
			return nil
		})
	})
	all.Go(func() {
		for done.Load() < rounds {
			if full.Stats().Recv.Waiting > 0 {
				seen.Add(1)
			}
			runtime.Gosched()
		}
	})
	for done.Load() < rounds {
		_ = full.TrySend(2)
		if _, err := coir.SelectPriority(context.Background(), cases...); err != nil {
			t.Error(err)
			break
		}
		done.Add(1)
	}
	done.Store(rounds)
	all.Wait()
	if n := seen.Load(); n > 0 {
		t.Errorf("the select was seen waiting %d times for a channel that had a value", n)
	}
}
