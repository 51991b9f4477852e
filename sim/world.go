package sim

import (
	"context"
	"errors"
	"strconv"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/search"
)

// A world runs one schedule after the other, on one worker and its own clock. It is the policy of that worker's
// runtime: it sees every operation before it happens, and decides which fiber continues.
//
// A schedule is the sequence of its decisions. A decision is a number below the number of ways to continue. 0 is always
// the way that changes the least: the running fiber continues or, if it cannot, the next fiber in the order of
// creation. If there is only one way, there is no decision. There is a decision before each operation, and one after
// each operation that has not waited: a fiber that has waited continues only when it is chosen. So a schedule without
// switches is a sequence of zeros, and a token need only list the other numbers.
//
// The fibers of the world call everything here, one at a time. In race builds that order is hidden from the detector,
// as the scheduler's is, so that it sees the races of the program under test. So all that runs inside a schedule is
// marked //go:norace, and uses neither maps nor append.
type world struct {
	rt    *coir.Runtime
	host  policy.Runtime // rt as its policy sees it
	clock *coir.Clock
	mode  ClockMode
	limit int // the most steps before the fibers act in turn

	options string // see settings.replayed

	// The current schedule.
	sim     *Sim
	running bool
	cancel  context.CancelCauseFunc
	fail    *Failure

	// idle is for tests: it is called when no fiber can run, and all of them sleep, before time moves. Without it the
	// fiber that ran last may still be on its way to sleep when a deadlock is found.
	idle func()

	// The parts of a world, each in its own file.
	roster   // the fibers, and which of them can run
	chooser  // decides
	recorder // records what happens
	timing   // moves the clock
	holdings // which fiber holds what
	devices  // the state of packages that simulate a device
	exposed  // the state that goroutines outside use
	unseen   // finds work that sim does not see
}

func newWorld(mode ClockMode, limit int) *world {
	w := &world{clock: coir.NewClock(), mode: mode, limit: limit}
	w.giveUp, w.closed = make(chan struct{}, 1), make(chan struct{})
	w.fibers, w.ready, w.ways = make([]fiber, 64), make([]int32, 64), make([]int32, 66)
	w.decisions, w.trace, w.cases = make([]decision, 1024), make([]event, 1024), make([]choice, 64)
	w.sample[0].Name = "/sched/goroutines-created:goroutines"
	w.sees = seesWaits()
	w.ids.init()
	w.objects.init()
	w.rt = coir.NewRuntime(policy.Option(w).(coir.RuntimeOption), coir.WithClock(w.clock),
		coir.OnStall(stallAfter, w.watch))
	return w
}

// reset prepares the world for the next schedule.
//
//go:norace
func (w *world) reset() {
	w.roster.reset()
	w.chooser.reset()
	w.recorder.reset()
	w.timing.reset(w.limit)
	w.holdings.reset()
	w.devices.reset()
	w.fail = nil
	w.stray.Store(nil)
}

// Attach implements policy.Policy.
func (w *world) Attach(rt policy.Runtime) { w.host = rt }

// Step implements policy.Policy.
//
// Spec: SM-01 (a policy is told before each operation)
// Spec: SM-02 (a schedule is its decisions)
// Spec: SM-04 (virtual time moves when no fiber can continue)
//
//go:norace
func (w *world) Step(f policy.Fiber, op policy.Op) bool {
	w.beat.Add(1)
	if !w.running || w.stopping.Load() {
		return true
	}
	i := w.fiberOf(f)
	w.current = i
	w.lookForRaces(i)
	x := &w.fibers[i]
	x.op, x.object, x.cases, x.pending, x.took = op, w.objectOf(op), w.keepCases(op), true, false
	x.served, x.gone = 0, 0
	x.op.Cases = nil // valid only until Step returns
	if x.acted = false; w.tells {
		w.last = x.site
		x.site = here()
	}
	if f := w.stray.Load(); f != nil {
		w.stop(f)
	}
	if how := coro.Waited(); w.fail == nil && (how != coro.NotWaited || w.counts) {
		w.look(i, how)
	}
	if op.Kind == policy.RunElsewhere {
		race.EnterUser()
		at := caller()
		race.LeaveUser()
		w.stop(&Failure{Kind: KindUncontrolled, Text: "another runtime runs at " + at +
			", which sim does not control; use coir.Run and the simulation's ctx, and no coir.NewRuntime"})
		end() // its wait might never end
	}
	if w.fail != nil {
		return w.unwind(i)
	}
	if op.Kind == policy.Start { // Next has decided that it begins, and nothing has happened since
		w.performs(i)
		return true
	}
	if !w.continues(i, false) {
		return false
	}
	w.performs(i)
	return true
}

// Stepped implements policy.Policy.
//
//go:norace
func (w *world) Stepped(f policy.Fiber) bool {
	// Spec: SM-01 (a policy is told before each operation)
	if !w.running || w.fail != nil || w.stopping.Load() {
		return true
	}
	i := w.fiberOf(f)
	w.current = i
	if x := &w.fibers[i]; x.how == policy.Unknown {
		w.outcome(x, policy.Done, -1)
	}
	w.fibers[i].paused = !w.continues(i, true)
	return !w.fibers[i].paused
}

// continues decides whether the running fiber i continues: with the operation that it has announced or, if after is
// true, with the code after it. If not, w.next is the fiber that runs instead.
//
//go:norace
func (w *world) continues(i int32, after bool) bool {
	w.collect()
	for {
		w.ways[0] = i
		switch to := w.ways[w.decide(w.lineUp(1, i), true, after)]; to {
		case i:
			w.fibers[i].moves++
			if after {
				w.continued(i)
			}
			return true
		case search.Clock:
			w.advance()
		default:
			w.next = to
			return false
		}
	}
}

// Next implements policy.Policy.
//
//go:norace
func (w *world) Next() policy.Fiber {
	w.nexts.Add(1)
	if w.current >= 0 && !w.settled {
		if x := &w.fibers[w.current]; !x.pending && !x.paused && !x.ended {
			x.waiting = true
		}
	}
	w.collect()
	for {
		if to := w.next; to >= 0 {
			w.next = -1
			return w.run(to)
		}
		if w.nready == 0 && !w.findReady() {
			return nil
		}
		if w.idled && w.running && w.fail == nil {
			w.skipTicks()
		}
		w.idled = false
		n, d := w.lineUp(0, w.current), 0
		if w.running && w.fail == nil {
			d = w.decide(n, false, false)
		}
		if to := w.ways[d]; to != search.Clock {
			return w.run(to)
		}
		w.advance()
		if w.takeUnsettled() {
			return nil
		}
	}
}

// findReady moves the clock until a fiber can run. If no timer is set, the schedule is stuck, and findReady ends waits.
// It returns false if no fiber can run, or if the worker must first settle the fiber that ran last.
//
//go:norace
func (w *world) findReady() bool {
	if w.idle != nil && w.running && w.fail == nil {
		if w.takeUnsettled() {
			return false
		}
		w.idle()
	}
	moved := w.advance()
	if moved {
		w.rush()
	}
	// Only deadlines under which no fiber waits are left, and functions that the clock calls. If those arm a timer again,
	// this may continue forever.
	for w.calls = 0; moved && w.nready == 0 && w.settled; w.calls++ {
		moved = w.calls < w.limit && w.fail == nil && w.advance()
	}
	w.idled = moved
	if !moved && w.running {
		if w.fail == nil {
			w.stuck()
			w.collect()
		}
		if w.nready == 0 {
			w.interrupt()
			w.collect()
		}
	}
	return !w.takeUnsettled() && w.nready > 0
}

// lineUp appends the ways to continue to the n ways that there are: the fibers that can run, first those created after
// fiber i, then those created before it, and last the clock, if time may move now. It returns the number of ways.
//
//go:norace
func (w *world) lineUp(n int, i int32) int {
	ready, ways := w.ready[:w.nready], w.ways
	later := w.place(i + 1)
	for _, f := range ready[later:] {
		ways[n] = f
		n++
	}
	for _, f := range ready[:later] {
		ways[n] = f
		n++
	}
	if w.mode == ClockRacing && w.running && w.clock.Len() > 0 {
		w.ways[n] = search.Clock
		n++
	}
	return n
}

// takeUnsettled reports whether the fiber that ran last may still be on its way to sleep, and sets settled. If that
// fiber has been woken, it is not in ready yet. The worker must then settle it, and call Next again.
//
// Guarded by TestExhaustiveCounts.
//
//go:norace
func (w *world) takeUnsettled() bool {
	was := w.settled
	w.settled = true
	return !was
}

// run makes fiber i, which can run, the running fiber.
//
//go:norace
func (w *world) run(i int32) policy.Fiber {
	w.remove(i)
	w.current, w.settled = i, false
	x := &w.fibers[i]
	x.moves++
	if x.pending {
		w.performs(i)
	} else if x.paused {
		x.paused = false
		w.continued(i)
		w.note(policy.Op{Kind: opGoOn}, x.site)
	} else {
		if x.acted && x.how == policy.Unknown {
			w.outcome(x, w.woke(x), -1)
		}
		w.happens(happening{fiber: i, step: -1, wake: x.woken})
	}
	return x.f
}

// performs records that the fiber performs the operation that it has announced.
//
//go:norace
func (w *world) performs(i int32) {
	x := &w.fibers[i]
	x.pending = false
	x.since, x.step = w.clock.Now(), w.nsteps
	switch x.op.Kind {
	case policy.Start: // already in the log
	case policy.End:
		x.ended = true
		fallthrough
	default:
		w.happens(happening{fiber: i, step: int32(w.nsteps), wake: -1})
	}
	w.watchable = w.watchable || x.op.Kind == policy.Register
	x.acted, x.how, x.told = true, policy.Unknown, false
	w.record(event{fiber: i, object: x.object, op: x.op, cases: x.cases, at: x.since, which: -1})
	if w.tells {
		w.keepSite(x.site)
	}
	w.mixOp(uint64(i)<<40, x.object, &x.op)
	w.markHash()
	if w.nsteps >= 2*w.limit && w.fail == nil && w.running {
		w.stop(&Failure{Kind: KindLivelock, Text: "has not ended after " + strconv.Itoa(w.nsteps) +
			" steps; in the last " + strconv.Itoa(w.limit) + ", fibers took turns"})
	}
}

// Ended implements policy.Policy.
//
//go:norace
func (w *world) Ended(f policy.Fiber, how policy.Outcome, which int) {
	if !w.running || w.stopping.Load() {
		return
	}
	i := w.current // usually the running fiber
	if i < 0 || policy.Fiber(w.fibers[i].f) != f {
		i = w.fiberOf(f)
	}
	if x := &w.fibers[i]; x.acted && !x.told {
		x.told = true
		w.outcome(x, how, which)
	}
}

// woke returns how the operation of x, which has waited and can run, ended.
//
//go:norace
func (w *world) woke(x *fiber) policy.Outcome {
	how := w.host.Woken(x.f)
	if how == policy.TimedOut && x.op.Kind != policy.Send && x.op.Kind != policy.Recv {
		return policy.Done // it waited for the time that has passed
	}
	return how
}

// Waits implements policy.Policy. The operation is the last one in the trace, announced by the running fiber.
//
//go:norace
func (w *world) Waits(f policy.Fiber, op policy.Op) {
	x := &w.fibers[w.fiberOf(f)]
	x.op, x.object, x.waiting = op, w.objectOf(op), true
	x.since, x.step = w.clock.Now(), w.nsteps-1
}

// stop ends the schedule as a failure. It cancels the nursery, and all fibers then run to their end without further
// decisions.
//
//go:norace
func (w *world) stop(f *Failure) {
	if w.fail == nil {
		w.fail = f
		f.freeze(w)
		w.stopping.Store(true) // the cancellation is an operation too, but not one of the program
		race.EnterUser()       // the nursery may have children of package context, which synchronise on their own
		w.cancel(errStopped)
		race.LeaveUser()
		w.stopping.Store(false)
	}
}

var errStopped = errors.New("sim: the schedule has failed and is being ended")

// stuck is called when no fiber can run and no timer is set.
//
// Spec: SM-08 (no fiber able to continue is a deadlock)
//
//go:norace
func (w *world) stuck() {
	if f := w.stray.Load(); f != nil {
		w.stop(f)
		return
	}
	if stack := w.host.Outside(strayPatience); stack != nil {
		w.stop(&Failure{Kind: KindUncontrolled, Text: "a goroutine that is not a fiber of the simulation has cancelled " +
			"the context used at " + userPlace(stack) + "; cancel it in a fiber"})
		return
	}
	text := "no fiber can run"
	if w.calls >= w.limit {
		text = "no fiber can run; only timer functions still run"
	} else if w.nready > 0 {
		text = "only tickers can continue: they ticked " + strconv.Itoa(w.ticks-1) + " times while nothing else happened"
	}
	w.stop(&Failure{Kind: KindDeadlock, Text: text})
}

// interrupt ends every wait of a failed schedule, when no fiber can run and no timer is set. The waits that are left
// are under contexts that stop does not cancel. There is always such a wait: a fiber that waits for other fibers to end
// depends, in the end, on a fiber that waits for something else.
//
// Spec: SM-09 (a failed schedule is brought to its end)
//
//go:norace
func (w *world) interrupt() {
	for i := range w.nfibers {
		if x := &w.fibers[i]; !x.ended {
			w.host.Interrupt(x.f)
		}
	}
}

// unwind lets fiber i continue after a failure, in turn with the others. If the fiber takes too long, unwind ends it by
// a panic, but not in the operation that ends it, nor while it waits for others to end.
//
//go:norace
func (w *world) unwind(i int32) bool {
	if k := w.fibers[i].op.Kind; w.nsteps > 8*w.limit && k != policy.End && k != policy.Join {
		end()
	}
	w.performs(i)
	return true
}

// end ends the running fiber of a schedule that has failed.
//
//go:norace
func end() {
	race.EnterUser() // the panic leaves the hidden section in which the policy is called
	panic(errStopped)
}
