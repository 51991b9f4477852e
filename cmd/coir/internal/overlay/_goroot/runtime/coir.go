package runtime

import (
	"internal/coir"
	"internal/search"
	"unsafe"
)

// The files coir*.go let `coir test` decide in which order goroutines run. `coir test` adds them to package runtime
// when it builds a test.
//
// The goroutines of one synctest bubble take turns: at most one has the turn, and the others that can run wait in
// coirRunnable, outside of the runtime's own queues. The turn passes
//
//   - at a point, which is just before an operation that other goroutines can notice (coir_point.go),
//   - when the goroutine with the turn waits (coirLeave, called by park_m) or ends (coirLeave, called by goexit0),
//   - when it switches to a coroutine, as functions of iter.Pull do (coirSwap, called by coroswitch_m),
//   - when it has been in a system call for a long time (coirTakeTurn, called by a watcher outside the bubble).
//
// Which goroutine gets the turn is a decision, which a strategy of package search makes. A schedule is the list of its
// decisions. For package testing, coirDecisions keeps the decisions, and coirSteps what the goroutines were about to do
// at each point.
//
// The difficulties:
//
//   - Much of this runs on g0, on the way to another goroutine. It must not allocate, grow the stack or use write
//     barriers. So all data is in global variables of fixed size, and goroutines are stored as guintptr. That is safe
//     because allgs keeps all goroutines. Package search obeys the same rules.
//   - A goroutine also parks for the runtime's own reasons, such as to assist the garbage collector or to stop the
//     world. The schedule does not decide when that happens, so the goroutine keeps the turn (coirGivesUpTurn).
//   - The root of a bubble, which moves the bubble's clock, is a goroutine too. Its number is 0, and it has no points.
//     It gets the turn when no other goroutine can run.
//   - Goroutine ids and the addresses of objects differ from process to process. So these files number goroutines and
//     objects in the order in which a schedule meets them.

const (
	coirMaxReady     = 1 << 17
	coirMaxDecisions = 1 << 18
	coirMaxObjects   = 1 << 16
	coirMaxEvents    = 1 << 15
	coirMaxBirths    = 1 << 14
	coirDepth        = 16 // the most frames kept of a stack
	coirBirthDepth   = 48 // the same for go statements, whose cause may be many frames away
)

// coirG is the state that these files keep for each goroutine.
type coirG struct {
	id    uint32 // in order of creation in its schedule; 0 is the root
	run   uint32 // the schedule that it belongs to
	quiet uint32 // coir.QuietNoPoints, coir.QuietLast, or 0
	timer bool   // the goroutine runs the function of a timer
	cases uint32 // how often several cases of a select were ready
	since uint64 // the step at which it last began to wait for the turn

	// For search.DPOR; see coir_dpor.go.
	next      coirTransition // its last point
	pending   bool           // it is about to perform the operation of next
	selecting bool           // it waits in a select, or was woken there and has not continued
	woken     int32          // the event that made it ready, if it waited or is new; -1 if none did
	moves     int32          // how often it has continued

	poll       *pollDesc // the descriptor that it last waited for; see coir_kernel.go
	pollWrites bool
	again      bool // the next operation on a socket has no point, because the point was earlier; see coir_net.go

	polls bool // it only polls; its steps do not count as progress: see http_coirPolls

	// For reports about package net/http.
	note int32  // 1 plus the index in coirNotes of the note about its next step; 0 if there is none
	on   uint32 // the number of the goroutine on whose behalf it reads and writes
}

// coirSched is the running schedule. Each embedded struct has its own file, whose comments state its invariants.
//
// Only the goroutine that has the turn uses coirSched; if all goroutines wait, the root does. But goroutines outside of
// the schedule also make goroutines ready, and the watcher takes the turn away. So the turn is passed, and the
// decisions about it are made, only under mu. The exception is coirSwap.
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

// coirHashBasis is where the hash of a trace begins: the offset basis of FNV-1a, with 64 bits.
const coirHashBasis = 14695981039346656037

// coirBegin begins a schedule. The strategy makes its decisions. The caller is about to become the root of a bubble.
//
//go:linkname coirBegin testing.coirBegin
func coirBegin(strategy search.Strategy, c *coir.Config) {
	s := &coirSched
	if poolcleanup != nil { // each call discards one generation; the content of pools must not depend on earlier schedules
		poolcleanup()
		poolcleanup()
	}
	s.coirBeside.begin(c, s.run == 0)
	s.run++
	s.limit, s.most, s.memory, s.out = c.MostBusy, c.MostSteps, c.InMemory, coir.Outcome{}
	s.coirTurns = coirTurns{}
	s.coirChoices = coirChoices{strategy: strategy, fork: search.Fork{World: coirWorld{}}, chose: -1}
	s.coirTrace = coirTrace{trace: c.Trace, keep: c.CountNews, hash: coirHashBasis, nchans: s.nchans}
	s.coirTime = coirTime{ticks: c.MostTicks, span: c.TickSpan, racing: c.Racing, lastTime: coirBaseTime}
	s.coirDraws = coirDraws{seed: c.Seed, rand: coirMix(c.Seed^0xabcdef) | 1, quiet: coirMix(c.Seed^0xfedcba) | 1}
	s.coirFaults = coirFaults{may: c.Faults, muted: c.Muted}
	s.coirLog = coirLog{logging: strategy == search.Strategy(&coirSearch)}
	gp := getg()
	gp.coir = coirG{run: s.run}
	s.root.set(gp)
	s.turn.set(gp)
	coirStacks()
	coir.On, coir.Atomics = true, c.Atomics
}

// coirStacks makes new goroutines begin with a stack of 8 KiB instead of 2 KiB. Each schedule starts its goroutines
// afresh, and most of those that use package net would outgrow 2 KiB and 4 KiB: growing stacks took a quarter of the
// time of a schedule that uses sockets. A larger stack gains no more. The collector must not change the size, so it is
// told not to adapt it.
func coirStacks() { debug.adaptivestackstart, startingStackSize = 0, 8<<10 }

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

// coirActs reports whether gp belongs to the running schedule, has the turn and is not quiet. If so, its operations are
// recorded.
func coirActs(gp *g) bool { return coirIn(gp) && gp.coir.quiet == 0 && coirSched.turn.ptr() == gp }

// coirBorn numbers the new goroutine newg, which parent starts.
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
		return // parent is a goroutine that an earlier schedule left behind
	} else {
		newg.coir.timer = true // not progress, because its function may set the timer again
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
	if s.trace && s.actors < coirMaxBirths && getg() != parent { // parent called systemstack, so its sched is valid
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

// coirTestG is the number of the goroutine that runs the test. Number 1 is the harness.
const coirTestG = 2

// coirPanic records a panic that would end the process. The panicking goroutine then waits forever.
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

// coirRecovered is about the first panic of the schedule that a server of package net/http recovers. The outcome refers
// to its texts.
var coirRecovered struct {
	request, text [256]byte
	pcs           [64]uintptr
	npc           int
}

// http_coirPanicking returns the value of the panic of the calling goroutine. It returns nil if the goroutine does not
// panic, or belongs to no schedule.
//
//go:linkname http_coirPanicking net/http.coirPanicking
func http_coirPanicking() any {
	gp := getg()
	if p := gp._panic; p != nil && !p.goexit && coirIn(gp) {
		return p.arg
	}
	return nil
}

// http_coirRecovers records that the panic of the calling goroutine, which handles a request, will be recovered.
//
//go:linkname http_coirRecovers net/http.coirRecovers
func http_coirRecovers(request, text string) {
	gp, out, r := getg(), &coirSched.out, &coirRecovered
	if !coirActs(gp) {
		return
	}
	if out.Recovered++; out.Recovered > 1 {
		return
	}
	out.RecoveredG = gp.coir.id
	out.Request = unsafe.String(&r.request[0], copy(r.request[:], request))
	out.RecoveredText = unsafe.String(&r.text[0], copy(r.text[:], text))
	r.npc = callers(1, r.pcs[:])
}

// coirRecoveredPCs stores the stack of the first panic that was recovered in pcs, and returns its length.
//
//go:linkname coirRecoveredPCs testing.coirRecoveredPCs
func coirRecoveredPCs(pcs []uintptr) int {
	if coirSched.out.Recovered == 0 {
		return 0
	}
	return copy(pcs, coirRecovered.pcs[:coirRecovered.npc])
}

// CoirBubble returns the number of the caller's bubble, or 0. Module coir calls it, because coir has a separate runtime
// for each bubble. It finds this method by name, through an interface, because a module has no other way to call
// functions that an overlay adds.
func (*Func) CoirBubble() uint64 {
	if bubble := getg().bubble; bubble != nil {
		return bubble.id
	}
	return 0
}

// If the caller belongs to the running schedule, CoirSimulates gives the schedule up, because the test itself explores
// schedules and must run as under go test. The calling goroutine then waits forever. Package sim of module coir calls
// CoirSimulates, in the same way as CoirBubble.
func (*Func) CoirSimulates() {
	if gp := getg(); coirIn(gp) {
		coirSched.out.Simulates = true
		gopark(nil, nil, waitReasonSynctestWait, traceBlockGeneric, 1)
	}
}

//go:linkname coirHeapLive testing.coirHeapLive
func coirHeapLive() uint64 { return gcController.heapLive.Load() }
