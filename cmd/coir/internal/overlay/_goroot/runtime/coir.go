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
	coirMaxSteps     = 1 << 16 // of which the trace is kept
	coirMaxObjects   = 1 << 16
	coirMaxActors    = 1 << 17
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
	at     int64
	pc     [8]uintptr
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
	collect bool     // collect garbage when the test has ended: a finalizer may stop what it has left behind
}

// coirOutcome is what has become of a schedule. Package testing has the same type.
type coirOutcome struct {
	steps, hash uint64
	decisions   int
	actors      int
	endless     bool   // it was given up after limit steps
	ticking     bool   // only timers went on
	misfit      bool   // a given decision had fewer ways
	overflow    bool   // a table was too small
	outside     uint32 // wakes by a goroutine outside, by the network, or after a long system call
	foreign     uint32 // those by a goroutine outside
	signals     bool   // it waits for signals
	panicG      uint32
	panic       string
}

var coirSched struct {
	mu        mutex
	run       uint32 // the number of the schedule
	root      guintptr
	turn      guintptr // who has it; 0: all wait
	to        guintptr
	ready     [coirMaxReady]guintptr // sorted: see coirAfter
	nready    int
	nways     int
	held      uint64 // points since the turn passed
	harness   uint64 // the step at which the harness last could not run, or did
	actors    uint32
	objects   uint32
	rng       uint64 // for decisions
	rand      uint64 // for the program
	steps     uint64
	idle      uint64 // the step at which all waited last
	charged   uint64 // the step up to which the clock has been charged for steps
	progress  uint64 // counts steps of the test's own goroutine, and goroutines that begin or end
	ticked    uint64 // moves of the clock since progress changed
	ticks     uint64
	last      uint64 // progress, when the clock moved last
	given     int
	tail      int
	seed      uint64
	stay      uint64
	racing    uint64
	limit     uint64
	trace     bool
	collect   bool
	collected bool // what follows depends on the collector, and is not in the hash
	nchanges  int
	changes   [32]uint64
	low       uint64
	hash      uint64
	ended     int // ticks of the clock since the test has ended
	procs     int
	before    int32 // goroutines at the beginning of the schedule
	others    int32 // those of them that are neither coir's nor of an earlier schedule
	signals   bool  // the program waits for signals, and did so before the test
	patience  int64 // for signals, in this schedule
	watching  bool
	seen      guintptr
	seenStep  uint64
	ndec      int
	out       coirOutcome
	text      [512]byte // of a panic
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
	if poolcleanup != nil { // what pools hold must not depend on the schedules before; once for each generation
		poolcleanup()
		poolcleanup()
	}
	s.before = gcount(false)
	if s.run == 0 {
		s.others, s.signals = s.before-3, coirSignals()
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
	s.ended, s.ndec, s.seen, s.seenStep = 0, 0, 0, 0
	s.patience, s.collect, s.collected = 20e6, c.collect, false
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
	out.signals = coirSignals() && !s.signals
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
		if by != nil {
			s.out.foreign++
		}
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
	if s.steps <= coirMaxSteps {
		e := &coirSteps[s.steps-1]
		e.g, e.op, e.obj, e.at, e.npc = gp.coir.id, op, obj, gp.bubble.now, 0
		if s.trace {
			e.npc = uint8(fpTracebackPCs(unsafe.Pointer(getfp()), e.pc[:]))
		}
	}
	if id := gp.coir.id; id < coirMaxActors {
		a := &coirActors[id]
		a.op, a.obj, a.step = op, obj, uint32(s.steps)
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
		coirHash(uint64(coirChannel(scases[i].c)))
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
// outside, 3 a goroutine that computes.
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
	case gp == nil:
		what = 2
	case s.seen == s.turn && s.seenStep == s.steps:
		what = 3
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
	return what
}

// coirInject takes the goroutines of the schedule out of a list that can run: the network has woken them; or the
// collector, and then it has the turn.
func coirInject(glist *gList) {
	var rest gList
	for !glist.empty() {
		gp := glist.pop()
		if !coirIn(gp) {
			rest.push(gp)
			continue
		}
		casgstatus(gp, _Gwaiting, _Grunnable)
		if coirSched.turn.ptr() != gp {
			coirSched.out.outside++
		}
		if !coirReady(gp) {
			coirQueue(gp)
		}
	}
	*glist = rest
}

// coirOutside is called by the root when all wait, and with last if no timer will wake them. It lets goroutines outside
// run that can, among them the one that receives signals, and reports whether that has made a goroutine of the schedule
// ready. A signal that the program has sent to itself may be on its way, in the kernel: so there is some time for it.
func coirOutside(last bool) bool {
	s := &coirSched
	if bubble := getg().bubble; s.collect && bubble.done && bubble.total > 1 {
		s.collect = false
		clear(coirPins[:min(int(s.objects)+1, coirMaxObjects)])
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
			if n < 10 || coirSignalComes() { // not for good beside one that spins
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

// coirGoOutside starts a goroutine that is of no schedule.
//
//go:linkname coirGoOutside os/signal.coirGoOutside
func coirGoOutside(f func()) {
	gp := getg()
	bubble := gp.bubble
	gp.bubble = nil
	go f()
	gp.bubble = bubble
}

// coirAsks reports whether it is a goroutine of the schedule that looks at the stacks of goroutines.
func coirAsks() bool {
	gp := getg().m.curg
	return gp != nil && coirIn(gp) && gp.m.throwing == throwTypeNone
}

// coirHides reports whether a goroutine is not shown to the program: it is the root, the watcher, or of an earlier
// schedule.
func coirHides(gp *g) bool {
	if !coirAsks() {
		return false
	}
	return gp == coirSched.root.ptr() || gp.bubble == nil && gp.coir.quiet != 0 ||
		gp.bubble != nil && gp.coir.run != coirSched.run
}

// coirHidden is how many goroutines the program would not have under go test. There the goroutine that runs the tests is
// the only one beside those of the test.
func coirHidden() int {
	if !coirIn(getg()) {
		return 0
	}
	return int(coirSched.before - coirSched.others)
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
func coirStepAt(i int, pcs []uintptr) (g, obj uint32, op uint8, at int64, npc int) {
	e := &coirSteps[i]
	if e.npc > 0 {
		var raw [1 + len(e.pc)]uintptr // the first is how many to skip
		n := copy(raw[1:], e.pc[:e.npc])
		npc = fpunwindExpand(pcs, raw[:1+n])
	}
	return e.g, e.obj, e.op, e.at - coirBaseTime, npc
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

// coirBaseTime is when a schedule begins: after any time of the machine, and at no turn of an hour, a month or a year, when
// the programs of tests may have work to do.
const coirBaseTime = 2538901230000000000 // 2050-06-15 10:20:30 UTC
