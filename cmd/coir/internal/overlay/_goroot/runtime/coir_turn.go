package runtime

import "internal/coir"

// coirTurns records which goroutine has the turn, and which goroutines can run. All other goroutines of the schedule
// wait or have ended.
//
//   - The goroutine that has the turn is not in coirRunnable.
//   - If no goroutine has the turn, coirRunnable is empty, and all goroutines wait.
//   - coirRunnable[:nready] contains each goroutine that can run once, in the order of coirAfter.
type coirTurns struct {
	turn    guintptr // the goroutine that has the turn; 0: all goroutines wait
	to      guintptr // the goroutine that coirSwitch switches to
	nready  int
	nways   int    // the decision is between the first nways of the ready goroutines
	behind  int    // the index of the first ready goroutine after the one that gives up the turn
	held    uint64 // points since the turn was last passed
	harness uint64 // the step at which the harness last ran, or was not ready
	looked  uint64 // the step at which coirLongest last searched
}

var coirRunnable [coirMaxReady]guintptr

// coirReady makes gp ready, and reports true. It returns false if gp does not belong to the schedule or has the turn;
// then the runtime must queue gp.
func coirReady(gp *g) bool {
	if !coirIn(gp) {
		return false
	}
	s := &coirSched
	lock(&s.mu)
	if s.turn.ptr() == gp { // it parked for the runtime's own reasons, and kept the turn
		unlock(&s.mu)
		return false
	}
	if by := getg().m.curg; (by == nil || by.coir.run != s.run) && gp != s.root.ptr() &&
		(by != nil || getg().bubble == nil) { // otherwise a timer of the bubble made it ready
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

// coirInject removes the goroutines of the schedule from a list of goroutines that the network or the garbage collector
// has woken. A goroutine that the collector woke has the turn, and is queued.
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

// coirQueue adds a goroutine, which has the turn, to the runtime's queues.
func coirQueue(next *g) {
	if pp := getg().m.p.ptr(); pp != nil {
		runqput(pp, next, true)
		return
	}
	lock(&sched.lock)
	globrunqput(next)
	unlock(&sched.lock)
}

// coirArrive makes gp ready. If no goroutine has the turn, it chooses one and returns it.
func coirArrive(gp *g) *g {
	coirSched.insert(gp)
	if coirSched.turn != 0 {
		return nil
	}
	return coirChoose(nil, coir.Free)
}

// insert adds gp to coirRunnable.
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

// coirLongest returns the goroutine that has waited longest for the turn among the first n ready ones, or nil if none
// has waited for coirFreeSteps steps. To save time it searches only now and then. It searches only while steps take a
// microsecond or more; see coirCharge.
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

// remove removes gp from coirRunnable.
func (t *coirTurns) remove(gp *g) {
	i := 0
	for coirRunnable[i].ptr() != gp {
		i++
	}
	copy(coirRunnable[i:t.nready], coirRunnable[i+1:t.nready])
	t.nready--
}

// coirAfter reports whether a comes after b in coirRunnable. The harness comes last. Other goroutines are in order of
// creation.
func coirAfter(a, b *g) bool {
	if last := a.coir.quiet == coir.QuietLast; last != (b.coir.quiet == coir.QuietLast) {
		return last
	}
	return a.coir.id > b.coir.id
}

// way returns the goroutine that gets the turn if the decision is k. gp is the goroutine that has the turn and could
// keep it, or nil.
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
	return coirRunnable[(t.behind+k)%t.nways].ptr() // first the goroutines after gp, then those before it
}

// coirHarnessAfter is the number of steps after which the harness has the turn although other goroutines can run: those
// of the test may spin, and the harness may be able to end the test.
const coirHarnessAfter = 50000

// coirChoose decides which goroutine gets the turn, and removes that goroutine from coirRunnable. gp is the goroutine
// that has the turn and could keep it, or nil. If gp loses the turn it becomes ready.
func coirChoose(gp *g, kind uint8) *g {
	s := &coirSched
	n := s.nready
	for n > 0 && coirRunnable[n-1].ptr().coir.quiet == coir.QuietLast {
		n--
	}
	if n == s.nready {
		s.harness = s.steps
	} else if s.steps-s.harness > coirHarnessAfter {
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

// coirPass passes the turn from gp, which may be nil, to next, which is ready or gp itself. It returns next.
func coirPass(gp, next *g) *g {
	s := &coirSched
	if next != gp {
		s.remove(next)
		if gp != nil {
			s.insert(gp)
		}
		s.held = 0
	}
	s.turn.set(next)
	coirGoesOn(next)
	return next
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
		if coirWaits[reason] == coir.WaitSelect {
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

// coirSwap passes the turn from the goroutine prev to the coroutine next, to which prev switches. ended says that prev
// has ended. coirSwap makes no decision. It need not lock mu: code that locks mu checks whether no goroutine has the
// turn, or whether the goroutine that has it is in a system call. Neither is true before or after coirSwap.
func coirSwap(prev, next *g, ended bool) {
	s := &coirSched
	if s.turn.ptr() != prev {
		return
	}
	s.turn.set(next)
	if a := coirActorOf(prev); a != nil {
		a.reason, a.state, a.step, a.since = waitReasonCoroutine, coir.Waiting, uint32(s.steps), next.bubble.now
		if ended {
			a.state = coir.Ended
		}
	}
	if a := coirActorOf(next); a != nil {
		a.state = coir.Ready
	}
	next.coir.woken = int32(s.nevents) - 1
	coirGoesOn(next)
}

// coirWaits has the codes of the reasons of waits. The runtime's own reasons have none: their entries are
// coir.WaitNone. Of the waits with waitReasonSemacquire, only those of package internal/poll belong to a schedule: an
// edit gives another reason to those of the runtime.
var coirWaits = [len(waitReasonStrings)]uint8{
	waitReasonIOWait:                coir.WaitKernel,
	waitReasonCoirNet:               coir.WaitNetwork,
	waitReasonSemacquire:            coir.WaitFile,
	waitReasonSleep:                 coir.WaitSleep,
	waitReasonChanReceiveNilChan:    coir.WaitNilChan,
	waitReasonChanSendNilChan:       coir.WaitNilChan,
	waitReasonSelectNoCases:         coir.WaitNoCases,
	waitReasonSelect:                coir.WaitSelect,
	waitReasonChanReceive:           coir.WaitRecv,
	waitReasonChanSend:              coir.WaitSend,
	waitReasonSyncCondWait:          coir.WaitCond,
	waitReasonSyncMutexLock:         coir.WaitLock,
	waitReasonSyncRWMutexRLock:      coir.WaitLock,
	waitReasonSyncRWMutexLock:       coir.WaitLock,
	waitReasonSyncWaitGroupWait:     coir.WaitGroup,
	waitReasonCoroutine:             coir.WaitOther,
	waitReasonSynctestRun:           coir.WaitOther,
	waitReasonSynctestWait:          coir.WaitBubble,
	waitReasonSynctestChanReceive:   coir.WaitRecv,
	waitReasonSynctestChanSend:      coir.WaitSend,
	waitReasonSynctestSelect:        coir.WaitSelect,
	waitReasonSynctestWaitGroupWait: coir.WaitGroup,
}

// coirGivesUpTurn reports whether a goroutine that parks for the given reason passes the turn on. It keeps the turn if
// it parks for the runtime's own reasons.
func coirGivesUpTurn(r waitReason) bool { return coirWaits[r] != coir.WaitNone }

// coirSwitch switches from gp, which is ready, to the goroutine that has got the turn.
func coirSwitch(gp *g) {
	to := coirSched.to.ptr()
	casgstatus(gp, _Grunning, _Grunnable)
	dropg()
	coirQueue(to)
	schedule()
}

// coirExitSyscall is called at the end of a system call. If the turn was taken from the goroutine meanwhile, the
// goroutine waits until it gets the turn again.
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
