package sim

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

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

// storing stores each job once, unless the fault "after" happens: two of its decisions are enough to fail. The other
// faults make it try again, which changes the order of the fibers and the number of decisions.
func storing(ctx context.Context, s *Sim) {
	const workers, jobs = 2, 12
	prices := coir.NewChan[int](1, coir.WithName("prices"))
	stored := 0
	nursery(ctx, func(_ context.Context, n *coir.Nursery) {
		for i := range workers {
			n.Go("price", func(ctx context.Context) error {
				for range jobs {
					_ = coir.Sleep(ctx, time.Duration(s.Intn(3))*time.Millisecond)
					for range 2 {
						if !s.Fault("busy") {
							break
						}
						_ = coir.Sleep(ctx, 10*time.Millisecond)
					}
					_ = prices.Send(ctx, i)
				}
				return nil
			}, coir.WithIndex(i))
		}
		n.Go("store", func(ctx context.Context) error {
			for range workers * jobs {
				_, _ = prices.Recv(ctx)
				for range 2 {
					_ = coir.Sleep(ctx, time.Millisecond)
					if s.Fault("before") {
						continue
					}
					if stored++; !s.Fault("after") {
						break
					}
				}
			}
			return nil
		})
	})
	if stored > workers*jobs {
		s.Errorf("stored %d", stored)
	}
}

// However a failure was found, the faults that it does not need are removed. If a fault that a schedule does not have
// changed the meaning of the other decisions, more would be left.
//
// Spec: SM-07 (a failing schedule is made smaller)
func TestShrinkRemovesFaults(t *testing.T) {
	for seed := range uint64(5) {
		f := Explore(storing, WithSeed(seed), WithStrategy(Random), WithFaults("busy", "before", "after")).Failure
		if f == nil {
			t.Fatalf("seed %d: not found", seed)
		}
		if f.Switches != 2 {
			t.Errorf("seed %d: %d choices in %d steps, want 2", seed, f.Switches, f.Steps)
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
