//go:build coirinterleave

package interleave

// The explorations of internal/park, internal/clock, internal/sched and the root are useful only if they find faults.
// Each mutant here is a change to the real code, applied with go's -overlay flag, that one of them must find.

import (
	"regexp"
	"strings"
	"testing"

	"github.com/coir-go/coir/internal/mutant"
)

// threeWords changes the parker into the protocol of the specification: a state, a ticket and a pending flag, each
// changed separately. claim is the code that claims a parker on its way to sleep, committed is the end of the commit.
func threeWords(claim, committed string) []string {
	return []string{
		"	word  xatomic.Uint64\n", "	word  xatomic.Uint64\n	pending xatomic.Bool\n",
		"	p.word.Store(word(t, None, s))\n", "	p.pending.Store(false)\n	p.word.Store(word(t, None, s))\n",
		`			if p.word.CompareAndSwap(w, word(t, r, Notified)) {
				return Won // the committer will find it
			}
`, "			p.pending.Store(true)\n" + claim,
		`	if stateOf(w) != Parking {
		return false
	}
	t := ticketOf(w)
	return p.word.CompareAndSwap(word(t, None, Parking), word(t, None, Parked))
`, `	t := ticketOf(w)
	p.word.Store(word(t, None, Parked))
	if p.pending.Swap(false) {
		ok := p.word.CompareAndSwap(word(t, None, Parked), word(t, Data, Runnable))
` + committed + `
	}
	return true
`}
}

// reread is the step that the specification requires of a waker that meets PARKING: it checks again after it has set
// the flag.
const reread = `			if w := p.word.Load(); stateOf(w) == Parked {
				if p.word.CompareAndSwap(w, word(t, r, Runnable)) {
					return Asleep
				}
				return Lost
			}
			return Won
`

const (
	parkGo   = "internal/park/park.go"
	guestGo  = "internal/park/guest.go"
	taskGo   = "internal/sched/task.go"
	workerGo = "internal/sched/worker.go"
	ringGo   = "internal/sched/ring.go"
	nextGo   = "internal/sched/next.go"
	idleGo   = "internal/sched/idle.go"
	standGo  = "internal/sched/stand.go"
	realGo   = "internal/clock/real.go"
	shardGo  = "internal/clock/shard.go"
	searchGo = "internal/interleave/search.go"
)

type change mutant.Mutant

var changes = []change{
	{"D1 pending is a flag of its own, the waker sets it and leaves", parkGo,
		threeWords("			return Won\n", "		return !ok"), "internal/park ExploreOneWakerAWait"},
	{"D2 the fiber commits on its own stack, then switches", taskGo,
		[]string{"	fr := t.frame\n	w := fr.w\n	w.prev = t\n	fr.since = w.s.now.Load()\n	// The usual", "	fr := t.frame\n	w := fr.w\n	if !t.Commit() {\n		return nil\n	}\n	// The usual"}, "internal/sched ExploreParkOnAWorker"},
	{"D3 the committer ignores the result of its claim", parkGo,
		threeWords(reread, "		_ = ok\n		return false"), "internal/park ExploreOneWakerAWait"},
	{"D4 a late look at the flag eats the next wait's wake", parkGo,
		threeWords(reread, "		return !ok"), "internal/park ExploreOneWakerAWait"},
	{"D5 the ticket is checked, then the state changed", parkGo,
		[]string{`			return Stale
		}
		switch`, `			return Stale
		}
		w = p.word.Load()
		t := ticketOf(w)
		switch`}, "internal/park ExploreLateWakersAgainstTheNextWait"},
	{"D6 a waker that met PARKING cannot know whether it won", parkGo,
		threeWords(reread, "		return !ok"), "internal/park ExploreParkAgainstWakersAndCancel"},

	{"a CAS turned into a store: notified", parkGo,
		[]string{"if p.word.CompareAndSwap(w, word(t, r, Notified)) {", "if p.word.Store(word(t, r, Notified)); true {"}, "internal/park ExploreParkAgainstWakersAndCancel"},
	{"a CAS turned into a store: commit", parkGo,
		[]string{"	return p.word.CompareAndSwap(word(t, None, Parking), word(t, None, Parked))", "	p.word.Store(word(t, None, Parked))\n	return true"}, "internal/park ExploreOneWakerAWait"},
	{"a CAS turned into a store: disarm", parkGo,
		[]string{"	return p.word.CompareAndSwap(word(t, None, Parking), word(t, None, Running))", "	p.word.Store(word(t, None, Running))\n	return true"}, "internal/park ExploreParkAgainstWakersAndCancel"},
	{"a CAS turned into a store: steal from the ring", ringGo,
		[]string{"		if r.word.CompareAndSwap(w, withHead(w, head+n)+ringTaken) {", "		if r.word.Store(withHead(w, head+n) + ringTaken); true {"}, "internal/sched ExploreRing"},
	{"a CAS turned into a store: the newest taken back", ringGo,
		[]string{"		if r.word.CompareAndSwap(w, withTail(w, tail-1)+ringTaken) {", "		if r.word.Store(withTail(w, tail-1) + ringTaken); true {"}, "internal/sched ExploreUnpush"},
	{"the newest is taken back, and the ring's word is the old one again", ringGo,
		[]string{"withTail(w, tail-1)+ringTaken)", "withTail(w, tail-1))"}, "internal/sched ExploreUnpush"},
	{"a guest that was notified waits for a token", guestGo,
		[]string{"	case !g.Commit():\n", "	case !g.Commit() && false:\n"}, "internal/park ExploreGuest"},
	{"a guest that is armed as parked may be notified, without a token", guestGo,
		[]string{"	return g.Parker.ArmParked()\n", "	return g.Arm()\n"}, "internal/park ExploreGuestArmedParked"},
	{"an operation that began without a wait does not look for a cancel", "async.go",
		[]string{"	if sc.state.Load() == scopeCancelled { // a cancel", "	if false { // a cancel"}, ". ExploreAsync"},
	{"an operation that began without a wait is armed before it is tried", "async.go",
		[]string{"	var ready *park.Parker\n", "	var ready *park.Parker\n	t := f.task.ArmParked()\n",
			"	t := f.task.ArmParked()\n	if", "	if",
			"		a.c.core.unlock(ready, here)\n		f.task.MakeReady(here)\n", "		a.c.core.unlock(ready, here)\n		f.task.Wake(t, a.r, here)\n",
			"	r := a.r\n	if r == park.None {\n", "	r := a.f.task.Reason()\n	if a.r == park.None {\n"}, ". ExploreAsync"},
	{"double enqueue: readied by the committer too", taskGo,
		[]string{"	} else if !t.Commit() {\n		w.readyLate(t)", "	} else if t.Commit() || true {\n		w.readyLate(t)"}, "internal/sched ExploreParkOnAWorker"},
	{"lost overflow: half goes, and what was pushed does not", workerGo,
		[]string{"half[:n+1]...", "half[:n]..."}, "internal/sched ExploreOverflow"},
	{"steal of the running one: run-next taken without a CAS", nextGo,
		[]string{"	if n.seq.CompareAndSwap(seq, seq+1) {", "	if n.seq.Store(seq + 1); true {"}, "internal/sched ExploreNext"},
	{"the tail is moved before the place is written", ringGo,
		[]string{"	xatomic.Writes(unsafe.Pointer(&r.place[tail%ringSize]))\n	r.place[tail%ringSize] = t\n", "",
			"withTail(w, tail+1)) {\n		w = r.word.Load()\n	}\n",
			"withTail(w, tail+1)) {\n		w = r.word.Load()\n	}\n	xatomic.Writes(unsafe.Pointer(&r.place[tail%ringSize]))\n	r.place[tail%ringSize] = t\n"}, "internal/sched ExploreRing"},
	{"the tail is moved before the places of a share are written", ringGo,
		[]string{"		xatomic.Writes(unsafe.Pointer(place))\n		*place = t\n", "		defer func() {\n			xatomic.Writes(unsafe.Pointer(place))\n			*place = t\n		}()\n"},
		"internal/sched ExploreShare"},
	{"a worker sleeps without a second look", idleGo,
		[]string{"	for s.anyWork() {\n		if s.active", "	for false {\n		if s.active"}, "internal/sched ExploreIdleSleep"},
	{"a worker that has been sent home sleeps", idleGo,
		[]string{"	if s.gone || s.home", "	if s.home"}, "internal/sched ExploreIdleSleep"},
	{"a worker that comes back is announced by back and by rest", idleGo,
		[]string{"	w.drain()\n	return false\n",
			"	w.drain()\n	s.mu.Lock()\n	w.announce()\n	s.mu.Unlock()\n	return false\n",
			"	s.mu.Lock()\n	s.discharge(w, idle) // unless it was held or blocked, and is not counted\n" +
				"	w.announce()         // once: from here a waker may choose it, and its token comes\n" +
				"	surplus := s.idlers > int(s.target.Load())\n	s.mu.Unlock()\n",
			"	surplus := false\n	if w.state.Load() != idle {\n		s.mu.Lock()\n		s.discharge(w, idle)\n		w.announce()\n		s.mu.Unlock()\n	}\n"}, "internal/sched ExploreBackAgainstWake"},
	{"the token is posted before the worker has been counted", idleGo,
		[]string{"		s.enlist(w)\n		s.mu.Unlock()\n		w.sema.Post()\n", "		s.mu.Unlock()\n		w.sema.Post()\n		s.enlist(w)\n"}, "internal/sched ExploreIdleSleep"},

	{"a worker that queues a task finds no place, and sends none to stand by", idleGo,
		[]string{"			s.standBy()\n			return\n", "			return\n"}, "internal/sched ExploreStandIn"},
	{"a worker that finds nothing where it stands by rests without a second look", idleGo,
		[]string{"			s.standBy()\n			break\n", "			break\n"}, "internal/sched ExploreStandIn"},
	{"a worker that has stood by sends none after it", workerGo,
		[]string{"	} else if t != nil && fresh && s.anyWork() {\n", "	} else if false {\n"}, "internal/sched ExploreStandIn"},
	{"a worker is held and keeps its queue", idleGo,
		[]string{"		return false\n	}\n	w.drain()\n	return true\n", "		return false\n	}\n	return true\n"}, "internal/sched ExploreStandIn"},
	{"a worker is no longer counted, and then leaves its place", idleGo,
		[]string{"	w.place.Store(nil)\n	s.active.Add(-1)\n", "	s.active.Add(-1)\n	w.place.Store(nil)\n"}, "internal/sched ExploreBlockAgainstStandIn"},

	{"a worker starts and does not tell who waits for an empty house", idleGo,
		[]string{"		s.emptied.Open()\n		s.emptied = nil\n", "		s.emptied = nil\n"}, "internal/sched ExploreShutdownAgainstWake"},
	{"a worker leaves and does not look for work", idleGo,
		[]string{"		ch.Open()\n	}\n	s.yieldPlace()\n", "		ch.Open()\n	}\n"}, "internal/sched ExploreShutdownAgainstWake"},
	{"the reason is lost", parkGo,
		[]string{"CompareAndSwap(w, word(t, r, Runnable))", "CompareAndSwap(w, word(t, None, Runnable))"}, "internal/sched ExploreParkOnAWorker"},

	{"unlink forgotten", "internal/channel/core.go",
		[]string{"	c.waiting[side].Withdraw(n)\n	if r", "	if r"}, ". ExploreWaitAfterACancelledOne"},
	{"wake before result", "internal/channel/chan.go",
		[]string{"		noteWrite(n)\n		cell.Value = v\n		won, asleep := true, n.ClaimParked(park.Data)\n",
			"		won, asleep := true, n.ClaimParked(park.Data)\n",
			"			return park.Data, asleep\n", "			noteWrite(n)\n			cell.Value = v\n			return park.Data, asleep\n"}, ". ExploreSendersAndReceivers"},
	{"publish after flag: the cancel is looked for before the wait is armed", "await.go",
		[]string{"	return sc.state.Load() != scopeCancelled || f.armedStill()\n", "	return true\n"}, ". ExploreCloseAgainstSendRecvCancel"},
	{"a cancel looks at the waits, then sets its flag", "scope.go",
		[]string{"	race.Disable()\n	c.scopeMu.Lock()\n	if !sc.mark(e) {\n", "	race.Disable()\n	if sc.owner != nil {\n		sc.owner.cancelWait(sc, here)\n	}\n" +
			"	if n := sc.nursery(); n != nil {\n		n.cancelWaits(here)\n	}\n	c.scopeMu.Lock()\n	if !sc.mark(e) {\n",
			"	w := sc.takeWake()\n	c.scopeMu.Unlock()\n	sc.wake(w, here)\n	race.Enable()\n", "	c.scopeMu.Unlock()\n	race.Enable()\n"},
		". ExploreCloseAgainstSendRecvCancel"},
	{"a scope lets a guest in after its cancel", "scope.go",
		[]string{"	ok := sc.state.Load() != scopeCancelled\n	if ok {\n		c.guests.Push(n, p, t)\n", "	ok := true\n	if ok {\n		c.guests.Push(n, p, t)\n"},
		". ExploreGuestsOfAScope"},
	{"a guest that leaves stays in the list", "await.go",
		[]string{"		c.sc.removeGuest(node)\n", ""}, ". ExploreGuestsOfAScope"},
	{"the wait is armed before it says whose cancel ends it", "chan.go",
		[]string{"	f.waitUnder(sc)\n	f.task.Kit().On = (*toRecv)(&c.core)\n	t := f.task.Arm()\n	ch.Publish(receiving,", "	t := f.task.Arm()\n	f.waitUnder(sc)\n	ch.Publish(receiving,"}, ". ExploreCancelAgainstAShieldedWait"},
	{"a nursery counts its owner, and then arms the wait for its children", "nursery.go",
		[]string{"	f.arm(noInterrupt, (*toJoin)(n)) // a cancel does not end this wait: it ends the children\n	if n.pending.Add(own) == 1 {\n",
			"	last := n.pending.Add(own) == 1\n	f.arm(noInterrupt, (*toJoin)(n))\n	if last {\n"}, ". ExploreJoinAgainstEnd"},
	{"the owner of a nursery joins, and does not look whether a child is left", "nursery.go",
		[]string{"	if n.pending.Add(own) == 1 {\n		f", "	if n.pending.Add(own); false {\n		f"}, ". ExploreJoinAgainstEnd"},
	{"a child that takes its place again looks for one, and then gets in line", "limiter.go",
		[]string{"		l.again.Push(g.kit.Event(), &g.Parker, g.ArmParked())\n		n.coldPart().childMu.Unlock()\n",
			"		n.coldPart().childMu.Unlock()\n		n.coldPart().childMu.Lock()\n		l.again.Push(g.kit.Event(), &g.Parker, g.ArmParked())\n		n.coldPart().childMu.Unlock()\n"},
		". ExplorePlacePassesOn"},
	{"a place that is handed over is free as well", "limiter.go",
		[]string{"		asleep.MakeReady(here)\n		return\n", "		asleep.MakeReady(here)\n"}, ". ExplorePlacePassesOn"},
	{"a nursery that is closed takes a child", "nursery.go",
		[]string{"		if p == 1 {\n			return false\n", "		if false {\n			return false\n"}, ". ExploreJoinAgainstEnd"},
	{"a child waits, and is not where a cancel looks", "await.go",
		[]string{"		f.nursery.list(f)\n", ""}, ". ExploreFirstWaitAgainstCancel"},
	{"a joiner says that there is one, and then takes the lock", "fiber.go",
		[]string{"	f.mu.Lock()\n	ok := f.outcome.CompareAndSwap(uint32(running), uint32(awaited)) || !f.ended()\n",
			"	ok := f.outcome.CompareAndSwap(uint32(running), uint32(awaited)) || !f.ended()\n	f.mu.Lock()\n"}, ". ExploreWaitAgainstEnd"},
	{"a waiter looks whether an event has happened before it takes the lock", "event.go",
		[]string{"	h.mu.Lock()\n	defer h.mu.Unlock()\n	if h.done.Load() {\n		return false\n	}\n",
			"	if h.done.Load() {\n		return false\n	}\n	h.mu.Lock()\n	defer h.mu.Unlock()\n"}, ". ExploreWaitAgainstSet"},
	{"an event wakes those who wait, and then happens", "event.go",
		[]string{"	if h.done.Load() || !h.done.CompareAndSwap(false, true) {\n		return false\n	}\n",
			"	if h.done.Load() {\n		return false\n	}\n",
			"		readyAll(&woken)\n	}\n	return true\n",
			"		readyAll(&woken)\n	}\n	return h.done.CompareAndSwap(false, true)\n"}, ". ExploreWaitAgainstSet"},
	{"two calls of Set are the first", "event.go",
		[]string{"	if h.done.Load() || !h.done.CompareAndSwap(false, true) {\n		return false\n	}\n",
			"	if h.done.Load() {\n		return false\n	}\n	h.done.Store(true)\n"}, ". ExploreWaitAgainstSet"},
	{"a wait for an event that was cancelled leaves its node", "event.go",
		[]string{"			e.once.withdraw(f.task.Kit().Event())\n", "			_ = e\n"}, ". ExploreWaitAgainstSet"},
	{"a scope says that it is tied, and then enters its parent's list", "scope.go",
		[]string{"	race.Disable()\n	outer.scopeMu.Lock()\n	if sc.state.CompareAndSwap(scopeLoose, scopeTying) {\n",
			"	race.Disable()\n	first := sc.state.CompareAndSwap(scopeLoose, scopeLive)\n	outer.scopeMu.Lock()\n	if first {\n"}, ". ExploreTieAgainstCancel"},
	{"a scope ends as if it were loose, and has been tied", "scope.go",
		[]string{"		ok := sc.state.CompareAndSwap(scopeLoose, scopeCancelled)\n", "		sc.state.Store(scopeCancelled)\n		ok := true\n"}, ". ExploreTieAgainstEnd"},
	{"lock order broken", "internal/channel/lock.go",
		[]string{"cores[j-1].id > c.id", "false"}, ". ExploreTwoSelectsMeet"},
	{"a close wakes no receiver", "internal/channel/core.go",
		[]string{"	batch.Claim(&c.waiting[Receiving], park.Closed)\n", ""}, ". ExploreCloseEndsWaits"},
	{"a select leaves its other registrations", "select.go",
		[]string{"			if c.core.ch.WithdrawCase(c.side(), n) && marked {\n", "			if marked {\n"}, ". ExploreSelectOnTwoChannels/general"},
	{"a select is registered without the locks", "select.go",
		[]string{"	t := f.arm(sc, s)\n	s.publish(", "	t := f.arm(sc, s)\n	channel.UnlockAll(s.locks)\n	s.locks = nil\n	s.publish("}, ". ExploreSelectMissesNothing"},
	{"a select of few leaves its other registrations", "selectfew.go",
		[]string{"			c.core.ch.WithdrawCase(c.side(), n)\n", ""}, ". ExploreSelectOnTwoChannels"},
	{"a select of few is registered without the locks", "selectfew.go",
		[]string{"	t := f.arm(sc, s)\n", "	t := f.arm(sc, s)\n	channel.UnlockAll(locks)\n	locks = nil\n"}, ". ExploreSelectMissesNothing"},
	{"a select of few does not see that a channel is watched", "selectfew.go",
		[]string{"	if !plain {\n", "	if false {\n"}, ". ExploreSelectTellsSelector"},
	{"a selector does not look again before it waits", "internal/board/board.go",
		[]string{"	if b.first != nil {\n		return false\n", "	if false {\n		return false\n"}, ". ExploreSelectorIsTold"},

	{"a waiter that leaves does not serve those behind it", "queue.go",
		[]string{"	q.gaveUp += uint64(n - q.waiters.Len())\n	q.serve(r)\n", "	q.mu.Unlock()\n"}, ". ExploreLargeWaiterLeaves"},
	{"what was taken for a waiter that has left does not go back", "queue.go",
		[]string{"	case !won:\n		r.Put(n, true)\n", "	case !won:\n		_ = n\n"}, ". ExploreTakeAgainstPut/cancel_true,_.1_1_1."},
	{"what is put back goes to no waiter", "queue.go",
		[]string{"	ok := r.Put(n, !q.waiters.Empty())\n	q.serve(r)\n", "	ok := r.Put(n, !q.waiters.Empty())\n	q.mu.Unlock()\n"}, ". ExploreTakeAgainstPut/cancel_false.*"},
	{"a waiter is claimed asleep and not readied", "queue.go",
		[]string{"	if !woken.Empty() {\n		readyAll(&woken)\n	}\n", "	_ = woken\n"}, ". ExploreTakeAgainstPut/cancel_false.*"},
	{"a waiter is claimed before there is enough for it", "queue.go",
		[]string{"	if !r.Take(wantOf(x).n) {\n", "	if false {\n", "	switch won, asleep := q.claim(x, x.Parker); {\n", "	switch won, asleep := q.claim(x, x.Parker); {\n	case won && !r.Take(n):\n		return false\n"},
		". ExploreTakeAgainstPut/cancel_false.*"},
	{"a fiber looks, and waits later", "queue.go",
		[]string{"	t := f.arm(sc, &c.Value)\n", "	q.mu.Unlock()\n	t := f.arm(sc, &c.Value)\n	q.mu.Lock()\n"}, ". ExploreTakeAgainstPut/cancel_false.*"},
	{"a select that takes what is free does not claim itself", "queue.go",
		[]string{"		if won, _ := q.claim(x, p); !won {\n			r.Put(n, !q.waiters.Empty())\n		}\n", ""}, ". ExploreSelectTakes"},
	{"a select that another case has ended keeps what it took", "queue.go",
		[]string{"		if won, _ := q.claim(x, p); !won {\n			r.Put(n, !q.waiters.Empty())\n		}\n", "		q.claim(x, p)\n"}, ". ExploreSelectTakes"},
	{"a select does not look again when it begins to wait", "queue.go",
		[]string{"	if q.waiters.First().Parker == p && r.Take(n) { // p is first, perhaps by another case\n", "	if false {\n"}, ". ExploreSelectTakes"},
	{"a case of a select waits behind another of its own", "queue.go",
		[]string{"		if x = q.otherCase(r, x); x == nil {\n", "		if x = nil; x == nil {\n"}, ". ExploreSelectTakesEither"},
	{"a signal to a waiter that has left counts", "cond.go",
		[]string{"		if won, asleep := x.Claim(park.Data); won {\n", "		if _, asleep := x.Claim(park.Data); true {\n"}, ". ExploreSignalAgainstCancel"},
	{"a signal skips the waiter that is on its way to sleep", "cond.go",
		[]string{"		if won, asleep := x.Claim(park.Data); won {\n			if asleep != nil {\n", "		if won, asleep := x.Claim(park.Data); won {\n			if asleep == nil {\n				continue\n			} else {\n"}, ". ExploreSignalAgainstCancel"},
	{"those that have been signalled asleep are not readied", "cond.go",
		[]string{"	woken := c.woken\n	c.woken = wait.Queue{}\n	c.mu.Unlock()\n", "	var woken wait.Queue\n	c.woken = wait.Queue{}\n	c.mu.Unlock()\n"}, ". ExploreWaitAgainstSignal"},
	{"a wait begins when the lock is free again", "cond.go",
		[]string{"	c.waiters.Push(f.task.Kit().Event(), &f.task.Parker, t)\n	c.unlock(f)\n", "	c.unlock(f)\n	c.mu.Lock()\n	c.waiters.Push(f.task.Kit().Event(), &f.task.Parker, t)\n	c.mu.Unlock()\n"}, ". ExploreWaitAgainstSignal"},
	{"a select waits for a signal that has come", "cond.go",
		[]string{"	if c.happened() {\n		return false\n	}\n", ""}, ". ExploreWaitAgainstSignal"},
	{"a waiter that leaves stays in the queue", "cond.go",
		[]string{"	c.waiters.Withdraw(x)\n", ""}, ". ExploreSignalAgainstCancel"},

	{"a deadline that comes while a pass runs is not noted", realGo,
		[]string{"		c.noted = min(c.noted, when)\n", ""}, "internal/clock ExploreArmAgainstPass"},
	{"a pass forgets what was noted while it looked at the shards", realGo,
		[]string{"	when := c.earliest()\n	c.mu.Lock()\n", "	when := c.earliest()\n	c.mu.Lock()\n	c.noted = unset\n"}, "internal/clock ExploreArmAgainstPass"},
	{"a pass says what a shard is covered for when it has unlocked it", shardGo,
		[]string{"			sh.covered.Store(sh.wheel.next())\n		}\n		sh.mu.Unlock()\n",
			"			next := sh.wheel.next()\n			sh.mu.Unlock()\n			sh.covered.Store(next)\n			continue\n		}\n		sh.mu.Unlock()\n"},
		"internal/clock ExploreArmAgainstPass"},
	{"a deadline that is covered is not taken out of what a shard is covered for", realGo,
		[]string{"	sh.covered.Store(when)\n", ""}, "internal/clock ExploreArmAgainstPass"},
	{"two passes run at once", realGo,
		[]string{"	if c.firing || c.closed.Load() {", "	if c.closed.Load() {"}, "internal/clock ExploreTwoPasses"},
	{"a pass leaves the Go timer as it was", realGo,
		[]string{"		c.wake(min(when, c.noted))\n", "		_ = when\n"}, "internal/clock ExploreTwoPasses"},
	{"a clock is closed while it fires", realGo,
		[]string{"	for c.firing {\n", "	for false {\n"}, "internal/clock ExploreCloseAgainstPass"},
	{"of two that close a clock one is told that the pass has ended", realGo,
		[]string{"	}\n	c.idle.Signal()\n", "	}\n"}, "internal/clock ExploreCloseAgainstPass"},

	// Mutants of the explorer itself, which make it lose executions.
	{"only the second of two that race is tried", searchGo,
		[]string{"	if can := initials & x.can; can != 0 {\n		x.try |= can & -can\n", "	if can := uint32(1) << t & x.can; can != 0 {\n		x.try |= can & -can\n",
			"	if initials&(x.try|x.asleep) != 0 {", "	if (x.try|x.asleep)>>t&1 != 0 {",
			`		panic("interleave: no thread can run first: an operation synchronises but is not announced")`, "		x.try |= x.can"}, "internal/interleave ReductionSeesEveryTrace"},
	{"who sleeps goes on sleeping", searchGo,
		[]string{"!conflict(b.ops[t], r.events[i-1].op)", "true"}, "internal/interleave ReductionSeesEveryTrace"},
	{"an unlock hides the lock before it", searchGo,
		[]string{"			shut = true\n			continue\n", "			break\n"}, "internal/interleave ReductionSeesEveryTrace"},
	{"a look at a lock that is held hides who took it", searchGo,
		[]string{"		if shut && e.op.kind == Read {\n", "		if shut && false {\n"}, "internal/interleave ReductionByHand"},
	{"what those wait to do who are stuck does not race", searchGo,
		[]string{"	for _, e := range r.blocked { // what blocked threads wait to do races too\n", "	for _, e := range r.blocked[:0] {\n"}, "internal/interleave ReductionSeesEveryTrace"},
	{"what those wait to do who are blocked while all others sleep does not race", searchGo,
		[]string{"			r.noteBlocked(can)\n", ""}, "internal/interleave ReductionByHand"},
	{"the turn of a timer is handed to one that has given up", "timer.go",
		[]string{"		if won, asleep := node.Claim(park.Data); won {", "		if _, asleep := node.Claim(park.Data); true {"}, ". ExploreTurnOfATimer"},
	{"one that gives up keeps the turn of a timer", "timer.go",
		[]string{"	next := t.pass()\n	t.mu.Unlock()\n	next.MakeReady(by.worker())\n	return 0, 0, r\n", "	t.mu.Unlock()\n	return 0, 0, r\n"}, ". ExploreTurnOfATimer"},
	{"a wait for the turn of a timer does not look again", "timer.go",
		[]string{"	if !t.taken {\n		t.taken = true\n		t.mu.Unlock()\n		w.p.Disarm()", "	if false {\n		t.mu.Unlock()\n		w.p.Disarm()"}, ". ExploreTurnOfATimer"},
	{"one that gives up stays in the queue of a timer", "timer.go",
		[]string{"	t.queue.Withdraw(node)\n", "	_ = node\n"}, ". ExploreTimerForgetsThoseWhoLeave"},
}

func TestMutantsAreFound(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the library once for each mutant")
	}
	suite := mutant.Suite{
		Parts: 28,
		Args: func(m mutant.Mutant) []string {
			pkg, test, _ := strings.Cut(m.Test, " ")
			return []string{"-timeout=1m", "-tags=coirinterleave,coirinvariants", "-run=^Test" + test + "$", "./" + pkg}
		},
		Found: regexp.MustCompile(`--- FAIL: (\S+)(?s:.*?)execution (\d+): (.*)`),
		Tell: func(groups []string) string {
			return "by " + groups[1] + " in execution " + groups[2] + ": " + groups[3]
		},
		Ends: []string{"fatal error:", "panic:", "    search_test.go:"},
	}
	for _, c := range changes {
		suite.Mutants = append(suite.Mutants, mutant.Mutant(c))
	}
	suite.Run(t)
}
