package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/coir-go/coir/internal/chart"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/replay"
	"github.com/coir-go/coir/internal/report"
	"github.com/coir-go/coir/internal/search"
)

// Beside the schedule that fails, a report shows its twin: a schedule that passes, and shares as many of the first
// decisions as possible with it. If possible, it has no faults that the failing schedule does not have: then the
// difference is the order. The first decision in which the two differ is the one that matters: before it the program
// could still end well. Package replay finds the twin.

// twin is the result of the search for the twin of a failure.
type twin struct {
	replay.Pair
	passed *Failure // the schedule that passes, kept like a failure; nil if none was found
}

// branch is a decision, as a report shows it.
type branch struct {
	step   int32 // the number of operations before it
	by     int32 // the fiber that ran
	to     int32 // the fiber that runs now, or search.Clock or search.Value
	of     int   // the number of ways
	chosen int
	keep   bool   // the fiber that ran could continue
	drawn  bool   // the decision is a number that the program draws
	fault  string // if not empty, the decision is whether this fault happens
	whole  bool   // the decision is whether the fault happens in the schedule at all
}

// branch records the current decision.
//
//go:norace
func (w *world) branch(d int, keep bool) {
	if w.ndec >= len(w.branches) {
		w.branches = doubled(w.branches)
	}
	to := int32(search.Value)
	if w.ways[0] != search.Value {
		to = w.ways[d]
	}
	w.branches[w.ndec] = branch{
		step: int32(w.nsteps), by: w.current, to: to, of: w.decisions[w.ndec].of, chosen: d, keep: keep,
	}
}

// branchFault records that the last decision was about a fault.
//
//go:norace
func (w *world) branchFault(name string, whole bool) {
	if w.tells {
		w.branches[w.ndec-1].fault, w.branches[w.ndec-1].whole = name, whole
	}
}

// twinLimits limits the search for a twin to a part of a second.
var twinLimits = replay.Limits{Steps: 300_000, Schedules: 2000, All: 40_000}

// twin searches for the twin of a failure. It returns nil if a failure of this kind may not come again.
func (w *world) twin(ctx context.Context, s *Sim, fn func(context.Context, *Sim), f *Failure) *twin {
	if _, ok := w.strategy.(*drawn); ok || f.Kind == KindUncontrolled || f.branches == nil {
		return nil
	}
	failed := make([]replay.Decision, len(f.script))
	for i := range failed {
		failed[i] = replay.Decision{Way: f.script[i], Ways: f.ways[i], Fault: f.branches[i].fault != ""}
	}
	run := func(script []int, rule int) replay.Run {
		r, g := w.replayed(ctx, s, fn, script, &faultless{search.Rule(rule), w})
		if g != nil && g.Kind == KindBlocked {
			r.Steps = twinLimits.Steps // that takes real time, so try no more
		}
		return r
	}
	t := &twin{Pair: replay.Twin(failed, run, twinLimits)}
	if t.Twin == nil {
		return t
	}
	w.tells = true
	again := run(t.Twin, 0)
	w.tells = false
	if again.Fails || w.ndec <= t.At {
		return nil // the failure depends on more than its decisions
	}
	t.passed = new(Failure)
	w.tells = true
	t.passed.freeze(w)
	w.tells = false
	return t
}

// faultless is a strategy without faults.
type faultless struct {
	search.Strategy
	w *world
}

// Choose implements search.Strategy.
//
//go:norace
func (s *faultless) Choose(f *search.Fork) int {
	if s.w.fault.site > 0 {
		return 0
	}
	return s.Strategy.Choose(f)
}

// way returns which way the schedule went at a decision, as a sentence.
func (r *findings) way(at int) string {
	t := &r.branches[at]
	step := int(t.step) - r.before // the index of the next operation
	switch {
	case t.fault != "" && t.whole:
		if t.chosen == 0 {
			return "the fault " + shown(t.fault) + " was ruled out"
		}
		return "the fault " + shown(t.fault) + " was allowed" + r.firstFault(t.fault, max(step, 0))
	case t.fault != "":
		if t.chosen == 0 {
			return "the fault " + shown(t.fault) + " did not happen"
		}
		return "the fault " + shown(t.fault) + " happened"
	case t.to == search.Clock:
		if step >= 0 && step < len(r.trace) {
			return "time went on, to " + r.trace[step].at.String()
		}
		return "time went on"
	case t.to == search.Value:
		for _, d := range r.draws {
			if d.step == t.step && d.drawn == t.by+1 && d.chosen == t.chosen {
				return fmt.Sprintf("%s drew %d (intn %d)", r.labels[t.by], t.chosen, t.of)
			}
		}
		if e := step - 1; e >= 0 && e < len(r.trace) && r.trace[e].fiber == t.by && r.trace[e].cases.n >= 0 {
			return r.labels[t.by] + " " + r.chose(&r.trace[e]) + r.siteOf(e).at()
		}
		return fmt.Sprintf("%s took way %d of %d", r.labels[t.by], t.chosen, t.of)
	}
	verb := " ran"
	if t.keep && t.to == t.by {
		verb = " ran on"
	}
	for s := max(step, 0); s < len(r.trace); s++ {
		if e := &r.trace[s]; e.fiber == t.to && e.op.Kind != opGoOn {
			return fmt.Sprintf("%s%s (%s%s)", r.labels[t.to], verb, r.did(e), r.siteOf(s).at())
		}
	}
	return r.labels[t.to] + verb
}

// firstFault returns where an allowed fault happened first from an operation on, as words to append.
func (r *findings) firstFault(name string, from int) string {
	for s := from; s < len(r.trace); s++ {
		if e := &r.trace[s]; e.op.Kind == opFault && e.op.Name == name {
			return fmt.Sprintf(", and first happened at step %d", r.before+s+1)
		}
	}
	return ", but did not happen"
}

// chose returns which case a select took, in the past tense.
func (r *findings) chose(e *event) string {
	c, ok := r.chosen(e)
	switch {
	case !ok:
		return "took a case of " + r.did(e)
	case e.how.String() != "": // closed
	case c.op.Kind == policy.Send:
		return "sent to " + r.about(c) + " in a select"
	case c.op.Kind == policy.Recv:
		return "received from " + r.about(c) + " in a select"
	}
	_, what, _ := strings.Cut(r.did(e), " → ")
	return "chose " + what + " in a select"
}

// passing returns the twin in the form of the chart, or nil if there is none.
func (r *findings) passing() *chart.Twin {
	t := r.twin
	if t == nil || t.passed == nil || t.At >= len(r.branches) || t.At >= len(t.passed.branches) {
		return nil
	}
	q, step := newReportBeside(t.passed, r), int(r.branches[t.At].step)
	c := q.drawing()
	here, there := diverging(r.drawing().Steps, c.Steps, step)
	why := fmt.Sprintf("after step %d %s; in the schedule that passes, %s", step, r.way(t.At), q.way(t.At))
	return report.Twin(c, here, there, why, string(r.Kind), r.Steps, q.Steps)
}

// failedAt returns the number of the step at which the schedule fails: that of the last fiber that began to wait, not
// counting those that wait for time; or that of the first error or data race; or the last step. It returns 0 for a
// schedule that does not end.
func (r *findings) failedAt() (step int) {
	switch {
	case r.Kind == KindDeadlock:
		for _, w := range r.told.Waiting {
			if !w.Ticks && !slices.ContainsFunc(w.Wishes, func(x report.Wish) bool { return x.Timed }) {
				step = max(step, r.before+r.fibers[w.Actor].step+1)
			}
		}
		return step
	case r.Kind == KindLivelock:
		return 0
	case r.Kind == KindError:
		for _, m := range r.marks {
			if m.fails() {
				return m.step
			}
		}
	}
	return r.Steps
}

// diverging returns the first rows that two schedules do not have in common, given the step after which they diverge.
// The operation of that step is one of these rows if its outcome differs.
func diverging(here, there []chart.Step, step int) (i, j int) {
	first := func(rows []chart.Step, number int) int {
		for i := range rows {
			if rows[i].Number >= number {
				return i
			}
		}
		return len(rows)
	}
	i, j = first(here, step), first(there, step)
	if i < len(here) && j < len(there) && here[i].Number == step && there[j].Number == step &&
		here[i].Text != there[j].Text {
		return i, j
	}
	return first(here, step+1), first(there, step+1)
}

// sayDivergence writes where the schedule diverges from one that passes.
//
// Guarded by TestTwins.
func (r *findings) sayDivergence(b *strings.Builder) {
	t := r.twin
	if t == nil {
		return
	}
	p := &report.Divergence{
		Tried: t.Tried, Sure: t.Sure, Spared: t.Spared, What: "program", Decisions: len(r.script),
	}
	if t.Twin != nil {
		q := r.traced().Twin
		if q == nil {
			return
		}
		verdict, _, _ := strings.Cut(r.Text, "\n")
		p.Why, p.Verdict, p.Later = q.Why, string(r.Kind)+": "+verdict, r.failedAt()-int(r.branches[t.At].step)
		if q.Here < len(r.told.Steps) && r.told.Steps[q.Here].Number > r.before {
			p.Own = r.siteOf(r.told.Steps[q.Here].Number - r.before - 1).own()
		}
		p.Fails = report.Listing{Of: r.told.Of, Steps: r.told.Steps[q.Here:]}
		p.Passes = report.Listing{Of: q.Of, Steps: q.Steps[q.There:]}
	}
	r.traced().SayDivergence(b, p)
}
