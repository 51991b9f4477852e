package sim

import (
	"context"
	"math"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/search"
)

// observed is a strategy with a function that examines each schedule once it has been run.
type observed struct {
	Strategy
	w      *world
	values uint64 // the values that were chosen in the schedule
	each   func(w *world)
}

func (o *observed) Begin(schedule int) bool {
	o.look()
	o.values = 0
	return o.Strategy.Begin(schedule)
}

// look is also called after the last schedule.
func (o *observed) look() {
	if o.w != nil {
		o.each(o.w)
		o.w = nil
	}
}

//go:norace
func (o *observed) Choose(p *Fork) int {
	o.w = p.w
	d := o.Strategy.Choose(p)
	if p.Fiber(0) == search.Value {
		o.values = o.values*31 + uint64(d) + 1
	}
	return d
}

// exploreAll runs fn under s and calls each for every schedule.
func exploreAll(t *testing.T, s Strategy, schedules int, fn func(context.Context, *Sim), each func(o *observed, w *world),
	opts ...Option,
) Result {
	t.Helper()
	o := &observed{Strategy: s}
	o.each = func(w *world) { each(o, w) }
	res := Explore(fn, append(opts, WithSchedules(schedules), WithStrategy(func(uint64) Strategy { return o }))...)
	o.look()
	if res.Failure != nil {
		t.Fatal(res.Failure)
	}
	return res
}

// decisionsOf returns the schedule as one number.
func decisionsOf(w *world) uint64 {
	h := uint64(14695981039346656037)
	for _, d := range w.decisions[:w.ndec] {
		h = (h ^ uint64(d.chosen+1)) * 1099511628211
	}
	return h
}

// spread counts how often s takes each schedule of fn, after warm schedules, and returns the chi-square statistic
// against equal probability, and by how many standard deviations it is above its mean.
func spread(t *testing.T, s Strategy, fn func(context.Context, *Sim), warm, each int) (chi2, sigma float64) {
	t.Helper()
	counts := map[uint64]int{}
	all := exploreAll(t, Exhaustive(-1), math.MaxInt, fn, func(_ *observed, w *world) { counts[decisionsOf(w)] = 0 })
	if !all.Complete || len(counts) != all.Schedules {
		t.Fatalf("%d schedules, of which %d differ", all.Schedules, len(counts))
	}
	n := 0
	exploreAll(t, s, warm+each*len(counts), fn, func(_ *observed, w *world) {
		if n++; n > warm {
			h := decisionsOf(w)
			if _, ok := counts[h]; !ok {
				t.Fatal("a schedule that the exhaustive search has not seen")
			}
			counts[h]++
		}
	})
	for _, c := range counts {
		d := float64(c - each)
		chi2 += d * d / float64(each)
	}
	df := float64(len(counts) - 1)
	return chi2, (chi2 - df) / math.Sqrt(2*df)
}

// uneven is a program of a long fiber and a short one. With a coin toss at each point the short one almost always ends
// early.
func uneven(long int) program {
	return func(ctx context.Context, _ *Sim) {
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			for _, yields := range []int{long, 0} {
				n.Go("f", func(ctx context.Context) error {
					for range yields {
						_ = coir.Yield(ctx)
					}
					return nil
				})
			}
			return nil
		})
	}
}

func TestUniformGivesEveryScheduleTheSameChance(t *testing.T) {
	fn, each := uneven(2), 30
	if slowBuild() {
		fn, each = uneven(1), 8
	}
	chi2, sigma := spread(t, Uniform(1), fn, 100, each)
	t.Logf("uniform: chi-square %.0f, %.1f standard deviations above its mean", chi2, sigma)
	if sigma > 4 {
		t.Error("not uniform")
	}
	chi2, sigma = spread(t, Random(1), fn, 100, each)
	t.Logf("random: chi-square %.0f, %.1f standard deviations above its mean", chi2, sigma)
	if sigma < 50 {
		t.Error("the program does not tell uniform from random")
	}
}

func TestEveryStrategyIsTheSameAgainWithTheSameSeed(t *testing.T) {
	for _, make := range []func(uint64) Strategy{
		func(uint64) Strategy { return RoundRobin() },
		Random,
		Uniform,
		func(seed uint64) Strategy { return PCT(seed, 3) },
		func(uint64) Strategy { return Exhaustive(2) },
		func(uint64) Strategy { return DPOR() },
		Default,
	} {
		var runs [2][]uint64
		for i := range runs {
			exploreAll(t, make(7), 100, uneven(4), func(_ *observed, w *world) { runs[i] = append(runs[i], w.hash, decisionsOf(w)) })
		}
		name := make(7).Name()
		if len(runs[0]) == 0 || len(runs[0]) != len(runs[1]) {
			t.Fatalf("%s: %d and %d schedules", name, len(runs[0])/2, len(runs[1])/2)
		}
		for i := range runs[0] {
			if runs[0][i] != runs[1][i] {
				t.Fatalf("%s: schedule %d differs", name, i/2)
			}
		}
	}
}
