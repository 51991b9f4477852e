package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/coir-go/coir/internal/policy"
)

// A program in which a fiber keeps sleeping and trying never stops. So sim finds a deadlock of its other fibers only
// when the schedule has become too long. It is still a deadlock, because the fibers that move cannot end the waits of
// the others. Two conditions distinguish it from a livelock. First, time passes, so the moving fibers do not keep the
// others from running. Second, a fiber that has not moved waits for something that no moving fiber has ever served.

// leastTicks is the least number of times that time has to pass in the second half of a schedule that is too long.
const leastTicks = 8

// lookBehindTickers makes a livelock a deadlock if all fibers except tickers are deadlocked. In the last limit
// operations, all fibers took turns.
//
// Guarded by TestADeadlockBesideATickerIsADeadlock, TestRetriesBesideAnIdleServerAreALivelock.
func (f *Failure) lookBehindTickers(limit int) {
	if f.Kind != KindLivelock || f.before > 0 {
		return
	}
	r := newReport(f)
	from := max(0, len(f.trace)-limit)
	moves, waits := make([]bool, len(f.fibers)), make([]bool, len(f.fibers))
	times, last := 0, time.Duration(-1)
	for s := from; s < len(f.trace); s++ {
		e := &f.trace[s]
		moves[e.fiber] = true
		waits[e.fiber] = waits[e.fiber] || mayWait(e.op)
		if e.at != last {
			times, last = times+1, e.at
		}
	}
	for i := range moves {
		if moves[i] && (!waits[i] || r.told.Hidden[i]) {
			return // the fiber spins, or may serve anything
		}
	}
	if times < leastTicks || !r.told.Abandoned(moves) {
		return
	}
	since := 0
	for s := range f.trace[:from] {
		if !moves[f.trace[s].fiber] {
			since = s + 1
		}
	}
	f.Kind, f.ticking = KindDeadlock, moves
	var names []string
	for i, m := range moves {
		if m {
			names = append(names, r.labels[i])
		}
	}
	f.Text = fmt.Sprintf("only tickers can continue: %s. No other fiber has moved since step %d", strings.Join(names, ", "), since)
}

// mayWait reports whether an operation can wait.
func mayWait(op policy.Op) bool {
	switch op.Kind {
	case policy.Send, policy.Recv, policy.Select, policy.Sleep, policy.Wait, policy.Join:
		return true
	case policy.Use:
		return op.Verb.Waits != "" && !op.Undo && !op.Try
	}
	return false
}

// ticks reports whether fiber i is one of the tickers that hide a deadlock.
func (r *findings) ticks(i int) bool { return i < len(r.ticking) && r.ticking[i] }
