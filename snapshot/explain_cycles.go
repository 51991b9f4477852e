package snapshot

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// This file finds cycles of waits. The graph has a node for each fiber, and for each object, channel side and nursery
// that fibers wait for. So the graph is no larger than the snapshot, even if a thousand fibers wait for a lock that a
// thousand fibers hold.
//
// Each node is stuck or free:
//
//	a fiber                is stuck if it may be (see rule.fits) and each of its cases is stuck
//	a lock                 is stuck if each of its holders is stuck
//	a pool                 is stuck if all values are lent and each of the borrowers is stuck: a guess, because
//	                       another fiber may give a value back
//	the end of a fiber     is stuck if the fiber is stuck
//	the join of a nursery  is stuck if one of the children is stuck
//	a side of a channel    is stuck if the fibers that are known to have used the other side last are stuck: a guess
//
// All other waits are free. All nodes begin as stuck, and free nodes make others free. What remains is the largest set
// of fibers in which no fiber can continue before another fiber of the set does. If it is not empty, it has a cycle.
//
// The reports of sim and coir test have a wait-for graph of their own, in internal/report, because they know other
// things. A report has a trace of every operation before a deadlock. Two snapshots of a live program show no
// operations, but they show which waits have lasted.

// rule selects the waits that the graph includes.
type rule int

const (
	hard    rule = iota // only waits that are certainly stuck
	limited             // also waits that a limit or a cancel may end, and waits for pools
	soft                // also waits for channels, pools and semaphores, but none that a limit or a cancel may end
	loose               // also those: the waits of both limited and soft
)

// fits reports whether a fiber may be stuck.
func (r rule) fits(p *pair, f *both) bool {
	if !f.same || f.System || len(f.Wait) == 0 {
		return false
	}
	switch r {
	case hard:
		return !f.mayPass()
	case limited:
		return p.gap >= leastGap || p.old(f) // a limit of less than leastWait may end each of the waits
	case loose:
		return p.old(f)
	}
	return !f.mayPass() && p.old(f)
}

// passes reports whether the rule includes waits that a limit or a cancel may end.
func (r rule) passes() bool { return r == limited || r == loose }

// vertex is a node of the graph.
type vertex struct {
	out       []int // the vertices that it waits for; a fiber has one for each of its cases
	in        []int // the vertices that wait for it
	free      bool
	any       bool // the vertex is stuck if one of out is stuck; without any, if all of out are stuck
	left      int  // with any, how many of out are not free
	component int  // the number of the component that it belongs to or waits for, or -1
}

// target identifies a vertex that is not a fiber.
type target struct {
	kind WaitKind
	id   uint64
}

// graph is the wait-for graph. Its first vertices are the fibers that a first look does not show to be free. In a
// healthy program these are few.
type graph struct {
	*pair
	rule
	nodes []int // the fibers of the first vertices
	node  []int // the vertex of each fiber, or -1
	all   []vertex
	of    map[target]int // the vertex of each target, or -1 if the target is free
	some  [3]uint64      // the memory of what enders returns
}

// component is a strongly connected component of the graph that has a cycle: each of its vertices waits, directly or
// indirectly, for each other. Its fibers are in order.
type component struct{ fibers, all []int }

// findCycles reports the cycles of waits.
func (p *pair) findCycles() {
	for _, r := range []rule{hard, limited, soft, loose} {
		if r.passes() && !slices.ContainsFunc(p.fibers, both.mayPass) {
			continue
		}
		g := p.graph(r)
		components := slices.DeleteFunc(g.components(), func(x component) bool {
			return r.passes() && !slices.ContainsFunc(x.fibers, func(v int) bool { return g.at(v).mayPass() }) ||
				slices.ContainsFunc(x.fibers, func(v int) bool { return p.stuck[g.nodes[v]] }) // a surer rule has reported it
		})
		g.attribute(components)
		around := make([][]int, len(components)) // the fibers of each component, and the fibers that wait for them
		for v := range g.nodes {
			if k := g.all[v].component; k >= 0 {
				around[k] = append(around[k], v)
			}
		}
		for k, x := range components {
			g.tellComponent(x.fibers, around[k])
		}
	}
}

// mayPass reports whether a limit, a cancel or a context from outside of coir may end the wait of a fiber.
func (f both) mayPass() bool { return !f.limit.IsZero() || f.cancelled || f.foreign }

// at returns the fiber of a vertex.
func (g *graph) at(v int) *both { return &g.fibers[g.nodes[v]] }

// graph returns the wait-for graph for a rule, and marks its free vertices.
func (p *pair) graph(r rule) *graph {
	g := &graph{pair: p, rule: r, node: make([]int, len(p.fibers)), of: map[target]int{}}
	for i := range p.fibers {
		if g.node[i] = -1; r.fits(p, &p.fibers[i]) {
			g.node[i] = 0
		}
	}
	for i := range p.fibers {
		if g.node[i] == 0 && slices.ContainsFunc(p.fibers[i].Wait, func(w Wait) bool { return g.isFree(&p.fibers[i], w) }) {
			g.node[i] = -1
		}
	}
	for i := range p.fibers {
		if g.node[i] == 0 {
			g.node[i] = len(g.nodes)
			g.nodes = append(g.nodes, i)
		}
	}
	g.all = make([]vertex, len(g.nodes))
	g.connect()
	return g
}

// isFree reports whether a first look shows that a wait may end. If only one fiber could end the wait, isFree looks at
// that fiber.
func (g *graph) isFree(f *both, w Wait) bool {
	ids, ok := g.enders(f, w)
	return !ok || w.Kind != WaitJoin && len(ids) == 0 || len(ids) == 1 && g.fiber(ids[0]) < 0
}

// connect adds the arrows, and marks the free vertices.
func (g *graph) connect() {
	var free []int
	release := func(v int) {
		if !g.all[v].free {
			g.all[v].free = true
			free = append(free, v)
		}
	}
	for v, i := range g.nodes {
		for _, w := range g.fibers[i].Wait {
			to := g.waitFor(i, w)
			if to < 0 {
				release(v)
				break
			}
			g.all[v].out = append(g.all[v].out, to)
		}
	}
	for v := range g.all {
		for _, to := range g.all[v].out {
			g.all[to].in = append(g.all[to].in, v)
		}
		if g.all[v].left = len(g.all[v].out); g.all[v].left == 0 {
			release(v)
		}
	}
	for len(free) > 0 {
		v := free[len(free)-1]
		free = free[:len(free)-1]
		for _, from := range g.all[v].in {
			x := &g.all[from]
			if x.left--; !x.any || x.left == 0 {
				release(from)
			}
		}
	}
}

// enders returns the numbers of the fibers that could end a wait of f, or false if something else could end it. For a
// WaitJoin it returns no fibers.
func (g *graph) enders(f *both, w Wait) (ids []uint64, ok bool) {
	switch w.Kind {
	case WaitJoin:
		return nil, true
	case WaitEnd:
		return g.only(w.Fiber)
	case WaitSend, WaitRecv:
		if g.rule < soft && (g.rule != limited || !g.isPool(w.Object)) {
			return nil, false
		}
	}
	o := g.object(w.Object)
	switch {
	case o == nil:
	case w.Kind == WaitUse:
		// Often one fiber acquires a semaphore, and another one releases it.
		_, own := slices.BinarySearch(o.holders, f.ID)
		return o.holders, o.isLock() || g.rule >= soft && !own
	case o.Kind == pool:
		return o.holders, o.allLent()
	case o.Closed || o.before.Closed || o.moved():
	case w.Kind == WaitSend && o.Receivers == 0 && o.Receiver == o.before.Receiver:
		return g.only(o.Receiver, o.ReceiverBefore)
	case w.Kind == WaitRecv && o.Senders == 0 && o.Sender == o.before.Sender &&
		(o.Sender != f.ID || g.quiet): // if f was the last sender, it now waits for work that other fibers send
		return g.only(o.Sender, o.SenderBefore, g.lastReceiver(o))
	}
	return nil, false
}

// allLent reports whether all values of a pool were lent in both snapshots, to the same known fibers, and none has been
// given back in between.
func (o *thing) allLent() bool {
	return !o.Closed && !o.before.Closed && !o.moved() && o.Len >= o.Cap &&
		o.borrowersKnown() && len(o.before.Holders) == len(o.Holders)
}

// borrowersKnown reports whether the holders of a pool are known, and the same in both snapshots. A fiber is a holder
// for each value that it has.
func (o *thing) borrowersKnown() bool {
	return o.Kind == pool && len(o.holders) > 0 && len(o.Holders) == o.Len
}

// only returns the given fibers that have not ended. It returns false if the first of them is not known.
func (g *graph) only(ids ...uint64) (alive []uint64, ok bool) {
	alive = g.some[:0]
	for _, id := range ids {
		if i, ok := g.pair.fiber(id); ok && !slices.Contains(alive, id) && !g.fibers[i].System {
			alive = append(alive, id)
		}
	}
	return alive, ids[0] != 0
}

// lastReceiver returns the last known fiber that has received from the channel and does not wait to receive again, or
// 0. If the channel is used as a lock, that fiber may be about to send back the value that it has taken.
func (g *graph) lastReceiver(o *thing) uint64 {
	for _, id := range []uint64{o.Receiver, o.ReceiverBefore} {
		i, ok := g.pair.fiber(id)
		if !ok {
			return 0
		}
		if !slices.ContainsFunc(g.fibers[i].Wait, func(w Wait) bool { return w.Kind == WaitRecv && w.Object == o.ID }) {
			return id
		}
	}
	return 0
}

// waitFor returns the vertex that a wait of fiber i depends on, or -1 if the wait is free.
func (g *graph) waitFor(i int, w Wait) int {
	if w.Kind == WaitEnd {
		return g.fiber(w.Fiber)
	}
	t := target{w.Kind, w.Object}
	if w.Kind == WaitJoin {
		t.id = w.Nursery
	}
	if v, ok := g.of[t]; ok {
		return v
	}
	var out []int
	if w.Kind == WaitJoin {
		if n := g.familyOf(w.Nursery); n != nil {
			for _, k := range n.fibers {
				if k != i && g.node[k] >= 0 {
					out = append(out, g.node[k])
				}
			}
		}
		return g.vertex(t, out, true)
	}
	ids, _ := g.enders(&g.fibers[i], w)
	for _, id := range ids {
		v := g.fiber(id)
		if v < 0 {
			return g.vertex(t, nil, false)
		}
		out = append(out, v)
	}
	return g.vertex(t, out, false)
}

// fiber returns the vertex of a fiber, or -1 if it is free.
func (g *graph) fiber(id uint64) int {
	if i, ok := g.pair.fiber(id); ok {
		return g.node[i]
	}
	return -1
}

// vertex makes the vertex for a target, and returns it. If the vertex has no arrows, it is free, and vertex returns -1.
func (g *graph) vertex(t target, out []int, some bool) int {
	g.of[t] = -1
	if len(out) > 0 {
		g.of[t] = len(g.all)
		g.all = append(g.all, vertex{out: out, any: some})
	}
	return g.of[t]
}

// components returns the strongly connected components of the stuck vertices that have a cycle, ordered by their first
// fibers. It is Tarjan's algorithm without recursion.
func (g *graph) components() (components []component) {
	const unseen, done = 0, -1
	type visit struct{ v, next int }
	order := make([]int, len(g.all)) // the number of the visit, unseen or done
	low := make([]int, len(g.all))
	var path []visit
	var part []int
	n := 0
	enter := func(v int) {
		n++
		order[v], low[v] = n, n
		part, path = append(part, v), append(path, visit{v, 0})
	}
	for root := range g.nodes {
		if g.all[root].free || order[root] != unseen {
			continue
		}
		for enter(root); len(path) > 0; {
			top := &path[len(path)-1]
			v := top.v
			if top.next < len(g.all[v].out) {
				to := g.all[v].out[top.next]
				top.next++
				switch {
				case g.all[to].free || order[to] == done:
				case order[to] == unseen:
					enter(to)
				default:
					low[v] = min(low[v], order[to])
				}
				continue
			}
			path = path[:len(path)-1]
			if len(path) > 0 {
				low[path[len(path)-1].v] = min(low[path[len(path)-1].v], low[v])
			}
			if low[v] < order[v] {
				continue
			}
			at := len(part)
			for at == len(part) || part[at] != v {
				at--
				order[part[at]] = done
			}
			x := component{all: slices.Clone(part[at:])}
			part = part[:at]
			if len(x.all) > 1 || slices.Contains(g.all[v].out, v) {
				slices.Sort(x.all)
				after, _ := slices.BinarySearch(x.all, len(g.nodes))
				x.fibers = x.all[:after]
				components = append(components, x)
			}
		}
	}
	slices.SortFunc(components, func(a, b component) int { return a.fibers[0] - b.fibers[0] })
	return components
}

// attribute gives each stuck vertex the number of its component, or of a component that it waits for.
func (g *graph) attribute(components []component) {
	for v := range g.all {
		g.all[v].component = -1
	}
	var queue []int
	for k, x := range components {
		for _, v := range x.all {
			g.all[v].component = k
			queue = append(queue, v)
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		v := queue[0]
		for _, from := range g.all[v].in {
			if x := &g.all[from]; !x.free && x.component < 0 {
				x.component = g.all[v].component
				queue = append(queue, from)
			}
		}
	}
}

// link is a step of a cycle: a fiber, and the index of the wait that leads to the next fiber.
type link struct{ fiber, wait int }

// cycleOf returns a cycle through a component. It prefers a cycle without joins, if one of the first fibers has one,
// because a fiber that waits for its children is not the cause.
func (g *graph) cycleOf(component []int, start int) []link {
	const most = 8 // fibers
	for _, v := range component[:min(len(component), most)] {
		if way := g.cycle(v, true); way != nil {
			return way
		}
	}
	return g.cycle(component[start], false)
}

// cycle returns a shortest cycle from a fiber through its component, or nil. If childless, the cycle has no waits for
// children.
func (g *graph) cycle(start int, childless bool) (way []link) {
	type step struct{ v, from, edge int }
	steps, seen := []step{{start, -1, 0}}, map[int]bool{}
	component := g.all[start].component
	for at := 0; at < len(steps); at++ {
		for edge, to := range g.all[steps[at].v].out {
			if to == start {
				for k := at; k >= 0; k = steps[k].from {
					if v := steps[k].v; v < len(g.nodes) {
						way = append(way, link{g.nodes[v], edge})
					}
					edge = steps[k].edge
				}
				slices.Reverse(way)
				return way
			}
			if !seen[to] && !g.all[to].free && g.all[to].component == component && !(childless && g.all[to].any) {
				seen[to] = true
				steps = append(steps, step{to, at, edge})
			}
		}
	}
	return nil
}

// tellComponent reports a cycle among the fibers of a component. around lists these fibers and the fibers that wait for
// them.
func (g *graph) tellComponent(component, around []int) {
	start := slices.IndexFunc(component, func(v int) bool {
		return slices.ContainsFunc(g.at(v).Wait, func(w Wait) bool { return w.Kind != WaitRecv || g.isPool(w.Object) })
	})
	if start < 0 {
		if !g.quiet {
			return // fibers that wait for each other's next message are often only idle
		}
		start = 0
	}
	way := g.cycleOf(component, start)
	fibers := make([]int, len(way))
	in := make(map[int]bool, len(way))
	for k, l := range way {
		fibers[k], in[l.fiber] = l.fiber, true
	}
	var behind []int
	for _, v := range around {
		if i := g.nodes[v]; !in[i] {
			behind = append(behind, i)
		}
	}

	text := g.cycleText(way) + g.verdict(fibers)
	if len(behind) > 0 {
		text += "; " + g.names(behind) + pick(behind, " waits for ", " wait for ") + pick(fibers, "it", "them")
		if len(behind) > 1 {
			text += g.lasts(g.oldest(behind), behind)
		}
	}
	all := append(fibers, behind...)
	for _, v := range all {
		g.stuck[v] = true
	}
	var like []string
	var objects []uint64
	for _, l := range way {
		f := &g.fibers[l.fiber]
		w := f.Wait[l.wait]
		key := f.like() + "\x00" + string(w.Kind)
		if o := g.object(w.Object); o != nil {
			key += "\x00" + o.like()
			objects = append(objects, o.ID)
		}
		like = append(like, key)
	}
	slices.Sort(like)
	g.tell(ProblemDeadlock, strings.Join(like, "\x01"), text, all, g.newest(fibers), unique(objects)...)
	g.told[len(g.told)-1].Certain = g.rule == hard
}

// isPool reports whether the object is a pool.
func (p *pair) isPool(id uint64) bool {
	o := p.object(id)
	return o != nil && o.Kind == pool
}

// cycleText describes a cycle: a waits to lock B, held by b, which waits to lock A, held by a.
func (g *graph) cycleText(way []link) string {
	const most = 5 // the most fibers that are listed one by one
	var b strings.Builder
	b.WriteString(g.fibers[way[0].fiber].name())
	for k, l := range way {
		last := k == len(way)-1
		if len(way) > most+1 && k >= most-1 && !last {
			if k == most-1 {
				fmt.Fprintf(&b, "waits in the same way, as do the next %s; the last, %s, ",
					count(len(way)-most, "fiber"), g.fibers[way[len(way)-1].fiber].name())
			}
			continue
		}
		if k == 0 {
			b.WriteByte(' ')
		}
		b.WriteString(g.linkText(l, way[(k+1)%len(way)].fiber, last))
	}
	return b.String()
}

// linkText says what a fiber waits for, and which fiber could end the wait, in words that follow the name of the fiber.
// Unless the link is the last of the cycle, the next link follows.
func (g *graph) linkText(l link, to int, last bool) string {
	f := &g.fibers[l.fiber]
	w, text, name, which := f.Wait[l.wait], "waits", g.fibers[to].name(), ", which "
	if len(f.Wait) > 1 {
		text += fmt.Sprintf(" in a select, each of whose %d cases is stuck,", len(f.Wait))
	}
	text += " " + g.waitText(w, "its") + f.line()
	itself := to == l.fiber
	if last {
		which = ""
	}
	if itself {
		name = "itself"
	}
	switch {
	case w.Kind == WaitEnd:
		return text + which // the text has the name
	case w.Kind == WaitJoin:
		return text + ": " + name + which
	case w.Kind == WaitUse || g.isPool(w.Object):
		o := g.object(w.Object)
		n := len(o.holders)
		switch text += ", " + o.heldBy() + " "; {
		case n == 1:
			return text + name + which
		case last:
			return text + fmt.Sprintf("%d fibers, all of them stuck, one of which is %s", n, name)
		}
		return text + fmt.Sprintf("%d fibers, all of them stuck, of which %s ", n, name)
	}
	how := g.used(w, g.fibers[to].ID)
	switch {
	case itself:
		return text + ", and was itself" + how
	case last:
		return text + ", and " + name + " was" + how
	}
	return text + ", and " + name + ", which was" + how + ", "
}

// used says how a fiber that could end a wait has used the channel, in words that follow "was".
func (g *graph) used(w Wait, id uint64) string {
	o := g.object(w.Object)
	switch {
	case w.Kind == WaitSend && id == o.Receiver:
		return " the last to receive from it"
	case w.Kind == WaitSend:
		return " among the last to receive from it"
	case id == o.Sender:
		return " the last to send to it"
	case id == o.SenderBefore:
		return " among the last to send to it"
	}
	return " the last to receive from it" // see lastReceiver
}

// verdict says how certain a deadlock is, and how old, in words that follow the cycle. A cycle is as old as its
// youngest wait.
func (g *graph) verdict(fibers []int) string {
	age := g.ageOf(&g.fibers[fibers[0]])
	var limit time.Time
	cancelled, foreign, lines := false, false, false
	var sites []string
	for _, v := range fibers {
		f := &g.fibers[v]
		if a := g.ageOf(f); a.least || a.d < age.d && !age.least {
			age = a
		}
		limit = first(limit, f.limit)
		cancelled, foreign = cancelled || f.cancelled, foreign || f.foreign
		lines = lines || f.At != ""
		if s := place(f.Spawned); s != "" && len(sites) < mostNames && !slices.Contains(sites, s) {
			sites = append(sites, s)
		}
	}
	text := ": a deadlock"
	if g.rule != hard {
		text = ": likely a deadlock"
	}
	if age.d > 0 {
		text += ", for " + age.String()
	}
	switch left := limit.Sub(g.later.Taken); {
	case !g.passes():
	case !limit.IsZero() && left > 0:
		text += ", until a wait ends by itself in " + span{d: left}.String()
	case !limit.IsZero():
		text += ", until a wait ends by itself"
	case cancelled:
		text += ", although their nursery was cancelled"
	case foreign:
		text += ", unless the context of a wait ends"
	}
	if !lines && len(sites) > 0 {
		text += "; spawned at " + strings.Join(sites, ", ")
	}
	return text
}
