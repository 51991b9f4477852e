package main

import (
	"fmt"

	"github.com/coir-go/coir/bench/internal/timing"
)

// pairs holds the figures of one comparison. The i-th figures of base and work were measured one after the other. If
// the commit does not have the comparison, base is empty.
type pairs struct {
	name       string
	base, work []figure
}

// A spread is a median with its quartiles.
type spread struct{ median, lo, hi float64 }

func spreadOf(values []float64) spread {
	return spread{timing.Quantile(values, 0.5), timing.Quantile(values, 0.25), timing.Quantile(values, 0.75)}
}

// A row is the printed result of a comparison.
type row struct {
	name          string
	isNew         bool
	base, work    spread // of the ratios
	change        spread // of the quotient of work's and base's ratios in a pair, minus 1
	before, after float64
	bound, goal   float64
}

func (p pairs) row() row {
	var base, work, change, before, after []float64
	for i, w := range p.work {
		work = append(work, w.Ratio)
		after = append(after, w.Allocs)
		if i < len(p.base) {
			b := p.base[i]
			base = append(base, b.Ratio)
			before = append(before, b.Allocs)
			change = append(change, w.Ratio/b.Ratio-1)
		}
	}
	r := row{
		name: p.name, isNew: len(p.base) == 0, base: spreadOf(base), work: spreadOf(work), change: spreadOf(change),
		before: timing.Quantile(before, 0.5), after: timing.Quantile(after, 0.5),
	}
	if len(p.work) > 0 {
		r.bound, r.goal = p.work[0].Bound, p.work[0].Goal
	}
	return r
}

// last returns the newest pair, to show the progress.
func (p pairs) last() string {
	s := ""
	if n := len(p.base); n > 0 {
		s = fmt.Sprintf("base=%s ", ratio(p.base[n-1].Ratio))
	}
	return s + "work=" + ratio(p.work[len(p.work)-1].Ratio)
}

func (r row) String() string {
	base, change, allocs := "new", "", fmt.Sprintf("%.2f", r.after)
	if !r.isNew {
		base = r.base.ratios()
		change = " change=" + r.change.percent()
		allocs = fmt.Sprintf("%.2f->%.2f", r.before, r.after)
	}
	s := fmt.Sprintf("%s base=%s work=%s%s allocs=%s", r.name, base, r.work.ratios(), change, allocs)
	if r.bound > 0 {
		s += fmt.Sprintf(" at most %g, goal %g", r.bound, r.goal)
		if r.work.median > r.bound {
			s += ", missed"
		}
	}
	return s
}

const heading = "| name | before | now | change | at most | goal |\n|---|---|---|---|---|---|\n"

// markdown returns the row of a Markdown table. The name of a comparison that misses its bound is bold.
func (r row) markdown() string {
	name, base, change, bound, goal := r.name, "new", "", "", ""
	if !r.isNew {
		base, change = r.base.ratios(), r.change.percent()
	}
	if r.bound > 0 {
		bound, goal = fmt.Sprint(r.bound), fmt.Sprint(r.goal)
		if r.work.median > r.bound {
			name = "**" + name + "**"
		}
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s |", name, base, r.work.ratios(), change, bound, goal)
}

func (s spread) ratios() string {
	return fmt.Sprintf("%s (%s..%s)", ratio(s.median), ratio(s.lo), ratio(s.hi))
}

func (s spread) percent() string {
	return fmt.Sprintf("%+.0f %% (%+.0f..%+.0f)", 100*s.median, 100*s.lo, 100*s.hi)
}

// ratio formats a ratio with its significant digits.
func ratio(v float64) string {
	switch {
	case v < 0.1:
		return fmt.Sprintf("%.4f", v)
	case v < 10:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.1f", v)
}
