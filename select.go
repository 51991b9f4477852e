package coir

import (
	"context"
	"unsafe"

	"github.com/coir-go/coir/internal/channel"
	"github.com/coir-go/coir/internal/hide"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/wait"
	"github.com/coir-go/coir/internal/xatomic"
)

// Select completes exactly one of its cases. Like Go's own select, it makes four passes:
//
//	1  look      Check each case without locks. Try a case that seems ready with only the lock of its channel.
//	2  lock      Lock all channels, in the order of their numbers, and try the cases that are ready. Under the locks,
//	             the result is exact.
//	3  wait      Publish a cell for each case, unlock all channels, subscribe to the events, and park.
//	4  withdraw  Withdraw every cell except that of the case that ended the wait.
//
// scratch.try is passes 1 and 2, scratch.publish is pass 3, and scratch.withdraw is pass 4. A select by a fiber over a
// few channels has a fast path with the same passes: see selectfew.go.
//
// There are two difficulties. First, a channel may change after it was checked and before the select waits on it. So
// all channels stay locked from pass 2 until all cells are published. Second, if two selects could meet while both
// wait, one of them would have to claim two words, its own and its peer's, and that takes two steps. So a select looks
// for peers only in passes 1 and 2, in which it has published nothing and needs to claim only the peer's word. A
// waiting select has one word for all its cases, and the claim of that word decides which case ends the wait. The
// select holds no lock while it waits.
//
// An event, such as the end of a fiber, happens once and does not become untrue again. So the select need not lock
// events with the channels: it checks them first and subscribes to them last. If an event has happened in between, the
// select claims its own wait.

// Select waits until one of the cases can proceed, performs it and returns its index. If several cases can proceed,
// each has the same chance. A case on a closed channel can always proceed; Select then also returns an error that is
// [ErrClosed]. If ctx ends, Select returns -1 and ctx's error.
//
// Only the case whose index is returned has an effect. A channel may appear in several cases; a select never
// communicates with itself.
func Select(ctx context.Context, cases ...Case) (int, error) {
	// Spec: SE-01 (a select completes one case)
	// Spec: SE-07 (select is fair)
	return choose(ctx, cases, fairly)
}

// SelectPriority is like Select, but if several cases can proceed, it chooses the first of them in the order given. A
// case on a closed channel can always proceed: replace it with the zero Case.
func SelectPriority(ctx context.Context, cases ...Case) (int, error) {
	// Spec: SE-08 (SelectPriority takes the first ready case)
	return choose(ctx, cases, byOrder)
}

// TrySelect is like Select, but never waits: if no case can proceed, it returns -1 and [ErrWouldBlock].
func TrySelect(cases ...Case) (int, error) {
	// Spec: SE-09 (TrySelect never waits)
	cs := noescape(cases)
	var f *Fiber // set if a policy chooses the case
	if simulating.Load() > 0 {
		f = announceSelect(currentFiber(), policy.TrySelect, cs)
	}
	race.Disable()
	g := guests.Get().(*guest)
	s := scratchOf(&g.kit)
	here := currentWorker()
	i, r, ready := s.try(cs, &g.kit, f, fairly, here)
	if i < 0 {
		channel.UnlockAll(s.locks)
	}
	ready.MakeReady(here)
	trim(&g.kit, cs)
	guests.Put(g)
	race.Enable()
	err := ErrWouldBlock
	if i >= 0 {
		i, err = cs[i].done(i, r) // before other fibers run, because the case may have taken a lock
	}
	if f != nil {
		f.tellSelect(cs, i, r)
		f.stepped()
	}
	return i, err
}

// noescape hides the cases from escape analysis, so that a call allocates neither the cases nor the values that they
// send. The compiler would let them escape, because the select calls methods of their channels through an interface. In
// fact only the calling goroutine uses the cases and what they point to, and only during the call, and no pointer to
// them is stored in the heap: a value to send is copied into a cell, and a received value is copied out of one. Memory
// that a sent value points to does reach other goroutines, so SendCase makes it escape. Channels and pipes are always
// on the heap, because NewChan and Pipe are not inlined.
//
//go:norace
func noescape(cases []Case) []Case {
	return *(*[]Case)(hide.Pointer(unsafe.Pointer(&cases)))
}

type selectPolicy bool

const (
	fairly  selectPolicy = false
	byOrder selectPolicy = true
)

// scratch is the memory that a select needs in addition to its cases. The kit keeps it for later selects.
type scratch struct {
	locks []*channel.Core // channels that are locked, in the order of their numbers
	ready []int32         // the cases that seem ready
	nodes []*wait.Node    // one for each case; the first keepNodes are kept for the next select
	ops   []policy.Op     // one for each case, for a policy
	on    []any           // the subject of each case, while the select waits

	// For a select that waits.
	soonest int  // the After case with the earliest time, or -1
	joins   bool // some cases are the ends of fibers
}

// keepNodes is the number of nodes that a scratch keeps from its last select.
const keepNodes = 16

// trim drops a scratch that is larger than most selects need.
//
//go:norace
func trim(k *wait.Kit, cs []Case) {
	if len(cs) > 1024 {
		*k.Scratch() = nil
	}
}

//go:norace
func scratchOf(k *wait.Kit) *scratch {
	kept := k.Scratch()
	s, ok := (*kept).(*scratch)
	if !ok {
		s = new(scratch)
		*kept = s
	}
	return s
}

// choose implements Select and SelectPriority. It is visible to the race detector, so that a report about a variable to
// which a case stores names the caller of the select.
func choose(ctx context.Context, cases []Case, how selectPolicy) (int, error) {
	cs := noescape(cases)
	f, sc := scopeOf(ctx)
	if f == nil || !f.task.Here() {
		return chooseAny(ctx, cs, how)
	}
	if f.simulated {
		f.stepSelect(policy.Select, cs)
	}
	race.Disable()
	i, r := unfit, park.None
	if len(cs) <= fewCases && !f.simulated {
		i, r = f.beginFew(sc, cs, how)
	}
	few := i != unfit
	if !few {
		i, r = f.beginSelect(sc, cs, how)
	}
	if r == park.None {
		// Task.Park, inlined by hand: see Task.BeginPark.
		if s := f.task.BeginPark(); s != nil {
			if s.Odd {
				s.Next()
			} else {
				s.Yield(struct{}{})
			}
			f.task.EndPark()
		}
		if few {
			i, r = f.endFew(cs, f.task.Reason())
		} else {
			i, r = f.endSelect(cs, f.task.Reason())
		}
	}
	race.Enable()
	if i < 0 {
		f.tellEnding(sc)
		return i, sc.ending().op
	}
	if r == park.Data && cs[i].core != nil {
		return i, nil // the same as done returns
	}
	return cs[i].done(i, r)
}

// beginSelect completes a case that is ready, if there is one. Otherwise it publishes a wait of f for the cases under
// sc and returns None.
//
//go:noinline
//go:norace
func (f *Fiber) beginSelect(sc *scope, cs []Case, how selectPolicy) (int, park.Reason) {
	if sc.done() {
		return -1, park.Cancelled
	}
	k := f.task.Kit()
	s := scratchOf(k)
	if i, r, ready := s.try(cs, k, f, how, f.task.Worker()); i >= 0 {
		f.ready(ready)
		trim(k, cs)
		if f.simulated {
			f.tellSelect(cs, i, r)
		}
		f.charge()
		return i, r
	}
	t := f.arm(sc, s)
	s.publish(cs, k, f, &f.task.Parker, t, f.task.Worker())
	if s.joins {
		f.leavePlace()
	}
	if s.soonest >= 0 {
		f.armTimer(t, cs[s.soonest].delay())
	}
	if f.shouldPark(sc) {
		return -1, park.None
	}
	return f.endSelect(cs, park.Cancelled)
}

// endSelect cleans up after a wait of beginSelect.
//
//go:noinline
//go:norace
func (f *Fiber) endSelect(cs []Case, r park.Reason) (int, park.Reason) {
	k := f.task.Kit()
	s := scratchOf(k)
	if s.soonest >= 0 && r != park.TimedOut {
		f.stopTimer()
	}
	i := s.withdraw(cs, k, r)
	if s.joins {
		f.takePlace(byCase(r))
	}
	trim(k, cs)
	if i >= 0 && f.simulated {
		f.tellSelect(cs, i, r.Kind())
	}
	return i, r.Kind()
}

// chooseAny implements choose for callers that are not fibers under their own contexts. If fibers used it too, the
// select-8 comparison in bench/ratios would take 1.15 times as long.
//
//go:noinline
//go:norace
func chooseAny(ctx context.Context, cs []Case, how selectPolicy) (int, error) {
	by := resolve(ctx)
	if simulating.Load() > 0 {
		announceSelect(by.f, policy.Select, cs)
	}
	if e := by.refused(); e != nil {
		return -1, e.op
	}
	race.Disable()
	w := by.waiter()
	s := scratchOf(w.kit)
	i, r, ready := s.try(cs, w.kit, by.f, how, by.worker())
	if i < 0 {
		t := by.arm(&w, s)
		s.publish(cs, w.kit, by.f, w.p, t, by.worker())
		if s.joins {
			by.f.leavePlace()
		}
		deadline := int64(never)
		if s.soonest >= 0 {
			deadline = by.deadline(cs[s.soonest].delay())
		}
		r = by.await(&w, t, deadline)
		i = s.withdraw(cs, w.kit, r)
		if s.joins {
			by.f.takePlace(byCase(r))
		}
		if i >= 0 && by.f != nil && by.f.simulated {
			by.f.tellSelect(cs, i, r.Kind())
		}
	} else {
		ready.MakeReady(by.worker())
		if by.f != nil && by.f.simulated {
			by.f.tellSelect(cs, i, r)
		}
		by.charge()
	}
	trim(w.kit, cs)
	w.done()
	race.Enable()
	if i < 0 {
		return i, by.cancelled().op
	}
	return cs[i].done(i, r.Kind())
}

// grow makes room for n cases.
//
//go:norace
func (s *scratch) grow(n int) {
	if len(s.nodes) < n {
		s.grown(n)
	}
	s.locks = s.locks[:0]
}

//go:noinline
//go:norace
func (s *scratch) grown(n int) {
	n = max(n, 4)
	nodes := make([]*wait.Node, n)
	for i, old := range s.nodes { //nolint:staticcheck // the race detector would see the accesses of copy
		nodes[i] = old
	}
	s.locks, s.ready, s.nodes, s.on = make([]*channel.Core, n), make([]int32, n), nodes, make([]any, n)
}

// lockAll locks the channels of the cases. Unlock them with channel.UnlockAll(s.locks).
//
//go:norace
func (s *scratch) lockAll(cs []Case) {
	locks, n := s.locks[:len(cs)], 0 // grow has made room
	for i := range cs {
		if c := cs[i].core; c != nil {
			locks[n] = c.ch
			n++
		}
	}
	s.locks = locks[:n]
	channel.LockAll(s.locks)
}

// try is passes 1 and 2. It completes a case that is ready, if there is one, and returns its index. Otherwise it
// returns -1 and leaves the channels locked.
//
// Pass 1 is enough for a fair choice: if the chosen case can be completed, it was a valid choice at that moment. For a
// choice by priority, pass 1 is enough only for the first case. Before a later case is chosen, it must be certain that
// no earlier case was ready.
//
// Spec: SE-03 (a losing case has no effect)
// Spec: SE-06 (a ready case needs no registration)
// Spec: SE-08 (SelectPriority takes the first ready case)
// Spec: SE-14 (a message goes directly, under the locks)
// Spec: SE-16 (a select never matches itself)
//
//go:norace
func (s *scratch) try(
	cs []Case, k *wait.Kit, f *Fiber, how selectPolicy, here park.Place,
) (i int, r park.Reason, ready *park.Parker) {
	s.grow(len(cs))
	if n := s.findReady(cs, false); n > 0 && (how == fairly || s.ready[0] == 0) {
		i := s.pick(k, f, how, n)
		c := &cs[i]
		if c.core != nil {
			c.core.ch.Lock()
			c.usedBy(f)
		}
		r, ready, after := c.try()
		if c.core != nil {
			c.core.ch.Unlock()
		}
		if after.any() {
			after.do(ready, here)
			ready = nil
		}
		if r != park.None {
			return i, r, ready
		}
	}
	s.lockAll(cs)
	for n := s.findReady(cs, true); n > 0; n-- {
		i := s.pick(k, f, how, n)
		cs[i].usedBy(f)
		if r, ready, after := cs[i].try(); r != park.None {
			channel.UnlockAll(s.locks)
			if after.any() {
				after.do(ready, here)
				ready = nil
			}
			return i, r, ready
		}
	}
	return -1, park.None, nil
}

// findReady records the cases that seem ready, in order, and returns their number. Without locks the result is a guess,
// because other goroutines may be writing the words that findReady reads. Even with locks a case may turn out not to be
// ready, because its peers have given up and are about to withdraw. So findReady records all cases that seem ready,
// even for a choice by priority.
//
// Guarded by TestPriorityGoesOnToTheNextCase.
//
//go:norace
func (s *scratch) findReady(cs []Case, locked bool) (n int) {
	for i := range cs {
		c := &cs[i]
		if c.core != nil {
			ch := c.core.ch
			if ch == nil {
				race.Enable()
				panic(notMade("Chan"))
			}
			if xatomic.Instrumented && !locked {
				ch.Peek()
			}
			if !ch.Ready(c.side()) {
				continue
			}
		} else if !c.happened() {
			continue
		}
		s.ready[n] = int32(i)
		n++
	}
	return n
}

// pick chooses one of the n recorded cases, removes it from the list, and returns it.
//
// Spec: SE-07 (select is fair)
//
//go:norace
func (s *scratch) pick(k *wait.Kit, f *Fiber, how selectPolicy, n int) int {
	if n == 1 && (f == nil || !f.simulated) {
		return int(s.ready[0])
	}
	at := uint64(0)
	switch {
	case how == byOrder:
	case f != nil && f.simulated:
		at = uint64(f.nursery.rt.policy.Choose(n))
	default:
		at = k.Turn(n)
	}
	i := s.ready[at]
	if how == fairly {
		s.ready[at] = s.ready[n-1]
	} else {
		for j := 1; j < n; j++ {
			s.ready[j-1] = s.ready[j]
		}
	}
	return int(i)
}

// publish is pass 3. It publishes a cell for each case on a channel, and unlocks all channels. Then it subscribes to
// the events, and records the earliest After and whether a case waits for a fiber.
//
// Spec: SE-04 (the winner is decided before a wake)
// Spec: SE-10 (the earliest deadline ends a select)
// Spec: SE-13 (no channel lock is held while waiting)
//
//go:norace
func (s *scratch) publish(
	cs []Case, k *wait.Kit, f *Fiber, p *park.Parker, t park.Ticket, here park.Place,
) {
	s.soonest, s.joins = -1, false
	events := false
	var woken *channel.Watch // the Selectors that watch the channels
	for i := range cs {
		c := &cs[i]
		switch c.what {
		case caseSend, caseRecv:
			s.on[i] = c.core.on(c.side())
			c.usedBy(f)
			ch := c.core.ch
			n := s.nodes[i]
			if n == nil || !n.Is(ch.Cells()) {
				n = s.newNode(k, i, ch.Port())
			}
			if c.what == caseRecv && ch.Plain() {
				ch.Publish(receiving, n, p, t) // the port's Publish, without the interface call
				continue
			}
			ch.Port().Publish(c.side(), n, c.arg, p, t)
			if !ch.Plain() {
				woken = ch.TakeWoken().Append(woken)
			}
		case caseEvent, caseTake, caseSignal:
			events = true
			s.joins = s.joins || c.join
		case caseAfter:
			s.on[i] = toSleep{}
			if s.soonest < 0 || c.delay() < cs[s.soonest].delay() {
				s.soonest = i
			}
		}
	}
	channel.UnlockAll(s.locks)
	readySelectors(woken, here)
	if events {
		s.subscribe(cs, k, p, t)
	}
}

// newNode takes a node for case i from the kit.
//
//go:noinline
//go:norace
func (s *scratch) newNode(k *wait.Kit, i int, port channel.Port) *wait.Node {
	if old := s.nodes[i]; old != nil {
		k.Put(old)
	}
	return s.keep(i, port.Cell(k))
}

// keep makes n the node of case i, for this select and later ones.
//
//go:norace
func (s *scratch) keep(i int, n *wait.Node) *wait.Node {
	n.Index, n.Won = indexOf(i), false
	s.nodes[i] = n
	return n
}

// indexOf returns i, limited to the largest index that fits in a reason.
//
//go:norace
func indexOf(i int) uint16 { return uint16(min(i, park.MaxIndex)) }

var eventKind = wait.KindOf[struct{}]()

// subscribe publishes the cases that are events.
//
//go:noinline
//go:norace
func (s *scratch) subscribe(cs []Case, k *wait.Kit, p *park.Parker, t park.Ticket) {
	for i := range cs {
		if cs[i].what < caseEvent {
			continue
		}
		n, take := s.nodes[i], cs[i].what == caseTake
		if n == nil || !(n.Is(eventKind) && !take || n.Is(wantKind) && take) {
			if n != nil {
				k.Put(n)
			}
			if take {
				n = &wait.Get[want](k, wantKind).Node
			} else {
				n = &wait.Get[struct{}](k, eventKind).Node
			}
			s.keep(i, n)
		}
		s.on[i] = cs[i].arg
		switch cs[i].what {
		case caseTake:
			s.on[i] = wantOf(n)
		case caseSignal:
			s.on[i] = (*toSignal)(cs[i].event().(*signalCase).cond())
		}
		if !cs[i].event().publish(n, p, t) {
			n.Parker, n.Ticket = p, t
			n.Claim(park.Data) // the event has happened since the check; the select is awake, so it need not be readied
		}
	}
}

// byCase reports whether a select that ended with reason r was ended by one of its cases, and not by a timeout or a
// cancellation.
//
//go:norace
func byCase(r park.Reason) bool { return r.Kind() == park.Data || r.Kind() == park.Closed }

// withdraw is pass 4. It withdraws every case and returns the index of the case that ended the wait, or -1.
//
// Spec: SE-05 (losing registrations are removed first)
// Spec: SE-11 (a cancel ends a select)
// Spec: SE-19 (a late completion stays with its sender)
//
//go:norace
func (s *scratch) withdraw(cs []Case, k *wait.Kit, r park.Reason) int {
	won, marked := -1, false
	switch {
	case r == park.TimedOut:
		won = s.soonest
	case byCase(r):
		if won = r.Index(); won == park.MaxIndex {
			won, marked = -1, true // the index is too large for the reason; the case's node is marked instead
		}
	}
	for i := range cs {
		c := &cs[i]
		s.on[i] = nil
		if c.what == caseNever || c.what == caseAfter {
			continue
		}
		n := s.nodes[i]
		switch {
		case i == won:
		case c.core == nil:
			if c.event().withdraw(n) && marked {
				won = i
			}
		default:
			if c.core.ch.WithdrawCase(c.side(), n) && marked {
				won = i
			} else if c.what == caseSend {
				c.core.ch.Port().Clear(n)
			}
		}
		if i == won && c.core != nil {
			c.core.ch.Port().Finish(c.side(), n, r.Kind(), c.ptr)
		}
		if c.what == caseTake {
			wantOf(n).forget()
		}
		if i >= keepNodes || n.Large() {
			k.Put(n)
			s.nodes[i] = nil
		}
	}
	return won
}
