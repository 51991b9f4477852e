package runtime

import "internal/coir"

// coirTurns says which goroutine has the turn, and which can run. The others of the schedule wait, or have ended.
//
//   - A goroutine that has the turn is not in coirRunnable.
//   - If no goroutine has the turn, coirRunnable is empty: all wait.
//   - coirRunnable[:nready] has each goroutine once, in the order of coirAfter.
type coirTurns struct {
	turn    guintptr // the goroutine that has it; 0: all wait
	to      guintptr // the goroutine that coirSwitch switches to
	nready  int
	nways   int    // of the ready ones, those that a decision is about; they are the first
	behind  int    // of a goroutine that gives up the turn: the first ready one after it
	held    uint64 // points since the turn passed
	harness uint64 // the step at which the harness last could not run, or did
	looked  uint64 // the step at which coirLongest looked last
}

var coirRunnable [coirMaxReady]guintptr

// coirReady takes a goroutine that can run. It returns false if the goroutine is not of the schedule or has the turn,
// so that the runtime queues it.
func coirReady(gp *g) bool {
	if !coirIn(gp) {
		return false
	}
	s := &coirSched
	lock(&s.mu)
	if s.turn.ptr() == gp { // it had parked for the runtime, and kept the turn
		unlock(&s.mu)
		return false
	}
	if by := getg().m.curg; (by == nil || by.coir.run != s.run) && gp != s.root.ptr() &&
		(by != nil || getg().bubble == nil) { // else a timer of the bubble
		s.out.Outside++
		if by != nil {
			s.out.Foreign++
		}
	}
	gp.coir.woken = int32(s.nevents) - 1
	to := coirArrive(gp)
	unlock(&s.mu)
	if to != nil {
		coirQueue(to)
		wakep()
	}
	return true
}

// coirInject takes the goroutines of the schedule out of a list of runnable ones: the network has woken them, or the
// collector has, and then the goroutine has the turn.
func coirInject(glist *gList) {
	var rest gList
	for !glist.empty() {
		gp := glist.pop()
		if !coirIn(gp) {
			rest.push(gp)
			continue
		}
		casgstatus(gp, _Gwaiting, _Grunnable)
		if !coirReady(gp) {
			coirQueue(gp)
		}
	}
	*glist = rest
}

// coirQueue passes the goroutine that has got the turn to the runtime.
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
	coirSched.insert(gp)
	if coirSched.turn != 0 {
		return nil
	}
	return coirChoose(nil, coir.Free)
}

// insert makes a goroutine ready.
func (t *coirTurns) insert(gp *g) {
	if t.nready == coirMaxReady {
		throw("coir: too many goroutines")
	}
	if a := coirActorOf(gp); a != nil {
		a.state = coir.Ready
	}
	at := t.nready
	for ; at > 0 && coirAfter(coirRunnable[at-1].ptr(), gp); at-- {
		coirRunnable[at] = coirRunnable[at-1]
	}
	coirRunnable[at].set(gp)
	t.nready++
	gp.coir.since = coirSched.steps
}

// coirLongest returns which of the first n ready goroutines waits longest for the turn, or nil if none has waited for
// coirFreeSteps. It looks only now and then, and only if the clock is charged for steps.
func coirLongest(n int) (to *g) {
	s := &coirSched
	if s.steps-s.idle <= coirFreeSteps || s.steps-s.looked < uint64(64+n) {
		return nil
	}
	s.looked = s.steps
	since := s.steps - coirFreeSteps
	for _, gp := range coirRunnable[:n] {
		if gp := gp.ptr(); gp.coir.since < since {
			to, since = gp, gp.coir.since
		}
	}
	return to
}

// remove removes a goroutine that is ready.
func (t *coirTurns) remove(gp *g) {
	i := 0
	for coirRunnable[i].ptr() != gp {
		i++
	}
	copy(coirRunnable[i:t.nready], coirRunnable[i+1:t.nready])
	t.nready--
}

// coirAfter reports whether a comes after b: the harness comes last; the others are in the order of creation.
func coirAfter(a, b *g) bool {
	if last := a.coir.quiet == coir.QuietLast; last != (b.coir.quiet == coir.QuietLast) {
		return last
	}
	return a.coir.id > b.coir.id
}

// way returns the goroutine that gets the turn by way k of a decision. gp has the turn and could keep it, or is
// nil.
func (t *coirTurns) way(gp *g, kind uint8, k int) *g {
	switch {
	case gp == nil:
		return coirRunnable[k].ptr()
	case kind == coir.Keep:
		if k == 0 {
			return gp
		}
		return coirRunnable[k-1].ptr()
	case k == t.nways:
		return gp
	}
	return coirRunnable[(t.behind+k)%t.nways].ptr() // those after gp, then those before it
}

// coirChoose decides which goroutine gets the turn, and takes it out of ready. gp has the turn and could keep it, or is
// nil. If it does not keep the turn it becomes ready.
func coirChoose(gp *g, kind uint8) *g {
	s := &coirSched
	n := s.nready
	for n > 0 && coirRunnable[n-1].ptr().coir.quiet == coir.QuietLast {
		n--
	}
	if n == s.nready {
		s.harness = s.steps
	} else if s.steps-s.harness > 50000 { // the rest of the test spins, and the harness could end it
		s.harness = s.steps
		return coirPass(gp, coirRunnable[n].ptr())
	}
	if to := coirLongest(n); to != nil {
		return coirPass(gp, to)
	}
	if n == 0 && gp == nil {
		n = min(s.nready, 1) // only the harness can run
	}
	s.nways = n
	if gp != nil {
		n++
	}
	if kind == coir.GiveUp {
		s.behind = 0
		for s.behind < s.nways && coirRunnable[s.behind].ptr().coir.id < gp.coir.id {
			s.behind++
		}
	}
	if n == 0 {
		s.turn = 0
		return nil
	}
	k := 0
	if n > 1 {
		k = coirDecide(gp, kind, n)
	}
	return coirPass(gp, s.way(gp, kind, k))
}

// coirPass passes the turn to a goroutine that is ready, or lets gp keep it.
func coirPass(gp, to *g) *g {
	s := &coirSched
	if to != gp {
		s.remove(to)
		if gp != nil {
			s.insert(gp)
		}
		s.held = 0
	}
	s.turn.set(to)
	coirGoesOn(to)
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
		if a := coirActorOf(gp); a != nil {
			a.reason, a.state, a.step = reason, state, uint32(s.steps)
			if gp.bubble != nil {
				a.since = gp.bubble.now
				s.out.Now = a.since
			}
		}
		if reason == waitReasonSelect || reason == waitReasonSynctestSelect {
			gp.coir.selecting = true
			s.selecting++
		}
		if state == coir.Ended && !gp.coir.timer {
			s.progress++
		}
		s.parks++
		s.sleeps = s.sleeps || gp.coir.id == coirTestG && !gp.coir.polls
		to = coirChoose(nil, coir.Free)
	}
	unlock(&s.mu)
	if to != nil {
		coirQueue(to)
	}
}

// coirSwap passes the turn from a goroutine to the one that it switches to as a coroutine. from may have ended.
func coirSwap(from, to *g, ended bool) {
	s := &coirSched
	if s.turn.ptr() != from {
		return
	}
	s.turn.set(to)
	if a := coirActorOf(from); a != nil {
		a.reason, a.state, a.step, a.since = waitReasonCoroutine, coir.Waiting, uint32(s.steps), to.bubble.now
		if ended {
			a.state = coir.Ended
		}
	}
	if a := coirActorOf(to); a != nil {
		a.state = coir.Ready
	}
	to.coir.woken = int32(s.nevents) - 1
	coirGoesOn(to)
}

// coirGivesUpTurn reports whether a goroutine that parks for the given reason passes the turn on. It does not for the
// runtime's own reasons.
func coirGivesUpTurn(r waitReason) bool {
	switch r {
	case waitReasonIOWait, waitReasonCoirNet, waitReasonSemacquire, waitReasonSleep, waitReasonChanReceiveNilChan,
		waitReasonChanSendNilChan, waitReasonSelectNoCases, waitReasonSelect, waitReasonChanReceive,
		waitReasonChanSend, waitReasonSyncCondWait, waitReasonSyncMutexLock, waitReasonSyncRWMutexRLock,
		waitReasonSyncRWMutexLock, waitReasonSyncWaitGroupWait, waitReasonCoroutine, waitReasonSynctestRun,
		waitReasonSynctestWait, waitReasonSynctestChanReceive, waitReasonSynctestChanSend,
		waitReasonSynctestSelect, waitReasonSynctestWaitGroupWait:
		return true
	}
	return false
}

// coirSwitch switches to the goroutine that has got the turn. gp is ready.
func coirSwitch(gp *g) {
	to := coirSched.to.ptr()
	casgstatus(gp, _Grunning, _Grunnable)
	dropg()
	coirQueue(to)
	schedule()
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
	s.out.Outside++
	casgstatus(gp, _Grunning, _Grunnable)
	dropg()
	to := coirArrive(gp)
	unlock(&s.mu)
	if to != nil {
		coirQueue(to)
	}
	schedule()
}
