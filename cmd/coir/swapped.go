package main

import (
	"fmt"

	"github.com/coir-go/coir/cmd/coir/internal/coir"
)

// The steps at which two schedules diverge often have nothing to do with each other: one goroutine sends a request, or
// another one starts a third. What matters is a later consequence: two operations on one object change places. This
// file finds the first of these.

// swap is an operation on an object, as the failure and its twin both have it.
type swap struct {
	who    string
	object string
	op     int
	nth    int // its position among those of this goroutine on this object
}

// swaps returns the operations of steps on objects, in order, and their steps.
func (r *record) swaps(steps []*step) (all []swap, by map[swap]*step) {
	const most = 2000
	n, count := r.name(), map[swap]int{}
	by = map[swap]*step{}
	add := func(s *step, op, object int) {
		x := swap{who: n.goroutines[r.actors[r.by(s.g, s.n)]], object: r.object(op, object), op: op}
		if x.object == "" || r.made[object].timer {
			return
		}
		count[x]++
		x.nth = count[x]
		all, by[x] = append(all, x), s
	}
	for _, s := range steps[:min(len(steps), most)] {
		switch {
		case s.aside || s.serviced:
		case s.op != coir.OpSelect:
			add(s, s.op, s.object)
		default:
			for _, c := range s.cases {
				if c.n == s.chose-1 {
					add(s, map[bool]int{false: coir.OpRecv, true: coir.OpSend}[c.send], c.object)
				}
			}
		}
	}
	return all, by
}

// conflicts reports whether the order of two operations on one object matters.
func conflicts(a, b int) bool {
	is := func(op int, of ...int) bool {
		for _, x := range of {
			if op == x {
				return true
			}
		}
		return false
	}
	locks := func(op int) bool { return is(op, coir.OpLock, coir.OpTryLock, coir.OpWLock, coir.OpTryWLock) }
	reads := func(op int) bool {
		return is(op, coir.OpRLock, coir.OpTryRLock, coir.OpAtomicLoad, coir.OpMapLoad)
	}
	writes := func(op int) bool {
		return locks(op) || is(op, coir.OpAtomicStore, coir.OpAtomicSwap, coir.OpAtomicCAS, coir.OpMapStore)
	}
	switch {
	case writes(a):
		return writes(b) || reads(b)
	case reads(a):
		return writes(b)
	case a == coir.OpClose:
		return is(b, coir.OpClose, coir.OpSend, coir.OpRecv)
	case a == coir.OpSend, a == coir.OpRecv:
		return b == a || b == coir.OpClose
	case a == coir.OpCondWait:
		return is(b, coir.OpSignal, coir.OpBroadcast)
	case a == coir.OpSignal, a == coir.OpBroadcast:
		return b == coir.OpCondWait
	}
	return false
}

// changes says which operations on one object have another order in the twin. It returns "" if there are none, or if
// these are the steps at which the two diverge.
func (r *record) changes(p *divergence, dir string) string {
	here, by := r.swaps(p.here)
	there, byThere := r.twin.swaps(p.there)
	rank := map[swap]int{}
	for i, x := range there {
		rank[x] = i + 1
	}
	for i, x := range here {
		var first *swap
		for k := i + 1; k < len(here); k++ {
			y := &here[k]
			if y.object == x.object && y.who != x.who && conflicts(x.op, y.op) && rank[x] > 0 && rank[*y] > 0 &&
				rank[*y] < rank[x] && (first == nil || rank[*y] < rank[*first]) {
				first = y
			}
		}
		switch {
		case first == nil:
			continue
		case by[x] == p.here[0] && byThere[*first] == p.there[0]:
			return ""
		}
		return fmt.Sprintf("%s, before %s", r.way(by[x], "", dir), r.way(by[*first], "", dir))
	}
	return ""
}
