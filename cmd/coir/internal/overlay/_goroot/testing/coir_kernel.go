package testing

import (
	"internal/coir"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	_ "unsafe" // for go:linkname
)

// This file is for schedules in which goroutines wait in the kernel: for a socket, a pipe, a process. A goroutine of
// the explorer watches the schedule in real time (watch).
//
// If no goroutine can run, and only the process itself can end the waits in the kernel, these count like all other
// waits: watch wakes the root of the bubble, which moves the clock or reports a deadlock. If something outside may end
// them, watch waits for some time. Then it searches for goroutines that wait for each other's locks, which are in a
// deadlock whatever happens outside. If it finds none, the schedule is not controlled, and watch records its waits.

//go:linkname coirAlone
func coirAlone(waits []coir.KernelWait) (n int, alone, last bool)

//go:linkname coirOthers
func coirOthers() (goroutines, timers, calls int, forked, signals bool)

//go:linkname coirNudge
func coirNudge(giveUp bool) bool

//go:linkname coirNow
func coirNow(out *coir.Outcome)

// coirKernel is the part of an explorer for schedules that wait in the kernel. Fields that watch also uses are atomics,
// because the race detector sees this package.
type coirKernel struct {
	waits   [1 << 10]coir.KernelWait
	open    [1 << 12]int32 // a buffer for descriptors
	sweeps  int            // garbage collections in this schedule; a finalizer may close a connection
	touched int            // schedules in which something came from outside
	traced  bool           // all schedules are traced, because a failure may not happen again

	ended   atomic.Bool                // the function of the test has returned
	gaveUp  atomic.Int32               // why watch ended the schedule: coirCycle or coirWaits
	handed  atomic.Bool                // a goroutine has unlocked a lock that another one locked
	failing atomic.Bool                // a schedule failed in which something came from outside
	kept    atomic.Pointer[coirRecord] // the record of the schedule that failed first
	at      atomic.Int64               // the number of the strategy's next schedule; -1: the plain schedule
	used    atomic.Int64               // the part of the budget spent before the schedule, in nanoseconds
}

// The reasons why watch ends a schedule.
const coirCycle, coirWaits = 1, 2

// touched reports whether something came from outside of the schedule.
func (r *coirRun) touched() bool { return r.Outside > 0 || r.UsesKernel }

// coirInKernel reports whether goroutines of the last schedule wait in the kernel.
func coirInKernel(r *coirRun) bool {
	for i := 1; i <= r.Actors && i < coir.KeptActors; i++ {
		_, _, _, state, reason, _, _, _ := coirActorAt(i)
		if state == coir.Waiting && reason == "IO wait" || state == coir.Calling {
			return true
		}
	}
	return false
}

// keep keeps the record of a schedule that failed, in case the failure does not happen again.
func (x *coirExplorer) keep(r *coirRun, found int) {
	if x.failing.Store(true); !r.config.Trace {
		return
	}
	kept := new(coirRecord)
	kept.failure(r, r.kind, found, false)
	x.summary(kept, coir.VerdictFail)
	x.kept.Store(kept)
}

// watch watches the schedules in real time. It makes its goroutine quiet, and so hidden from the test, before it closes
// hidden.
func (x *coirExplorer) watch(tick *time.Ticker, hidden, stop chan bool) {
	coirQuiet(coir.QuietLast)
	close(hidden)
	last, same := 0, 0
	begun, steps, since := int64(0), uint64(0), time.Now()
	for { // without allocations: the test may count them
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		what := coirTakeTurn()
		if same++; what == coir.ForNothing || what != last {
			last, same = what, 0
		}
		n, now := x.begun.Load(), coirStepsNow()
		if n != begun {
			same, x.sweeps = 0, 0
		}
		if n != begun || now != steps {
			begun, steps, since = n, now, time.Now()
		}
		if time.Since(since) > 30*time.Second && !coirSet.debug {
			what, same = coir.ForStep, 100
		}
		patience := coirSet.patience
		if x.failing.Load() {
			patience = 2
		}
		switch {
		case what == coir.ForKernelNet:
			coirNudge(true)
		case what == coir.ForOutside && same >= 2 && x.nudge():
			last, same = 0, 0
		case what == coir.ForOutside && same >= 25 && x.ended.Load():
			// The test has ended, and goroutines still wait in the kernel.
			coirNudge(true)
		case what == coir.ForOutside && same >= patience, what == coir.ForCall && same == 100,
			what == coir.ForComputing && same == 1000, what == coir.ForStep:
			x.giveUp(what)
			last, same = 0, 0
		}
	}
}

// If only the process itself can end the schedule's waits in the kernel, nudge makes the schedule continue as if all
// waits were durable. It reports whether it did.
func (x *coirExplorer) nudge() (ok bool) {
	// watch and -timeout have a timer each. The runtime has called C once.
	if goroutines, timers, calls, forked, signals := coirOthers(); goroutines > 0 || timers > 2 || calls > 1 || forked ||
		signals {
		return false
	}
	begun, tries := x.begun.Load(), 0
	for range 100_000 { // repeat without a pause while only the clock moves
		n, alone, last := coirAlone(x.waits[:])
		if x.begun.Load() != begun {
			return true
		}
		if !alone && ok && tries < 1000 { // goroutines that the clock has woken may soon wait again
			tries++
			runtime.Gosched()
			continue
		}
		if tries = 0; !alone || n == 0 || !coirInside(x.waits[:n], x.open[:]) {
			return ok
		}
		if last && x.sweeps < coir.Sweeps {
			x.sweeps++
			runtime.GC()
			return true
		}
		if !coirNudge(false) {
			return ok
		}
		ok = true
		runtime.Gosched()
	}
	return ok
}

// giveUp ends a schedule that makes no progress: as a deadlock if goroutines wait for each other's locks, and otherwise
// as not controlled.
func (x *coirExplorer) giveUp(what int) {
	why := int32(coirWaits)
	if x.inCycle() {
		why = coirCycle
	}
	x.gaveUp.Store(why)
	if (why == coirCycle || x.failing.Load()) && coirNudge(true) {
		return
	}
	if kept := x.kept.Load(); kept != nil {
		kept.write()
		os.Exit(1)
	}
	var r coirRun
	coirNow(&r.Outcome)
	x.recordUncontrolled(&r, what)
	os.Exit(3)
}

// inCycle reports whether goroutines of the running or last schedule wait for each other's locks, so that nothing
// outside can end their waits. It reports false for a test in which one goroutine unlocks what another has locked.
func (x *coirExplorer) inCycle() bool {
	l := x.locks()
	return !x.handed.Load() && !l.handed && l.cycle() != nil
}

// coirLocks is the state of the locks of a schedule. It is computed from the steps.
type coirLocks struct {
	all    map[uint32]*coirLock
	waits  map[uint32]uint32 // the lock that each goroutine waits for
	reads  map[uint32]bool   // whether it waits for a read lock
	handed bool              // a goroutine has unlocked a lock that another one locked
}

type coirLock struct {
	rw       bool
	unknown  bool     // its holder is unknown, because of a TryLock, or because it was locked before the schedule
	writers  []uint32 // the goroutine that holds it, and goroutines about to take it
	readers  []uint32 // the same for reading
	pendings []uint32 // writers that wait
}

// locks returns the state of the locks of the running or last schedule. A holder may be missing, because only the last
// steps are kept.
func (x *coirExplorer) locks() *coirLocks {
	l := &coirLocks{all: map[uint32]*coirLock{}, waits: map[uint32]uint32{}, reads: map[uint32]bool{}}
	var now coir.Outcome
	coirNow(&now)
	type step struct {
		g, obj, done uint32
		op           uint8
	}
	var steps []step
	for i := max(0, int(now.Steps)-coir.KeptSteps); i < int(now.Steps); i++ {
		if g, obj, op, _, done, _, _, _, _, _ := coirStepAt(i, nil); done > 0 && obj > 0 && coirLocking(op) {
			steps = append(steps, step{g, obj, done, op})
			if l.all[obj] == nil {
				l.all[obj] = new(coirLock)
			}
			l.all[obj].rw = l.all[obj].rw || op >= coir.OpRLock
		}
	}
	slices.SortFunc(steps, func(a, b step) int { return int(a.done) - int(b.done) })
	blocked := map[uint32]int{} // for each goroutine that waits for a lock, the index of its last step on it
	for i, s := range steps {
		_, _, op, state, reason, obj, _, _ := coirActorAt(int(s.g))
		if state == coir.Waiting && obj == s.obj && coirLocking(op) &&
			(strings.HasPrefix(reason, "sync.Mutex") || strings.HasPrefix(reason, "sync.RWMutex")) &&
			!(l.all[s.obj].rw && s.op < coir.OpRLock) {
			blocked[s.g] = i
		}
	}
	for i, s := range steps {
		m := l.all[s.obj]
		at, waits := blocked[s.g]
		waits = waits && at == i
		switch s.op {
		case coir.OpTryLock, coir.OpTryRLock, coir.OpTryWLock:
			m.unknown = m.unknown || !m.rw || s.op != coir.OpTryLock
		case coir.OpLock, coir.OpWLock:
			switch {
			case m.rw && s.op == coir.OpLock: // the Mutex in the RWMutex
			case waits:
				m.pendings = append(m.pendings, s.g)
				l.waits[s.g] = s.obj
			default:
				m.writers = append(m.writers, s.g)
			}
		case coir.OpUnlock, coir.OpWUnlock:
			if !m.rw || s.op == coir.OpWUnlock {
				l.unlock(m, &m.writers, s.g)
			}
		case coir.OpRLock:
			if waits {
				l.waits[s.g], l.reads[s.g] = s.obj, true
			} else {
				m.readers = append(m.readers, s.g)
			}
		case coir.OpRUnlock:
			l.unlock(m, &m.readers, s.g)
		}
	}
	return l
}

// unlock removes a goroutine from the holders of a lock.
func (l *coirLocks) unlock(m *coirLock, from *[]uint32, g uint32) {
	if i := slices.Index(*from, g); i >= 0 {
		*from = slices.Delete(*from, i, i+1)
		return
	}
	l.handed = l.handed || len(*from) > 0
	m.unknown = true
}

// coirLocking reports whether an operation locks or unlocks a lock.
func coirLocking(op uint8) bool {
	return op >= coir.OpLock && op <= coir.OpWUnlock || op == coir.OpTryRLock || op == coir.OpTryWLock
}

// holders returns the goroutines that must all unlock a lock before g can continue.
func (l *coirLocks) holders(g uint32) []uint32 {
	m := l.all[l.waits[g]]
	switch {
	case m == nil || m.unknown || len(m.writers) > 1 || len(m.writers) == 1 && len(m.readers) > 0:
		return nil
	case len(m.writers) == 1:
		return m.writers
	case l.reads[g]:
		return m.pendings // a waiting writer goes before new readers
	}
	return m.readers
}

// cycle returns goroutines each of which waits for a lock that the next one holds, or nil. A goroutine that waits for a
// lock that it holds itself does not count, because another goroutine may have to unlock it, and that one may wait in
// the kernel.
func (l *coirLocks) cycle() (path []uint32) {
	var follow func(g, to uint32, seen map[uint32]bool) bool
	follow = func(g, to uint32, seen map[uint32]bool) bool {
		if seen[g] {
			return false
		}
		seen[g] = true
		path = append(path, g)
		for _, next := range l.holders(g) {
			if next != g && (next == to || follow(next, to, seen)) {
				return true
			}
		}
		path = path[:len(path)-1]
		return false
	}
	for g := range l.waits {
		if follow(g, g, map[uint32]bool{}) {
			return path
		}
	}
	return nil
}
