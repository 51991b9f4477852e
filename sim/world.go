package sim

import (
	"context"
	"errors"
	"fmt"
	"runtime/metrics"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/search"
)

// A world runs one schedule after the other, on one worker and a clock of its own. It is the policy of that worker's
// runtime: it sees every operation before it happens, and decides which fiber continues.
//
// A schedule is the sequence of its decisions. A decision is a number below the number of ways to continue; 0 is always
// the way that changes least: the running fiber continues, or if it cannot, the next one in the order of creation.
// Where there is only one way there is no decision. There is a decision before each operation, and one after an
// operation that has not waited: a fiber that has waited continues only when chosen. So a schedule without switches is
// a sequence of zeros, and a token need only keep the others.
//
// The fibers of the world call everything here, one at a time. In race builds that order is hidden from the detector,
// as the scheduler's is, so that it sees the races of the program under test. So all that runs inside a schedule is
// marked //go:norace, and uses neither maps nor append.
type world struct {
	rt    *coir.Runtime
	host  policy.Runtime // rt, as its policy sees it
	clock *coir.Clock
	mode  ClockMode
	limit int // steps

	strategy Strategy
	script   *search.Script // decides instead of the strategy; nil: none

	// Of the current schedule.
	sim     *Sim
	states  []state // states[:nstates] are kept for packages that simulate a device
	nstates int
	running bool
	cancel  context.CancelCauseFunc
	ids     idTable // fibers, by their number in the process, and objects
	objects idTable
	fibers  []fiber
	nfibers int
	ready   []int32 // fibers that can run, in the order of creation
	nready  int
	current int32   // -1: none
	next    int32   // the fiber chosen by a Step that returned false; -1: none
	woken   inbox   // fibers woken by the clock or from outside, and not in ready yet
	settled bool    // the fiber that ran last sleeps: if it has been woken it is in ready
	calls   int     // how often time has moved since a fiber could run
	mover   uintptr // the goroutine that moves the clock; 0 if none does
	idled   bool    // time has moved because no fiber could run, and none has run since
	ticks   int     // how often in a row this woke only background waits
	patient int     // the limit of ticks
	moved   int     // the number of steps when time moved last
	rushed  int     // the number of steps when rush last fired all timers
	ways    []int32
	point   Fork        // passed to the strategy
	fork    search.Fork // passed to the script

	decisions []decision
	ndec      int
	log       []happening // all happenings, in order, if whole is set
	nlog      int
	chose     int32  // the decision that led to the next happening; -1: none
	holds     []hold // holds[:nholds] are the objects that fibers hold
	nholds    int
	watchable bool    // a selector has been given a case
	trace     []event // the last operations; see record
	whole     bool    // keep all of them
	rests     bool    // also log the code after an operation that has not waited, which is a choice of its own
	tells     bool    // also record what only a report needs; see tell.go
	sites     []site  // of the operations in trace, if tells
	made      []making
	nmade     int
	marks     []mark // of Errorf, Logf and Sometimes
	nmarks    int
	branches  []branch // of the decisions, if tells
	nsteps    int
	cases     []choice // the last cases of selects; see keepCases
	ncases    int
	hash      uint64
	hashes    []byte // a byte of it for each markEvery operations
	nhashes   int
	fail      *Failure
	stopping  atomic.Bool
	stray     atomic.Pointer[Failure] // an operation of a goroutine outside, until a fiber sees it
	strays    strayList               // operations of goroutines outside in all schedules

	// For goroutines outside that check whether the schedule makes progress; see watch.
	beat   atomic.Int64                            // steps of all schedules
	nexts  atomic.Int64                            // switches
	abort  atomic.Pointer[context.CancelCauseFunc] // cancel of the current schedule
	given  atomic.Pointer[Failure]                 // why the world has been abandoned
	giveUp chan struct{}
	quit   func(*Failure) // is called if the program has ended its goroutine, in the goroutine that called Explore
	exited *Failure       // where it did
	closed chan struct{}
	ran    atomic.Int64 // schedules
	did    atomic.Int64 // steps in them

	// What sim does not see; see unseen.go.
	last    site // of the operation before this one, if telling
	sees    bool // waits outside of coir that have ended can be found
	acts    bool // a schedule had a step or a decision, or used the simulation otherwise
	sample  [1]metrics.Sample
	born    int64 // goroutines that the process had started when the schedule began
	usual   int64 // a schedule in which so many are started is not run again
	hunts   int
	counts  bool // count the goroutines that are started in each step
	first   bool // this is the first run that does
	counted int64
	starts  []bool // for each look of a schedule, whether goroutines were started before it in each run so far
	nstarts int
	known   map[string]bool // the numbers of the goroutines that there were before the schedule
}

// decision is one number of a schedule, and how many ways there were.
type decision struct {
	chosen, of int
	step       int32 // operations before it
	drawn      int32 // if it was made for Intn, one more than the calling fiber; else 0
	after      bool  // it was made after an operation
}

// fiber is the world's record of a fiber.
type fiber struct {
	f       *coir.Fiber
	op      policy.Op
	object  int32
	cases   span // of op, if it is a select
	pending bool // op has been announced, and is not allowed yet
	waiting bool // it did op, and has not continued
	paused  bool // it did op without waiting, and what follows is not allowed yet
	took    bool // op has taken something, or given it back
	acted   bool // it did op, which is step of the trace
	told    bool // how has been told, and is not an inference
	how     policy.Outcome
	ended   bool
	since   time.Duration
	step    int   // of op
	served  int   // operations when its wait in op ended; 0: it did not wait
	gone    int   // of what op took, as much as others have given back before the fiber continued
	moves   int32 // how often it was chosen
	woken   int32 // the log entry that made it ready, if it waited or is new
	site    site  // of op, if telling
}

// event is an operation in the trace.
type event struct {
	fiber  int32
	object int32 // -1: none
	op     policy.Op
	cases  span
	at     time.Duration
	how    policy.Outcome
	which  int32 // the chosen case of a select, or the number of values of a TryRecv; -1: not known, or one
}

// happening is a part of a schedule in which one fiber ran without a stop, or a move of the clock. [DPOR] needs to know
// what made each possible.
type happening struct {
	fiber    int32 // search.Clock: the clock
	step     int32 // of the operation in the trace; -1: the code after a wait, or the beginning of a fiber
	decision int32 // that caused it; -1: it was the only way
	wake     int32 // the log entry that ended the wait, or began the fiber; -1: none
	idle     bool  // time moved because no fiber could run
	watched  bool  // a selector had been given a case before
	rest     bool  // it is the code after an operation that has not waited
}

// hold records how much of an object a fiber has taken and not given back.
type hold struct {
	fiber, object int32
	n             int
	step          int // operations when it took it first: the number of the last of them
}

// choice is a case of a select.
type choice struct {
	op     policy.Op
	object int32 // -1: none
}

// span is the cases of one select, as a part of all.
type span struct {
	first int
	n     int32 // -1: not known, or not kept
}

func newWorld(mode ClockMode, limit int) *world {
	w := &world{clock: coir.NewClock(), mode: mode, limit: limit}
	w.giveUp, w.closed = make(chan struct{}, 1), make(chan struct{})
	w.fibers = make([]fiber, 64)
	w.ready = make([]int32, 64)
	w.ways = make([]int32, 66)
	w.decisions = make([]decision, 1024)
	w.trace = make([]event, 1024)
	w.woken.fibers = make([]policy.Fiber, 64)
	w.cases = make([]choice, 64)
	w.holds = make([]hold, 16)
	w.marks = make([]mark, 16)
	w.states = make([]state, 4)
	w.starts = make([]bool, 64)
	w.sample[0].Name = "/sched/goroutines-created:goroutines"
	w.sees = seesWaits()
	w.ids.init()
	w.objects.init()
	w.rt = coir.NewRuntime(policy.Option(w).(coir.RuntimeOption), coir.WithClock(w.clock), coir.OnStall(stallAfter, w.watch))
	return w
}

// reset prepares the world for the next schedule.
//
//go:norace
func (w *world) reset() {
	w.ids.clear()
	w.objects.clear()
	for i := range w.nfibers {
		w.fibers[i] = fiber{}
	}
	w.nfibers, w.nready, w.current, w.next = 0, 0, -1, -1
	w.settled, w.idled, w.ticks, w.patient = false, false, 0, max(w.limit/50, leastPatience)
	w.moved, w.rushed = 0, 0
	w.ndec, w.nsteps, w.ncases, w.hash = 0, 0, 0, 14695981039346656037
	w.nlog, w.chose, w.watchable = 0, -1, false
	w.nholds, w.nmade, w.nmarks, w.nhashes = 0, 0, 0, 0
	for i := range w.nstates {
		w.states[i] = state{}
	}
	w.nstates = 0
	w.fail = nil
	w.stray.Store(nil)
}

// fiberOf returns the world's number of a fiber.
//
//go:norace
func (w *world) fiberOf(f policy.Fiber) int32 {
	i, fresh := w.ids.find(f.ID())
	if fresh {
		if int(i) == len(w.fibers) {
			w.growFibers()
		}
		w.fibers[i] = fiber{f: f.(*coir.Fiber), object: -1}
		w.nfibers++
	}
	return i
}

//go:norace
func (w *world) growFibers() {
	w.fibers, w.ready = doubled(w.fibers), doubled(w.ready)
	w.ways = make([]int32, len(w.fibers)+2)
}

// Attach implements policy.Policy.
func (w *world) Attach(rt policy.Runtime) { w.host = rt }

// Ready implements policy.Policy.
//
//go:norace
func (w *world) Ready(f policy.Fiber) {
	i := w.fiberOf(f)
	at := w.nready
	for at > 0 && w.ready[at-1] > i {
		w.ready[at] = w.ready[at-1]
		at--
	}
	w.ready[at] = i
	w.nready++
	if x := &w.fibers[i]; !x.pending && !x.paused {
		if w.tells && x.acted {
			w.keepServed(x.step)
		}
		x.waiting, x.woken = false, int32(w.nlog-1)
		x.served = w.nsteps
	}
}

// Len implements policy.Policy.
//
//go:norace
func (w *world) Len() int { return w.nready + int(w.woken.n.Load()) }

// inbox holds fibers woken by other goroutines than the running fiber.
type inbox struct {
	n      atomic.Int32
	mu     sync.Mutex
	fibers []policy.Fiber
}

// Wake implements policy.Policy.
//
//go:norace
func (w *world) Wake(f policy.Fiber) {
	in := &w.woken
	in.mu.Lock()
	n := int(in.n.Load())
	if n == len(in.fibers) {
		in.fibers = doubled(in.fibers)
	}
	in.fibers[n] = f
	in.n.Add(1)
	in.mu.Unlock()
}

// collect moves the fibers in the inbox to those that can run.
//
//go:norace
func (w *world) collect() {
	in := &w.woken
	if in.n.Load() == 0 {
		return
	}
	in.mu.Lock()
	for i := range in.n.Load() {
		w.Ready(in.fibers[i])
		in.fibers[i] = nil
	}
	in.n.Store(0)
	in.mu.Unlock()
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

// happens adds to the log.
//
//go:norace
func (w *world) happens(h happening) {
	h.decision, w.chose = w.chose, -1
	h.watched = w.watchable
	if !w.whole {
		return
	}
	if w.nlog == len(w.log) {
		w.log = doubled(w.log)
	}
	w.log[w.nlog] = h
	w.nlog++
}

// wentOn logs, if rests is set, that fiber i continues after an operation.
//
//go:norace
func (w *world) wentOn(i int32) {
	if w.rests {
		w.happens(happening{fiber: i, step: -1, wake: -1, rest: true})
	}
}

//go:norace
func (w *world) unready(i int32) {
	at := 0
	for w.ready[at] != i {
		at++
	}
	for ; at+1 < w.nready; at++ {
		w.ready[at] = w.ready[at+1]
	}
	w.nready--
}

// Step implements policy.Policy.
//
// Spec: SM-01 (a policy is told before each operation)
// Spec: SM-02 (a schedule is its decisions)
// Spec: SM-04 (virtual time moves when nobody can go on)
//
//go:norace
func (w *world) Step(f policy.Fiber, op policy.Op) bool {
	w.beat.Add(1)
	if !w.running || w.stopping.Load() {
		return true
	}
	i := w.fiberOf(f)
	w.current = i
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
	if op.Kind == policy.Start { // its begin was decided when it was chosen, and nothing has happened since
		w.went(i)
		return true
	}
	if !w.goesOn(i, false) {
		return false
	}
	w.went(i)
	return true
}

// Holds implements policy.Policy.
//
// A fiber that waited has held the object since the operation that ended its wait, but reports it only when it
// continues. If a fiber gives back more than it holds, another fiber has taken that: one that has reported it, or else
// the one whose wait for it ended first and which has not continued.
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
	for k := range w.nholds {
		if h := &w.holds[k]; h.object == on && h.fiber == i {
			h.n += n
			return
		}
	}
	if w.nholds == len(w.holds) {
		w.holds = doubled(w.holds)
	}
	step := w.nsteps
	if x.served > 0 {
		step = x.served
	}
	w.holds[w.nholds] = hold{fiber: i, object: on, n: n, step: step}
	w.nholds++
}

// Ended implements policy.Policy.
//
//go:norace
func (w *world) Ended(f policy.Fiber, how policy.Outcome, which int) {
	if !w.running || w.stopping.Load() {
		return
	}
	i := w.current // most often
	if i < 0 || policy.Fiber(w.fibers[i].f) != f {
		i = w.fiberOf(f)
	}
	if x := &w.fibers[i]; x.acted && !x.told {
		x.told = true
		w.outcome(x, how, which)
	}
}

// outcome records how the operation of x ended.
//
//go:norace
func (w *world) outcome(x *fiber, how policy.Outcome, which int) {
	x.how = how
	if x.step >= w.forgotten() {
		e := w.traced(x.step)
		e.how, e.which = how, int32(which)
	}
}

// woke returns how the operation of x, which has waited and can run, ended.
//
//go:norace
func (w *world) woke(x *fiber) policy.Outcome {
	how := w.host.Woken(x.f)
	if how == policy.TimedOut && x.op.Kind != policy.Send && x.op.Kind != policy.Recv {
		return policy.Done // it waited for that time
	}
	return how
}

// giveBack removes up to n of an object from what fiber i holds of it, or all fibers if i is negative. It returns how
// much is left.
//
//go:norace
func (w *world) giveBack(object int32, n int, i int32) int {
	for k := 0; k < w.nholds && n > 0; {
		h := &w.holds[k]
		if h.object != object || i >= 0 && h.fiber != i {
			k++
			continue
		}
		less := min(n, h.n)
		n -= less
		if h.n -= less; h.n > 0 {
			break
		}
		w.nholds--
		for j := k; j < w.nholds; j++ { // in order: the first to take is the first to lose it
			w.holds[j] = w.holds[j+1]
		}
	}
	return n
}

// giveBackUnsaid removes up to n of an object from the fibers that got it by the end of a wait, and have not reported
// it yet.
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
	w.fibers[i].paused = !w.goesOn(i, true)
	return !w.fibers[i].paused
}

// goesOn decides whether fiber i, which runs, continues: with the operation that it has announced or, if after is true,
// with the code after it. If not, next is the fiber that runs instead.
//
//go:norace
func (w *world) goesOn(i int32, after bool) bool {
	w.collect()
	for {
		// The fiber itself, those created after it, those created before it, the clock.
		n := 0
		w.ways[n] = i
		n++
		for k := range w.nready {
			if w.ready[k] > i {
				w.ways[n] = w.ready[k]
				n++
			}
		}
		for k := range w.nready {
			if w.ready[k] < i {
				w.ways[n] = w.ready[k]
				n++
			}
		}
		if w.mode == ClockRacing && w.clock.Len() > 0 {
			w.ways[n] = search.Clock
			n++
		}
		switch to := w.ways[w.decide(n, true, after)]; to {
		case i:
			w.fibers[i].moves++
			if after {
				w.wentOn(i)
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
		if w.nready == 0 {
			moved := w.advance()
			if moved {
				w.rush()
			}
			// Only deadlines that no fiber waits under are left, and functions that the clock calls. If those arm a
			// timer again, this may continue forever.
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
			if w.unsettled() || w.nready == 0 {
				return nil
			}
		}
		if w.idled && w.running && w.fail == nil {
			w.skipTicks()
		}
		w.idled = false
		n := 0
		for k := range w.nready {
			if w.ready[k] > w.current {
				w.ways[n] = w.ready[k]
				n++
			}
		}
		for k := range w.nready {
			if w.ready[k] <= w.current {
				w.ways[n] = w.ready[k]
				n++
			}
		}
		if w.mode == ClockRacing && w.running && w.clock.Len() > 0 {
			w.ways[n] = search.Clock
			n++
		}
		d := 0
		if w.running && w.fail == nil {
			d = w.decide(n, false, false)
		}
		if to := w.ways[d]; to != search.Clock {
			return w.run(to)
		}
		w.advance()
		if w.unsettled() {
			return nil
		}
	}
}

// leastPatience is the number of ticks in a row that a schedule always gets while nothing else happens.
const leastPatience = 8

// skipTicks is called when time has moved because no fiber could run. It counts how often in a row this woke only
// background waits, such as for the tick of a ticker. The program may need the ticks, so it lets them come one by one
// for a while. If they do not stop, it moves time to the next other timer, so that ticks are missed, as is allowed, and
// halves its patience, because the steps of a schedule are limited. If there is no other timer, the program is stuck,
// and its tickers only hide this.
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

// onlyTicks reports whether all fibers that can run have waited in the background, and were woken by time.
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

// inBackground reports whether the operation of a fiber is a background wait. A select is one if all its times are.
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

// unsettled reports, after time has moved, whether the fiber that was woken may still be on its way to sleep, and so is
// not in ready yet. The worker must then settle it, and call Next again.
//
// Guarded by TestExhaustiveCounts.
//
//go:norace
func (w *world) unsettled() bool {
	was := w.settled
	w.settled = true
	return !was
}

// run makes fiber i, which can run, the running one.
//
//go:norace
func (w *world) run(i int32) policy.Fiber {
	w.unready(i)
	w.current, w.settled = i, false
	x := &w.fibers[i]
	x.moves++
	if x.pending {
		w.went(i)
	} else if x.paused {
		x.paused = false
		w.wentOn(i)
		w.note(policy.Op{Kind: opGoOn}, x.site)
	} else {
		if x.acted && x.how == policy.Unknown {
			w.outcome(x, w.woke(x), -1)
		}
		w.happens(happening{fiber: i, step: -1, wake: x.woken})
	}
	return x.f
}

// went records that the fiber performs the operation that it has announced.
//
//go:norace
func (w *world) went(i int32) {
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
		w.stop(&Failure{Kind: KindLivelock, Text: "not at its end after " + strconv.Itoa(w.nsteps) + " steps, the last " +
			strconv.Itoa(w.limit) + " of them in turn"})
	}
}

// record adds an operation to the trace. A schedule may have any length, so only its last mostKept operations stay, in
// a ring whose length is a power of two; the hash is of all. If w.whole is set, the whole trace is kept.
//
// Guarded by TestALongScheduleIsReplayedAndTold.
//
//go:norace
func (w *world) record(e event) {
	if w.nsteps == len(w.trace) && (w.whole || w.nsteps < mostKept) {
		w.trace = doubled(w.trace)
	}
	*w.traced(w.nsteps) = e
	w.nsteps++
}

// markHash is called when an operation is recorded and in the hash. It records a byte of the hash from time to time,
// for the token.
//
//go:norace
func (w *world) markHash() {
	if w.nsteps%markEvery != 0 {
		return
	}
	if w.nhashes == len(w.hashes) {
		w.hashes = doubled(w.hashes)
	}
	w.hashes[w.nhashes] = byte(w.hash>>56 ^ w.hash>>24)
	w.nhashes++
}

// mostKept is the number of operations of a schedule that are kept: some 6 MB.
const mostKept = 1 << 16

// traced returns operation number step, which has been kept.
//
//go:norace
func (w *world) traced(step int) *event { return &w.trace[step&(len(w.trace)-1)] }

// forgotten returns how many operations, the first ones, were not kept.
//
//go:norace
func (w *world) forgotten() int { return max(0, w.nsteps-len(w.trace)) }

// keepCases copies the cases of a select. As with operations, only the last stay.
//
//go:norace
func (w *world) keepCases(op policy.Op) span {
	n := len(op.Cases)
	if op.Cases == nil || n > mostKept {
		return span{n: -1}
	}
	for w.ncases+n > len(w.cases) && (len(w.cases) < mostKept || w.whole && w.ncases <= len(w.cases)) {
		w.cases = doubled(w.cases)
	}
	at := w.ncases
	for i := range op.Cases {
		c := &op.Cases[i]
		x := choice{*c, w.objectOf(*c)}
		x.op.Cases, x.op.Stack = nil, nil
		w.cases[w.ncases&(len(w.cases)-1)] = x
		w.ncases++
		w.mixOp(1<<39, x.object, c)
	}
	return span{at, int32(n)}
}

// mixOp mixes an operation on an object into the hash; who says whose it is. All uses of objects have one kind, so the
// verb tells them apart: by its name, because its address differs from process to process.
//
//go:norace
func (w *world) mixOp(who uint64, object int32, op *policy.Op) {
	w.mix(who | uint64(uint32(object+1))<<8 | uint64(op.Kind))
	if op.Verb != nil {
		for i := range len(op.Verb.Name) {
			w.mix(uint64(op.Verb.Name[i]))
		}
	}
}

//go:norace
func (w *world) mix(x uint64) {
	for range 8 {
		w.hash = (w.hash ^ x&0xff) * 1099511628211
		x >>= 8
	}
}

//go:norace
func (w *world) objectOf(op policy.Op) int32 {
	if op.Object == 0 {
		return -1
	}
	i, _ := w.objects.find(op.Object<<8 | uint64(kindOfObject(op.Kind)))
	return i
}

// kindOfObject keeps the numbers of channels and of fibers apart.
//
//go:norace
func kindOfObject(k policy.Kind) uint8 {
	switch k {
	case policy.Wait, policy.Start, policy.End:
		return 1
	}
	return 0
}

// decide makes one decision.
//
//go:norace
func (w *world) decide(n int, goOn, after bool) int {
	if n == 1 {
		return 0
	}
	if w.nsteps >= w.limit { // too long: let all fibers end that can. Not a decision, because all schedules do the same
		return w.inTurn(n, goOn && !after)
	}
	d := 0
	if w.script != nil {
		w.fork = search.Fork{N: n, Keep: goOn, After: after, World: w}
		if d = w.script.Choose(&w.fork); d >= n {
			w.stop(&Failure{Kind: KindDiverged, Text: "the program has changed since: after step " +
				strconv.Itoa(w.nsteps) + " the recording chose way " + strconv.Itoa(d) + ", and now there are " + strconv.Itoa(n)})
			d = 0
		}
	} else {
		w.point = Fork{w: w, N: n, GoOn: goOn, After: after}
		if d = w.strategy.Choose(&w.point); d < 0 || d >= n {
			race.Enable() // as the caller would do: the panic may be recovered
			panic(fmt.Sprintf("sim: the strategy chose %d of %d", d, n))
		}
	}
	if w.ndec == len(w.decisions) {
		w.decisions = doubled(w.decisions)
	}
	w.decisions[w.ndec] = decision{chosen: d, of: n, step: int32(w.nsteps), after: after}
	if w.ways[0] != search.Value && (d > 0 || !after || w.rests) {
		w.chose = int32(w.ndec)
	}
	if w.tells {
		w.branch(d, goOn)
	}
	w.ndec++
	return d
}

// inTurn makes the decisions of a schedule that has become too long. Each fiber does one operation in turn; pass says
// that the running fiber has had its turn. The clock has no turn, even with ClockRacing. If time moved between any two
// operations, a fiber that sleeps before it tries again would never sleep for as long as another one needs to succeed.
// So time moves when no fiber can run, and after many operations in which that was not so, because fibers may be
// polling for a time.
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

// rush is called when time has moved because no fiber could run. In a schedule that has become too long, it sometimes
// fires all timers together, as they may with ClockRacing. So fibers that poll, and sleep in between, do not use up the
// steps before a long timer fires. Fibers that sleep equally long still wake together.
//
//go:norace
func (w *world) rush() {
	if w.mode == ClockRacing && w.running && w.fail == nil && w.nsteps >= w.limit && w.overdue(w.rushed) {
		w.rushed = w.nsteps
		for w.advance() {
		}
	}
}

// overdue reports whether an event that happened last at step last should happen again, in a schedule that has become
// too long.
//
//go:norace
func (w *world) overdue(last int) bool { return w.nsteps-max(last, w.limit) >= max(w.limit/50, 64) }

// Choose implements policy.Policy.
//
//go:norace
func (w *world) Choose(_ policy.Fiber, n int) int {
	if !w.running || w.fail != nil {
		return 0
	}
	w.ways[0] = search.Value
	return w.decide(n, false, false)
}

// stop ends the schedule as a failure: it cancels the nursery, and all fibers run to their end without further
// decisions.
//
//go:norace
func (w *world) stop(f *Failure) {
	if w.fail == nil {
		w.fail = f
		f.freeze(w)
		w.stopping.Store(true) // cancelling is an operation too, but not one of the program
		race.EnterUser()       // contexts of package context may be its children, and have their own synchronisation
		w.cancel(errStopped)
		race.LeaveUser()
		w.stopping.Store(false)
	}
}

var errStopped = errors.New("sim: the schedule has failed and is being ended")

// stuck is called when no fiber can run and no timer is set.
//
// Spec: SM-08 (nobody able to go on is a deadlock)
//
//go:norace
func (w *world) stuck() {
	stack, deadline := w.host.Outside(strayPatience)
	switch {
	case stack == nil:
		text := "no fiber can run"
		if w.calls >= w.limit {
			text = "no fiber can run; only functions that the clock calls go on"
		} else if w.nready > 0 {
			text = "only tickers can go on: they ticked " + strconv.Itoa(w.ticks-1) + " times while nothing else happened"
		}
		w.stop(&Failure{Kind: KindDeadlock, Text: text})
	case deadline:
		w.stop(&Failure{Kind: KindUncontrolled, Text: "no fiber can run before a deadline of package context passes, " +
			"in real time, at " + userPlace(stack) + useTimeout})
	default:
		w.stop(&Failure{Kind: KindUncontrolled, Text: "a goroutine that is not a fiber of the simulation has cancelled " +
			"the context used at " + userPlace(stack) + "; cancel it in a fiber"})
	}
}

const useTimeout = "; use coir.WithTimeout, which keeps to the simulation's clock"

// interrupt ends every wait of a failed schedule, when no fiber can run and no timer is set: the waits that are left
// are under contexts that stop does not cancel. It always finds one, because a fiber that waits for others to end
// waits, in the end, for one that waits for something else.
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

// unwind lets fiber i continue after a failure, in turn with the others. It ends a fiber that takes too long by a
// panic, but not in the operation that ends it, nor while it waits for others to end.
//
//go:norace
func (w *world) unwind(i int32) bool {
	if k := w.fibers[i].op.Kind; w.nsteps > 8*w.limit && k != policy.End && k != policy.Join {
		end()
	}
	w.went(i)
	return true
}

// end ends the running fiber, whose schedule has failed.
//
//go:norace
func end() {
	race.EnterUser() // the panic leaves the hidden section that the policy is called in
	panic(errStopped)
}

// Waits implements policy.Policy. The operation is the last in the trace, as one of the running fiber.
//
//go:norace
func (w *world) Waits(f policy.Fiber, op policy.Op) {
	x := &w.fibers[w.fiberOf(f)]
	x.op, x.object, x.waiting = op, w.objectOf(op), true
	x.since, x.step = w.clock.Now(), w.nsteps-1
}

// Stray implements policy.Policy. Goroutines that sim does not control call it; the next step reports what they did.
//
// Spec: SM-06 (an outside goroutine is reported)
func (w *world) Stray(op policy.Op) {
	if w.stopping.Load() {
		return // the cancel of stop, which may run outside of any fiber
	}
	if op.Kind == policy.Deadline {
		text := "a deadline of package context has passed, in real time, at " + userPlace(op.Stack)
		w.strays.add(text)
		w.stray.CompareAndSwap(nil, &Failure{Kind: KindUncontrolled, Text: text + useTimeout})
		return
	}
	what := describe(op) + ", at " + caller()
	w.strays.add(what)
	w.stray.CompareAndSwap(nil, &Failure{Kind: KindUncontrolled, Text: "a goroutine that is not a fiber of the " +
		"simulation does " + what +
		"; use fibers, or a channel made outside"})
}
