package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coir-go/coir/internal/chart"
)

// Why here and not there: beside the schedule that fails, one that passes and that has as many of the first decisions as
// possible in common with it. Package replay finds it, in the process of the test; see also package sim.

// parting is where a failure and its twin part: the operations of both from the first on in which they differ, in the
// order in which they began.
type parting struct{ here, there []*step }

// diverge returns where the failure and its twin part; nil if there is no twin.
func (r *result) diverge() *parting {
	if r.parted != nil || r.twin == nil || r.twin.result == nil || r.cut() || r.twin.cut() {
		return r.parted
	}
	here, there := r.begun(), r.twin.begun()
	same := 0
	for same < min(len(here), len(there)) && here[same].n == there[same].n && !r.choice(here[same], there[same]) {
		same++
	}
	if same < len(here) && same < len(there) {
		r.parted = &parting{here[same:], there[same:]}
	}
	return r.parted
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
	if p := r.diverge(); p != nil {
		return p.here[0]
	}
	return nil
}

// parting says where the schedule went another way than one that passes.
func (r *result) parting(names map[int]string, dir string) string {
	t, p := r.twin, r.diverge()
	switch {
	case t == nil:
		return ""
	case t.result == nil:
		return chart.Alone("test", t.decisions, t.tried, t.sure) + "\n"
	case p == nil:
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "here it went another way: %s\n", r.why(p, names, dir))
	chart.Beside(&b, "  ", r.listed(p.here, names, dir), t.listed(p.there, t.names(), dir), kinds[r.failure.kind])
	fmt.Fprintf(&b, "  %s\n", chart.Found(t.tried, t.sure, r.failedAt()-p.here[0].n))
	return b.String()
}

// failedAt returns the number of the step at which the schedule fails: that of the last goroutine that began to wait,
// not counting those that wait for time; or that of the panic, or the last. What never ends has none, so it is 0.
func (r *result) failedAt() (n int) {
	switch r.failure.kind {
	case "deadlock", "leak":
	case "livelock":
		return 0
	default:
		return r.endStep()
	}
	for i := range r.stepsOf {
		s := &r.stepsOf[i]
		timed := slices.ContainsFunc(s.cases, func(c selectCase) bool { return r.made[c.object].timer })
		if s.last && r.stuck(s.g) && !timed && !r.made[s.object].timer {
			n = max(n, s.n)
		}
	}
	return n
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

// why returns which way the failure and its twin went where they part, in words.
func (r *result) why(p *parting, names map[int]string, dir string) string {
	a, b := r.way(p.here[0], names, dir), r.twin.way(p.there[0], r.twin.names(), dir)
	if p.here[0].n == p.there[0].n {
		return fmt.Sprintf("%s; in the schedule that passes, %s", a, b)
	}
	return fmt.Sprintf("%s first; in the schedule that passes, %s first", a, b)
}

// way returns what a goroutine did, in words that are a sentence.
func (r *result) way(s *step, names map[int]string, dir string) string {
	at := ""
	if s.place.file != "" {
		at = fmt.Sprintf(", at %s:%d", short(s.place.file, dir), s.place.line)
	}
	return fmt.Sprintf("%s did %s%s", names[s.g], r.words(*s), at)
}

// passing returns the twin, as the chart has it; nil if there is none.
func (r *result) passing(names map[int]string, dir string) *chart.Twin {
	p := r.diverge()
	if p == nil {
		return nil
	}
	c := r.twin.chart(dir, "")
	return &chart.Twin{
		Of: c.Of, Objects: c.Objects, Steps: c.Steps, Starts: c.Starts, Arrows: c.Arrows,
		Here: r.rowOf(p.here[0].n), There: r.twin.rowOf(p.there[0].n), Why: r.why(p, names, dir),
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
