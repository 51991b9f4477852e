package runtime

import (
	"internal/coir"
	"unsafe"
)

// coirTrace records the steps of a schedule, and numbers its goroutines and objects.
//
//   - Steps are numbered from 1. The last coir.KeptSteps steps are in coirSteps, which is a ring.
//   - Goroutines and objects are numbered from 1, in the order in which the schedule meets them.
//   - The hash depends on the decisions, steps, numbers and times of the schedule, but not on addresses or real time.
//     So it is the same in every process that makes the same decisions.
type coirTrace struct {
	trace     bool // also record the stack of each step; see coirPlaces
	keep      bool // coirNews counts
	collected bool // from now on steps depend on the garbage collector, and are not mixed into the hash
	steps     uint64
	ndone     uint32 // the number of operations that have begun
	actors    uint32
	objects   uint32
	ncases    int
	nchans    int // all channels that were made in the process while a trace was kept
	hash      uint64
}

// coirStep is a step. Its time is that of the bubble, and so begins with coirBaseTime.
type coirStep struct {
	coir.Step
	npc uint8 // the length of its stack in coirPlaces
}

// coirActor is a goroutine of the schedule, for reports.
type coirActor struct {
	g      guintptr
	parent uint32
	gopc   uintptr // the program counter of the go statement
	op     uint8   // the operation of its last point
	reason waitReason
	state  uint8 // coir.Ready, ...
	obj    uint32
	step   uint32
	point  uint32 // the step of its last point
	since  int64
}

// coirActorOf returns the entry of gp in coirActors, or nil if gp has none.
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
	// The following are for the schedule whose trace is kept: the stack of each step, the cases of selects, and the stacks
	// where channels and goroutines were made.
	coirPlaces   [coir.KeptSteps][coirDepth]uintptr
	coirCases    [coir.KeptCases]coir.SelectCase
	coirChannels [coir.KeptChannels]struct { // a ring of the newest
		made  uint32 // its number among all channels, see nchans
		run   uint32 // the schedule in which it had the number obj
		obj   uint32
		npc   uint8
		timer bool // it belongs to a timer or a ticker
		room  uint // its capacity
		pc    [coirDepth]uintptr
	}
	coirBirths [coirMaxBirths]struct { // go statements, by the number of the goroutine
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

// step returns step n, or nil if it is no longer kept.
func (t *coirTrace) step(n uint32) *coirStep {
	if n == 0 || uint32(t.steps)-n >= coir.KeptSteps {
		return nil
	}
	return &coirSteps[(n-1)%coir.KeptSteps]
}

// done is called when the operation of a step begins. Its goroutine has the turn.
func (t *coirTrace) done(step uint32) {
	t.ndone++
	if e := t.step(step); e != nil {
		e.Done = t.ndone
	}
}

// coirChose records what a select took: case k, or the default if k is -1. The compiler turns a select with one case
// and a default into a send or a receive on the channel c that does not wait.
func coirChose(op uint8, c *hchan, k int) {
	gp := getg()
	s := &coirSched
	a := coirActorOf(gp)
	if !s.trace || !coirIn(gp) || gp.coir.quiet != 0 || a == nil {
		return
	}
	e := s.step(a.point)
	if e == nil || e.Op != op || c != nil && (c.coirRun != s.run || c.coirID != e.Obj) {
		return // the function of a timer sends
	}
	if k >= 0 {
		k++
	}
	e.Chose = int16(k)
}

// coirMake records the stack where a channel is made.
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

// coirObject returns the number of an object. A channel stores its number; the numbers of other objects are looked up
// by address.
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

// coirForget forgets the objects that the garbage collector is about to free, because the same addresses may be used
// for new objects with other numbers. It is called when all marks are set, while the world is stopped.
func coirForget() {
	coirForgetAddresses()
	s := &coirSched
	if !coir.On {
		return
	}
	for i := range coirObjects {
		o := &coirObjects[i]
		if o.run == s.run && coirFreed(o.addr) {
			o.addr = 0 // no object has address 0; the entry stays in use, so that entries behind it are found
		}
	}
}

// coirLatest is the last point on each object, by the number of the object. coirSeen is the set of pairs of points seen
// in all schedules.
var (
	coirLatest [1 << 12]struct {
		run, g uint32
		op     uint8
	}
	coirSeen [1 << 16 / 64]uint64
)

// coirNews records the pair of operations if a goroutine uses an object after another goroutine did. Such pairs
// distinguish schedules. A schedule with a new pair is worth keeping.
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

// Package testing reads a schedule with the functions below.

//go:linkname coirDecisionAt testing.coirDecisionAt
func coirDecisionAt(i int) coir.Decision { return coirDecisions[i] }

//go:linkname coirStepAt testing.coirStepAt
func coirStepAt(i int) coir.Step {
	e := coirSteps[i%coir.KeptSteps].Step
	e.At -= coirBaseTime
	return e
}

// coirStepPCs stores the stack of a step in pcs, and returns its length.
//
//go:linkname coirStepPCs testing.coirStepPCs
func coirStepPCs(i int, pcs []uintptr) int {
	i %= coir.KeptSteps
	return coirExpand(pcs, coirPlaces[i][:coirSteps[i].npc])
}

//go:linkname coirCaseAt testing.coirCaseAt
func coirCaseAt(i int) coir.SelectCase { return coirCases[i%coir.KeptCases] }

//go:linkname coirChannelAt testing.coirChannelAt
func coirChannelAt(i int, pcs []uintptr) (obj uint32, timer bool, room uint, npc int) {
	e := &coirChannels[i%coir.KeptChannels]
	if e.made != uint32(i) || e.run != coirSched.run {
		return 0, false, 0, 0
	}
	return e.obj, e.timer, e.room, coirExpand(pcs, e.pc[:e.npc])
}

// coirBirth stores the stack of the go statement that started an actor in pcs, and returns its length, or 0 if the
// stack was not kept.
//
//go:linkname coirBirth testing.coirBirth
func coirBirth(i int, pcs []uintptr) int {
	if i >= coirMaxBirths || coirBirths[i].run != coirSched.run {
		return 0
	}
	return coirExpand(pcs, coirBirths[i].pc[:coirBirths[i].npc])
}

// coirExpand stores the program counters of a stack's functions, including inlined ones, in pcs, and returns their
// number.
func coirExpand(pcs, frames []uintptr) int {
	if len(frames) == 0 {
		return 0
	}
	var raw [1 + max(coirDepth, coirBirthDepth)]uintptr // the first element is the number of frames to skip
	return fpunwindExpand(pcs, raw[:1+copy(raw[1:], frames)])
}

//go:linkname coirActorAt testing.coirActorAt
func coirActorAt(i int) coir.Actor {
	a := &coirActors[i]
	return coir.Actor{
		Parent: a.parent, Go: a.gopc, Op: a.op, State: a.state, Wait: coirWaits[a.reason], Reason: a.reason.String(),
		Obj: a.obj, Step: a.step, Since: a.since - coirBaseTime,
	}
}

// coirActorPCs stores the stack of a waiting actor in pcs, and returns its length.
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

// coirNames contains the names of goroutines, by number.
var coirNames [1 << 12]struct {
	run   uint32
	fiber coir.Fiber
	role  string // what it does for package net/http
}

// coirNamed returns pointers to the names of the calling goroutine, or nil.
func coirNamed() (fiber *coir.Fiber, role *string) {
	gp := getg()
	if !coirIn(gp) || gp.coir.id >= uint32(len(coirNames)) {
		return nil, nil
	}
	n := &coirNames[gp.coir.id]
	if n.run != coirSched.run {
		n.run, n.fiber, n.role = coirSched.run, coir.Fiber{}, ""
	}
	return &n.fiber, &n.role
}

// CoirFiber records which fiber the calling goroutine runs, because a goroutine of coir runs one fiber after another.
// Module coir calls CoirFiber in the same way as CoirBubble.
func (*Func) CoirFiber(name string, id uint64, waits func() (text string, holders []uint64)) {
	if fiber, _ := coirNamed(); fiber != nil {
		*fiber = coir.Fiber{Name: name, ID: id, Waits: waits}
	}
}

//go:linkname coirActorName testing.coirActorName
func coirActorName(i int) (fiber coir.Fiber, role string) {
	if i < len(coirNames) && coirNames[i].run == coirSched.run {
		n := &coirNames[i]
		return n.fiber, n.role
	}
	return coir.Fiber{}, ""
}

// coirNotes contains texts that a report shows for steps of the schedule whose trace is kept.
var (
	coirNotes [1 << 10]struct {
		step uint32
		text string
	}
	coirNotesRun uint32
	coirNotesN   int
)

// http_coirTraces reports whether the trace of the schedule is kept, so that names and notes are needed.
//
//go:linkname http_coirTraces net/http.coirTraces
func http_coirTraces() bool { return coir.On && coirSched.trace && coirIn(getg()) }

// http_coirRole sets the role of the calling goroutine, which is its name in reports.
//
//go:linkname http_coirRole net/http.coirRole
func http_coirRole(name string) {
	if _, role := coirNamed(); role != nil && coirSched.trace {
		*role = name
	}
}

// http_coirPolls sets whether the calling goroutine only polls from now on, so that its steps are no progress of the
// test. It returns the previous setting.
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

// http_coirServes records that the calling goroutine, if it has a role, made its last step on behalf of goroutine id,
// and reads and writes for id from now on.
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
			e.On = id
		}
	}
}

// http_coirNote adds a note to the last step of the calling goroutine, or to its next step.
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

// syscall_coirMoved records how many bytes the last step of the calling goroutine moved, and at which end of the
// connection or pipe.
//
//go:linkname syscall_coirMoved syscall.coirMoved
func syscall_coirMoved(n int, second bool) {
	gp, s := getg(), &coirSched
	if !s.trace || !coirActs(gp) {
		return
	}
	if a := coirActorOf(gp); a != nil {
		if e := s.step(a.point); e != nil {
			e.Bytes, e.Second, e.On = int32(n), second, gp.coir.on
		}
	}
}
