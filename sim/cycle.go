package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/report"
)

// The wait-for graph of a deadlock: why no fiber can help.

// children returns the remaining fibers of the nursery that fiber i joins, as far as they are certain: those whose name
// only fibers of that nursery have.
func (r *findings) children(i int) (kids []int) {
	on := r.fibers[i].on
	if on < 0 || r.before > 0 {
		return nil
	}
	for k, c := range r.fibers {
		if c.ended || k == i {
			continue
		}
		base := r.names[k]
		if !r.nests[nest{on, base}] {
			base = base[:max(strings.LastIndexByte(base, '['), 0)]
		}
		if r.nests[nest{on, base}] && !r.mixed[base] {
			kids = append(kids, k)
		}
	}
	return kids
}

// arrows returns the arrows that begin at fiber i.
func (r *findings) arrows(i int) (out []report.Edge) {
	c := &r.fibers[i]
	if !c.waits {
		return nil
	}
	if c.op.Kind == policy.Join {
		for _, to := range r.children(i) {
			out = append(out, report.Edge{To: to, Why: "waits for its child " + r.labels[to] + " to end"})
		}
	}
	for _, x := range r.wants(i) {
		why := "waits "
		if c.op.Kind == policy.Select {
			why += "in a select "
		}
		why += r.wish(x)
		switch x.op.Kind {
		case policy.Wait:
			if to, ok := r.number[x.object]; ok && !r.fibers[to].ended {
				out = append(out, report.Edge{To: to, Why: why})
			}
		case policy.Use:
			holders := r.holders(x)
			for _, h := range holders {
				if !r.fibers[h.fiber].ended {
					out = append(out, report.Edge{To: int(h.fiber), Why: why, Likely: len(holders) > 1})
				}
			}
		case policy.Send, policy.Recv:
			servers, known := r.servers(i, x)
			if known && len(servers) == 1 && servers[0].other(x.op.Kind) {
				to := servers[0].fiber
				why += ", which only " + r.labels[to] + " of the remaining fibers has also used"
				out = append(out, report.Edge{To: to, Why: why})
			} else if to := r.jammed(i, x); known && len(to) > 0 {
				out = append(out, r.jam(i, x, to, why))
			} else if to := r.others(servers, x.op.Kind); known && len(to) > 1 {
				how := ", from which only %s of the remaining fibers received"
				if x.op.Kind == policy.Recv {
					how = ", to which only %s of the remaining fibers sent"
				}
				why += fmt.Sprintf(how, r.list(to))
				for _, k := range to {
					out = append(out, report.Edge{To: k, Why: why, OneOf: to})
				}
			} else if to, how := r.holder(i, x); to >= 0 {
				out = append(out, report.Edge{To: to, Why: why + ", from which " + r.labels[to] + " " + how, Likely: true})
			}
		}
	}
	return out
}

// wants returns the things that fiber i waits for, each of which would let it continue. It is empty if fiber i waits
// for anything but channels, fibers and time.
func (r *findings) wants(i int) []choice {
	c := &r.fibers[i]
	switch c.op.Kind {
	case policy.Send, policy.Recv, policy.Wait, policy.Use:
		return []choice{{c.op, c.on}}
	case policy.Select:
		cases, _ := r.casesOf(c.cases)
		return cases
	}
	return nil
}

// other reports whether the fiber has been on the other side of the channel than an operation of kind k.
func (u user) other(k policy.Kind) bool {
	return k == policy.Send && u.takes || k == policy.Recv && u.sends
}

// servers returns the remaining fibers that have used the channel that fiber i waits on, except for those that wait on
// the same side. They are known if no remaining fiber has used a select that hides its channels, and the trace is
// complete.
func (r *findings) servers(i int, c choice) (left []user, known bool) {
	for _, u := range r.users[c.object] {
		if u.fiber != i && !r.fibers[u.fiber].ended && !r.beside(u.fiber, c) {
			left = append(left, u)
		}
	}
	for k, chose := range r.chose {
		if chose && k != i && !r.fibers[k].ended {
			return left, false
		}
	}
	return left, r.before == 0
}

// others returns those of some users of a channel that have been on the other side of it than an operation of kind k,
// if all of them wait.
func (r *findings) others(users []user, k policy.Kind) (all []int) {
	for _, u := range users {
		if !u.other(k) {
			continue
		}
		if !r.fibers[u.fiber].waits || r.ticks(u.fiber) {
			return nil
		}
		all = append(all, u.fiber)
	}
	return all
}

// jammed returns the remaining fibers that have been on the other side of the channel that fiber i waits on, if all of
// them now wait on the same side as it does, so that none of them can be on the other.
func (r *findings) jammed(i int, c choice) (all []int) {
	for _, u := range r.users[c.object] {
		switch {
		case r.fibers[u.fiber].ended || !u.other(c.op.Kind):
		case u.fiber != i && !r.beside(u.fiber, c):
			return nil
		default:
			all = append(all, u.fiber)
		}
	}
	return all
}

// jam returns the arrow from fiber i, which waits on c, to one of those that could have ended its wait.
func (r *findings) jam(i int, c choice, all []int, why string) report.Edge {
	to := all[0]
	if to == i && len(all) > 1 {
		to = all[1]
	}
	text := "%s, from which only %s received, and now %s to send to it"
	if c.op.Kind == policy.Recv {
		text = "%s, to which only %s sent, and now %s to receive from it"
	}
	switch {
	case len(all) > 1:
		return report.Edge{To: to, Why: fmt.Sprintf(text, why, r.list(all), "wait")}
	case to == i:
		return report.Edge{To: to, Why: fmt.Sprintf(text, why, "it itself", "waits")}
	}
	return report.Edge{To: to, Why: fmt.Sprintf(text, why, r.labels[to], "waits")}
}

// beside reports whether fiber k waits for c, perhaps among other things.
func (r *findings) beside(k int, c choice) bool {
	return r.fibers[k].waits && slices.ContainsFunc(r.wants(k), func(x choice) bool {
		return x.object == c.object && x.op.Kind == c.op.Kind
	})
}

// holder returns the last fiber that received from the channel that fiber i waits to receive from, and how, unless a
// fiber has sent to that channel since; or -1.
func (r *findings) holder(i int, c choice) (fiber int, how string) {
	if c.op.Kind != policy.Recv {
		return -1, ""
	}
	for s := len(r.trace) - 1; s >= 0; s-- {
		e := &r.trace[s]
		x := &r.fibers[e.fiber]
		if x.waits && x.step == s {
			continue // has not received
		}
		kind, object := r.effect(e)
		if object != c.object || !onChannel(kind) {
			continue
		}
		if (kind == policy.Recv || kind == policy.TryRecv) && int(e.fiber) != i && !x.ended && !r.beside(int(e.fiber), c) {
			return int(e.fiber), fmt.Sprintf("has taken a value at step %d", r.before+s+1)
		}
		return -1, ""
	}
	return -1, ""
}

// causes writes the cycle if there is one, and the channels for which no fiber is left.
func (r *findings) causes(b *strings.Builder) {
	if r.Kind != KindDeadlock {
		return
	}
	who, way := r.cycle()
	r.traced().SayCycle(b, who, way)
	told := map[string]bool{}
	for i, c := range r.fibers {
		if !c.waits {
			continue
		}
		for _, x := range r.wants(i) {
			r.abandoned(b, i, x, told)
		}
	}
}

// closed says that the channel was closed, if it was.
func (r *findings) closed(b *strings.Builder, c choice) {
	for s, e := range r.trace {
		if e.object == c.object && (e.op.Kind == policy.Close || e.op.Kind == policy.Abort) {
			how := "closed"
			if e.op.Kind == policy.Abort {
				how = "aborted"
			}
			fmt.Fprintf(b, "  %s was %s at step %d\n", r.channel(c.op, c.object), how, r.before+s+1)
			return
		}
	}
}

// alone reports whether it is certain that no fiber will serve c, for which fiber i waits: all others have ended, or
// wait only for c on the same side, or for one of those to end.
func (r *findings) alone(i int, c choice) bool {
	held := make([]bool, len(r.fibers))
	held[i] = true
	for k, x := range r.fibers {
		held[k] = held[k] || x.ended || len(r.wants(k)) == 1 && r.beside(k, c)
	}
	waitsForHeld := func(k int) bool {
		switch x := &r.fibers[k]; {
		case !x.waits:
			return false
		case x.op.Kind == policy.Join:
			return slices.ContainsFunc(r.children(k), func(kid int) bool { return held[kid] })
		case x.op.Kind == policy.Wait:
			to, ok := r.number[x.on]
			return ok && held[to] && !r.fibers[to].ended
		}
		return false
	}
	for again := true; again; {
		again = false
		for k := range held {
			if !held[k] && waitsForHeld(k) {
				held[k], again = true, true
			}
		}
	}
	return !slices.Contains(held, false)
}

// abandoned writes that no fiber is left, or known, that could serve what fiber i waits for, unless told already has
// it.
func (r *findings) abandoned(b *strings.Builder, i int, c choice, told map[string]bool) {
	var text string
	name := r.channel(c.op, c.object)
	switch c.op.Kind {
	case policy.Recv:
		text = "no fiber is left to send to or close " + name
	case policy.Send:
		text = "no fiber is left to receive from " + name
	case policy.Use:
		if c.op.Verb.Ends == "" {
			return
		}
		name = r.about(c)
		text = "no fiber is left to " + c.op.Verb.Ends + " " + name
	default:
		return
	}
	if told[text] {
		return
	}
	told[text] = true
	r.closed(b, c)
	if servers, known := r.servers(i, c); !known || len(servers) > 0 || len(r.strays) > 0 || len(r.jammed(i, c)) > 0 {
		return
	}
	var gone []int
	for _, u := range r.users[c.object] {
		if r.fibers[u.fiber].ended {
			gone = append(gone, u.fiber)
		}
	}
	if !r.alone(i, c) {
		text = "no other fiber has used " + name + " so far"
		if len(gone) > 0 {
			text = "no other remaining fiber has used " + name + " so far"
		}
	}
	if len(gone) > 0 {
		text += ": " + r.list(gone) + " used it, and ended"
	}
	if line := "  " + text + "\n"; !strings.Contains(b.String(), line) { // two channels may have one name
		b.WriteString(line)
	}
}

// cycle returns the shortest cycle of the wait-for graph and its arrows, or nil. Of many fibers it knows the first.
func (r *findings) cycle() ([]int, []report.Edge) {
	const most = 200
	graph := make([][]report.Edge, len(r.fibers))
	for i := range graph[:min(len(graph), most)] {
		graph[i] = r.arrows(i)
	}
	return report.Cycle(graph)
}
