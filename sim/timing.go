package sim

import (
	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/search"
)

// timing moves the clock when no fiber can run, and with ClockRacing also by decisions.
//
//   - While a schedule runs, time moves only in advance, and by Sim.Advance.
//   - moved and rushed are not larger than the number of steps.
//   - patient is at least leastPatience.
type timing struct {
	calls   int     // how many times time has moved since a fiber could run
	mover   uintptr // the goroutine that moves the clock; 0 if none does
	idled   bool    // time has moved because no fiber could run, and none has run since
	ticks   int     // how many times in a row this has woken only background waits
	patient int     // the limit of ticks
	moved   int     // the number of steps when time last moved
	rushed  int     // the number of steps when rush last fired all timers
}

//go:norace
func (t *timing) reset(limit int) {
	t.idled, t.ticks, t.patient, t.moved, t.rushed = false, 0, max(limit/50, leastPatience), 0, 0
}

// advance moves the clock to its next timer. It returns false if there is none.
//
//go:norace
func (w *world) advance() bool {
	w.mover = coro.G()
	moved := w.clock.AdvanceToNext()
	w.mover = 0
	w.moved = w.nsteps
	if moved && w.running {
		w.happens(happening{fiber: search.Clock, step: -1, wake: -1, idle: w.mode == ClockIdle})
	}
	w.collect()
	return moved
}

// leastPatience is the least number of ticks in a row that a schedule gets while nothing else happens.
const leastPatience = 8

// skipTicks is called when time has moved because no fiber could run. It counts how many times in a row this has woken
// only background waits, for example for the tick of a ticker. The program may need the ticks, so for a while skipTicks
// lets them come one by one. If they do not stop, it moves time to the next other timer, so that ticks are missed,
// which is allowed. It then halves its patience, because the steps of a schedule are limited. If there is no other
// timer, the program is stuck, and its tickers only hide this.
//
// Guarded by TestTicksHideNoDeadlock, TestTicksMakeNoLivelock.
//
//go:norace
func (w *world) skipTicks() {
	if !w.onlyTicks() {
		w.ticks = 0
		return
	}
	if w.ticks++; w.ticks <= w.patient {
		return
	}
	for w.onlyTicks() {
		if w.advance() {
			continue
		}
		for k := range w.nready { // for the report
			w.fibers[w.ready[k]].waiting = true
		}
		w.stuck()
		for k := range w.nready {
			w.fibers[w.ready[k]].waiting = false
		}
		w.collect()
		return
	}
	w.ticks, w.patient = 0, max(w.patient/2, leastPatience)
}

// onlyTicks reports whether all fibers that can run were in background waits that time has ended.
//
//go:norace
func (w *world) onlyTicks() bool {
	for k := range w.nready {
		x := &w.fibers[w.ready[k]]
		if x.pending || x.paused || !w.inBackground(x) || !w.host.TimedOut(x.f) {
			return false
		}
	}
	return true
}

// inBackground reports whether the operation of a fiber is a background wait. A select is one if all its times are in
// the background.
//
//go:norace
func (w *world) inBackground(x *fiber) bool {
	if x.op.Kind != policy.Select || x.cases.n < 0 {
		return x.op.Background
	}
	found := false
	for i := range int(x.cases.n) {
		switch c := &w.cases[(x.cases.first+i)&(len(w.cases)-1)]; {
		case c.op.Kind == policy.Sleep:
			return false
		case c.op.Background:
			found = true
		}
	}
	return found
}

// rush is called when time has moved because no fiber could run. In a schedule that has become too long, it sometimes
// fires all timers together, as is possible with ClockRacing. So fibers that poll, and sleep in between, do not use up
// the steps before a long timer fires. Fibers that sleep equally long still wake together.
//
//go:norace
func (w *world) rush() {
	if w.mode == ClockRacing && w.running && w.fail == nil && w.nsteps >= w.limit && w.overdue(w.rushed) {
		w.rushed = w.nsteps
		for w.advance() {
		}
	}
}

// overdue reports whether, in a schedule that has become too long, an event that last happened at step last should
// happen again.
//
//go:norace
func (w *world) overdue(last int) bool { return w.nsteps-max(last, w.limit) >= max(w.limit/50, 64) }
