package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coir-go/coir/internal/chart"
)

// Why here and not there: beside the schedule that fails, one that passes and that has as many of the first decisions as
// possible in common with it. Package replay finds it, in the process of the test; see also package sim.

// diverge returns the operations of the failure and of its twin from the first on in which they differ, in the order in
// which they began; false if there is no twin.
func (r *result) diverge() (here, there []*step, ok bool) {
	if r.twin == nil || r.twin.result == nil || r.cut() || r.twin.cut() {
		return nil, nil, false
	}
	here, there = r.begun(), r.twin.begun()
	same := 0
	for same < min(len(here), len(there)) && here[same].n == there[same].n && !r.choice(here[same], there[same]) {
		same++
	}
	return here[same:], there[same:], same < len(here) && same < len(there)
}

// choice reports whether the decision that matters was which case of a select to take, of that step.
func (r *result) choice(here, there *step) bool {
	return r.twin.kind == selected && here.n == r.twin.step && here.chose != there.chose
}

// begun returns the steps of a report in the order of their operations. Those that have not begun come last.
func (r *result) begun() (all []*step) {
	add := func(s *step) {
		if s.inner == "" && !coirsOwn(s.place, s.via) {
			all = append(all, s)
		}
	}
	for _, s := range r.inOrder() {
		add(s)
	}
	for i := range r.stepsOf {
		if s := &r.stepsOf[i]; s.done == 0 {
			add(s)
		}
	}
	return all
}

// parts returns the step at which the failure went another way than its twin, or nil.
func (r *result) parts() *step {
	if here, _, ok := r.diverge(); ok {
		return here[0]
	}
	return nil
}

// parting says where the schedule went another way than one that passes.
func (r *result) parting(names map[int]string, dir string) string {
	var b strings.Builder
	switch t := r.twin; {
	case t == nil:
	case t.result == nil && t.decisions == 0:
		b.WriteString("there was nothing to decide: the test fails in its only schedule\n")
	case t.result == nil && t.sure:
		fmt.Fprintf(&b, "no schedule passes: all %s of them were tried\n", thousands(t.tried+1))
	case t.result == nil:
		fmt.Fprintf(&b, "each of %s that were tried instead fails too: it seems that the order does not matter\n",
			count(t.tried, "other schedule"))
	default:
		p := r.passing(names, dir)
		if p == nil {
			return ""
		}
		fmt.Fprintf(&b, "here it went another way: %s\n", p.Why)
		here, there, _ := r.diverge()
		chart.Beside(&b, "  ", r.listed(here, names, dir), r.twin.listed(there, r.twin.names(), dir), kinds[r.failure.kind])
		if t.sure {
			b.WriteString("  no schedule that passes has more in common with this one\n")
		} else {
			fmt.Fprintf(&b, "  of %s that were tried, this one passes and has the most in common\n", count(t.tried, "schedule"))
		}
	}
	return b.String()
}

// listed returns steps with their goroutines.
func (r *result) listed(steps []*step, names map[int]string, dir string) chart.Listing {
	l := chart.Listing{Names: make([]string, len(r.actors)+2)}
	for id, name := range names {
		for len(l.Names) <= id {
			l.Names = append(l.Names, "")
		}
		l.Names[id] = name
	}
	for _, s := range steps {
		d := r.drawn(s, s.g, dir)
		d.Text, d.Number = r.words(*s), 0 // numbers are in the order of the points before operations
		l.Steps = append(l.Steps, d)
	}
	return l
}

// passing returns the twin, as the chart has it; nil if there is none.
func (r *result) passing(names map[int]string, dir string) *chart.Twin {
	here, there, ok := r.diverge()
	if !ok {
		return nil
	}
	a, b := r.way(here[0], names, dir), r.twin.way(there[0], r.twin.names(), dir)
	if here[0].n == there[0].n {
		return r.drawnTwin(dir, here[0].n, there[0].n, fmt.Sprintf("%s; in the schedule that passes, %s", a, b))
	}
	return r.drawnTwin(dir, here[0].n, there[0].n,
		fmt.Sprintf("%s first; in the schedule that passes, %s first", a, b))
}

// way returns what a goroutine did, in words that are a sentence.
func (r *result) way(s *step, names map[int]string, dir string) string {
	at := ""
	if s.place.file != "" {
		at = fmt.Sprintf(", at %s:%d", short(s.place.file, dir), s.place.line)
	}
	return fmt.Sprintf("%s did %s%s", names[s.g], r.words(*s), at)
}

// drawnTwin returns the twin for the chart, in which the rows of the given steps are the first that differ.
func (r *result) drawnTwin(dir string, here, there int, why string) *chart.Twin {
	c := r.twin.chart(dir, "")
	return &chart.Twin{
		Of: c.Of, Objects: c.Objects, Steps: c.Steps, Starts: c.Starts, Arrows: c.Arrows, Here: r.rowOf(here), There: r.twin.rowOf(there), Why: why,
		Ends: fmt.Sprintf("the one fails (%s) after %s, the other passes after %s", kinds[r.failure.kind],
			count(r.failure.steps, "step"), thousands(r.twin.failure.steps)),
	}
}

// rowOf returns the row of a step in the chart.
func (r *result) rowOf(n int) (row int) {
	i := slices.IndexFunc(r.stepsOf, func(s step) bool { return s.n == n })
	for _, s := range r.stepsOf[:max(i, 0)] {
		if _, ok := r.actors[s.g]; ok && s.g != 1 && s.inner == "" {
			row++
		}
	}
	return row
}
