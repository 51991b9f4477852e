package runtime

import (
	"internal/coir"
	_ "unsafe" // for go:linkname
)

// coirBeside is the state of the process outside of the schedule: other goroutines, signals, the watcher of package
// testing that calls coirTakeTurn, and waits in the kernel (coir_kernel.go). No decision controls these, so
// coir.Outcome counts their effects on the schedule.
//
//   - forked and watching are never unset, because they describe the process.
//   - seen and seenStep are the turn and the steps at the last call of coirTakeTurn in this schedule.
type coirBeside struct {
	before   int32 // the number of goroutines at the beginning of the schedule
	others   int32 // the goroutines of the program at the beginning of the first schedule
	timers   int   // the number of timers in real time at the beginning of the first schedule
	signals  bool  // the program waited for signals before the first schedule
	forked   bool  // the process has started another process
	collect  bool  // see coir.Config
	sweeps   bool  // see coir.Config
	sweeping bool  // coirSweep runs: what a finalizer closes now is closed
	givenUp  bool  // the schedule must end although some of its waits are not durable
	patience int64 // the time for which this schedule still waits for signals, in nanoseconds
	watching bool
	seen     guintptr
	seenStep uint64
	procs    int // the value that GOMAXPROCS returns to the program
}

// begin prepares b for a new schedule.
func (b *coirBeside) begin(c *coir.Config, first bool) {
	b.before = gcount(false)
	if first {
		// Three goroutines are not the program's: the one that runs all tests, the explorer, which becomes the root, and the
		// watcher.
		b.others, b.signals, b.timers = b.before-3, coirSignals(), coirRealTimers()
	}
	b.seen, b.seenStep, b.patience, b.collect, b.givenUp = 0, 0, 20e6, c.Collect, false
	b.sweeps = c.Sweeps && c.InMemory
}

// The watcher of package testing calls coirTakeTurn from time to time. If the goroutine that has the turn has made no
// step since the last call, and sleeps in a system call, coirTakeTurn takes the turn away. It returns what the schedule
// has waited for since the last call, as one of package coir's constants.
//
//go:linkname coirTakeTurn testing.coirTakeTurn
func coirTakeTurn() (what int) {
	s := &coirSched
	if !coir.On {
		return 0
	}
	sleeps := coirTurnSleeps()
	var to guintptr
	lock(&s.mu)
	gp := s.turn.ptr()
	switch {
	case gp == nil && s.out.NeedsKernel != "":
		what = coir.ForKernelNet
	case gp == nil && (s.seen != 0 || s.seenStep != s.steps):
	case gp == nil:
		what = coir.ForOutside
	case s.seen == s.turn && s.seenStep == s.steps:
		what = coir.ForComputing
		s.watching = true
		if readgstatus(gp)&^_Gscan == _Gsyscall && sleeps {
			what = coir.ForCall
			s.turn = 0
			if a := coirActorOf(gp); a != nil {
				a.state = coir.Calling
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

// coirTurnSleeps reports whether the goroutine that has the turn, and has made no step since the last call of
// coirTakeTurn, sleeps in a system call. If the goroutine continues meanwhile, it makes a step or reaches the end of
// the call.
func coirTurnSleeps() bool {
	s := &coirSched
	tid := uint64(0)
	lock(&s.mu)
	if gp := s.turn.ptr(); gp != nil && s.seen == s.turn && s.seenStep == s.steps && readgstatus(gp)&^_Gscan == _Gsyscall {
		if mp := gp.m; mp != nil {
			tid = mp.procid
		}
	}
	unlock(&s.mu)
	return tid != 0 && coirSleeps(tid)
}

// coirStepsNow returns the number of steps of the running schedule.
//
//go:linkname coirStepsNow testing.coirStepsNow
func coirStepsNow() uint64 {
	lock(&coirSched.mu)
	n := coirSched.steps
	unlock(&coirSched.mu)
	return n
}

// The root calls coirOutside when all goroutines wait; last says that no timer will wake them. coirOutside lets
// goroutines outside of the schedule run, including the one that receives signals, and reports whether a goroutine of
// the schedule became ready. A signal that the program has sent to itself may still be in the kernel, so coirOutside
// waits for a short time.
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
			if n < 10 || coirSignalComes() { // not forever, because a goroutine outside may spin
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
	if last && s.nready == 0 && s.sweeps && coirPolls.run == s.run && !getg().bubble.done {
		s.sweeps = false
		coirSweep()
	}
	return s.nready > 0
}

// coirSweep collects garbage, so that finalizers close sockets and pipes in memory that are no longer reachable.
func coirSweep() {
	s := &coirSched
	s.sweeping = true
	for range coir.SweepCount {
		GC()
		for n := 0; n < 20 && s.nready == 0; n++ { // the goroutine that runs finalizers is outside of the schedule
			mcall(gosched_m)
		}
		if s.nready > 0 {
			s.collected = true
			break
		}
	}
	s.sweeping = false
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

// coirAsks reports whether a goroutine of the schedule asks for the stacks of goroutines.
func coirAsks() bool {
	gp := getg().m.curg
	return gp != nil && coirIn(gp) && gp.m.throwing == throwTypeNone
}

// coirHides reports whether gp is hidden from the program, because gp is the root, the watcher, or a goroutine of an
// earlier schedule.
func coirHides(gp *g) bool {
	if !coirAsks() {
		return false
	}
	return gp == coirSched.root.ptr() || gp.bubble == nil && gp.coir.quiet != 0 ||
		gp.bubble != nil && gp.coir.run != coirSched.run
}

// coirHidden returns the number of goroutines that would not exist under go test, where the only goroutine in addition
// to those of the test is the one that runs the tests.
func coirHidden() int {
	if !coirIn(getg()) {
		return 0
	}
	return int(coirSched.before - coirSched.others)
}

//go:linkname coirSetProcs testing.coirSetProcs
func coirSetProcs(n int) { coirSched.procs = n }
