package testing

import (
	"internal/coir"
	"os"
	"runtime"
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
		if a := coirActorAt(i); a.State == coir.Waiting && a.Wait == coir.WaitKernel || a.State == coir.Calling {
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

// The numbers of ticks, each of coir.WatchTick, after which watch acts. coirSet.patience is the number for a schedule
// that waits for something outside.
const (
	coirNudgeAfter = 2    // the process itself may end the wait: data in the kernel arrives meanwhile
	coirEndAfter   = 25   // the test has ended, and goroutines that it has left behind wait in the kernel
	coirKeptAfter  = 2    // a failure is kept, and will be the result
	coirCallAfter  = 100  // a system call
	coirBusyAfter  = 1000 // a goroutine computes
)

// coirStepAfter is the time after which watch gives up a schedule that makes no step, whatever it waits for. It is more
// than the time of coirBusyAfter. A debugger may stop the schedule for longer.
const coirStepAfter = 30 * time.Second

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
		if time.Since(since) > coirStepAfter && !coirSet.debug {
			what = coir.ForStep
		}
		patience := coirSet.patience
		if x.failing.Load() {
			patience = coirKeptAfter
		}
		switch {
		case what == coir.ForKernelNet:
			coirNudge(true)
		case what == coir.ForOutside && same >= coirNudgeAfter && x.nudge():
			last, same = 0, 0
		case what == coir.ForOutside && same >= coirEndAfter && x.ended.Load():
			coirNudge(true)
		case what == coir.ForOutside && same >= patience, what == coir.ForCall && same == coirCallAfter,
			what == coir.ForComputing && same == coirBusyAfter, what == coir.ForStep:
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
		if last && x.sweeps < coir.SweepCount {
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
