package sim

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/coir-go/coir"
)

// relay fails if four fibers pass a baton, each in its sixth round, against the order in which they were started. Each
// draws a number in every round, so that decisions mean something else as soon as an earlier one differs.
func relay(ctx context.Context, s *Sim) {
	const runners, rounds, pass = 4, 10, 5
	var baton atomic.Int32
	c := coir.NewChan[int](2, coir.WithName("c"))
	nursery(ctx, func(_ context.Context, n *coir.Nursery) {
		for i := range runners {
			n.Go("runner", func(ctx context.Context) error {
				for round := range rounds {
					if round == pass {
						baton.CompareAndSwap(int32(runners-1-i), int32(runners-i))
					}
					if s.Intn(2) == 0 {
						_ = c.TrySend(i)
					} else {
						_, _ = c.TryRecv()
					}
					_ = coir.Yield(ctx)
				}
				return nil
			}, coir.WithIndex(i))
		}
	})
	if baton.Load() == runners {
		s.Errorf("the baton has gone round")
	}
}

// However a failure was found, three of its decisions are left. If turns were not joined, 22 to 55 would be.
//
// Spec: SM-07 (a failing schedule is made smaller)
func TestShrinkKeepsLittle(t *testing.T) {
	large(t, "five failures of many steps")
	for seed := range uint64(5) {
		f := Explore(relay, WithSeed(seed), WithStrategy(Random), WithSchedules(50_000)).Failure
		if f == nil {
			t.Fatalf("seed %d: not found", seed)
		}
		if f.cut {
			t.Errorf("seed %d: there were not enough steps", seed)
		}
		if f.Switches > 3 {
			t.Errorf("seed %d: %d choices in %d steps", seed, f.Switches, f.Steps)
		}
	}
}

// A report says whether its schedule may still have decisions that do not matter.
func TestReportSaysThatItIsNotSmall(t *testing.T) {
	f := found(t, KindError, relay)
	const text = "  it was too long to be made as small as it could be"
	saysNot(t, f, text)
	f.cut = true
	says(t, f, "the baton has gone round\n"+text)
}
