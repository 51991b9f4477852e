package runtime

import (
	"internal/coir"
	"unsafe"
)

// coirTrace records what a schedule does, and numbers its goroutines and objects.
//
//   - The steps are numbered from 1. The last coir.KeptSteps of them are in coirSteps, which is a ring.
//   - Goroutines and objects are numbered from 1, in the order in which the schedule meets them.
//   - The hash depends on decisions, steps, numbers and times of the schedule, but not on addresses or real time. So it
//     is the same in each process that makes the same decisions.
type coirTrace struct {
	trace     bool // also record where each step is; see coirPlaces
	keep      bool // for coirNews
	collected bool // what follows depends on the collector, and is not in the hash
	steps     uint64
	ndone     uint32 // operations that have begun
	actors    uint32
	objects   uint32
	ncases    int
	nchans    int // all that were made in the process while a trace was kept
	hash      uint64
}

type coirStep struct {
	g, obj uint32
	op     uint8
	npc    uint8
	chose  int16  // what a select took: its case, from 1, or -1 for the default; 0: nothing, or not known
	done   uint32 // its place in the order in which operations begin, from 1; 0: not begun
	bytes  int32  // that a read or a write moved
	second bool   // that was at the second end of the connection, which was accepted, or reads from a pipe
	on     uint32 // the goroutine on whose behalf, or 0
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

// coirActorOf returns the actor that is gp, or nil if gp has none.
func coirActorOf(gp *g) *coirActor {
	if id := gp.coir.id; id != 0 && id < coir.KeptActors {
		return &coirActors[id]
	}
	return nil
}

var (
	coirSteps   [coir.KeptSteps]coirStep
	coirActors  [coir.KeptActors]coirActor
	coirObjects [coirMaxObjects]struct {
		addr    uintptr
		run, id uint32
	}
	// Of the schedule whose trace is kept: where each step is, the cases of selects, and where channels and goroutines
	// were made.
	coirPlaces [coir.KeptSteps][coirDepth]uintptr
	coirCases  [coir.KeptCases]struct {
		step, obj uint32
		i         uint16
		send      bool
	}
	coirChannels [coir.KeptChannels]struct { // the last ones
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

// mix mixes x into the hash.
func (t *coirTrace) mix(x uint64) {
	if !t.collected {
		t.hash = (t.hash ^ x) * 1099511628211
	}
}

// step returns the step with a number from 1, or nil if it is no longer kept.
func (t *coirTrace) step(n uint32) *coirStep {
	if n == 0 || uint32(t.steps)-n >= coir.KeptSteps {
		return nil
	}
	return &coirSteps[(n-1)%coir.KeptSteps]
}

// done is called when the operation of a step begins: its goroutine has the turn.
func (t *coirTrace) done(step uint32) {
	t.ndone++
	if e := t.step(step); e != nil {
		e.done = t.ndone
	}
}

// coirChose records what a select took: the case k, or -1, its default. The compiler turns a select with one case and a
// default into a send or a receive on the channel c that does not wait.
func coirChose(op uint8, c *hchan, k int) {
	gp := getg()
	s := &coirSched
	a := coirActorOf(gp)
	if !s.trace || !coirIn(gp) || gp.coir.quiet != 0 || a == nil {
		return
	}
	e := s.step(a.point)
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
	s := &coirSched
	if !s.trace || !coirActs(getg()) {
		return
	}
	s.nchans++
	c.coirMade = uint32(s.nchans)
	e := &coirChannels[s.nchans%coir.KeptChannels]
	e.made, e.run, e.room = c.coirMade, 0, c.dataqsiz
	e.npc = uint8(fpTracebackPCs(unsafe.Pointer(getfp()), e.pc[:]))
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
	s.out.Overflow = true
	return 0
}

func coirChannel(c *hchan) uint32 {
	s := &coirSched
	if c.coirRun != s.run {
		s.objects++
		c.coirID, c.coirRun = s.objects, s.run
		if e := &coirChannels[c.coirMade%coir.KeptChannels]; c.coirMade != 0 && e.made == c.coirMade {
			e.run, e.obj, e.timer = s.run, c.coirID, c.timer != nil
		}
	}
	return c.coirID
}

// coirForget forgets the objects that the collector is about to free: their addresses may be used again, by objects
// that get other numbers. It is called when all marks are set, while the world is stopped.
func coirForget() {
	coirForgetAddresses()
	s := &coirSched
	if !coir.On {
		return
	}
	for i := range coirObjects {
		o := &coirObjects[i]
		if o.run == s.run && coirFreed(o.addr) {
			o.addr = 0 // no object has that; the place stays taken, for those that were put behind it
		}
	}
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
			s.out.News++
		}
	}
	last.run, last.g, last.op = s.run, g, op
}

// What package testing reads of a schedule.

//go:linkname coirDecisionAt testing.coirDecisionAt
func coirDecisionAt(i int) (ways, way uint16, kind uint8, step uint32) {
	d := &coirDecisions[i]
	return d.ways, d.way, d.kind, d.step
}

//go:linkname coirStepAt testing.coirStepAt
func coirStepAt(i int, pcs []uintptr) (
	g, obj uint32, op uint8, at int64, done uint32, chose int16, bytes int32, second bool, on uint32,
	npc int,
) {
	e := &coirSteps[i%coir.KeptSteps]
	npc = coirExpand(pcs, coirPlaces[i%coir.KeptSteps][:e.npc])
	return e.g, e.obj, e.op, e.at - coirBaseTime, e.done, e.chose, e.bytes, e.second, e.on, npc
}

//go:linkname coirCaseAt testing.coirCaseAt
func coirCaseAt(i int) (step, obj uint32, k uint16, send bool) {
	e := &coirCases[i%coir.KeptCases]
	return e.step, e.obj, e.i, e.send
}

//go:linkname coirChannelAt testing.coirChannelAt
func coirChannelAt(i int, pcs []uintptr) (obj uint32, timer bool, room uint, npc int) {
	e := &coirChannels[i%coir.KeptChannels]
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

// coirNames says what goroutines are called, by their number.
var coirNames [1 << 12]struct {
	run   uint32
	fiber coirFiber
	role  string // in package net/http
}

// coirFiber is a fiber of module coir.
type coirFiber struct {
	name  string
	id    uint64
	waits func() (text string, holders []uint64) // what it waits for, and which fibers hold that
}

// coirNamed returns where the name of the calling goroutine is kept, or nil.
func coirNamed() (fiber *coirFiber, role *string) {
	gp := getg()
	if !coirIn(gp) || gp.coir.id >= uint32(len(coirNames)) {
		return nil, nil
	}
	n := &coirNames[gp.coir.id]
	if n.run != coirSched.run {
		n.run, n.fiber, n.role = coirSched.run, coirFiber{}, ""
	}
	return &n.fiber, &n.role
}

// CoirFiber says which fiber the calling goroutine runs. Module coir calls it, like CoirBubble: a goroutine of coir
// runs one fiber after the other.
func (*Func) CoirFiber(name string, id uint64, waits func() (text string, holders []uint64)) {
	if fiber, _ := coirNamed(); fiber != nil {
		*fiber = coirFiber{name, id, waits}
	}
}

//go:linkname coirActorName testing.coirActorName
func coirActorName(i int) (fiber string, id uint64, waits func() (text string, holders []uint64), role string) {
	if i < len(coirNames) && coirNames[i].run == coirSched.run {
		n := &coirNames[i]
		return n.fiber.name, n.fiber.id, n.fiber.waits, n.role
	}
	return "", 0, nil, ""
}

// coirNotes are texts that stand for steps in a report, of the schedule whose trace is kept.
var (
	coirNotes [1 << 10]struct {
		step uint32
		text string
	}
	coirNotesRun uint32
	coirNotesN   int
)

// http_coirTraces reports whether the trace of the schedule is kept, so that names and notes are of use.
//
//go:linkname http_coirTraces net/http.coirTraces
func http_coirTraces() bool { return coir.On && coirSched.trace && coirIn(getg()) }

// http_coirRole names the calling goroutine by what it does.
//
//go:linkname http_coirRole net/http.coirRole
func http_coirRole(name string) {
	if _, role := coirNamed(); role != nil && coirSched.trace {
		*role = name
	}
}

// http_coirPolls says whether the calling goroutine only polls from now on: what it does is no progress of the test. It
// returns what was said before.
//
//go:linkname http_coirPolls net/http.coirPolls
func http_coirPolls(polls bool) (before bool) {
	gp := getg()
	before, gp.coir.polls = gp.coir.polls, polls
	return before
}

// http_coirSelf returns the number of the calling goroutine.
//
//go:linkname http_coirSelf net/http.coirSelf
func http_coirSelf() uint32 {
	if gp := getg(); coirIn(gp) {
		return gp.coir.id
	}
	return 0
}

// http_coirServes says on whose behalf the calling goroutine, if it has a role, did its last step, and reads and writes
// from now on.
//
//go:linkname http_coirServes net/http.coirServes
func http_coirServes(id uint32) {
	gp, s := getg(), &coirSched
	if _, role := coirNamed(); role == nil || *role == "" {
		return
	}
	gp.coir.on = id
	if a := coirActorOf(gp); a != nil && s.trace {
		if e := s.step(a.point); e != nil {
			e.on = id
		}
	}
}

// http_coirNote notes what the last step of the calling goroutine was for, or the next one.
//
//go:linkname http_coirNote net/http.coirNote
func http_coirNote(text string, next bool) {
	gp, s := getg(), &coirSched
	a := coirActorOf(gp)
	if !coirActs(gp) || !s.trace || a == nil {
		return
	}
	if coirNotesRun != s.run {
		coirNotesRun, coirNotesN = s.run, 0
	}
	if coirNotesN == len(coirNotes) {
		return
	}
	n := &coirNotes[coirNotesN]
	coirNotesN++
	if n.step, n.text = a.point, text; next {
		gp.coir.note = int32(coirNotesN)
	}
}

//go:linkname coirNoteAt testing.coirNoteAt
func coirNoteAt(i int) (step uint32, text string, ok bool) {
	if coirNotesRun != coirSched.run || i >= coirNotesN {
		return 0, "", false
	}
	return coirNotes[i].step, coirNotes[i].text, true
}

// syscall_coirMoved records how many bytes the last step of the calling goroutine moved, and at which end.
//
//go:linkname syscall_coirMoved syscall.coirMoved
func syscall_coirMoved(n int, second bool) {
	gp, s := getg(), &coirSched
	if !s.trace || !coirActs(gp) {
		return
	}
	if a := coirActorOf(gp); a != nil {
		if e := s.step(a.point); e != nil {
			e.bytes, e.second, e.on = int32(n), second, gp.coir.on
		}
	}
}
