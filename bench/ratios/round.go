package main

import (
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/coir-go/coir/bench/internal/timing"
)

// A result is the result of a comparison over all its rounds.
type result struct {
	Name    string  `json:"name"`
	What    string  `json:"what"`
	Against string  `json:"against"`
	Unit    string  `json:"unit"`
	Coir    float64 `json:"coir"`  // median cost of an operation
	Other   float64 `json:"other"` // median cost of an operation
	Ratio   float64 `json:"ratio"` // median of the ratios of the rounds
	Lo      float64 `json:"lo"`    // first quartile of the ratios
	Hi      float64 `json:"hi"`    // third quartile of the ratios
	Allocs  float64 `json:"allocs"`
	Bound   float64 `json:"bound,omitempty"`
	Goal    float64 `json:"goal,omitempty"`
	Rounds  int     `json:"rounds"`
	CPU     bool    `json:"cpu,omitempty"` // costs are processor time
}

// String returns the line that the command prints.
func (r result) String() string {
	return fmt.Sprintf("%s coir=%s%s other=%s%s ratio=%.3f spread=%.3f..%.3f allocs=%.2f",
		r.Name, figure(r.Coir), r.Unit, figure(r.Other), r.Unit, r.Ratio, r.Lo, r.Hi, r.Allocs)
}

// figure formats a cost with its significant digits.
func figure(v float64) string {
	if v < 100 {
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.0f", v)
}

// compare runs both sides of c in turns, and returns the figures.
//
// In a round coir runs first, or the other side does, in turns, so that neither side always runs in the state that the
// other one left behind. The first round warms up and is discarded.
func compare(c *comparison, rounds int, target time.Duration, progress io.Writer) result {
	if c.procs > 0 {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(c.procs))
	}
	if rounds <= 0 {
		rounds = c.rounds
	}
	if c.round > target {
		target = c.round
	}
	a, b := prepare(c, c.coir(), target), prepare(c, c.other(), target)
	defer a.close()
	defer b.close()

	var coir, other, ratio, allocs []float64
	told := time.Now()
	for i := -1; i < rounds; i++ {
		var x, y sample
		if i%2 == 0 {
			x = a.round()
			y = b.round()
		} else {
			y = b.round()
			x = a.round()
		}
		if i < 0 {
			continue
		}
		coir = append(coir, x.Cost)
		other = append(other, y.Cost)
		ratio = append(ratio, x.Cost/y.Cost)
		allocs = append(allocs, x.Allocs)
		if time.Since(told) > 5*time.Second {
			told = time.Now()
			fmt.Fprintf(progress, "%s: round %d of %d: coir=%s%s other=%s%s\n",
				c.name, i+1, rounds, figure(x.Cost), c.unit, figure(y.Cost), c.unit)
		}
	}
	return result{
		Name: c.name, What: c.what, Against: c.against, Unit: c.unit, Bound: c.bound, Goal: c.goal, Rounds: rounds, CPU: *cpu,
		Coir: timing.Quantile(coir, 0.5), Other: timing.Quantile(other, 0.5),
		Ratio: timing.Quantile(ratio, 0.5), Lo: timing.Quantile(ratio, 0.25), Hi: timing.Quantile(ratio, 0.75),
		Allocs: timing.Quantile(allocs, 0.5),
	}
}

// A runner is a side with the length of its rounds.
type runner struct {
	side
	n   int // turns of the loop in a round
	ops int // operations in a turn
}

// prepare finds the number of turns that takes about target.
func prepare(c *comparison, s side, target time.Duration) *runner {
	r := &runner{side: s, n: 1, ops: max(c.ops, 1)}
	if r.side.close == nil {
		r.side.close = func() {}
	}
	if r.loop != nil {
		r.n = timing.Turns(*cpu, target, r.loop)
	}
	return r
}

// round runs the side once, after a garbage collection.
func (r *runner) round() sample {
	runtime.GC()
	if r.measure != nil {
		return r.measure()
	}
	return sampleOf(float64(r.n)*float64(r.ops), *cpu, func() { r.loop(r.n) })
}
