package sim

import (
	"github.com/coir-go/coir/internal/invariant"
	"github.com/coir-go/coir/internal/policy"
)

// holdings records which fibers hold which objects.
//
//   - A hold is of at least one unit of the object.
//   - A fiber has at most one hold of an object.
//   - Holds are in the order in which they began.
type holdings struct{ holds list[hold] }

//go:norace
func (g *holdings) reset() { g.holds.n = 0 }

// hold records how much of an object a fiber has taken and not given back.
type hold struct {
	fiber, object int32
	n             int
	step          int // the number of the last operation when the fiber first took it
}

// Holds implements policy.Policy.
//
// A fiber that waited has held the object since the operation that ended its wait, but it reports this only when it
// continues. If a fiber gives back more than it holds, another fiber has taken that part: one that has reported it, or
// otherwise the fiber whose wait for it ended first and which has not continued.
//
// Guarded by TestReportSaysSinceWhen, TestReportOfWhatOthersGaveBack.
//
//go:norace
func (w *world) Holds(f policy.Fiber, object uint64, n int) {
	if !w.running {
		return
	}
	i, on := w.fiberOf(f), w.objectOf(policy.Op{Kind: policy.Use, Object: object})
	x := &w.fibers[i]
	x.took = true
	if n < 0 {
		n = w.giveBack(on, -n, i)
		n = w.giveBack(on, n, -1)
		w.giveBackUnsaid(on, n)
		return
	}
	gone := min(n, x.gone)
	if x.gone, n = x.gone-gone, n-gone; n == 0 {
		return
	}
	step := w.nsteps
	if x.served > 0 {
		step = x.served
	}
	w.take(hold{fiber: i, object: on, n: n, step: step})
}

// take adds to what a fiber holds of an object.
//
//go:norace
func (g *holdings) take(more hold) {
	invariant.Check(more.n > 0, "a fiber takes nothing of an object, and holds it")
	for k := range g.holds.n {
		if h := &g.holds.all[k]; h.object == more.object && h.fiber == more.fiber {
			h.n += more.n
			return
		}
	}
	g.holds.add(more)
}

// giveBack removes up to n of an object from the hold of fiber i, or from the holds of all fibers if i is negative. It
// returns the part of n that is left.
//
//go:norace
func (g *holdings) giveBack(object int32, n int, i int32) int {
	for k := 0; k < g.holds.n && n > 0; {
		h := &g.holds.all[k]
		if h.object != object || i >= 0 && h.fiber != i {
			k++
			continue
		}
		less := min(n, h.n)
		n -= less
		if h.n -= less; h.n > 0 {
			break
		}
		g.holds.n--
		for j := k; j < g.holds.n; j++ { // in order: the first fiber to take it is the first to lose it
			g.holds.all[j] = g.holds.all[j+1]
		}
	}
	return n
}

// giveBackUnsaid removes up to n of an object from the fibers that got it when their wait ended, and have not reported
// that yet.
//
//go:norace
func (w *world) giveBackUnsaid(object int32, n int) {
	for n > 0 {
		var first *fiber
		for k := range w.nready {
			x := &w.fibers[w.ready[k]]
			if x.served > 0 && !x.took && x.gone < w.takes(x, object) && (first == nil || x.served < first.served) {
				first = x
			}
		}
		if first == nil {
			return
		}
		less := min(n, w.takes(first, object)-first.gone)
		first.gone, n = first.gone+less, n-less
	}
}

// takes returns how much of an object the operation of x takes.
//
//go:norace
func (w *world) takes(x *fiber, object int32) int {
	if x.object == object && !x.op.Undo {
		return x.op.Take
	}
	for i := range int(x.cases.n) {
		if c := &w.cases[(x.cases.first+i)&(len(w.cases)-1)]; c.object == object {
			return c.op.Take
		}
	}
	return 0
}
