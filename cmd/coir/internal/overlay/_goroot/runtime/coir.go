package runtime

import (
	"internal/coir"
	"unsafe"
)

// This file lets `coir test` decide in which order goroutines run. It is laid over the runtime of the tests that are
// explored and over nothing else.
//
// The goroutines of one synctest bubble take turns: exactly one of them has the turn, and the others wait in
// coirSched.ready, where the runtime's own queues do not see them. The turn passes
//
//   - at a point, which is before an operation that other goroutines can notice (coirPoint),
//   - when the goroutine that has it waits (coirLeave, from park_m) or ends (from goexit0),
//   - when it is in a system call for long (coirTakeTurn, called by a watcher outside the bubble).
//
// Who gets the turn is a decision. A schedule is the list of its decisions: the first of them are given
// (coirSched.given), and a rule makes the others (coirSched.tail). What was decided, and what the goroutines were about
// to do at each point, is left in coirDecisions and coirSteps for package testing, which makes up the next schedule.
//
// What is hard here:
//
//   - Much of this runs on g0, on the way to another goroutine. It must not allocate, grow the stack or use write
//     barriers. So everything has a fixed place, and goroutines are kept as guintptr. They cannot be freed meanwhile:
//     allgs has them all.
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
	coirMaxCases     = 1 << 16
	coirMaxChannels  = 1 << 13
	coirDepth        = 16 // of the stacks that are kept
)

// Kinds of decisions.
const (
	coirKeep   = iota // way 0 is that the goroutine which has the turn keeps it; another way is a preemption
	coirFree          // the goroutine which had the turn waits, or has ended
	coirGiveUp        // it gives the turn up: by Gosched, or because it has had it for long. The last way is itself
	coirCase          // cases of a select that are ready
)

// Rules for decisions that are not given.
const (
	coirStay     = iota // way 0
	coirRandom          // any way; the turn is kept with a probability of stay percent
	coirPriority        // the way with the highest priority, which changes at some steps (PCT)
)

// coirFairAfter is the number of points after which a goroutine that keeps the turn gives it up, and
// coirPriorityUntil the number of steps after which priorities are not used: they would starve a goroutine for good.
const (
	coirFairAfter     = 1000
	coirPriorityUntil = 20000
)

// coirG is what a goroutine has for this file.
type coirG struct {
	id    uint32 // in the order of making, in its schedule; 0 is the root
	run   uint32 // the schedule that it belongs to
	quiet uint32 // of the harness: it has no points, and gets the turn last
	prio  uint64
}

type coirDecision struct {
	ways, way uint16
	kind      uint8
	step      uint32
}

type coirStep struct {
	g, obj uint32
	op     uint8
	npc    uint8
	chose  int16  // what a select took: its case, from 1, or -1 for the default; 0: nothing, or it is not known
	done   uint32 // its place in the order in which operations are begun, from 1; 0: it was not
	at     int64
}

// coirActor is a goroutine of the schedule, for reports.
type coirActor struct {
	g      guintptr
	parent uint32
	gopc   uintptr // of the go statement
	op     uint8   // its last point
	reason waitReason
	state  uint8 // 0 can run, 1 waits, 2 has ended
	obj    uint32
	step   uint32
	point  uint32 // the step of its last point
	since  int64
}

var (
	coirDecisions [coirMaxDecisions]coirDecision
	coirGiven     [coirMaxDecisions]uint16
	coirSteps     [coirMaxSteps]coirStep
	coirActors    [coirMaxActors]coirActor
	coirObjects   [coirMaxObjects]struct {
		addr    uintptr
		run, id uint32
	}
	coirPins [coirMaxObjects]unsafe.Pointer // keep the objects: an address is not used twice in a schedule

	// Of the schedule whose trace is kept: where each step is, the cases of selects, and where channels were made.
	coirPlaces [coirMaxSteps][coirDepth]uintptr
	coirCases  [coirMaxCases]struct {
		step, obj uint32
		i         uint16
		send      bool
	}
	coirChannels [coirMaxChannels]struct {
		obj   uint32
		npc   uint8
		timer bool // it is of a timer or a ticker
		pc    [coirDepth]uintptr
	}
)

// coirConfig is how a schedule is to be run. Package testing has the same type.
type coirConfig struct {
	given   []uint16
	tail    int
	seed    uint64
	stay    uint64
	racing  uint64   // percent of the points at which the clock moves although goroutines can run
	changes []uint64 // steps at which a priority changes
	limit   uint64   // steps without a moment at which all wait, after which a schedule is given up
	ticks   uint64   // moves of the clock, with nothing of the test going on, after which it never will
	trace   bool     // note where each step is
}

// coirOutcome is what has become of a schedule. Package testing has the same type.
type coirOutcome struct {
	steps, hash uint64
	decisions   int
	actors      int
	endless     bool // it was given up after limit steps
	ticking     bool // only timers went on
	misfit      bool // a given decision had fewer ways
	overflow    bool // a table was too small
	lost        bool // a decision other than 0 is not in the table
	cases       int
	channels    int
	now         int64  // the last moment at which something happened
	outside     uint32 // wakes by a goroutine outside, by the network, or after a long system call
	panicG      uint32
	panic       string
}

var coirSched struct {
	mu       mutex
	run      uint32 // the number of the schedule
	root     guintptr
	turn     guintptr // who has it; 0: all wait
	to       guintptr
	ready    [coirMaxReady]guintptr // sorted: see coirAfter
	nready   int
	nways    int
	held     uint64 // points since the turn passed
	harness  uint64 // the step at which the harness last could not run, or did
	actors   uint32
	objects  uint32
	rng      uint64 // for decisions
	rand     uint64 // for the program
	steps    uint64
	idle     uint64 // the step at which all waited last
	charged  uint64 // the step up to which the clock has been charged for steps
	progress uint64 // counts steps of the test's own goroutine, and goroutines that begin or end
	ticked   uint64 // moves of the clock since progress changed
	ticks    uint64
	last     uint64 // progress, when the clock moved last
	given    int
	tail     int
	seed     uint64
	stay     uint64
	racing   uint64
	limit    uint64
	trace    bool
	nchanges int
	changes  [32]uint64
	low      uint64
	hash     uint64
	ended    int // ticks of the clock since the test has ended
	procs    int
	watching bool
	seen     guintptr
	seenStep uint64
	ndec     int
	ndone    uint32
	ncases   int
	nchans   int // all that were made in the process while a trace was kept
	out      coirOutcome
	text     [512]byte // of a panic
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
	coirSched.hash = (coirSched.hash ^ x) * 1099511628211
}

// coirBegin begins a schedule. The caller is about to be the root of its bubble.
//
//go:linkname coirBegin testing.coirBegin
func coirBegin(c *coirConfig) {
	s := &coirSched
	if poolcleanup != nil { // what pools hold must not depend on the schedules before; once for each generation
		poolcleanup()
		poolcleanup()
	}
	s.run++
	clear(coirPins[:min(int(s.objects)+1, coirMaxObjects)])
	s.given = copy(coirGiven[:], c.given)
	s.tail, s.seed, s.stay, s.racing, s.limit, s.trace = c.tail, c.seed, c.stay, c.racing, c.limit, c.trace
	s.nchanges = copy(s.changes[:], c.changes)
	s.low = 1 << 31
	s.rng = coirMix(c.seed) | 1
	s.rand = coirMix(c.seed^0xabcdef) | 1
	s.nready, s.held, s.harness, s.actors, s.objects, s.steps = 0, 0, 0, 0, 0, 0
	s.idle, s.charged, s.progress, s.ticked, s.last, s.ticks = 0, 0, 0, 0, 0, c.ticks
	s.ended, s.ndec, s.seen, s.seenStep, s.ndone, s.ncases = 0, 0, 0, 0, 0, 0
	s.hash = 14695981039346656037
	s.out = coirOutcome{}
	gp := getg()
	gp.coir = coirG{run: s.run}
	s.root.set(gp)
	s.turn.set(gp)
	coir.On = true
}

// coirFinish ends a schedule. Goroutines that it leaves behind wait for good: they are of no schedule any more.
//
//go:linkname coirFinish testing.coirFinish
func coirFinish(out *coirOutcome) {
	s := &coirSched
	coir.On = false
	getg().coir = coirG{}
	*out = s.out
	out.steps, out.hash, out.decisions = s.steps, s.hash, min(s.ndec, coirMaxDecisions)
	out.actors = int(s.actors)
	out.cases, out.channels = s.ncases, s.nchans
	out.now -= coirBaseTime
}

// coirIn reports whether gp belongs to the schedule that runs.
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
	}
	s.actors++
	s.progress++
	newg.coir.id, newg.coir.run = s.actors, s.run
	newg.coir.prio = coirMix(s.seed+uint64(s.actors)*7919) | 1<<63
	if s.actors < coirMaxActors {
		coirActors[s.actors] = coirActor{parent: by, gopc: pc}
		coirActors[s.actors].g.set(newg)
	} else {
		s.out.overflow = true
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

// coirReady takes a goroutine that can run. It reports false if that is not of the schedule or has the turn, so that
// the runtime queues it.
func coirReady(gp *g) bool {
	if !coirIn(gp) {
		return false
	}
	s := &coirSched
	lock(&s.mu)
	if s.turn.ptr() == gp { // it had parked for a reason of the runtime's, and kept the turn
		unlock(&s.mu)
		return false
	}
	if by := getg().m.curg; (by == nil || by.coir.run != s.run) && gp != s.root.ptr() &&
		(by != nil || getg().bubble == nil) { // else a timer of the bubble
		s.out.outside++
	}
	to := coirArrive(gp)
	unlock(&s.mu)
	if to != nil {
		coirQueue(to)
		wakep()
	}
	return true
}

// coirQueue gives the goroutine that has got the turn to the runtime.
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
	return coirChoose(nil, coirFree)
}

func coirInsert(gp *g) {
	s := &coirSched
	if s.nready == coirMaxReady {
		throw("coir: too many goroutines")
	}
	if id := gp.coir.id; id != 0 && id < coirMaxActors {
		coirActors[id].state = 0
	}
	at := s.nready
	for ; at > 0 && coirAfter(s.ready[at-1].ptr(), gp); at-- {
		s.ready[at] = s.ready[at-1]
	}
	s.ready[at].set(gp)
	s.nready++
}

// coirAfter: the harness comes last; otherwise it is the order of making.
func coirAfter(a, b *g) bool {
	if a.coir.quiet != b.coir.quiet {
		return a.coir.quiet > b.coir.quiet
	}
	return a.coir.id > b.coir.id
}

// coirWay is who gets the turn by way k of a decision. gp has the turn and could keep it; it is nil if it cannot.
func coirWay(gp *g, kind uint8, k int) *g {
	s := &coirSched
	switch {
	case gp == nil:
		return s.ready[k].ptr()
	case kind == coirKeep:
		if k == 0 {
			return gp
		}
		return s.ready[k-1].ptr()
	case k == s.nways:
		return gp
	}
	at := 0 // those after gp, then those before it
	for at < s.nways && s.ready[at].ptr().coir.id < gp.coir.id {
		at++
	}
	return s.ready[(at+k)%s.nways].ptr()
}

// coirDecide makes the next decision, of n ways.
func coirDecide(gp *g, kind uint8, n int) int {
	s := &coirSched
	k := 0
	switch {
	case s.ndec < s.given:
		if k = int(coirGiven[s.ndec]); k >= n {
			s.out.misfit = true
			k = 0
		}
	case s.tail == coirRandom, s.tail == coirPriority && (kind == coirCase || s.steps > coirPriorityUntil):
		if kind != coirKeep || coirNext(&s.rng)>>11%100 >= s.stay {
			k = int(coirNext(&s.rng) >> 11 % uint64(n))
		}
	case s.tail == coirPriority:
		if gp != nil && kind == coirGiveUp {
			s.low--
			gp.coir.prio = s.low
		}
		best := coirWay(gp, kind, 0).coir.prio
		for i := 1; i < n; i++ {
			if p := coirWay(gp, kind, i).coir.prio; p > best {
				k, best = i, p
			}
		}
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

// coirChoose decides who gets the turn, and takes it out of the ready. gp has the turn and could keep it, or is nil. If it
// does not keep the turn it is ready.
func coirChoose(gp *g, kind uint8) *g {
	s := &coirSched
	n := s.nready
	for n > 0 && s.ready[n-1].ptr().coir.quiet != 0 {
		n--
	}
	if n == s.nready {
		s.harness = s.steps
	} else if s.steps-s.harness > 50000 { // what is left of the test spins, and the harness could end it
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
		if state == 2 {
			s.progress++
		}
		to = coirChoose(nil, coirFree)
	}
	unlock(&s.mu)
	if to != nil {
		coirQueue(to)
	}
}

// coirGivesUpTurn reports whether a goroutine that parks for a reason passes the turn on. It does not for the runtime's
// own reasons.
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

// coirPoint is called before an operation on the object p. Another goroutine may get the turn. Callers look at coir.On.
func coirPoint(op uint8, p unsafe.Pointer) { coirPointOf(op, p, coirKeep) }

//go:linkname sync_coirPoint sync.coirPoint
func sync_coirPoint(op uint8, p unsafe.Pointer) { coirPointOf(op, p, coirKeep) }

//go:linkname isync_coirPoint internal/sync.coirPoint
func isync_coirPoint(op uint8, p unsafe.Pointer) { coirPointOf(op, p, coirKeep) }

func coirPointOf(op uint8, p unsafe.Pointer, kind uint8) {
	gp := getg()
	s := &coirSched
	if gp.bubble == nil || gp.coir.run != s.run || gp.m.curg != gp || gp.m.locks != 0 || gp.coir.quiet != 0 ||
		gp == s.root.ptr() || s.turn.ptr() != gp {
		return
	}
	if a := uintptr(p); a >= gp.stack.lo && a < gp.stack.hi {
		return // on its own stack: no other goroutine knows of it
	}
	s.steps++
	obj := coirObject(op, p)
	coirHash(uint64(gp.coir.id)<<32 | uint64(obj)<<8 | uint64(op))
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
	if s.steps-s.idle > s.limit {
		s.out.endless = true
		gopark(nil, nil, waitReasonSynctestWait, traceBlockGeneric, 1) // for good
	}
	if s.racing > 0 && coirNext(&s.rng)>>11%100 < s.racing {
		coirMoveClock(gp, 0)
	} else if s.steps-s.idle > coirFreeSteps && s.steps-max(s.charged, s.idle) >= 64 {
		coirCharge(gp)
	}
	for i := 0; i < s.nchanges; i++ {
		if s.changes[i] == s.steps {
			gp.coir.prio = 1<<31 + 64 - uint64(i) // below all that have not changed
		}
	}
	s.held++
	if s.nready == 0 {
		coirDone(n)
		return
	}
	if s.held > coirFairAfter {
		s.held = 0
		kind = coirGiveUp
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

// coirStepOf is the step with a number from 1, or nil if it is not kept any more.
func coirStepOf(n uint32) *coirStep {
	if n == 0 || uint32(coirSched.steps)-n >= coirMaxSteps {
		return nil
	}
	return &coirSteps[(n-1)%coirMaxSteps]
}

// coirChose notes what a select took: the case k, or -1, its default. If it has but one case and a default the compiler
// has made it a send or a receive that does not wait, of the channel c.
func coirChose(op uint8, c *hchan, k int) {
	gp := getg()
	s := &coirSched
	if !s.trace || !coirIn(gp) || gp.coir.quiet != 0 || gp.coir.id == 0 || gp.coir.id >= coirMaxActors {
		return
	}
	e := coirStepOf(coirActors[gp.coir.id].point)
	if e == nil || e.op != op || c != nil && (c.coirRun != s.run || c.coirID != e.obj) {
		return // it is a timer that has sent
	}
	if k >= 0 {
		k++
	}
	e.chose = int16(k)
}

// coirMake notes where a channel is made.
func coirMake(c *hchan) {
	gp := getg()
	s := &coirSched
	if !s.trace || !coirIn(gp) || gp.coir.quiet != 0 || s.turn.ptr() != gp || s.nchans == coirMaxChannels-1 {
		return
	}
	s.nchans++
	c.coirMade = uint32(s.nchans)
	e := &coirChannels[s.nchans]
	e.npc = uint8(fpTracebackPCs(unsafe.Pointer(getfp()), e.pc[:]))
}

// coirSwitch goes on with the goroutine that has got the turn. gp is ready.
func coirSwitch(gp *g) {
	to := coirSched.to.ptr()
	casgstatus(gp, _Grunning, _Grunnable)
	dropg()
	coirQueue(to)
	schedule()
}

// coirObject numbers an object. A channel has its number in itself; the others are found by their address.
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
			if s.objects < coirMaxObjects {
				coirPins[s.objects] = p
			}
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

func coirChannel(c *hchan) uint32 {
	s := &coirSched
	if c.coirRun != s.run {
		s.objects++
		c.coirID, c.coirRun = s.objects, s.run
		if c.coirMade != 0 {
			coirChannels[c.coirMade].obj, coirChannels[c.coirMade].timer = c.coirID, c.timer != nil
		}
	}
	return c.coirID
}

// coirGosched is Gosched. It reports false if the runtime is to do it.
func coirGosched() bool {
	gp := getg()
	if !coirIn(gp) || coirSched.turn.ptr() != gp || gp.coir.quiet != 0 {
		return false
	}
	coirPointOf(coir.OpYield, nil, coirGiveUp)
	return true
}

// coirSelect puts the case that is decided on first. The channels are locked, and pollorder has the cases in their order.
func coirSelect(scases []scase, pollorder []uint16, nsends int) {
	gp := getg()
	s := &coirSched
	if !coirIn(gp) || s.turn.ptr() != gp || gp.coir.quiet != 0 {
		return
	}
	for _, i := range pollorder { // which channels it looks at is a part of the trace
		obj := coirChannel(scases[i].c)
		coirHash(uint64(obj))
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
	k := coirDecide(gp, coirCase, n)
	unlock(&s.mu)
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

// A program that polls, or spins until a time has come, never waits as a whole, and its clock would stand still. So steps
// take time after the first coirFreeSteps of them: a microsecond each, and ten times as much after each million.
const coirFreeSteps = 20000

// coirTestG is the number of the goroutine that runs the test: the first is that of the harness.
const coirTestG = 2

func coirCharge(gp *g) {
	s := &coirSched
	n := int64(s.steps-max(s.charged, s.idle)) * 1000
	s.charged = s.steps
	for m := (s.steps - s.idle) / 1000000; m > 0; m-- {
		n *= 10
	}
	coirMoveClock(gp, n)
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

// coirPanic keeps the panic that would end the process. Its goroutine waits for good.
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

// coirTakeTurn is called now and then from outside. It takes the turn from a goroutine that has made no step since the
// last call and is in a system call. It returns what the schedule waits for: 0 nothing, 1 a system call, 2 something
// outside, 3 a goroutine that computes; and the goroutine.
//
//go:linkname coirTakeTurn testing.coirTakeTurn
func coirTakeTurn() (what int, id uint32) {
	s := &coirSched
	if !coir.On {
		return 0, 0
	}
	var to guintptr
	lock(&s.mu)
	gp := s.turn.ptr()
	switch {
	case gp == nil:
		what = 2
	case s.seen == s.turn && s.seenStep == s.steps:
		what, id = 3, gp.coir.id
		s.watching = true
		if readgstatus(gp)&^_Gscan == _Gsyscall {
			what = 1
			s.turn = 0
			to.set(coirChoose(nil, coirFree))
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
	return what, id
}

// coirInject takes the goroutines of the schedule out of a list that can run: the network has woken them.
func coirInject(glist *gList) {
	var rest gList
	for !glist.empty() {
		gp := glist.pop()
		if !coirIn(gp) {
			rest.push(gp)
			continue
		}
		casgstatus(gp, _Gwaiting, _Grunnable)
		coirSched.out.outside++
		if !coirReady(gp) {
			coirQueue(gp)
		}
	}
	*glist = rest
}

// coirTick is called when the root moves the clock: all wait. It reports whether only timers go on, so that it would do so
// for good.
func coirTick() bool {
	s := &coirSched
	s.idle = s.steps
	if s.ticked++; s.last != s.progress {
		s.last, s.ticked = s.progress, 0
	}
	if s.ticks == 0 || s.ticked < s.ticks {
		return false
	}
	s.out.ticking = true
	return true
}

// coirTimeStops reports whether the clock stops: the test has ended, and what it has left behind had a hundred ticks to
// end as well.
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
func coirChannelAt(i int, pcs []uintptr) (obj uint32, timer bool, npc int) {
	e := &coirChannels[i]
	return e.obj, e.timer, coirExpand(pcs, e.pc[:e.npc])
}

// coirExpand makes of the frames of a stack those of its functions, with those that were inlined.
func coirExpand(pcs, frames []uintptr) int {
	if len(frames) == 0 {
		return 0
	}
	var raw [1 + coirDepth]uintptr // the first is how many to skip
	return fpunwindExpand(pcs, raw[:1+copy(raw[1:], frames)])
}

//go:linkname coirActorAt testing.coirActorAt
func coirActorAt(i int) (parent uint32, gopc uintptr, op, state uint8, reason string, obj, step uint32, since int64) {
	a := &coirActors[i]
	return a.parent, a.gopc, a.op, a.state, a.reason.String(), a.obj, a.step, a.since - coirBaseTime
}

// coirActorPCs is where an actor waits.
//
//go:linkname coirActorPCs testing.coirActorPCs
func coirActorPCs(i int, pcs []uintptr) (n int) {
	gp := coirActors[i].g.ptr()
	if gp == nil || gp.coir.id != uint32(i) || gp.coir.run != coirSched.run || readgstatus(gp) != _Gwaiting {
		return 0
	}
	systemstack(func() { n = gcallers(gp, 0, pcs) })
	return n
}

//go:linkname coirHeapLive testing.coirHeapLive
func coirHeapLive() uint64 { return gcController.heapLive.Load() }

//go:linkname coirSetProcs testing.coirSetProcs
func coirSetProcs(n int) { coirSched.procs = n }

const coirBaseTime = 2524608000000000000 // 2050-01-01: after any time of the machine
