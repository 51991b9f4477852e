package coir_test

// Which case a select chooses if several are ready: with Select each has the same chance, and SelectPriority chooses
// the first.

import (
	"context"
	"errors"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// All cases are ready all the time, and each is chosen equally often: 8 cases of 8, 2 of 8, and in two selects that
// alternate.
//
// Spec: SE-07 (select is fair)
func TestSelectIsFair(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		rounds := 10_000
		if testing.Short() && !raceEnabled {
			rounds = 2_000
		}
		ready := make([]coir.Case, 8)
		for i := range ready {
			if i%2 == 0 {
				ready[i] = coir.NewChan[int](coir.Conflated).SendCase(1)
			} else {
				ch := coir.NewChan[int](0)
				ch.Close()
				ready[i] = ch.RecvCase(nil)
			}
		}
		two := make([]coir.Case, 8)
		for i := range two {
			two[i] = coir.NewChan[int](0).RecvCase(nil)
		}
		two[2], two[5] = ready[0], ready[1]
		even := func(what string, counts []int, of ...int) {
			for _, i := range of {
				if !likely(counts[i], rounds, len(of)) {
					t.Errorf("%s: case %d was chosen %d times of %d: %v", what, i, counts[i], rounds, counts)
				}
			}
		}
		c.did(func(ctx context.Context) {
			choose := func(counts []int, cases []coir.Case) {
				i, _ := coir.Select(ctx, cases...)
				counts[i]++
			}
			all, some := make([]int, 8), make([]int, 8)
			for range rounds {
				choose(all, ready)
			}
			even("8 of 8", all, 0, 1, 2, 3, 4, 5, 6, 7)
			for range rounds {
				choose(some, two)
			}
			even("2 of 8", some, 2, 5)
			all, some = make([]int, 8), make([]int, 8)
			for range rounds {
				choose(all, ready)
				choose(some, two)
			}
			even("8 of 8 in turn with 2 of 8", all, 0, 1, 2, 3, 4, 5, 6, 7)
			even("2 of 8 in turn with 8 of 8", some, 2, 5)
			all = make([]int, 8)
			for range rounds {
				i, _ := coir.TrySelect(ready...)
				all[i]++
			}
			even("TrySelect", all, 0, 1, 2, 3, 4, 5, 6, 7)
		})
	})
}

// likely reports whether one of n things that have the same chance may well be chosen count times in this many rounds:
// it is within six standard deviations.
func likely(count, rounds, n int) bool {
	mean := float64(rounds) / float64(n)
	return math.Abs(float64(count)-mean) <= 6*math.Sqrt(mean)
}

// Each case has the same chance even if the program does more selects after one choice than after another.
//
// Spec: SE-07 (select is fair)
func TestSelectIsFairWhateverFollows(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		closed := coir.NewChan[int](0)
		closed.Close()
		ready := closed.RecvCase(nil)
		c.did(func(ctx context.Context) {
			for _, cases := range [][]coir.Case{{ready, ready, ready}, {ready, ready, ready, {}, {}}} { // in both forms
				const rounds = 5_000
				var counts [3]int
				for range rounds {
					i, _ := coir.Select(ctx, cases...)
					counts[i]++
					for range []int{1, 2, 0}[i] {
						_, _ = coir.Select(ctx, ready, ready)
					}
				}
				for i, n := range counts {
					if !likely(n, rounds, len(counts)) {
						t.Errorf("%d cases: case %d was chosen %d times of %d: %v", len(cases), i, n, rounds, counts)
					}
				}
			}
		})
	})
}

// Many members select once each, concurrently: they do not all choose the same.
//
// Spec: SE-07 (select is fair)
func TestFirstSelectsOfManyAreFair(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		const people = 4_000
		a, b := coir.NewChan[int](coir.Conflated), coir.NewChan[int](coir.Conflated)
		gate := coir.NewChan[int](0)
		var counts [2]atomic.Int64
		for range people {
			c.do(func(ctx context.Context) {
				_, _ = gate.Recv(ctx)
				i, err := coir.Select(ctx, a.SendCase(1), b.SendCase(1))
				if err != nil {
					t.Error(err)
					return
				}
				counts[i].Add(1)
			})
		}
		waitFor(t, gate, 0, people)
		gate.Close()
		c.wait()
		// Not closer: while one channel is locked, the selects that chose it pile up, each with its turn, and the turns
		// go to others. How many they are depends on the machine.
		if n := counts[0].Load(); n < people*10/100 || n > people*90/100 {
			t.Errorf("%d of %d chose the first of two", n, people)
		}
	})
}

// Spec: SE-08 (SelectPriority takes the first ready case)
func TestSelectPriorityTakesTheFirst(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		var got [5]int
		full, closed := coir.NewChan[int](1), coir.NewChan[int](0)
		_ = full.TrySend(1)
		closed.Close()
		ended := c.n.Go("ended", func(context.Context) error { return nil })
		_ = ended.Wait(context.Background())
		never := [5]coir.Case{
			coir.NewChan[int](0).RecvCase(&got[0]), full.SendCase(2), {}, coir.NewChan[int](0).SendCase(1), coir.After(time.Hour),
		}
		ready := [5]coir.Case{
			closed.RecvCase(nil), coir.NewChan[int](coir.Unbounded).SendCase(1), ended.DoneCase(nil), closed.SendCase(1),
			coir.After(0),
		}
		c.did(func(ctx context.Context) {
			for mask := 1; mask < 1<<5; mask++ {
				cases, first := never, -1
				for i := range cases {
					if mask>>i&1 == 1 {
						cases[i] = ready[i]
						if first < 0 {
							first = i
						}
					}
				}
				for range 3 {
					i, err := coir.SelectPriority(ctx, cases[:]...)
					if i != first || (first == 0 || first == 3) != errors.Is(err, coir.ErrClosed) {
						t.Errorf("with %05b ready: %d, %v", mask, i, err)
					}
				}
			}
		})
		out := make(chan outcome, 1)
		a, b := coir.NewChan[int](0), coir.NewChan[int](0)
		c.do(func(ctx context.Context) {
			i, err := coir.SelectPriority(ctx, a.RecvCase(nil), b.RecvCase(&got[1]))
			out <- outcome{i, err}
		})
		waitFor(t, b, 0, 1)
		if err := b.TrySend(5); err != nil {
			t.Fatal(err)
		}
		if o := c.outcome(out); o.index != 1 || o.err != nil || got[1] != 5 {
			t.Errorf("Select returned %+v and received %d, want {1 <nil>} and 5", o, got[1])
		}
		waitFor(t, a, 0, 0)
	})
}
