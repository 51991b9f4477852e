package runtime

import (
	"internal/coir"
	_ "unsafe" // for go:linkname
)

// This file is for goroutines that wait in the kernel: for a socket, a pipe or a process.
//
// For synctest such a wait is not durably blocking, because something outside may end it. So while a goroutine waits in
// the kernel the root is not woken, the clock stands still, and a deadlock is not noticed. The watcher of package
// testing therefore examines a schedule in which no goroutine can run. If nothing outside of the schedule can end its
// waits (coirAlone says so, and package testing checks the descriptors), they count like any other wait: coirNudge
// wakes the root, which moves the clock or reports a deadlock.

// coirKernelRead records that a schedule reads from the kernel, or accepts a connection.
func coirKernelRead() {
	if gp := getg(); coirIn(gp) {
		coirSched.out.UsesKernel = true
	}
}

// coirForks records that the process starts another process.
//
//go:nosplit
func coirForks() {
	coirSched.forked = true
	if coir.On {
		coirSched.out.UsesKernel = true
	}
}

// coirRealTimers returns the number of timers that run in real time.
func coirRealTimers() (n int) {
	lock(&allpLock)
	for _, pp := range allp {
		if pp == nil {
			continue
		}
		lock(&pp.timers.mu)
		for _, t := range pp.timers.heap {
			if t.timer.state&timerZombie == 0 {
				n++
			}
		}
		unlock(&pp.timers.mu)
	}
	unlock(&allpLock)
	return n
}

// coirOthers describes the part of the process that belongs to no schedule: the numbers of goroutines and timers that
// the program made before the test, the number of calls of C, whether it started other processes, and whether it waits
// for signals.
//
//go:linkname coirOthers testing.coirOthers
func coirOthers() (goroutines, timers, calls int, forked, signals bool) {
	s := &coirSched
	return int(s.others), s.timers, int(NumCgoCall()), s.forked, coirSignals()
}

// coirAlone stores the waits for descriptors, of this schedule and of earlier ones, in waits. alone is set if no
// goroutine can run or is in a system call, so that only descriptors can make one runnable. last is set if the schedule
// has no timer either.
//
// A wait may have a deadline, which is in real time. If the deadline is before the next timer of the schedule, alone is
// not set. Otherwise the clock moves first. So a deadline may expire late, but never before a timer that is set to fire
// earlier.
//
//go:linkname coirAlone testing.coirAlone
func coirAlone(waits []coir.KernelWait) (n int, alone, last bool) {
	s := &coirSched
	if !coir.On || s.turn != 0 || s.nready != 0 {
		return 0, false, false
	}
	me, root := getg(), s.root.ptr()
	alone = true
	wake, soon := coirWakeTime(root.bubble), int64(0) // soon is the real time of the next timer; 0: none
	if wake != 0 {
		soon = nanotime() + wake - root.bubble.now
	}
	forEachGRace(func(gp *g) {
		if gp == me || gp == root || !alone || isSystemGoroutine(gp, false) {
			return
		}
		switch readgstatus(gp) &^ _Gscan {
		case _Gidle, _Gdead, _Gdeadextra:
		case _Gwaiting:
			switch {
			case gp.waitreason == waitReasonIOWait:
				if n == len(waits) || !gp.coir.kernelWait(&waits[n], soon) {
					alone = false
					return
				}
				n++
			case gp.bubble == nil && gp.waitreason == waitReasonSleep:
				alone = false
			}
		default:
			alone = false
		}
	})
	return n, alone, wake == 0
}

// kernelWait stores the descriptor that a goroutine waits for. It returns false if the wait has a deadline before soon.
func (c *coirG) kernelWait(w *coir.KernelWait, soon int64) bool {
	pd := c.poll
	if pd == nil {
		return false
	}
	w.FD, w.Write = int32(pd.fd), c.pollWrites
	deadline := pd.rd
	if w.Write {
		deadline = pd.wd
	}
	return deadline == 0 || soon != 0 && soon <= deadline
}

// coirPolling records the descriptor that the goroutine is about to wait for, and returns the reason of the wait.
func coirPolling(pd *pollDesc, mode int32) waitReason {
	gp := getg()
	gp.coir.poll, gp.coir.pollWrites = pd, mode == 'w'
	if gp.coir.again = pd.coir != 0; gp.coir.again {
		return waitReasonCoirNet
	}
	return waitReasonIOWait
}

// coirNudge wakes the root as if all waits were durable, if no goroutine can run. With giveUp the root ends the
// schedule instead of moving the clock. coirNudge reports whether it woke the root.
//
//go:linkname coirNudge testing.coirNudge
func coirNudge(giveUp bool) bool {
	s := &coirSched
	if !coir.On {
		return false
	}
	root := s.root.ptr()
	bubble := root.bubble
	lock(&s.mu)
	ok := s.turn == 0 && s.nready == 0 && bubble != nil && bubble.waiter == nil &&
		readgstatus(root) == _Gwaiting && root.waitreason == waitReasonSynctestRun
	if ok {
		s.turn.set(root)
		s.givenUp = giveUp
	}
	unlock(&s.mu)
	if ok {
		lock(&bubble.mu)
		bubble.active++ // as in maybeWakeLocked
		unlock(&bubble.mu)
		goready(root, 0)
	}
	return ok
}

// coirNow stores the present outcome of the running schedule in out.
//
//go:linkname coirNow testing.coirNow
func coirNow(out *coir.Outcome) {
	s := &coirSched
	*out = s.out
	out.Steps, out.Hash, out.Decisions = s.steps, s.hash, min(s.ndec, coirMaxDecisions)
	out.Actors = int(s.actors)
	out.Signals = coirSignals() && !s.signals
	out.Cases, out.Channels = s.ncases, s.nchans
	out.Now -= coirBaseTime
}
