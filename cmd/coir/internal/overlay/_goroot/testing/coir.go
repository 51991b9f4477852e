package testing

import (
	"internal/coir"
	"internal/race"
	"internal/search"
	"internal/synctest"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"
	"unsafe"
)

// The files coir*.go explore the schedules of a test for `coir test`. If the process must explore, tRunner calls
// coirExplore instead of the test's function. coirExplore runs the function many times, each time in a separate bubble,
// by a strategy of package search. It writes a record for the command, which has started the process and informs the
// user.
//
//	coir.go           what the edits of package testing call, and the functions of package runtime
//	coir_settings.go  what the command asks for
//	coir_explore.go   one schedule after the other, up to the first failure
//	coir_run.go       one schedule: it runs the test, and tells how that ended
//	coir_shrink.go    a failure is repeated, made smaller and recorded
//	coir_twin.go      the nearest schedule that passes
//	coir_search.go    the strategies, and tokens
//	coir_kept.go      schedules that outlive the process
//	coir_kernel.go    schedules that wait in the kernel
//	coir_locks.go     goroutines that wait for each other's locks
//	coir_recover.go   panics of handlers, which net/http recovers
//	coir_part.go      explore.Test: a part of a test is explored
//	coir_record.go    what the command reads

// coirExplores reports whether to explore the schedules of t. If it reports false, tRunner runs t: t is a part of the
// running schedule, or the process does not explore.
func coirExplores(t *T) bool {
	if !coirSet.on || t.parent == nil || t.level != 1 {
		return false
	}
	if coir.On && synctest.IsInBubble() {
		coirTest = t
		race.ReleaseMerge(unsafe.Pointer(&coirTest)) // the schedule may end while this goroutine is in the kernel
		return false
	}
	return true
}

// coirReturned is called when the function of a test has returned. From then on the harness uses the goroutine, whose
// operations then have no points.
func coirReturned(t *T, was uint32) {
	if !coir.On || !synctest.IsInBubble() {
		coirQuiet(was)
		return
	}
	coirQuiet(coir.QuietNoPoints)
	if t.level == 0 { // the root has failed if the test has
		return
	}
	t.mu.RLock()
	coirSetFailed(t.failed)
	race.ReleaseMerge(unsafe.Pointer(&coirTest))
	t.mu.RUnlock()
}

// coirSetFailed is hidden from the race detector, because nothing orders the calls of two parallel subtests.
//
//go:norace
func coirSetFailed(failed bool) { coirFailed = failed }

// coirExplore explores the schedules of a test.
func coirExplore(t *T, fn func(*T)) {
	x := &coirExplorer{t: t, fn: fn}
	if x.start(); coirPart.asked {
		coirRunParts(t, fn)
	}
}

// start explores with the runtime settings that a schedule needs.
func (x *coirExplorer) start() {
	_ = time.Now().Local().String() // loads the time zone, which a log would do later
	// Garbage collection has no effect on a schedule, but the garbage of earlier schedules should not slow it down.
	if os.Getenv("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(-1))
	}
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(2 << 30))
	procs := runtime.GOMAXPROCS(1) // one goroutine runs at a time, so other processors would only look for work
	defer runtime.GOMAXPROCS(procs)
	coirSetBaseTime(coirSet.base * 1e9)
	coirSetProcs(2) // the test sees two processors on every machine, so that a token is valid on all machines
	x.began = time.Now()
	stop := make(chan bool)
	// The ticker is not created in watch, so that the process creates its first timer at the same point in each run.
	tick := time.NewTicker(coir.WatchTick)
	defer tick.Stop()
	hidden := make(chan bool)
	go x.watch(tick, hidden, stop)
	<-hidden
	defer close(stop)
	x.explore()
}

// coirFail is the point before a test fails. Fail calls itself for each parent, and only the last call makes the point.
func coirFail(c *common) {
	if coir.On && c.parent == nil {
		coirPoint(coir.OpFail, nil)
	}
}

// coirHush makes a goroutine that calls a method of T quiet. It returns the old state.
func coirHush() uint32 {
	was := coirQuiet(coir.QuietNoPoints)
	if was == coir.QuietLast {
		coirQuiet(was)
	}
	return was
}

// coirCleanup runs a function that the test has passed to Cleanup.
func coirCleanup(f func()) {
	defer coirQuiet(coirQuiet(coir.QuietNot))
	f()
}

// coirEnded reports whether c is the root of a schedule. Text that a test logs after its end would go to the root.
func coirEnded(c *common) bool { return coir.On && c.parent == nil && synctest.IsInBubble() }

// coirTest is the test of the running schedule. coirFailed reports whether the test had failed when its function
// returned, before the harness fails it for a data race.
var (
	coirTest   *T
	coirFailed bool
)

// coirRWMutex is the lock of a T. It has no points.
type coirRWMutex struct{ rw sync.RWMutex }

func (m *coirRWMutex) Lock()    { was := coirQuiet(coir.QuietLast); m.rw.Lock(); coirQuiet(was) }
func (m *coirRWMutex) Unlock()  { was := coirQuiet(coir.QuietLast); m.rw.Unlock(); coirQuiet(was) }
func (m *coirRWMutex) RLock()   { was := coirQuiet(coir.QuietLast); m.rw.RLock(); coirQuiet(was) }
func (m *coirRWMutex) RUnlock() { was := coirQuiet(coir.QuietLast); m.rw.RUnlock(); coirQuiet(was) }

// Functions of package runtime; see coir.go there.

//go:linkname coirBegin
func coirBegin(strategy search.Strategy, c *coir.Config)

//go:linkname coirFinish
func coirFinish(out *coir.Outcome)

//go:linkname coirPoint
//go:noescape
func coirPoint(op uint8, p unsafe.Pointer)

//go:linkname coirQuiet
func coirQuiet(q uint32) uint32

//go:linkname coirDecisionAt
func coirDecisionAt(i int) coir.Decision

//go:linkname coirStepAt
func coirStepAt(i int) coir.Step

//go:linkname coirStepPCs
func coirStepPCs(i int, pcs []uintptr) int

//go:linkname coirCaseAt
func coirCaseAt(i int) coir.SelectCase

//go:linkname coirChannelAt
func coirChannelAt(i int, pcs []uintptr) (obj uint32, timer bool, room uint, npc int)

//go:linkname coirActorAt
func coirActorAt(i int) coir.Actor

//go:linkname coirActorPCs
func coirActorPCs(i int, pcs []uintptr) int

//go:linkname coirActorName
func coirActorName(i int) (fiber coir.Fiber, role string)

//go:linkname coirNoteAt
func coirNoteAt(i int) (step uint32, text string, ok bool)

//go:linkname coirExact
func coirExact()

//go:linkname coirHeapLive
func coirHeapLive() uint64

//go:linkname coirSetProcs
func coirSetProcs(n int)

//go:linkname coirSetBaseTime
func coirSetBaseTime(t int64)

//go:linkname coirBirth
func coirBirth(i int, pcs []uintptr) int

//go:linkname coirRecoveredPCs
func coirRecoveredPCs(pcs []uintptr) int

//go:linkname coirTakeTurn
func coirTakeTurn() (what int)

//go:linkname coirStepsNow
func coirStepsNow() uint64

//go:linkname coirDPOR
func coirDPOR() search.Strategy
