package report

import (
	"slices"

	"github.com/coir-go/coir/internal/chart"
)

// This file chooses the actors that have a column in a table.

// diverges returns the row at which the schedule diverges; -1 if there is none.
func (t *Trace) diverges(all []chart.Step) int {
	switch {
	case t.Twin != nil && t.Twin.Here < len(all):
		return t.Twin.Here
	case t.Twin == nil && t.Forked > 0:
		return slices.IndexFunc(all, func(s chart.Step) bool { return s.Number > t.Forked })
	}
	return -1
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
// can have one. In this order it chooses: the actors that fail; those at the row where the schedule diverges; the
// rivals, which use what both schedules use there; the actor of the row before that; the actor of the last step before
// the failure; the namesakes of an actor that fails; those in which faults happened; those of the decisions in Decided;
// those that logged the last texts; of the actors that wait at the end, the last at each line; and those with steps
// that were cut short. Then it adds the other actors that wait, and others by their last step that has a text; if more
// than mostColumns actors have a row, it adds them only up to fewColumns.
func (t *Trace) columns(all []chart.Step, diverges int, rivals []int, most int, without map[int]bool) (actors []int) {
	acts, have, n := make([]bool, len(t.Of)), make([]bool, len(t.Of)), 0
	for i := range all {
		if !acts[all[i].Actor] {
			acts[all[i].Actor] = true
			n++
		}
	}
	add := func(i int) {
		if i >= 0 && i < len(acts) && acts[i] && !have[i] && !without[i] && len(actors) < most {
			have[i] = true
			actors = append(actors, i)
		}
	}
	for _, i := range t.Failing {
		add(i)
	}
	if diverges >= 0 {
		add(all[diverges].Actor)
		add(t.twinActor())
		for _, i := range rivals {
			add(i)
		}
		add(all[max(diverges-1, 0)].Actor)
	}
	end := len(all)
	if t.FailedAt > 0 {
		if i := slices.IndexFunc(all, func(s chart.Step) bool { return s.Number > t.FailedAt }); i >= 0 {
			end = i
		}
	}
	for i := end - 1; i >= 0; i-- {
		if all[i].Number > 0 {
			add(all[i].Actor)
			break
		}
	}
	var waiting []int
	for i := range t.Of {
		if t.Of[i].Why != "" {
			waiting = append(waiting, i)
		}
	}
	for _, i := range t.Failing {
		for _, k := range t.namesakes(i) {
			add(k)
		}
	}
	faults, _ := t.Faults(mostFaults)
	for _, i := range slices.Backward(faults) {
		add(t.Steps[i].Actor)
	}
	for _, i := range t.Decided {
		add(i)
	}
	for _, i := range logged(all, lateLogged) {
		add(all[i].Actor)
	}
	waiting = slices.DeleteFunc(waiting, func(i int) bool { return t.Of[i].Idle })
	slices.SortStableFunc(waiting, func(a, b int) int { return t.Of[b].Since - t.Of[a].Since })
	told := map[string]bool{}
	for _, i := range waiting {
		if since := t.Of[i].Since; since >= 0 && since < len(all) && !told[Place(all[since].Title)] {
			told[Place(all[since].Title)] = true
			add(i)
		}
	}
	for _, i := range t.Broken {
		if i < end {
			add(all[i].Actor)
		}
	}
	if n > mostColumns {
		most = min(most, max(fewColumns, len(actors)))
	}
	for _, i := range waiting {
		add(i)
	}
	for _, s := range slices.Backward(all[:end]) {
		if !s.Mute && !s.Timed && s.Number > 0 && !t.Of[s.Actor].Idle {
			add(s.Actor)
		}
	}
	for _, s := range slices.Backward(all) {
		if t.Width == 0 || !t.Of[s.Actor].Idle {
			add(s.Actor)
		}
	}
	slices.Sort(actors)
	return actors
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
