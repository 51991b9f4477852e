package report

import (
	"slices"
	"strings"
)

// Which actor waits for what at the end, and why none of them can end that.

// mostWaits is how many lines about waits a report has.
const mostWaits = 20

// Wait is an actor that waits at the end, or what else it does there for good.
type Wait struct {
	Actor int
	Need  string // what it does: waits to send to jobs
	At    string // where: jobs.go:12; empty: not known
	Same  string // those that have the same are told together; empty: none
}

// line returns what the actor does, and where.
func (w *Wait) line() string {
	if w.At == "" {
		return w.Need
	}
	return w.Need + ", at " + w.At
}

// SayWaits writes what actors wait for. Those that wait for the same are told together. more returns what else there is
// to say of some that are told together.
func (t *Trace) SayWaits(b *strings.Builder, more func(same []Wait) string) {
	crowds, width, left := Crowds(t.Waiting, func(w Wait) string { return w.Same }), 0, len(t.Waiting)
	for _, who := range crowds[:min(len(crowds), mostWaits)] {
		if t.Align && len(who) == 1 {
			width = max(width, len(t.Of[who[0].Actor].Name))
		}
	}
	for k, who := range crowds {
		first := &who[0]
		switch {
		case k == mostWaits:
			t.line(b, "... and %s more", t.noun(left))
			return
		case len(who) == 1:
			t.line(b, "%-*s %s%s", width, t.Of[first.Actor].Name, first.line(), more(who))
		case slices.ContainsFunc(who, func(w Wait) bool { return w.line() != first.line() }):
			t.line(b, "%s wait at %s%s; the first %s", t.names(who), first.At, more(who), first.Need)
		default:
			t.line(b, "%s wait%s%s", t.names(who), strings.TrimPrefix(first.line(), "waits"), more(who))
		}
		left -= len(who)
	}
}

// names lists the names of some that wait.
func (t *Trace) names(all []Wait) string {
	var names []string
	for _, w := range all {
		names = append(names, t.Of[w.Actor].Name)
	}
	return Names(names, 8)
}

// Edge is an arrow of the wait-for graph.
type Edge struct {
	To     int
	Why    string // what the actor does that waits
	Likely bool   // that To could end the wait is a guess
	OneOf  []int  // if each of several actors could end the wait: they
}

// SayCycle writes a cycle of the wait-for graph, as Cycle returns it. An actor stands for all that could end the wait
// of the one before it, if they wait for the same.
func (t *Trace) SayCycle(b *strings.Builder, who []int, way []Edge) {
	if len(who) == 0 {
		return
	}
	title := "cycle:"
	if slices.ContainsFunc(way, func(e Edge) bool { return e.Likely }) {
		title = "likely cycle:"
	}
	t.line(b, "%s", title)
	for k, i := range who {
		w, name := Wait{Need: way[k].Why}, t.Of[i].Name
		for _, own := range t.waitsOf([]int{i}) {
			w.At = own.At
		}
		same := t.waitsOf(way[(k+len(who)-1)%len(who)].OneOf)
		if len(same) > 0 && !slices.ContainsFunc(same, func(x Wait) bool { return x.line() != same[0].line() }) {
			name, w.Need = t.names(same), "wait"+strings.TrimPrefix(w.Need, "waits")
		}
		t.line(b, "  %s %s", name, w.line())
	}
}

// waitsOf returns the waits of some actors.
func (t *Trace) waitsOf(actors []int) (all []Wait) {
	for _, w := range t.Waiting {
		if slices.Contains(actors, w.Actor) {
			all = append(all, w)
		}
	}
	return all
}

// Cycle returns the shortest cycle of the wait-for graph and its arrows, or nil. It searches only the first part of a
// large graph. It removes arrows that lead nowhere.
func Cycle(graph [][]Edge) (best []int, way []Edge) {
	const most = 200
	prune(graph)
	for from, left := 0, most; from < len(graph) && left > 0; from++ {
		if len(graph[from]) == 0 {
			continue
		}
		left--
		// Breadth first, until an arrow leads back.
		type visit struct {
			actor, before int
			by            Edge
		}
		queue, seen := []visit{{actor: from, before: -1}}, map[int]bool{}
		for at := 0; at < len(queue); at++ {
			for _, e := range graph[queue[at].actor] {
				if e.To != from {
					if !seen[e.To] {
						seen[e.To] = true
						queue = append(queue, visit{e.To, at, e})
					}
					continue
				}
				who, edges := []int{}, []Edge{e}
				for v := at; v >= 0; v = queue[v].before {
					who = append(who, queue[v].actor)
					if queue[v].before >= 0 {
						edges = append(edges, queue[v].by)
					}
				}
				slices.Reverse(who)
				slices.Reverse(edges)
				if best == nil || len(who) < len(best) {
					best, way = who, edges
				}
				at = len(queue)
				break
			}
		}
	}
	return best, way
}

// prune removes the arrows to one of several actors that could end a wait, unless each of these certainly waits, at the
// end of a chain of arrows, for the actor that waits for them.
func prune(graph [][]Edge) {
	for again := true; again; {
		again = false
		for i := range graph {
			if !slices.ContainsFunc(graph[i], func(e Edge) bool { return e.OneOf != nil }) {
				continue
			}
			waits := waitingFor(graph, i)
			n := len(graph[i])
			graph[i] = slices.DeleteFunc(graph[i], func(e Edge) bool {
				return slices.ContainsFunc(e.OneOf, func(k int) bool { return !waits[k] })
			})
			again = again || len(graph[i]) < n
		}
	}
}

// waitingFor returns the actors from which a chain of certain arrows leads to actor i.
func waitingFor(graph [][]Edge, i int) (all []bool) {
	all = make([]bool, len(graph))
	leads := func(e Edge) bool { return !e.Likely && (e.To == i || all[e.To]) }
	for again := true; again; {
		again = false
		for k := range graph {
			if !all[k] && slices.ContainsFunc(graph[k], leads) {
				all[k], again = true, true
			}
		}
	}
	return all
}
