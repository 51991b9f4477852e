package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coir-go/coir/internal/chart"
)

// The wait-for graph shows why no actor can end a deadlock. A report states only facts that the trace shows, and the
// trace does not show what an actor could still do. So the graph has two sorts of arrows. A certain arrow leads to an
// actor whose end is awaited, to the actor that holds a lock, or, for a channel, to the only remaining actor that ever
// used its other side. A likely arrow leads to one of several actors that hold something, or to the actor that has
// taken a value from a channel and has not put it back, as with a channel used as a lock. A cycle with a likely arrow
// is called likely.
//
// Package snapshot has another wait-for graph, for a live program. There are two because they know different things:
// a trace ends with a deadlock, and shows every operation before it, but holds only the waits of one moment; two
// snapshots of a live program show no operations, but which waits have lasted. So this graph asks who could still
// serve an object, and that one which fibers have not moved.

// Edge is an arrow of the wait-for graph.
type Edge struct {
	To     int
	Why    string // the wait, and why To could end it; empty: the wait itself shows that
	Likely bool   // it is a guess that To could end the wait
	OneOf  []int  // the actors, if each of several could end the wait
}

// user is an actor that has used an object.
type user struct {
	actor      int
	puts, gets bool // any operation that is not a receive counts as a put, because it may end the wait of a receiver
}

// other reports whether the actor has used the side of a channel opposite to what.
func (u user) other(what chart.Effect) bool {
	return what == chart.Put && u.gets || what == chart.Get && u.puts
}

// usersOf returns the actors that have used an object, in order.
func (t *Trace) usersOf(object int) []user {
	if t.users == nil {
		t.users = map[int][]user{}
		for _, e := range t.Events {
			for _, u := range e.Uses {
				if u.N > 0 {
					t.use(e.Actor, u)
				}
			}
		}
	}
	return t.users[object]
}

// use records that an actor has used an object.
func (t *Trace) use(actor int, u chart.Use) {
	all := t.users[u.Object]
	at := slices.IndexFunc(all, func(x user) bool { return x.actor == actor })
	if at < 0 {
		at, all = len(all), append(all, user{actor: actor})
		t.users[u.Object] = all
	}
	all[at].gets = all[at].gets || u.What == chart.Get
	all[at].puts = all[at].puts || u.What != chart.Get
}

// Abandoned reports whether an actor that does not move waits for something that no moving actor has ever served. Waits
// for a time, or for the end of an actor, do not count.
func (t *Trace) Abandoned(moves []bool) bool {
	return slices.ContainsFunc(t.Waiting, func(w Wait) bool {
		return !moves[w.Actor] && len(w.Wishes) > 0 && !slices.ContainsFunc(w.Wishes, func(x Wish) bool {
			return x.Timed || x.Ends == "" || slices.ContainsFunc(t.usersOf(x.Object), func(u user) bool {
				return moves[u.actor] && (u.other(x.What) || x.What != chart.Put && x.What != chart.Get)
			})
		})
	})
}

// waitOf returns the wait of an actor, or nil.
func (t *Trace) waitOf(actor int) *Wait {
	if t.waits == nil {
		t.waits = make([]*Wait, len(t.Of))
		for k := range t.Waiting {
			t.waits[t.Waiting[k].Actor] = &t.Waiting[k]
		}
	}
	return t.waits[actor]
}

// beside reports whether an actor waits for x, perhaps among other things.
func (t *Trace) beside(actor int, x *Wish) bool {
	w := t.waitOf(actor)
	return w != nil && slices.ContainsFunc(w.Wishes, func(y Wish) bool { return y.Object == x.Object && y.What == x.What })
}

// edges returns the arrows from a waiting actor. It returns arrows over channels only if channels is set.
func (t *Trace) edges(w *Wait, channels bool) (out []Edge) {
	for k := range w.Wishes {
		x := &w.Wishes[k]
		for _, to := range x.Of {
			if !t.Of[to].Ended {
				out = append(out, Edge{To: to})
			}
		}
		for _, h := range x.By {
			if !t.Of[h.Actor].Ended && h.Actor != w.Actor {
				out = append(out, Edge{To: h.Actor, Likely: x.Any && len(x.By) > 1})
			}
		}
		if channels && (x.What == chart.Put || x.What == chart.Get) {
			out = append(out, t.traffic(w, x)...)
		}
	}
	return out
}

// traffic returns the arrows over a channel from an actor that waits for x: to send to the channel, or to receive from
// it.
func (t *Trace) traffic(w *Wait, x *Wish) (out []Edge) {
	why := w.Does + " " + x.Text
	servers, known := t.servers(w.Actor, x)
	switched, others := t.switched(w.Actor, x), t.others(servers, x)
	switch {
	case known && len(servers) == 1 && servers[0].other(x.What):
		to := servers[0].actor
		why += fmt.Sprintf(", which only %s of the remaining %s has also used", t.Of[to].Name, t.Actors)
		return []Edge{{To: to, Why: why}}
	case known && len(switched) > 0:
		return []Edge{t.toSwitched(w.Actor, x, switched, why)}
	case known && len(others) > 1:
		how := ", from which only %s of the remaining %s received"
		if x.What == chart.Get {
			how = ", to which only %s of the remaining %s sent"
		}
		why += fmt.Sprintf(how, t.List(others), t.Actors)
		for _, k := range others {
			out = append(out, Edge{To: k, Why: why, OneOf: others})
		}
		return out
	}
	if to, step := t.lastReceiver(w.Actor, x); step > 0 {
		why += fmt.Sprintf(", from which %s has taken a value at step %d", t.Of[to].Name, step)
		return []Edge{{To: to, Why: why, Likely: true}}
	}
	return nil
}

// servers returns the remaining actors that have used the channel on which an actor waits, except for actors that wait
// on the same side. They are known if the trace is complete, and no other remaining actor has used objects that the
// trace does not show.
func (t *Trace) servers(actor int, x *Wish) (left []user, known bool) {
	for _, u := range t.usersOf(x.Object) {
		if u.actor != actor && !t.Of[u.actor].Ended && !t.beside(u.actor, x) {
			left = append(left, u)
		}
	}
	for k, hidden := range t.Hidden {
		if hidden && k != actor && !t.Of[k].Ended {
			return left, false
		}
	}
	return left, t.Complete
}

// others returns the users that have used the opposite side of the channel, or nil if one of them does not wait.
func (t *Trace) others(users []user, x *Wish) (all []int) {
	for _, u := range users {
		if !u.other(x.What) {
			continue
		}
		if w := t.waitOf(u.actor); w == nil || w.Ticks {
			return nil
		}
		all = append(all, u.actor)
	}
	return all
}

// switched returns the remaining actors that have used the other side of the channel on which an actor waits, if all of
// them now wait on the same side as that actor. Then none of them can use the other side.
func (t *Trace) switched(actor int, x *Wish) (all []int) {
	for _, u := range t.usersOf(x.Object) {
		switch {
		case t.Of[u.actor].Ended || !u.other(x.What):
		case u.actor != actor && !t.beside(u.actor, x):
			return nil
		default:
			all = append(all, u.actor)
		}
	}
	return all
}

// toSwitched returns the arrow from an actor to one of the actors that have switched to its side of the channel.
func (t *Trace) toSwitched(actor int, x *Wish, all []int, why string) Edge {
	to, who, now := all[0], t.List(all), "wait"
	switch {
	case to == actor && len(all) > 1:
		to = all[1]
	case len(all) == 1:
		now = "waits"
		if to == actor {
			who = "this " + t.one()
		}
	}
	text := "%s, from which only %s received, and now %s to send to it"
	if x.What == chart.Get {
		text = "%s, to which only %s sent, and now %s to receive from it"
	}
	return Edge{To: to, Why: fmt.Sprintf(text, why, who, now)}
}

// lastReceiver returns the last actor that received from the channel from which an actor waits to receive, and the
// step. The step is 0 if another operation on the channel came later.
func (t *Trace) lastReceiver(actor int, x *Wish) (by, step int) {
	if x.What != chart.Get {
		return 0, 0
	}
	for _, e := range slices.Backward(t.Events) {
		if e.Did < 0 || e.Out < Done || e.Uses[e.Did].Object != x.Object {
			continue
		}
		if e.Uses[e.Did].What == chart.Get && e.Actor != actor && !t.Of[e.Actor].Ended && !t.beside(e.Actor, x) {
			return e.Actor, e.Step
		}
		return 0, 0
	}
	return 0, 0
}

// SayCauses writes the cycle, if there is one, and the objects that no remaining actor serves.
func (t *Trace) SayCauses(b *strings.Builder) {
	t.sayCycle(b)
	told := map[string]bool{}
	for k := range t.Waiting {
		w := &t.Waiting[k]
		for n := range w.Wishes {
			t.abandoned(b, w.Actor, &w.Wishes[n], told)
		}
	}
}

// abandoned writes that no remaining or known actor could end the wait of an actor for x, unless that line was written
// before.
func (t *Trace) abandoned(b *strings.Builder, actor int, x *Wish, told map[string]bool) {
	text := "no " + t.one() + " is left to " + x.Ends + " " + x.Name
	if x.Ends == "" || told[text] {
		return
	}
	told[text] = true
	if x.Note != "" {
		t.line(b, "%s %s", x.Name, x.Note)
	}
	if servers, known := t.servers(actor, x); !known || len(servers) > 0 || t.Outside || len(t.switched(actor, x)) > 0 {
		return
	}
	var gone []int
	for _, u := range t.usersOf(x.Object) {
		if t.Of[u.actor].Ended {
			gone = append(gone, u.actor)
		}
	}
	if !t.alone(actor, x) {
		text = "no other " + t.one() + " has used " + x.Name + " so far"
		if len(gone) > 0 {
			text = "no other remaining " + t.one() + " has used " + x.Name + " so far"
		}
	}
	if len(gone) > 0 {
		text += ": " + t.List(gone) + " used it, and ended"
	}
	if !told[text+"."] { // two channels may have the same name
		told[text+"."] = true
		t.line(b, "%s", text)
	}
}

// alone reports whether it is certain that no actor will end the wait of an actor for x. It is certain if every other
// actor has ended, waits only for x, or waits only for the end of such an actor.
func (t *Trace) alone(actor int, x *Wish) bool {
	held := make([]bool, len(t.Of))
	for k := range held {
		w := t.waitOf(k)
		held[k] = k == actor || t.Of[k].Ended || w != nil && len(w.Wishes) == 1 && t.beside(k, x)
	}
	for again := true; again; {
		again = false
		for k := range held {
			if w := t.waitOf(k); !held[k] && w != nil && len(w.Wishes) == 1 &&
				slices.ContainsFunc(w.Wishes[0].Of, func(i int) bool { return held[i] && !t.Of[i].Ended }) {
				held[k], again = true, true
			}
		}
	}
	return !slices.Contains(held, false)
}

// FindCycle returns the shortest cycle of the wait-for graph, or nil. If many actors wait, only the first ones have
// arrows over channels.
func (t *Trace) FindCycle() []int {
	const most = 200
	if t.searched {
		return t.Cycle
	}
	graph := make([][]Edge, len(t.Of))
	for k := range t.Waiting {
		w := &t.Waiting[k]
		graph[w.Actor] = t.edges(w, k < most)
	}
	t.searched = true
	t.Cycle, t.way = cycle(graph)
	return t.Cycle
}

// Holders returns the actors that hold something for which others wait.
func (t *Trace) Holders() (all []int) {
	for _, w := range t.Waiting {
		for _, x := range w.Wishes {
			for _, h := range x.By {
				all = append(all, h.Actor)
			}
		}
	}
	return all
}

// sayCycle writes the cycle, if there is one. It does not repeat the lines about waits. If several actors could each
// end the wait of the actor before them, and wait for the same thing, one of them stands for all.
func (t *Trace) sayCycle(b *strings.Builder) {
	who, way := t.FindCycle(), t.way
	if len(who) == 0 {
		return
	}
	title := "cycle:"
	if slices.ContainsFunc(way, func(e Edge) bool { return e.Likely }) {
		title = "likely cycle:"
	}
	t.line(b, "%s", title)
	crowds := make([][]int, len(who)) // the actors that each actor of the cycle stands for
	for k, i := range who {
		crowds[k] = []int{i}
		if same := way[(k+len(who)-1)%len(who)].OneOf; len(same) > 0 && t.alike(same) {
			crowds[k] = same
		}
	}
	for k := range who {
		text := way[k].Why
		if text == "" {
			text = "waits for " + t.List(crowds[(k+1)%len(who)])
		}
		if len(crowds[k]) > 1 {
			text = plural(text)
		}
		t.line(b, "  %s %s", t.List(crowds[k]), text)
	}
}

// alike reports whether actors wait for the same thing, at the same line.
func (t *Trace) alike(actors []int) bool {
	first := t.waitOf(actors[0])
	return first != nil && !slices.ContainsFunc(actors, func(i int) bool {
		w := t.waitOf(i)
		return w == nil || t.Line(w) != t.Line(first)
	})
}

// cycle returns the shortest cycle of the wait-for graph and its arrows, or nil. It searches only the first part of a
// large graph. It removes arrows that lead nowhere.
func cycle(graph [][]Edge) (best []int, way []Edge) {
	const most = 200
	prune(graph)
	reached := make([]bool, len(graph)) // an actor to which no arrow leads is not in a cycle
	for _, edges := range graph {
		for _, e := range edges {
			reached[e.To] = true
		}
	}
	for from, left := 0, most; from < len(graph) && left > 0; from++ {
		if len(graph[from]) == 0 || !reached[from] {
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

// prune removes the arrows from an actor whose wait several actors could end, unless a chain of certain arrows leads
// from each of these actors back to it.
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
