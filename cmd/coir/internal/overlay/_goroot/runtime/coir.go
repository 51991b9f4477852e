package runtime

import (
	"internal/abi"
	"internal/coir"
	"internal/search"
	"internal/stringslite"
	"unsafe"
)

// This file lets `coir test` decide in which order goroutines run. It is laid only over the runtime of the tests that
// are explored.
//
// The goroutines of one synctest bubble take turns: exactly one of them has the turn, and the others wait in
// coirSched.ready, where the runtime's own queues do not see them. The turn passes
//
//   - at a point, which is before an operation that other goroutines can notice (coirPoint),
//   - when the goroutine that has it waits (coirLeave, from park_m) or ends (from goexit0),
//   - when it is in a system call for long (coirTakeTurn, called by a watcher outside the bubble).
//
// Which goroutine gets the turn is a decision, which a strategy of package search makes. A schedule is the list of its
// decisions. coirDecisions and coirSteps keep, for package testing, the decisions and what the goroutines were about to
// do at each point.
//
// The difficulties:
//
//   - Much of this runs on g0, on the way to another goroutine. It must not allocate, grow the stack or use write
//     barriers. So everything has a fixed place, and goroutines are kept as guintptr. They cannot be freed meanwhile:
//     allgs has them all. Package explore keeps to that, too.
//   - A goroutine also parks for the runtime's own reasons: to assist the garbage collector, to stop the world. That
//     happens at times that no schedule decides, so it keeps the turn then (coirGivesUpTurn).
//   - The root of a bubble, which moves its clock, is a goroutine too. It is not numbered, and has no points. It gets
//     the turn when no other goroutine can run.
//   - Goroutine ids and the addresses of objects differ from process to process. Both are numbered here in the order in
//     which a schedule meets them.

const (
	coirMaxReady     = 1 << 17
	coirMaxDecisions = 1 << 18
	coirMaxSteps     = 1 << 16 // of the trace that are kept: the last ones
	coirMaxObjects   = 1 << 16
	coirMaxActors    = 1 << 17
	coirMaxEvents    = 1 << 15
	coirMaxCases     = 1 << 16
	coirMaxChannels  = 1 << 13
	coirMaxBirths    = 1 << 14
	coirDepth        = 16 // of the stacks that are kept
	coirBirthDepth   = 48 // of those of go statements: what led there may be far away
)

// coirFairAfter is the number of points after which a goroutine that keeps the turn gives it up, and coirCasesFairAfter
// the number of choices after which a goroutine's selects are fair.
const (
	coirFairAfter      = 1000
	coirCasesFairAfter = 100
)

// coirG is the state of a goroutine for this file.
type coirG struct {
	id    uint32 // in the order of creation, in its schedule; 0 is the root
	run   uint32 // the schedule that it belongs to
	quiet uint32 // coirNoPoints or coirLast
	timer bool   // it runs the function of a timer
	cases uint32 // times that several cases of a select were ready

	// For search.DPOR; see coir_dpor.go.
	next      coirTransition // its last point
	pending   bool           // it has announced that, and not done it
	selecting bool           // it waits in a select, or did and has not continued
	woken     int32          // the event that made it ready, if it waited or is new; -1: none
	moves     int32          // how often it has continued

	poll       *pollDesc // the descriptor that it waited for last; see coir_kernel.go
	pollWrites bool
}

// A goroutine may be quiet: in code of the harness that it calls, such as t.Run, it has no points; and the harness
// itself, which starts the test and waits for it, gets the turn when no other goroutine can run.
const coirLast, coirNoPoints = 1, 2

type coirDecision struct {
	ways, way uint16
	kind      uint8
	step      uint32
}

type coirStep struct {
	g, obj uint32
	op     uint8
	npc    uint8
	chose  int16  // what a select took: its case, from 1, or -1 for the default; 0: nothing, or not known
	done   uint32 // its place in the order in which operations begin, from 1; 0: not begun
	at     int64
}

// coirActor is a goroutine of the schedule, for reports.
type coirActor struct {
	g      guintptr
	parent uint32
	gopc   uintptr // of the go statement
	op     uint8   // its last point
	reason waitReason
	state  uint8 // coir.Ready, ...
	obj    uint32
	step   uint32
	point  uint32 // the step of its last point
	since  int64
}

var (
	coirDecisions [coirMaxDecisions]coirDecision
	coirSteps     [coirMaxSteps]coirStep
	coirEvents    [coirMaxEvents]coirEvent
	coirActors    [coirMaxActors]coirActor
	coirObjects   [coirMaxObjects]struct {
		addr    uintptr
		run, id uint32
	}
	// Of the schedule whose trace is kept: where each step is, the cases of selects, and where channels and goroutines
	// were made.
	coirPlaces [coirMaxSteps][coirDepth]uintptr
	coirCases  [coirMaxCases]struct {
		step, obj uint32
		i         uint16
		send      bool
	}
	coirChannels [coirMaxChannels]struct { // the last ones
		made  uint32 // its number among all
		run   uint32 // the schedule in which it had the number obj
		obj   uint32
		npc   uint8
		timer bool // it is of a timer or a ticker
		room  uint // how many values it holds
		pc    [coirDepth]uintptr
	}
	coirBirths [coirMaxBirths]struct { // of goroutines, by their numbers
		run uint32
		npc uint8
		pc  [coirBirthDepth]uintptr
	}
)

// coirConfig says how to run a schedule. Package testing has the same type.
type coirConfig struct {
	strategy search.Strategy
	seed     uint64 // of what the program draws
	racing   uint64 // percent of the points at which the clock moves although goroutines can run
	limit    uint64 // steps without a moment at which all wait, after which a schedule is given up
	most     uint64 // steps, after which it is given up
	ticks    uint64 // moves of the clock without progress of the test, after which there will be none
	span     int64  // how far the clock moves meanwhile, unless the moves are ten times as many
	trace    bool   // record where each step is
	atomics  bool   // atomic operations are points
	collect  bool   // collect garbage when the test has ended: a finalizer may stop what the test left behind
	keep     bool   // count what is new; see coirNews
}

// coirOutcome is the outcome of a schedule. Package testing has the same type.
type coirOutcome struct {
	steps, hash uint64
	decisions   int
	actors      int
	endless     bool // it was given up after limit steps without a moment at which all wait
	long        bool // it was given up after the most steps that a schedule may have
	simulates   bool // it was given up because the test explores by itself: see CoirSimulates
	ticking     bool // only timers made progress
	misfit      bool // a given decision had fewer ways
	overflow    bool // a table was too small
	lost        bool // a decision other than 0 is not in the table
	cases       int
	channels    int
	news        uint32 // how much it showed that no earlier schedule had; see coirNews
	now         int64  // the last moment at which something happened
	outside     uint32 // wakes by a goroutine outside, by the network, or after a long system call
	foreign     uint32 // those by a goroutine outside
	signals     bool   // it waits for signals
	kernel      bool   // it has read from a socket or a pipe, or started a process
	panicG      uint32
	panic       string
}

var coirSched struct {
	mu        mutex
	run       uint32 // the number of the schedule
	root      guintptr
	turn      guintptr // the goroutine that has it; 0: all wait
	to        guintptr
	ready     [coirMaxReady]guintptr // sorted: see coirAfter
	nready    int
	nways     int
	held      uint64 // points since the turn passed
	harness   uint64 // the step at which the harness last could not run, or did
	actors    uint32
	objects   uint32
	seed      uint64
	rand      uint64 // for the program
	steps     uint64
	idle      uint64 // the step at which all waited last
	charged   uint64 // the step up to which the clock has been charged for steps
	progress  uint64 // counts steps of the test's own goroutine, and goroutines that begin or end
	ticked    uint64 // moves of the clock since progress changed
	ticks     uint64
	span      int64
	exact     int    // bubbles of the test's own that it is in: the clock moves as in testing/synctest
	last      uint64 // progress, when the clock moved last
	lastTime  int64  // when that changed
	hashThen  uint64 // the hash, at the first move of the clock after that
	moved     uint64 // the last step of a goroutine that does not run the function of a timer
	stepsThen uint64 // moved, when the clock moved last
	until     int64  // the last moment for which a timer was set when only timers seemed to make progress
	racing    uint64
	limit     uint64
	most      uint64
	trace     bool
	collect   bool
	collected bool // what follows depends on the collector, and is not in the hash
	hash      uint64
	ended     int // ticks of the clock since the test has ended
	procs     int
	before    int32 // goroutines at the beginning of the schedule
	others    int32 // those of them that are neither coir's nor of an earlier schedule
	signals   bool  // the program waits for signals, and did so before the test
	timers    int   // in real time, at the beginning of the first schedule
	forked    bool  // the process has started another one
	givenUp   bool  // the schedule is to end although not all of its waits are durable
	patience  int64 // for signals, in this schedule
	watching  bool
	seen      guintptr
	seenStep  uint64
	ndec      int
	ndone     uint32
	ncases    int
	nchans    int // all that were made in the process while a trace was kept
	out       coirOutcome
	text      [512]byte // of a panic

	keep bool // for coirNews

	// Of the decision that is made, and for search.DPOR.
	strategy  search.Strategy
	fork      search.Fork
	kind      uint8
	holder    guintptr // the goroutine that could keep the turn
	behind    int      // of a goroutine that gives up the turn: the first ready one after it
	chose     int32    // the decision that led to what happens next; -1: there was none
	logging   bool
	nevents   int
	nchosen   int
	selecting int // goroutines that wait in a select, or did and have not continued
}

func coirNext(x *uint64) uint64 {
	*x ^= *x << 13
	*x ^= *x >> 7
	*x ^= *x << 17
	return *x
}

func coirMix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

func coirHash(x uint64) {
	if coirSched.collected {
		return
	}
	coirSched.hash = (coirSched.hash ^ x) * 1099511628211
}

// coirBegin begins a schedule. The caller is about to be the root of its bubble.
//
//go:linkname coirBegin testing.coirBegin
func coirBegin(c *coirConfig) {
	s := &coirSched
	if poolcleanup != nil { // what pools hold must not depend on earlier schedules; once for each generation
		poolcleanup()
		poolcleanup()
	}
	s.before = gcount(false)
	if s.run == 0 {
		s.others, s.signals, s.timers = s.before-3, coirSignals(), coirRealTimers()
	}
	s.run++
	s.strategy, s.racing, s.limit, s.most, s.trace = c.strategy, c.racing, c.limit, c.most, c.trace
	s.keep = c.keep
	s.fork.World = coirWorld{}
	s.logging = c.strategy == search.Strategy(&coirSearch)
	s.chose, s.nevents, s.nchosen, s.selecting = -1, 0, 0, 0
	s.seed = c.seed
	s.rand = coirMix(c.seed^0xabcdef) | 1
	s.nready, s.held, s.harness, s.actors, s.objects, s.steps = 0, 0, 0, 0, 0, 0
	s.idle, s.charged, s.progress, s.ticked, s.last, s.ticks = 0, 0, 0, 0, 0, c.ticks
	s.lastTime, s.span = coirBaseTime, c.span
	s.ended, s.ndec, s.seen, s.seenStep, s.exact = 0, 0, 0, 0, 0
	s.hashThen, s.moved, s.stepsThen, s.until = 0, 0, 0, 0
	s.patience, s.collect, s.collected, s.givenUp = 20e6, c.collect, false, false
	s.ndone, s.ncases = 0, 0
	s.hash = 14695981039346656037
	s.out = coirOutcome{}
	gp := getg()
	gp.coir = coirG{run: s.run}
	s.root.set(gp)
	s.turn.set(gp)
	coir.On, coir.Atomics = true, c.atomics
}

// coirFinish ends a schedule. Goroutines that it leaves behind wait forever: they no longer belong to a schedule.
//
//go:linkname coirFinish testing.coirFinish
func coirFinish(out *coirOutcome) {
	coir.On, coir.Atomics = false, false
	getg().coir = coirG{}
	coirNow(out)
}

// coirIn reports whether gp belongs to the running schedule.
func coirIn(gp *g) bool { return coir.On && gp.bubble != nil && gp.coir.run == coirSched.run }

// coirBorn numbers a goroutine.
func coirBorn(newg, parent *g, pc uintptr) {
	newg.coir = coirG{}
	if !coir.On || newg.bubble == nil {
		return
	}
	s := &coirSched
	by := uint32(0)
	if parent.coir.run == s.run {
		by = parent.coir.id
		newg.coir.quiet = parent.coir.quiet
	} else if parent != parent.m.g0 { // g0 starts the functions of timers
		return // of a goroutine that an earlier schedule has left behind
	} else {
		newg.coir.timer = true // it may set the timer again: that is no progress
	}
	s.actors++
	if !newg.coir.timer {
		s.progress++
	}
	newg.coir.id, newg.coir.run = s.actors, s.run
	if s.actors < coirMaxActors {
		coirActors[s.actors] = coirActor{parent: by, gopc: pc}
		coirActors[s.actors].g.set(newg)
	} else {
		s.out.overflow = true
	}
	if s.trace && s.actors < coirMaxBirths && getg() != parent { // parent is in systemstack
		b := &coirBirths[s.actors]
		b.run, b.npc = s.run, uint8(fpTracebackPCs(unsafe.Pointer(parent.sched.bp), b.pc[:]))
	}
}

//go:linkname coirQuiet testing.coirQuiet
func coirQuiet(q uint32) (was uint32) {
	gp := getg()
	was, gp.coir.quiet = gp.coir.quiet, q
	return was
}

//go:linkname sync_coirQuiet sync.coirQuiet
func sync_coirQuiet(q uint32) uint32 { return coirQuiet(q) }

// coirReady takes a goroutine that can run. It returns false if the goroutine is not of the schedule or has the turn,
// so that the runtime queues it.
func coirReady(gp *g) bool {
	if !coirIn(gp) {
		return false
	}
	s := &coirSched
	lock(&s.mu)
	if s.turn.ptr() == gp { // it had parked for the runtime, and kept the turn
		unlock(&s.mu)
		return false
	}
	if by := getg().m.curg; (by == nil || by.coir.run != s.run) && gp != s.root.ptr() &&
		(by != nil || getg().bubble == nil) { // else a timer of the bubble
		s.out.outside++
		if by != nil {
			s.out.foreign++
		}
	}
	gp.coir.woken = int32(s.nevents) - 1
	to := coirArrive(gp)
	unlock(&s.mu)
	if to != nil {
		coirQueue(to)
		wakep()
	}
	return true
}

// coirQueue passes the goroutine that has got the turn to the runtime.
func coirQueue(to *g) {
	if pp := getg().m.p.ptr(); pp != nil {
		runqput(pp, to, true)
		return
	}
	lock(&sched.lock)
	globrunqput(to)
	unlock(&sched.lock)
}

// coirArrive makes a goroutine ready. If no goroutine has the turn, it returns the one that gets it.
func coirArrive(gp *g) *g {
	coirInsert(gp)
	if coirSched.turn != 0 {
		return nil
	}
	return coirChoose(nil, coir.Free)
}

func coirInsert(gp *g) {
	s := &coirSched
	if s.nready == coirMaxReady {
		throw("coir: too many goroutines")
	}
	if id := gp.coir.id; id != 0 && id < coirMaxActors {
		coirActors[id].state = coir.Ready
	}
	at := s.nready
	for ; at > 0 && coirAfter(s.ready[at-1].ptr(), gp); at-- {
		s.ready[at] = s.ready[at-1]
	}
	s.ready[at].set(gp)
	s.nready++
}

// coirAfter reports whether a comes after b: the harness comes last; the others are in the order of creation.
func coirAfter(a, b *g) bool {
	if last := a.coir.quiet == coirLast; last != (b.coir.quiet == coirLast) {
		return last
	}
	return a.coir.id > b.coir.id
}

// coirWay returns the goroutine that gets the turn by way k of a decision. gp has the turn and could keep it, or is
// nil.
func coirWay(gp *g, kind uint8, k int) *g {
	s := &coirSched
	switch {
	case gp == nil:
		return s.ready[k].ptr()
	case kind == coir.Keep:
		if k == 0 {
			return gp
		}
		return s.ready[k-1].ptr()
	case k == s.nways:
		return gp
	}
	return s.ready[(s.behind+k)%s.nways].ptr() // those after gp, then those before it
}

// coirDecide makes the next decision, among n ways.
func coirDecide(gp *g, kind uint8, n int) int {
	s := &coirSched
	s.holder.set(gp)
	s.kind = kind
	s.fork.N, s.fork.Keep, s.fork.Yields = n, kind == coir.Keep, kind == coir.GiveUp
	k := s.strategy.Choose(&s.fork)
	if k < 0 || k >= n {
		s.out.misfit = true
		k = 0
	}
	if kind != coir.Case {
		s.chose = int32(s.ndec)
	}
	if s.ndec < coirMaxDecisions {
		coirDecisions[s.ndec] = coirDecision{uint16(n), uint16(k), kind, uint32(s.steps)}
	} else {
		s.out.overflow = true
		s.out.lost = s.out.lost || k != 0
	}
	s.ndec++
	coirHash(uint64(n)<<16 | uint64(k))
	return k
}

// coirWorld is the schedule as its strategy sees it.
type coirWorld struct{}

// Actor implements search.World.
func (coirWorld) Actor(i int) int {
	s := &coirSched
	if s.kind == coir.Case {
		return search.Value
	}
	return int(coirWay(s.holder.ptr(), s.kind, i).coir.id)
}

// Actors implements search.World.
func (coirWorld) Actors() int { return int(coirSched.actors) + 1 }

// Running implements search.World.
func (coirWorld) Running() int {
	if gp := coirSched.holder.ptr(); gp != nil {
		return int(gp.coir.id)
	}
	return -1
}

// Moves implements search.World.
func (coirWorld) Moves(actor int) int32 {
	if actor >= coirMaxActors {
		return 0
	}
	gp := coirActors[actor].g.ptr()
	if gp == nil || gp.coir.run != coirSched.run || gp.coir.id != uint32(actor) {
		return 0
	}
	return gp.coir.moves
}

// Logged implements search.World.
func (coirWorld) Logged() int { return coirSched.nevents }

// coirChoose decides which goroutine gets the turn, and takes it out of ready. gp has the turn and could keep it, or is
// nil. If it does not keep the turn it becomes ready.
func coirChoose(gp *g, kind uint8) *g {
	s := &coirSched
	n := s.nready
	for n > 0 && s.ready[n-1].ptr().coir.quiet == coirLast {
		n--
	}
	if n == s.nready {
		s.harness = s.steps
	} else if s.steps-s.harness > 50000 { // the rest of the test spins, and the harness could end it
		s.harness = s.steps
		return coirPass(gp, s.ready[n].ptr())
	}
	if n == 0 && gp == nil {
		n = min(s.nready, 1) // only the harness can run
	}
	s.nways = n
	if gp != nil {
		n++
	}
	if kind == coir.GiveUp {
		s.behind = 0
		for s.behind < s.nways && s.ready[s.behind].ptr().coir.id < gp.coir.id {
			s.behind++
		}
	}
	if n == 0 {
		s.turn = 0
		return nil
	}
	k := 0
	if n > 1 {
		k = coirDecide(gp, kind, n)
	}
	return coirPass(gp, coirWay(gp, kind, k))
}

// coirPass passes the turn to a goroutine that is ready, or lets gp keep it.
func coirPass(gp, to *g) *g {
	s := &coirSched
	if to != gp {
		i := 0
		for s.ready[i].ptr() != to {
			i++
		}
		copy(s.ready[i:s.nready], s.ready[i+1:s.nready])
		s.nready--
		if gp != nil {
			coirInsert(gp)
		}
		s.held = 0
	}
	s.turn.set(to)
	coirGoesOn(to)
	return to
}

// coirLeave is called when gp has parked or ended.
func coirLeave(gp *g, reason waitReason, state uint8) {
	s := &coirSched
	if !coir.On || gp.coir.run != s.run {
		return
	}
	lock(&s.mu)
	var to *g
	if s.turn.ptr() == gp {
		if id := gp.coir.id; id != 0 && id < coirMaxActors {
			a := &coirActors[id]
			a.reason, a.state, a.step = reason, state, uint32(s.steps)
			if gp.bubble != nil {
				a.since = gp.bubble.now
				s.out.now = a.since
			}
		}
		if reason == waitReasonSelect || reason == waitReasonSynctestSelect {
			gp.coir.selecting = true
			s.selecting++
		}
		if state == coir.Ended && !gp.coir.timer {
			s.progress++
		}
		to = coirChoose(nil, coir.Free)
	}
	unlock(&s.mu)
	if to != nil {
		coirQueue(to)
	}
}

// coirSwap passes the turn from a goroutine to the one that it switches to as a coroutine. from may have ended.
func coirSwap(from, to *g, ended bool) {
	s := &coirSched
	if s.turn.ptr() != from {
		return
	}
	s.turn.set(to)
	if id := from.coir.id; id != 0 && id < coirMaxActors {
		a := &coirActors[id]
		a.reason, a.state, a.step, a.since = waitReasonCoroutine, coir.Waiting, uint32(s.steps), to.bubble.now
		if ended {
			a.state = coir.Ended
		}
	}
	if id := to.coir.id; id != 0 && id < coirMaxActors {
		coirActors[id].state = coir.Ready
	}
	to.coir.woken = int32(s.nevents) - 1
	coirGoesOn(to)
}

// coirGivesUpTurn reports whether a goroutine that parks for the given reason passes the turn on. It does not for the
// runtime's own reasons.
func coirGivesUpTurn(r waitReason) bool {
	switch r {
	case waitReasonIOWait, waitReasonSemacquire, waitReasonSleep, waitReasonChanReceiveNilChan,
		waitReasonChanSendNilChan, waitReasonSelectNoCases, waitReasonSelect, waitReasonChanReceive,
		waitReasonChanSend, waitReasonSyncCondWait, waitReasonSyncMutexLock, waitReasonSyncRWMutexRLock,
		waitReasonSyncRWMutexLock, waitReasonSyncWaitGroupWait, waitReasonCoroutine, waitReasonSynctestRun,
		waitReasonSynctestWait, waitReasonSynctestChanReceive, waitReasonSynctestChanSend,
		waitReasonSynctestSelect, waitReasonSynctestWaitGroupWait:
		return true
	}
	return false
}

// coirPoint is called before an operation on the object p. Another goroutine may get the turn. Callers check coir.On.
func coirPoint(op uint8, p unsafe.Pointer) { coirPointOf(op, p, coir.Keep) }

//go:linkname sync_coirPoint sync.coirPoint
func sync_coirPoint(op uint8, p unsafe.Pointer) { coirPointOf(op, p, coir.Keep) }

//go:linkname testing_coirPoint testing.coirPoint
func testing_coirPoint(op uint8, p unsafe.Pointer) { coirPointOf(op, p, coir.Keep) }

//go:linkname isync_coirPoint internal/sync.coirPoint
func isync_coirPoint(op uint8, p unsafe.Pointer) { coirPointOf(op, p, coir.Keep) }

func coirPointOf(op uint8, p unsafe.Pointer, kind uint8) {
	gp := getg()
	s := &coirSched
	if gp.bubble == nil || gp.coir.run != s.run || gp.m.curg != gp || gp.m.locks != 0 || gp.coir.quiet != 0 ||
		gp == s.root.ptr() || s.turn.ptr() != gp {
		return
	}
	if a := uintptr(p); a >= gp.stack.lo && a < gp.stack.hi {
		return // on its own stack: no other goroutine can use it
	}
	s.steps++
	obj := coirObject(op, p)
	coirHash(uint64(gp.coir.id)<<32 | uint64(obj)<<8 | uint64(op))
	coirHash(uint64(gp.bubble.now))
	e := coirStepOf(uint32(s.steps))
	*e = coirStep{g: gp.coir.id, op: op, obj: obj, at: gp.bubble.now}
	if s.trace {
		e.npc = uint8(fpTracebackPCs(unsafe.Pointer(getfp()), coirPlaces[(s.steps-1)%coirMaxSteps][:]))
	}
	s.out.now = gp.bubble.now
	n := uint32(s.steps)
	if id := gp.coir.id; id < coirMaxActors {
		a := &coirActors[id]
		a.op, a.obj, a.step, a.point = op, obj, n, n
	}
	if gp.coir.id == coirTestG {
		s.progress++
	}
	if !gp.coir.timer {
		s.moved = s.steps
	}
	s.out.endless = s.out.endless || s.steps-s.idle > s.limit
	s.out.long = s.out.long || s.steps > s.most
	if s.out.endless || s.out.long || s.out.simulates {
		gopark(nil, nil, waitReasonSynctestWait, traceBlockGeneric, 1) // forever
	}
	// Whether the clock moves depends only on the step, and not on how the decisions were made: a replay only repeats
	// them.
	if s.racing > 0 && coirMix(s.seed^s.steps<<32)>>11%100 < s.racing {
		coirMoveClock(gp, 0)
	} else {
		coirCharge(gp)
	}
	if obj != 0 {
		coirNews(gp.coir.id, obj, op)
	}
	gp.coir.next.op, gp.coir.next.obj, gp.coir.pending = op, obj, true
	s.held++
	if s.nready == 0 {
		coirGoesOn(gp)
		coirDone(n)
		return
	}
	if s.held > coirFairAfter {
		s.held = 0
		kind = coir.GiveUp
	}
	mp := acquirem()
	lock(&s.mu)
	to := coirChoose(gp, kind)
	s.to.set(to)
	unlock(&s.mu)
	releasem(mp)
	if to != gp {
		mcall(coirSwitch)
	}
	coirDone(n)
}

// coirDone is called when the operation of a step begins: its goroutine has the turn.
func coirDone(step uint32) {
	coirSched.ndone++
	if e := coirStepOf(step); e != nil {
		e.done = coirSched.ndone
	}
}

// coirStepOf returns the step with a number from 1, or nil if it is no longer kept.
func coirStepOf(n uint32) *coirStep {
	if n == 0 || uint32(coirSched.steps)-n >= coirMaxSteps {
		return nil
	}
	return &coirSteps[(n-1)%coirMaxSteps]
}

// coirChose records what a select took: the case k, or -1, its default. The compiler turns a select with one case and a
// default into a send or a receive on the channel c that does not wait.
func coirChose(op uint8, c *hchan, k int) {
	gp := getg()
	s := &coirSched
	if !s.trace || !coirIn(gp) || gp.coir.quiet != 0 || gp.coir.id == 0 || gp.coir.id >= coirMaxActors {
		return
	}
	e := coirStepOf(coirActors[gp.coir.id].point)
	if e == nil || e.op != op || c != nil && (c.coirRun != s.run || c.coirID != e.obj) {
		return // a timer has sent
	}
	if k >= 0 {
		k++
	}
	e.chose = int16(k)
}

// coirMake records where a channel is made.
func coirMake(c *hchan) {
	gp := getg()
	s := &coirSched
	if !s.trace || !coirIn(gp) || gp.coir.quiet != 0 || s.turn.ptr() != gp {
		return
	}
	s.nchans++
	c.coirMade = uint32(s.nchans)
	e := &coirChannels[s.nchans%coirMaxChannels]
	e.made, e.run, e.room = c.coirMade, 0, c.dataqsiz
	e.npc = uint8(fpTracebackPCs(unsafe.Pointer(getfp()), e.pc[:]))
}

// coirSwitch switches to the goroutine that has got the turn. gp is ready.
func coirSwitch(gp *g) {
	to := coirSched.to.ptr()
	casgstatus(gp, _Grunning, _Grunnable)
	dropg()
	coirQueue(to)
	schedule()
}

// coirObject returns the number of an object. A channel has its number in itself; others are found by their address.
func coirObject(op uint8, p unsafe.Pointer) uint32 {
	s := &coirSched
	if p == nil {
		return 0
	}
	if op == coir.OpSend || op == coir.OpRecv || op == coir.OpClose {
		return coirChannel((*hchan)(p))
	}
	a := uintptr(p)
	h := uint32(coirMix(uint64(a))) % coirMaxObjects
	for i := 0; i < 64; i++ {
		o := &coirObjects[h]
		if o.run != s.run {
			s.objects++
			o.addr, o.run, o.id = a, s.run, s.objects
			return o.id
		}
		if o.addr == a {
			return o.id
		}
		h = (h + 1) % coirMaxObjects
	}
	s.out.overflow = true
	return 0
}

// coirForget forgets the objects that the collector is about to free: their addresses may be used again, by objects
// that get other numbers. It is called when all marks are set, while the world is stopped.
func coirForget() {
	s := &coirSched
	if !coir.On {
		return
	}
	for i := range coirObjects {
		o := &coirObjects[i]
		if o.run != s.run {
			continue
		}
		if span := spanOfHeap(o.addr); span != nil && !span.markBitsForIndex(span.objIndex(o.addr)).isMarked() {
			o.addr = 0 // no object has that; the place stays taken, for those that were put behind it
		}
	}
}

func coirChannel(c *hchan) uint32 {
	s := &coirSched
	if c.coirRun != s.run {
		s.objects++
		c.coirID, c.coirRun = s.objects, s.run
		if e := &coirChannels[c.coirMade%coirMaxChannels]; c.coirMade != 0 && e.made == c.coirMade {
			e.run, e.obj, e.timer = s.run, c.coirID, c.timer != nil
		}
	}
	return c.coirID
}

// coirLatest is the last point at each object, by its number, and coirSeen the pairs seen in all schedules.
var (
	coirLatest [1 << 12]struct {
		run, g uint32
		op     uint8
	}
	coirSeen [1 << 16 / 64]uint64
)

// coirNews records that a goroutine uses an object after another one did, which distinguishes schedules. A schedule in
// which this is new is worth keeping.
func coirNews(g, obj uint32, op uint8) {
	s := &coirSched
	if !s.keep {
		return
	}
	last := &coirLatest[obj%uint32(len(coirLatest))]
	if last.run == s.run && last.g != g {
		h := coirMix(uint64(last.g)<<40 ^ uint64(g)<<20 ^ uint64(obj)<<8 ^ uint64(last.op)<<56 ^ uint64(op)<<48)
		word, bit := h>>6%uint64(len(coirSeen)), uint64(1)<<(h&63)
		if coirSeen[word]&bit == 0 {
			coirSeen[word] |= bit
			s.out.news++
		}
	}
	last.run, last.g, last.op = s.run, g, op
}

// coirPointAt is called before an operation on p, from the place pc. It is a point unless it is the standard library's
// own: a mutex has its points elsewhere, and the caches of packages like reflect are not the test's.
func coirPointAt(op uint8, p unsafe.Pointer, pc uintptr) {
	gp := getg()
	s := &coirSched
	if gp.coir.run != s.run || gp.m.curg != gp || gp.coir.quiet != 0 || s.turn.ptr() != gp {
		return
	}
	of := coirCodeAt(pc)
	if of == coirCodeAtomic { // its caller decides
		var pcs [8]uintptr
		n := fpTracebackPCs(unsafe.Pointer(getfp()), pcs[:])
		for i := 0; i+1 < n; i++ {
			if pcs[i] == pc {
				of = coirCodeAt(pcs[i+1])
				break
			}
		}
	}
	if of == coirCodeUser {
		coirPointOf(op, p, coir.Keep)
	}
}

//go:linkname atomic_coirPointAt sync/atomic.coirPointAt
func atomic_coirPointAt(op uint8, p unsafe.Pointer, pc uintptr) { coirPointAt(op, p, pc) }

//go:linkname sync_coirPointAt sync.coirPointAt
func sync_coirPointAt(op uint8, p unsafe.Pointer, pc uintptr) { coirPointAt(op, p, pc) }

// Where the code at a place is from.
const (
	coirCodeUser   = iota
	coirCodeStd    // the standard library
	coirCodeAtomic // a method of package sync/atomic that is not inlined: with -race none is
)

// coirCode caches the origin of code. Only the goroutine that has the turn uses it.
var coirCode [1 << 10]struct {
	pc uintptr
	of uint8
}

func coirCodeAt(pc uintptr) uint8 {
	c := &coirCode[coirMix(uint64(pc))%uint64(len(coirCode))]
	if c.pc != pc {
		c.pc, c.of = pc, coirCodeOf(pc)
	}
	return c.of
}

// coirCodeOf finds out where the code at pc is from: files of the standard library are next to the runtime's. The code
// may be inlined into other code, and the methods of package sync/atomic usually are.
func coirCodeOf(pc uintptr) uint8 {
	f := findfunc(pc)
	if !f.valid() {
		return coirCodeStd
	}
	u, uf := newInlineUnwinder(f, pc-1)
	for stringslite.HasPrefix(u.srcFunc(uf).name(), "sync/atomic.(*") {
		if !u.isInlined(uf) {
			if stringslite.HasPrefix(u.srcFunc(uf).name(), "sync/atomic.(*Value)") { // it has points of its own
				return coirCodeStd
			}
			return coirCodeAtomic
		}
		uf = u.next(uf)
	}
	file, _ := u.fileLine(uf)
	own := findfunc(abi.FuncPCABIInternal(coirCodeOf))
	src, _ := funcline(own, own.entry())
	src = src[:len(src)-len("runtime/coir.go")]
	if src != "" {
		if stringslite.HasPrefix(file, src) {
			return coirCodeStd
		}
		return coirCodeUser
	}
	for i := 0; i < len(file) && file[i] != '/'; i++ { // with -trimpath it begins with the path of the package
		if file[i] == '.' {
			return coirCodeUser
		}
	}
	return coirCodeStd
}

// coirGosched is Gosched. It returns false if the runtime must do it.
func coirGosched() bool {
	gp := getg()
	if !coirIn(gp) || coirSched.turn.ptr() != gp || gp.coir.quiet != 0 {
		return false
	}
	coirPointOf(coir.OpYield, nil, coir.GiveUp)
	return true
}

// coirSelect puts the chosen case first. The channels are locked, and pollorder has the cases in their order.
func coirSelect(scases []scase, pollorder []uint16, nsends int) {
	gp := getg()
	s := &coirSched
	if !coirIn(gp) || s.turn.ptr() != gp || gp.coir.quiet != 0 {
		return
	}
	for _, i := range pollorder { // the channels that it looks at are part of the trace
		obj := coirChannel(scases[i].c)
		coirHash(uint64(obj))
		coirNews(gp.coir.id, obj, coir.OpSelect)
		if s.trace && gp.coir.id < coirMaxActors {
			e := &coirCases[s.ncases%coirMaxCases]
			e.step, e.obj, e.i, e.send = coirActors[gp.coir.id].point, obj, i, int(i) < nsends
			s.ncases++
		}
	}
	n := 0
	for _, i := range pollorder {
		if coirCaseReady(&scases[i], int(i) < nsends) {
			n++
		}
	}
	if n < 2 {
		return
	}
	lock(&s.mu)
	k := coirDecide(gp, coir.Case, n)
	unlock(&s.mu)
	// In a loop whose first case is always ready the others would never be chosen, so after a while the cases take
	// turns.
	if gp.coir.cases++; gp.coir.cases > coirCasesFairAfter {
		k = (k + int(gp.coir.cases)) % n
	}
	for j, i := range pollorder {
		if !coirCaseReady(&scases[i], int(i) < nsends) {
			continue
		}
		if k == 0 {
			pollorder[0], pollorder[j] = i, pollorder[0]
			return
		}
		k--
	}
}

func coirCaseReady(cas *scase, send bool) bool {
	c := cas.c
	q := &c.sendq
	switch {
	case c.closed != 0:
		return true
	case send && c.qcount < c.dataqsiz, !send && c.qcount > 0:
		return true
	case send:
		q = &c.recvq
	}
	for sg := q.first; sg != nil; sg = sg.next {
		if !sg.isSelect || sg.g.selectDone.Load() == 0 {
			return true
		}
	}
	return false
}

// coirRand is the generator of the program: rand(), map order, and so on are the same in each run of a schedule.
func coirRand() (x uint64, ok bool) {
	gp := getg()
	if gp.m.curg != gp || !(coir.On && gp.bubble != nil || gp.goid == 1) {
		return 0, false
	}
	coirSched.rand |= 1
	return coirNext(&coirSched.rand) * 0x9E3779B97F4A7C15, true
}

// coirTimerRand orders the timers of one instant.
func coirTimerRand() uint32 {
	if coir.On {
		return uint32(coirNext(&coirSched.rand) >> 16)
	}
	return cheaprand()
}

//go:linkname sysrand_coirRead crypto/internal/sysrand.coirRead
func sysrand_coirRead(b []byte) bool {
	if !coirIn(getg()) {
		return false
	}
	for i := range b {
		b[i] = byte(coirNext(&coirSched.rand) >> 24)
	}
	return true
}

// A step takes a nanosecond, so that a short timer can fire while goroutines run; in return each timer fires up to
// coirLate late, so that timers started a few steps apart still fire in any order. Both times are shorter than in
// reality: what needs more is not tried.
//
// In a program that polls, or spins until a time has come, there is no moment at which all goroutines wait. So a step
// takes a microsecond after the first coirFreeSteps of them, and ten times as much after each million.
const (
	coirLate      = 1000
	coirFreeSteps = 20000
)

// coirTestG is the number of the goroutine that runs the test: the first is that of the harness.
const coirTestG = 2

func coirCharge(gp *g) {
	s := &coirSched
	if s.steps-s.idle > coirFreeSteps {
		if s.steps-max(s.charged, s.idle) < 64 {
			return
		}
		n := int64(s.steps-max(s.charged, s.idle)) * 1000
		s.charged = s.steps
		for m := (s.steps - s.idle) / 1000000; m > 0; m-- {
			n *= 10
		}
		coirMoveClock(gp, n)
		return
	}
	if s.exact > 0 {
		return
	}
	gp.bubble.now++
	if next := gp.bubble.timers.wakeTime(); next != 0 && next <= gp.bubble.now {
		coirMoveClock(gp, 0)
	}
}

// coirExactly runs the function of a bubble that the test made. There time stands still while goroutines run.
func coirExactly(f func()) {
	coirSched.exact++
	defer func() { coirSched.exact-- }()
	f()
}

// coirMoveClock moves the clock of the bubble by d; or, if d is 0, to the next time that a goroutine waits for, as its
// root does when all wait.
func coirMoveClock(gp *g, d int64) {
	bubble := gp.bubble
	lock(&bubble.mu)
	next := bubble.timers.wakeTime()
	now := bubble.now + d
	if d == 0 {
		now = max(now, next)
	}
	bubble.now = now
	unlock(&bubble.mu)
	if next == 0 || next > now {
		return
	}
	systemstack(func() {
		curg := gp.m.curg
		gp.m.curg = nil
		bubble.timers.check(bubble.now, bubble)
		gp.m.curg = curg
	})
}

// coirPanic keeps the panic that would end the process. Its goroutine waits forever.
func coirPanic(p *_panic) {
	gp := getg()
	if !coirIn(gp) || gp == coirSched.root.ptr() || gp.m.locks != 0 {
		return
	}
	if out := &coirSched.out; out.panicG == 0 {
		text := "panic"
		switch v := p.arg.(type) {
		case error:
			text = v.Error()
		case stringer:
			text = v.String()
		case string:
			text = v
		default:
			text = "(" + toRType(efaceOf(&p.arg)._type).string() + ")"
		}
		out.panicG = gp.coir.id
		out.panic = unsafe.String(&coirSched.text[0], copy(coirSched.text[:], text))
	}
	runningPanicDefers.Add(-1)
	gopark(nil, nil, waitReasonSynctestWait, traceBlockGeneric, 1)
}

// coirExitSyscall is called at the end of a system call: a goroutine whose turn was taken meanwhile waits for the next.
//
//go:nosplit
func coirExitSyscall(gp *g) {
	if coirSched.watching && coir.On && gp.bubble != nil && gp.coir.run == coirSched.run {
		mcall(coirExitedSyscall)
	}
}

func coirExitedSyscall(gp *g) {
	s := &coirSched
	lock(&s.mu)
	if s.turn.ptr() == gp {
		unlock(&s.mu)
		gogo(&gp.sched)
	}
	s.out.outside++
	casgstatus(gp, _Grunning, _Grunnable)
	dropg()
	to := coirArrive(gp)
	unlock(&s.mu)
	if to != nil {
		coirQueue(to)
	}
	schedule()
}

// coirTakeTurn is called from time to time from outside. It takes the turn from a goroutine that has made no step since
// the last call and is in a system call. It returns a number for what the schedule has waited for since then: 0
// nothing, 1 a system call, 2 something outside, 3 a goroutine that computes.
//
//go:linkname coirTakeTurn testing.coirTakeTurn
func coirTakeTurn() (what int) {
	s := &coirSched
	if !coir.On {
		return 0
	}
	var to guintptr
	lock(&s.mu)
	gp := s.turn.ptr()
	switch {
	case gp == nil && (s.seen != 0 || s.seenStep != s.steps):
	case gp == nil:
		what = 2
	case s.seen == s.turn && s.seenStep == s.steps:
		what = 3
		s.watching = true
		if readgstatus(gp)&^_Gscan == _Gsyscall {
			what = 1
			s.turn = 0
			if id := gp.coir.id; id != 0 && id < coirMaxActors {
				coirActors[id].state = coir.Calling
			}
			to.set(coirChoose(nil, coir.Free))
		}
	}
	s.seen, s.seenStep = s.turn, s.steps
	unlock(&s.mu)
	if to != 0 {
		systemstack(func() {
			coirQueue(to.ptr())
			wakep()
		})
	}
	return what
}

// coirStepsNow returns how many steps the running schedule has made.
//
//go:linkname coirStepsNow testing.coirStepsNow
func coirStepsNow() uint64 {
	lock(&coirSched.mu)
	n := coirSched.steps
	unlock(&coirSched.mu)
	return n
}

// coirInject takes the goroutines of the schedule out of a list of runnable ones: the network has woken them, or the
// collector has, and then the goroutine has the turn.
func coirInject(glist *gList) {
	var rest gList
	for !glist.empty() {
		gp := glist.pop()
		if !coirIn(gp) {
			rest.push(gp)
			continue
		}
		casgstatus(gp, _Gwaiting, _Grunnable)
		if !coirReady(gp) {
			coirQueue(gp)
		}
	}
	*glist = rest
}

// coirOutside is called by the root when all wait, and with last if no timer will wake them. It lets goroutines outside
// run, among them the one that receives signals, and reports whether that has made a goroutine of the schedule ready. A
// signal that the program has sent to itself may still be in the kernel, so coirOutside waits a little for it.
func coirOutside(last bool) bool {
	s := &coirSched
	if bubble := getg().bubble; s.collect && bubble.done && bubble.total > 1 {
		s.collect = false
		s.collected = true
		GC()
	}
	until := int64(0)
	if coirSignals() && !s.signals {
		until = nanotime() + s.patience
		if last && !getg().bubble.done {
			until = nanotime() + 1e9
		}
	}
	for n := 0; s.nready == 0; n++ {
		if coirSignalComes() || !runqempty(getg().m.p.ptr()) || !sched.runq.empty() {
			if n < 10 || coirSignalComes() { // not forever next to one that spins
				mcall(gosched_m)
				continue
			}
		}
		if nanotime() >= until {
			break
		}
		usleep(100)
	}
	if until > 0 {
		s.patience = max(until-nanotime(), 0)
	}
	return s.nready > 0
}

// coirSignals reports whether the program waits for signals.
func coirSignals() bool {
	for i := range sig.wanted {
		if sig.wanted[i] != 0 {
			return true
		}
	}
	return false
}

// coirSignalComes reports whether a signal is on its way to the program.
func coirSignalComes() bool {
	return coirSignals() && (sig.delivering.Load() != 0 || sig.state.Load() != sigReceiving)
}

// coirGoOutside starts a goroutine that belongs to no schedule.
//
//go:linkname coirGoOutside os/signal.coirGoOutside
func coirGoOutside(f func()) {
	gp := getg()
	bubble := gp.bubble
	gp.bubble = nil
	go f()
	gp.bubble = bubble
}

// coirAsks reports whether the goroutine that looks at stacks is of the schedule.
func coirAsks() bool {
	gp := getg().m.curg
	return gp != nil && coirIn(gp) && gp.m.throwing == throwTypeNone
}

// coirHides reports whether a goroutine is hidden from the program: the root, the watcher, or one of an earlier
// schedule.
func coirHides(gp *g) bool {
	if !coirAsks() {
		return false
	}
	return gp == coirSched.root.ptr() || gp.bubble == nil && gp.coir.quiet != 0 ||
		gp.bubble != nil && gp.coir.run != coirSched.run
}

// coirHidden returns how many goroutines the program would not have under go test. There the goroutine that runs the
// tests is the only one in addition to those of the test.
func coirHidden() int {
	if !coirIn(getg()) {
		return 0
	}
	return int(coirSched.before - coirSched.others)
}

// coirYear is a time in which a test would have made progress.
const coirYear = 365 * 24 * 3600e9

// coirTick is called when the root moves the clock: all wait. It reports whether only timers make progress, and always
// would: for many moves of the clock, and beyond each moment for which a timer was set when the moves had been enough.
// A move after which only functions of timers have run counts ten times. A twentieth of the moves is enough if the clock
// has moved by a year. A test that sleeps for seconds beside others that sleep for milliseconds makes many moves, and
// goes on.
func coirTick(bubble *synctestBubble) bool {
	s := &coirSched
	if s.givenUp {
		return true
	}
	s.idle = s.steps
	coirHappens(coirEvent{t: coirTransition{clock: true}, actor: search.Clock, fork: -1, wake: -1})
	if s.last != s.progress {
		s.last, s.ticked, s.until, s.hashThen, s.lastTime = s.progress, 0, 0, s.hash, bubble.now
	}
	if s.ticked++; s.moved == s.stepsThen {
		s.ticked += 9
	}
	s.stepsThen = s.moved
	enough := s.ticks
	if bubble.now-s.lastTime > coirYear {
		enough /= 20
	}
	if s.ticks == 0 || s.ticked < enough || bubble.now-s.lastTime < s.span && s.ticked < 10*s.ticks {
		return false
	}
	if s.until == 0 { // all wait, and nothing changes the heap
		s.until = bubble.now
		for _, t := range bubble.timers.heap {
			if t.timer.state&timerZombie == 0 && t.when-bubble.now < 100*coirYear { // else it is to never fire
				s.until = max(s.until, t.when)
			}
		}
	}
	if bubble.now <= s.until && s.ticked < 100*s.ticks {
		return false
	}
	s.out.ticking = true
	s.steps, s.hash = s.moved, s.hashThen // what led here; how long it lasted does not matter
	return true
}

// coirTimeStops reports whether the clock stops: the test has ended, and what it left behind had a hundred ticks to end
// as well.
func coirTimeStops() bool {
	coirSched.ended++
	return !coir.On || coirSched.ended > 100
}

// What package testing reads of a schedule.

//go:linkname coirDecisionAt testing.coirDecisionAt
func coirDecisionAt(i int) (ways, way uint16, kind uint8, step uint32) {
	d := &coirDecisions[i]
	return d.ways, d.way, d.kind, d.step
}

//go:linkname coirStepAt testing.coirStepAt
func coirStepAt(i int, pcs []uintptr) (g, obj uint32, op uint8, at int64, done uint32, chose int16, npc int) {
	e := &coirSteps[i%coirMaxSteps]
	return e.g, e.obj, e.op, e.at - coirBaseTime, e.done, e.chose, coirExpand(pcs, coirPlaces[i%coirMaxSteps][:e.npc])
}

//go:linkname coirCaseAt testing.coirCaseAt
func coirCaseAt(i int) (step, obj uint32, k uint16, send bool) {
	e := &coirCases[i%coirMaxCases]
	return e.step, e.obj, e.i, e.send
}

//go:linkname coirChannelAt testing.coirChannelAt
func coirChannelAt(i int, pcs []uintptr) (obj uint32, timer bool, room uint, npc int) {
	e := &coirChannels[i%coirMaxChannels]
	if e.made != uint32(i) || e.run != coirSched.run {
		return 0, false, 0, 0
	}
	return e.obj, e.timer, e.room, coirExpand(pcs, e.pc[:e.npc])
}

// coirBirth stores the stack of the go statement that started an actor in pcs, and returns its length. It is 0 if the
// stack was not kept.
//
//go:linkname coirBirth testing.coirBirth
func coirBirth(i int, pcs []uintptr) int {
	if i >= coirMaxBirths || coirBirths[i].run != coirSched.run {
		return 0
	}
	return coirExpand(pcs, coirBirths[i].pc[:coirBirths[i].npc])
}

// coirExpand expands the frames of a stack to those of its functions, including inlined ones.
func coirExpand(pcs, frames []uintptr) int {
	if len(frames) == 0 {
		return 0
	}
	var raw [1 + max(coirDepth, coirBirthDepth)]uintptr // the first is how many to skip
	return fpunwindExpand(pcs, raw[:1+copy(raw[1:], frames)])
}

//go:linkname coirActorAt testing.coirActorAt
func coirActorAt(i int) (parent uint32, gopc uintptr, op, state uint8, reason string, obj, step uint32, since int64) {
	a := &coirActors[i]
	return a.parent, a.gopc, a.op, a.state, a.reason.String(), a.obj, a.step, a.since - coirBaseTime
}

// coirActorPCs stores the stack where an actor waits in pcs, and returns its length.
//
//go:linkname coirActorPCs testing.coirActorPCs
func coirActorPCs(i int, pcs []uintptr) (n int) {
	gp := coirActors[i].g.ptr()
	if gp == nil || gp.coir.id != uint32(i) || gp.coir.run != coirSched.run ||
		readgstatus(gp) != _Gwaiting && readgstatus(gp) != _Gsyscall {
		return 0
	}
	systemstack(func() { n = gcallers(gp, 0, pcs) })
	return n
}

// CoirBubble returns the number of the caller's bubble, or 0. Module coir calls it, because it has a runtime for each
// bubble. It finds this method by its name, through an interface, because a module has no other access to what an
// overlay adds.
func (*Func) CoirBubble() uint64 {
	if bubble := getg().bubble; bubble != nil {
		return bubble.id
	}
	return 0
}

// CoirSimulates gives the running schedule up if the caller is in one: the test explores by itself, and must be run as go
// test does. Package sim of module coir calls it, like CoirBubble. Its goroutine waits forever.
func (*Func) CoirSimulates() {
	if gp := getg(); coirIn(gp) {
		coirSched.out.simulates = true
		gopark(nil, nil, waitReasonSynctestWait, traceBlockGeneric, 1)
	}
}

// coirNames are the names of goroutines, by their number.
var coirNames [1 << 12]struct {
	run  uint32
	name string
}

// CoirName names the calling goroutine for reports. Module coir calls it, like CoirBubble: a goroutine of coir runs one
// fiber after the other.
func (*Func) CoirName(name string) {
	if gp := getg(); coirIn(gp) && gp.coir.id < uint32(len(coirNames)) {
		n := &coirNames[gp.coir.id]
		n.run, n.name = coirSched.run, name
	}
}

//go:linkname coirActorName testing.coirActorName
func coirActorName(i int) string {
	if i < len(coirNames) && coirNames[i].run == coirSched.run {
		return coirNames[i].name
	}
	return ""
}

// coirExact stops the clock between two of its moves, as in a test that calls synctest.Test.
//
//go:linkname coirExact testing.coirExact
func coirExact() { coirSched.exact = 1 }

//go:linkname coirHeapLive testing.coirHeapLive
func coirHeapLive() uint64 { return gcController.heapLive.Load() }

//go:linkname coirSetProcs testing.coirSetProcs
func coirSetProcs(n int) { coirSched.procs = n }

// coirBaseTime is when a schedule begins: after any time of the machine, and at no turn of an hour, a month or a year,
// when the programs of tests may have work to do.
const coirBaseTime = 2538901230000000000 // 2050-06-15 10:20:30 UTC
