package report

import (
	"slices"

	"github.com/coir-go/coir/internal/chart"
)

// This file chooses the actors that have a column in a table.

// diverges returns the row at which the schedule diverges; -1 if there is none, or if it is unrelated to the failure.
func (t *Trace) diverges(all []chart.Step) int {
	switch {
	case t.Twin != nil && t.Twin.Here < len(all) && !t.Unrelated():
		return t.Twin.Here
	case t.Twin == nil && t.Forked > 0:
		return slices.IndexFunc(all, func(s chart.Step) bool { return s.Number > t.Forked })
	}
	return -1
}

// Unrelated reports whether a deadlock has a certain cycle, and the two steps at which the schedule and its twin
// diverge involve neither an actor of the cycle nor an object for which one waits. Then that difference does not
// explain the cycle, and a report leaves it out.
func (t *Trace) Unrelated() bool {
	who := t.FindCycle()
	if !t.Stuck || t.Twin == nil || len(who) == 0 || slices.ContainsFunc(t.way, func(e Edge) bool { return e.Likely }) {
		return false
	}
	var objects []string
	for _, i := range who {
		if since := t.Of[i].Since; since >= 0 && since < len(t.Steps) {
			objects = append(objects, t.Steps[since].On...)
		}
	}
	here, there := t.Twin.Here, t.Twin.There
	switch {
	case here < len(t.Steps) && (slices.Contains(who, t.Steps[here].Actor) || t.Steps[here].Uses(objects)):
		return false
	case there < len(t.Twin.Steps) && (slices.Contains(who, t.twinActor()) || t.Twin.Steps[there].Uses(objects)):
		return false
	}
	return true
}

// guilty returns the actors that always have a column: those that fail, and those of the row where the schedule
// diverges.
func (t *Trace) guilty(all []chart.Step, diverges int) (actors []int) {
	actors = slices.Clone(t.Failing)
	if diverges >= 0 {
		actors = append(actors, all[diverges].Actor)
		if i := t.twinActor(); i >= 0 {
			actors = append(actors, i)
		}
	}
	slices.Sort(actors)
	return slices.Compact(actors)
}

// twinActor returns the actor of the twin's first different step, or -1 if the schedule has no such actor.
func (t *Trace) twinActor() int {
	if t.Twin == nil || t.Twin.There >= len(t.Twin.Steps) {
		return -1
	}
	name := t.Twin.Of[t.Twin.Steps[t.Twin.There].Actor].Name
	return slices.IndexFunc(t.Of, func(a chart.Actor) bool { return a.Name == name })
}

// logged returns the rows of the last texts that the program logged, at most most.
func logged(all []chart.Step, most int) (rows []int) {
	for i := len(all) - 1; i >= 0 && len(rows) < most; i-- {
		if all[i].Logged {
			rows = append(rows, i)
		}
	}
	return rows
}

// rivals returns what the schedule and its twin both use where they diverge, and the actors that use that, the nearest
// to the divergence first: a reader needs them to see why the order matters there.
func (t *Trace) rivals(all []chart.Step, diverges int) (contested []string, actors []int) {
	if t.Twin == nil || t.Twin.There >= len(t.Twin.Steps) || diverges < 0 {
		return nil, nil
	}
	contested = common(all[diverges:], t.Twin.Steps[t.Twin.There:])
	far := map[int]int{}
	for i := range all {
		if s := &all[i]; s.Uses(contested) {
			before, ok := far[s.Actor]
			if !ok {
				actors = append(actors, s.Actor)
			}
			if away := abs(i - diverges); !ok || away < before {
				far[s.Actor] = away
			}
		}
	}
	slices.SortStableFunc(actors, func(a, b int) int { return far[a] - far[b] })
	return contested, actors
}

func abs(n int) int { return max(n, -n) }

// columns chooses the actors that get a column, at most most, and none of those in without. Only actors with a row
// can have one. First it adds those that a reader needs to understand the failure, the most important first. Then it
// adds the others; if more than mostColumns actors have a row, it adds them only up to fewColumns.
func (t *Trace) columns(all []chart.Step, diverges int, rivals []int, most int, without map[int]bool) []int {
	c := newColumnChoice(all, len(t.Of), most, without)
	end, waiting := t.failsAt(all), t.waitingActors()
	c.add(t.Failing...)
	if diverges >= 0 {
		c.add(all[diverges].Actor, t.twinActor())
		c.add(rivals...) // they use what both schedules use there
		c.add(all[max(diverges-1, 0)].Actor)
	}
	c.add(lastActor(all[:end])...)
	for _, i := range t.Failing {
		c.add(t.namesakes(i)...)
	}
	c.add(t.faulty()...)
	c.add(t.Decided...)
	for _, i := range logged(all, lateLogged) {
		c.add(all[i].Actor)
	}
	c.add(t.lastAtEachLine(waiting, all)...)
	for _, i := range t.Broken { // steps that were cut short
		if i < end {
			c.add(all[i].Actor)
		}
	}
	if c.acting > mostColumns {
		c.most = min(c.most, max(fewColumns, len(c.chosen)))
	}
	c.add(waiting...)
	for _, s := range slices.Backward(all[:end]) { // by their last step that has a text
		if !s.Mute && !s.Timed && s.Number > 0 && !t.Of[s.Actor].Idle {
			c.add(s.Actor)
		}
	}
	for _, s := range slices.Backward(all) {
		if t.Width == 0 || !t.Of[s.Actor].Idle {
			c.add(s.Actor)
		}
	}
	slices.Sort(c.chosen)
	return c.chosen
}

// columnChoice is the state of columns.
type columnChoice struct {
	open   []bool // the actors that may still be chosen
	acting int    // the number of actors with a row
	most   int
	chosen []int
}

func newColumnChoice(all []chart.Step, actors, most int, without map[int]bool) *columnChoice {
	c := &columnChoice{open: make([]bool, actors), most: most}
	for i := range all {
		if a := all[i].Actor; !c.open[a] {
			c.open[a] = true
			c.acting++
		}
	}
	for a := range c.open {
		c.open[a] = c.open[a] && !without[a]
	}
	return c
}

// add chooses actors. A negative number is no actor.
func (c *columnChoice) add(actors ...int) {
	for _, a := range actors {
		if a >= 0 && a < len(c.open) && c.open[a] && len(c.chosen) < c.most {
			c.open[a] = false
			c.chosen = append(c.chosen, a)
		}
	}
}

// failsAt returns the number of rows up to the failure.
func (t *Trace) failsAt(all []chart.Step) int {
	if t.FailedAt > 0 {
		if i := slices.IndexFunc(all, func(s chart.Step) bool { return s.Number > t.FailedAt }); i >= 0 {
			return i
		}
	}
	return len(all)
}

// lastActor returns the actor of the last step, if there is one.
func lastActor(all []chart.Step) []int {
	for _, s := range slices.Backward(all) {
		if s.Number > 0 {
			return []int{s.Actor}
		}
	}
	return nil
}

// waitingActors returns the actors that wait at the end, the one that has waited least first.
func (t *Trace) waitingActors() (waiting []int) {
	for i := range t.Of {
		if t.Of[i].Why != "" && !t.Of[i].Idle {
			waiting = append(waiting, i)
		}
	}
	slices.SortStableFunc(waiting, func(a, b int) int { return t.Of[b].Since - t.Of[a].Since })
	return waiting
}

// faulty returns the actors in which faults happened, the last first.
func (t *Trace) faulty() (actors []int) {
	faults, _ := t.Faults(mostFaults)
	for _, i := range slices.Backward(faults) {
		actors = append(actors, t.Steps[i].Actor)
	}
	return actors
}

// lastAtEachLine returns those of the waiting actors that are the last at their line.
func (t *Trace) lastAtEachLine(waiting []int, all []chart.Step) (last []int) {
	told := map[string]bool{}
	for _, i := range waiting {
		since := t.Of[i].Since
		if since < 0 || since >= len(all) {
			continue
		}
		if at := Place(all[since].Title); !told[at] {
			told[at] = true
			last = append(last, i)
		}
	}
	return last
}

// namesakes returns the actors that wait at the end and whose names differ from the name of an actor only in their
// number, if they are few: two actors that must not run at the same time often have one name.
func (t *Trace) namesakes(of int) (all []int) {
	const most = 2
	name, _, _, ok := numbered(t.Of[of].Label())
	for i := range t.Of {
		if head, _, _, _ := numbered(t.Of[i].Label()); ok && i != of && t.Of[i].Why != "" && head == name {
			all = append(all, i)
		}
	}
	if len(all) > most {
		return nil
	}
	return all
}
