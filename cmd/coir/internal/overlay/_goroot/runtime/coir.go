package runtime

import (
	"internal/coir"
	"internal/search"
	"unsafe"
)

// The files coir*.go let `coir test` decide in which order goroutines run. They are laid only over the runtime of the
// tests that are explored.
//
// The goroutines of one synctest bubble take turns: exactly one of them has the turn, and the others wait in
// coirRunnable, where the runtime's own queues do not see them. The turn passes
//
//   - at a point, which is before an operation that other goroutines can notice (coir_point.go),
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
//     allgs has them all. Package search keeps to that, too.
//   - A goroutine also parks for the runtime's own reasons: to assist the garbage collector, to stop the world. That
//     happens at times that no schedule decides, so it keeps the turn then (coirGivesUpTurn).
//   - The root of a bubble, which moves its clock, is a goroutine too. It is not numbered, and has no points. It gets
//     the turn when no other goroutine can run.
//   - Goroutine ids and the addresses of objects differ from process to process. Both are numbered here in the order in
//     which a schedule meets them.

const (
	coirMaxReady     = 1 << 17
	coirMaxDecisions = 1 << 18
	coirMaxObjects   = 1 << 16
	coirMaxEvents    = 1 << 15
	coirMaxBirths    = 1 << 14
	coirDepth        = 16 // of the stacks that are kept
	coirBirthDepth   = 48 // of those of go statements: what led there may be far away
)

// coirG is the state of a goroutine for these files.
type coirG struct {
	id    uint32 // in the order of creation, in its schedule; 0 is the root
	run   uint32 // the schedule that it belongs to
	quiet uint32 // coir.QuietNoPoints, coir.QuietLast, or 0
	timer bool   // it runs the function of a timer
	cases uint32 // times that several cases of a select were ready
	since uint64 // the step at which it last began to wait for the turn

	// For search.DPOR; see coir_dpor.go.
	next      coirTransition // its last point
	pending   bool           // it has announced that, and not done it
	selecting bool           // it waits in a select, or did and has not continued
	woken     int32          // the event that made it ready, if it waited or is new; -1: none
	moves     int32          // how often it has continued

	poll       *pollDesc // the descriptor that it waited for last; see coir_kernel.go
	pollWrites bool
	again      bool // the point of its next operation on a socket has been, see coir_net.go

	polls bool // it waits for something in a loop that has no effect; see http_coirPolls

	// For reports about package net/http.
	note int32  // the place plus 1 in coirNotes of the note about its next step
	on   uint32 // the goroutine on whose behalf it reads and writes
}

// coirSched is the running schedule. Each of its parts has a file, which says what holds for it.
//
// The goroutine that has the turn uses it, or the root when all wait. Goroutines outside make goroutines ready, and the
// watcher takes the turn. So all that passes the turn, and the decisions about that, happens under mu.
var coirSched struct {
	mu     mutex
	run    uint32 // the number of the schedule
	root   guintptr
	limit  uint64 // MostBusy of the configuration
	most   uint64 // MostSteps
	memory bool
	out    coir.Outcome
	text   [512]byte // of a panic

	coirTurns
	coirChoices
	coirTrace
	coirTime
	coirDraws
	coirFaults
	coirLog
	coirBeside
}

// coirBegin begins a schedule, whose decisions the strategy makes. The caller is about to be the root of its bubble.
//
//go:linkname coirBegin testing.coirBegin
func coirBegin(strategy search.Strategy, c *coir.Config) {
	s := &coirSched
	if poolcleanup != nil { // what pools hold must not depend on earlier schedules; once for each generation
		poolcleanup()
		poolcleanup()
	}
	s.coirBeside.begin(c, s.run == 0)
	s.run++
	s.limit, s.most, s.memory, s.out = c.MostBusy, c.MostSteps, c.InMemory, coir.Outcome{}
	s.coirTurns = coirTurns{}
	s.coirChoices = coirChoices{strategy: strategy, fork: search.Fork{World: coirWorld{}}, chose: -1}
	s.coirTrace = coirTrace{trace: c.Trace, keep: c.CountNews, hash: 14695981039346656037, nchans: s.nchans}
	s.coirTime = coirTime{ticks: c.MostTicks, span: c.TickSpan, racing: c.Racing, lastTime: coirBaseTime}
	s.coirDraws = coirDraws{seed: c.Seed, rand: coirMix(c.Seed^0xabcdef) | 1, quiet: coirMix(c.Seed^0xfedcba) | 1}
	s.coirFaults = coirFaults{may: c.Faults}
	s.coirLog = coirLog{logging: strategy == search.Strategy(&coirSearch)}
	gp := getg()
	gp.coir = coirG{run: s.run}
	s.root.set(gp)
	s.turn.set(gp)
	coir.On, coir.Atomics = true, c.Atomics
}

// coirFinish ends a schedule. Goroutines that it leaves behind wait forever: they no longer belong to a schedule.
//
//go:linkname coirFinish testing.coirFinish
func coirFinish(out *coir.Outcome) {
	coir.On, coir.Atomics = false, false
	getg().coir = coirG{}
	coirNow(out)
}

// coirIn reports whether gp belongs to the running schedule.
func coirIn(gp *g) bool { return coir.On && gp.bubble != nil && gp.coir.run == coirSched.run }

// coirActs reports whether gp belongs to the running schedule, has the turn and is not quiet: what it does is recorded.
func coirActs(gp *g) bool { return coirIn(gp) && gp.coir.quiet == 0 && coirSched.turn.ptr() == gp }

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
	if s.actors < coir.KeptActors {
		coirActors[s.actors] = coirActor{parent: by, gopc: pc, since: newg.bubble.now}
		coirActors[s.actors].g.set(newg)
	} else {
		s.out.Overflow = true
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

//go:linkname tls_coirQuiet crypto/tls.coirQuiet
func tls_coirQuiet(q uint32) uint32 { return coirQuiet(q) }

//go:linkname cache_coirQuiet crypto/internal/fips140cache.coirQuiet
func cache_coirQuiet(q uint32) uint32 { return coirQuiet(q) }

// coirTestG is the number of the goroutine that runs the test: the first is that of the harness.
const coirTestG = 2

// coirPanic keeps the panic that would end the process. Its goroutine waits forever.
func coirPanic(p *_panic) {
	gp := getg()
	if !coirIn(gp) || gp == coirSched.root.ptr() || gp.m.locks != 0 {
		return
	}
	if out := &coirSched.out; out.PanicG == 0 {
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
		out.PanicG = gp.coir.id
		out.Panic = unsafe.String(&coirSched.text[0], copy(coirSched.text[:], text))
	}
	runningPanicDefers.Add(-1)
	gopark(nil, nil, waitReasonSynctestWait, traceBlockGeneric, 1)
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

// CoirSimulates gives the running schedule up if the caller is in one: the test explores by itself, and must be run as
// go test does. Package sim of module coir calls it, like CoirBubble. Its goroutine waits forever.
func (*Func) CoirSimulates() {
	if gp := getg(); coirIn(gp) {
		coirSched.out.Simulates = true
		gopark(nil, nil, waitReasonSynctestWait, traceBlockGeneric, 1)
	}
}

//go:linkname coirHeapLive testing.coirHeapLive
func coirHeapLive() uint64 { return gcController.heapLive.Load() }
