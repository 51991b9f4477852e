package sim

import (
	"fmt"
	"strconv"

	"github.com/coir-go/coir/internal/invariant"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/search"
)

// chooser makes the decisions of a schedule, by the strategy or a script.
//
//   - decisions[:ndec] are the schedule: each chose one of at least two ways.
//   - The same decisions lead to the same schedule, unless the program does what sim does not control.
type chooser struct {
	strategy  Strategy
	script    *search.Script // decides instead of the strategy, unless it is nil
	point     Fork           // passed to the strategy
	fork      search.Fork    // passed to the script
	fault     fault          // what the present decision is about, if it is about a fault
	decisions []decision
	ndec      int
}

// fault is a fault that a decision is about.
type fault struct {
	site  int  // one more than its index in the plan; 0: the decision is not about a fault
	whole bool // whether the schedule has the fault at all
}

//go:norace
func (c *chooser) reset() { c.ndec, c.fault = 0, fault{} }

// decision is one number of a schedule, and how many ways there were.
type decision struct {
	chosen, of int
	step       int32 // the number of operations before it
	drawn      int32 // one more than the calling fiber if it was made for Intn, otherwise 0
	after      bool  // it was made after an operation
	fault      bool  // it was made for a fault
}

// decide makes one decision.
//
//go:norace
func (w *world) decide(n int, keep, after bool) int {
	if n == 1 {
		return 0
	}
	if w.nsteps >= w.limit { // too long: let the fibers end. This is no decision, because all schedules do it
		return w.inTurn(n, keep && !after)
	}
	d := 0
	if w.script != nil {
		w.fork = search.Fork{N: n, Keep: keep, After: after, World: w}
		if d = w.script.Choose(&w.fork); d >= n {
			w.stop(&Failure{Kind: KindDiverged, Text: changedText + "after step " +
				strconv.Itoa(w.nsteps) + " the recording chose way " + strconv.Itoa(d) + ", and now there are " + strconv.Itoa(n)})
			d = 0
		}
	} else {
		w.point = Fork{w: w, N: n, Keep: keep, After: after}
		if d = w.strategy.Choose(&w.point); d < 0 || d >= n {
			race.Enable() // as the caller would do, because the panic may be recovered
			panic(fmt.Sprintf("sim: the strategy chose %d of %d", d, n))
		}
	}
	if w.ndec == len(w.decisions) {
		w.decisions = doubled(w.decisions)
	}
	w.decisions[w.ndec] = decision{
		chosen: d, of: n, step: int32(w.nsteps), after: after, fault: w.fault.site > 0,
	}
	if w.ways[0] != search.Value && (d > 0 || !after || w.rests) {
		w.chose = int32(w.ndec)
	}
	if w.tells {
		w.branch(d, keep)
	}
	w.ndec++
	invariant.Check(d >= 0 && d < n && int(w.chose) < w.ndec, "a decision is not one of its ways")
	return d
}

// inTurn makes the decisions of a schedule that has become too long. Each fiber performs one operation in turn; pass is
// true if the running fiber has had its turn. The clock has no turn, even with ClockRacing. If time moved between any
// two operations, a fiber that sleeps before it tries again would never sleep for as long as another one needs to
// succeed. So time moves when no fiber can run, and after many operations in which it has not moved, because fibers may
// be polling for a time.
//
// Guarded by TestRetriesAreNoLivelock, TestEqualRetriesAreALivelock.
//
//go:norace
func (w *world) inTurn(n int, pass bool) int {
	if w.ways[0] != search.Value && w.ways[n-1] == search.Clock {
		if w.overdue(w.moved) {
			return n - 1
		}
		n--
	}
	if pass && n > 1 {
		return 1
	}
	return 0
}

// Choose implements policy.Policy.
//
//go:norace
func (w *world) Choose(n int) int {
	if !w.running || w.fail != nil {
		return 0
	}
	w.ways[0] = search.Value
	return w.decide(n, false, false)
}
