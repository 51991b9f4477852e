package coir

import (
	"context"
	"math/bits"
	"math/rand/v2"
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/hide"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/wait"
	"github.com/coir-go/coir/internal/xatomic"
)

// Select, and what it is made of.
//
// A select must complete exactly one of its cases. The difficulty is the moment between looking at the channels and waiting
// on them, and two selects that wait for each other: taking the peer's word and one's own are two steps. The road taken is
// that of Go's own select: all channels are locked, in the order of their ids, while the cases are looked at and
// registered. A select that looks has told nobody of itself, so only the peer's word has to be claimed; a select that waits
// has one word for all its cases, and whoever claims it has decided. Nothing is locked while it waits.
//
// Cases that are not channels (the end of a fiber, of a side of a pipe) happen once and stay true. They are not locked with
// the rest: they are looked at first and registered last, and one that has happened in between is claimed by the select
// itself.

// Case is one of the things that a select waits for. The zero Case never happens: it can stand for a case that is switched
// off.
type Case struct {
	// Spec: SE-18 (a case can wait for anything)

	core  *core // a channel
	port  port  // the same, with its type
	event event // or something that happens once
	val   any   // to send
	dst   unsafe.Pointer
	after time.Duration
	what  caseKind
}

type caseKind uint8

const (
	caseNever caseKind = iota
	caseSend
	caseRecv
	caseEvent
	caseAfter
)

// port is a channel, as a case sees it. The methods are called with its lock held, unless they say otherwise.
type port interface {
	// sendValue and recvTo do the operation if it needs no wait. What is left to do without locks is in rest.
	sendValue(v any) (r park.Reason, asleep *park.Parker, rest func())
	recvTo(dst unsafe.Pointer) (r park.Reason, asleep *park.Parker)
	// register publishes a cell of the kit.
	register(cs *Case, k *wait.Kit, index uint16, p *park.Parker, t park.Ticket) *wait.Node
	// finish ends a wait for r, without the lock, and stores what was received.
	finish(n *wait.Node, cs *Case, r park.Reason)
	// clear empties a cell that is no longer registered, without the lock.
	clear(n *wait.Node)
}

// event is something that happens once.
type event interface {
	// over reports whether it has happened.
	over() bool
	// subscribe has a node wake its parker when it happens. It reports false if it has happened.
	subscribe(n *wait.Node, p *park.Parker, t park.Ticket) bool
	// unsubscribe takes the node back. It reports whether it is marked as the one that won.
	unsubscribe(n *wait.Node) bool
	// result is called when the case was the one, and may store something.
	result(dst unsafe.Pointer)
	// op is the wait for it, as a policy sees it.
	op() Op
}

// SendCase is a case that sends v.
func (c *Chan[T]) SendCase(v T) Case {
	if given.never { // what v points to is given away, which hidden keeps the compiler from seeing
		given.away = v
	}
	return Case{what: caseSend, core: &c.core, port: c, val: v}
}

var given struct {
	never bool
	away  any
}

// RecvCase is a case that receives into *dst. A nil dst throws the value away.
func (c *Chan[T]) RecvCase(dst *T) Case {
	return Case{what: caseRecv, core: &c.core, port: c, dst: unsafe.Pointer(dst)}
}

// After is a case that happens d after the select has begun, with a nil error: only the index tells that the time has come. Of several the
// earliest counts.
func After(d time.Duration) Case {
	// Spec: TM-14 (After is a case)
	return Case{what: caseAfter, after: d}
}

// Done is a case that happens when the fiber has ended. The fiber's error, as [Fiber.Wait] returns it, is stored in *err
// unless err is nil.
func (f *Fiber) Done(err *error) Case {
	_ = f.nursery // a nil fiber fails here, not under a lock
	return Case{what: caseEvent, event: (*fiberEnd)(f), dst: unsafe.Pointer(err)}
}

// Select waits until one of the cases can happen, does it and returns its index. If several can, each has the same chance. A
// case on a closed channel happens at once, with an error that is [ErrClosed]. An index of -1 comes with an error of ctx.
//
// No case but the one returned has any effect. The same channel may be in several cases; a select never meets itself.
func Select(ctx context.Context, cases ...Case) (int, error) {
	// Spec: SE-01 (a select completes one case)
	// Spec: SE-07 (select is fair)
	return choose(ctx, cases, fairly)
}

// SelectPriority is Select that takes the first case, in the order given, of those that can happen. A case on a channel that has been
// closed can always happen: put the zero Case in its place.
func SelectPriority(ctx context.Context, cases ...Case) (int, error) {
	// Spec: SE-08 (SelectPriority takes the first ready case)
	return choose(ctx, cases, byOrder)
}

// TrySelect is Select that never waits: if no case can happen it returns -1 and [ErrWouldBlock].
func TrySelect(cases ...Case) (int, error) {
	// Spec: SE-09 (TrySelect never waits)
	cs := hidden(cases)
	var f *Fiber // if a policy chooses for it
	if simulating.Load() > 0 {
		f = announceSelect(currentFiber(), OpTrySelect, cs)
	}
	race.Disable()
	g := guests.Get().(*guest)
	s := scratchOf(&g.kit)
	i, r := s.try(cs, &g.kit, f, fairly, here())
	if i < 0 {
		s.unlockAll()
	}
	tidy(&g.kit, cs)
	guests.Put(g)
	race.Enable()
	if f != nil {
		f.stepped()
	}
	if i < 0 {
		return i, ErrWouldBlock
	}
	return cs[i].done(i, r)
}

// hidden keeps the compiler from believing that the cases escape, so that a call allocates neither them nor what they send. It
// would believe so because their channels are called through an interface. What is true: the cases and what they point to are
// used by the caller's goroutine alone, while it is inside Select, and no pointer to them is stored in the heap: a value to be
// sent is copied into a cell, a value that was received is copied out of one. What a value that is sent points to does go to
// others: SendCase says so itself. Channels and pipes are always in the heap, because NewChan and Pipe are not inlined.
//
//go:norace
func hidden(cases []Case) []Case {
	return unsafe.Slice((*Case)(hide.Pointer(unsafe.Pointer(unsafe.SliceData(cases)))), len(cases))
}

type selectPolicy bool

const (
	fairly  selectPolicy = false
	byOrder selectPolicy = true
)

// scratch is what a select needs besides cells. It stays with the kit.
type scratch struct {
	locks []*core      // of the cases, in the order of their ids
	ready []int        // cases that need not wait
	nodes []*wait.Node // of each case
	ops   []Op         // of each case, as a policy sees it

	// Of a select that waits.
	soonest int  // the case whose time comes first, or -1
	joins   bool // some cases are the ends of fibers
}

// tidy drops scratch that is larger than most selects need.
//
//go:norace
func tidy(k *wait.Kit, cs []Case) {
	if len(cs) > 1024 {
		k.Scratch = nil
	}
}

//go:norace
func scratchOf(k *wait.Kit) *scratch {
	s, ok := k.Scratch.(*scratch)
	if !ok {
		s = new(scratch)
		k.Scratch = s
	}
	return s
}

// choose is Select and SelectPriority. It is in the race detector's sight, so that a report of what a case stores names the caller.
func choose(ctx context.Context, cases []Case, how selectPolicy) (int, error) {
	cs := hidden(cases)
	f, sc := ownFiber(ctx)
	if f == nil {
		return chooseSlow(ctx, cs, how)
	}
	if f.simulated {
		f.stepSelect(OpSelect, cs)
	}
	race.Disable()
	i, r := f.beginSelect(sc, cs, how)
	if r == park.None {
		// What Park does: see Task.Leave.
		if s := f.task.Leave(); s != nil {
			if s.Odd {
				s.Next()
			} else {
				s.Yield(struct{}{})
			}
			f.task.Arrive()
		}
		i, r = f.endSelect(cs, f.task.Reason())
	}
	race.Enable()
	if i < 0 {
		return i, sc.ending().op
	}
	return cs[i].done(i, r)
}

// beginSelect does one of the cases if that needs no wait; otherwise it has f wait for them under sc and returns None.
//
//go:noinline
//go:norace
func (f *Fiber) beginSelect(sc *scope, cs []Case, how selectPolicy) (int, park.Reason) {
	if sc.done() {
		return -1, park.Cancelled
	}
	k := f.task.Kit()
	s := scratchOf(k)
	if i, r := s.try(cs, k, f, how, f.task.Worker()); i >= 0 {
		tidy(k, cs)
		f.spend()
		return i, r
	}
	t := f.arm(sc)
	s.register(cs, k, &f.task.Parker, t)
	if s.joins {
		f.leavePlace()
	}
	if s.soonest >= 0 {
		f.armTimer(t, cs[s.soonest].after)
	}
	if f.parks(sc) {
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
	tidy(k, cs)
	return i, r.Kind()
}

// chooseSlow is choose for everybody else.
//
//go:noinline
//go:norace
func chooseSlow(ctx context.Context, cs []Case, how selectPolicy) (int, error) {
	by := resolve(ctx)
	if simulating.Load() > 0 {
		announceSelect(by.f, OpSelect, cs)
	}
	if e := by.ended(); e != nil {
		return -1, e.op
	}
	race.Disable()
	w := by.waiter()
	s := scratchOf(w.kit)
	i, r := s.try(cs, w.kit, by.f, how, by.near())
	if i < 0 {
		t := by.arm(&w)
		s.register(cs, w.kit, w.p, t)
		if s.joins {
			by.f.leavePlace()
		}
		deadline := int64(never)
		if s.soonest >= 0 {
			deadline = by.deadline(cs[s.soonest].after)
		}
		r = by.await(&w, t, deadline)
		i = s.withdraw(cs, w.kit, r)
		if s.joins {
			by.f.takePlace(byCase(r))
		}
	} else {
		by.spend()
	}
	tidy(w.kit, cs)
	w.done()
	race.Enable()
	if i < 0 {
		return i, by.cancelled().op
	}
	return cs[i].done(i, r.Kind())
}

// done is what select returns for the case that happened.
//
//go:norace
func (cs *Case) done(i int, r park.Reason) (int, error) {
	switch cs.what {
	case caseSend, caseRecv:
		return i, cs.core.resultErr(cs.side(), r)
	case caseEvent:
		cs.event.result(cs.dst)
	}
	return i, nil
}

// fit makes room for n cases.
//
//go:norace
func (s *scratch) fit(n int) {
	if cap(s.nodes) < n {
		s.locks, s.ready, s.nodes = make([]*core, n), make([]int, n), make([]*wait.Node, n)
	}
	s.locks, s.ready, s.nodes = s.locks[:n], s.ready[:n], s.nodes[:n]
}

// lockAll locks the channels of the cases.
//
// Spec: SE-12 (channel locks are taken in the order of ids)
// Spec: SE-20 (up to 8 cases lock without allocating)
//
//go:norace
func (s *scratch) lockAll(cs []Case) {
	locks, n := s.locks[:len(cs)], 0 // try has made room
	for i := range cs {
		if c := cs[i].core; c != nil {
			locks[n] = c
			n++
		}
	}
	s.locks = s.locks[:n]
	if len(s.locks) > 1 {
		sortCores(s.locks)
	}
	var last *core
	for _, c := range s.locks {
		if c != last {
			c.mu.Lock()
			last = c
		}
	}
}

// sortCores orders channels by id: few by insertion, many in a heap. It is written out because the race detector would see what
// package slices does to scratch that goroutines hand on, and not what orders it.
//
//go:norace
func sortCores(cores []*core) {
	n := len(cores)
	if n > 16 {
		for i := n/2 - 1; i >= 0; i-- {
			siftCore(cores, i)
		}
		for ; n > 1; n-- {
			cores[0], cores[n-1] = cores[n-1], cores[0]
			siftCore(cores[:n-1], 0)
		}
		return
	}
	for i := 1; i < n; i++ {
		c := cores[i]
		j := i
		for j > 0 && cores[j-1].id > c.id {
			cores[j] = cores[j-1]
			j--
		}
		cores[j] = c
	}
}

// siftCore moves the channel at i down to where it belongs in a heap whose largest id is on top.
//
//go:norace
func siftCore(cores []*core, i int) {
	for {
		child := 2*i + 1
		if child >= len(cores) {
			return
		}
		if child+1 < len(cores) && cores[child].id < cores[child+1].id {
			child++
		}
		if cores[i].id >= cores[child].id {
			return
		}
		cores[i], cores[child] = cores[child], cores[i]
		i = child
	}
}

//go:norace
func (s *scratch) unlockAll() {
	var last *core
	for i, c := range s.locks {
		if c != last {
			c.mu.Unlock()
			last = c
		}
		s.locks[i] = nil
	}
}

// try does a case that needs no wait, if there is one, and returns its index. Otherwise it returns -1 with the channels locked.
//
// First it looks without locks: a channel that seems ready is locked alone and tried. That is enough for a fair choice, because
// whichever case is ready when it is done was a choice at that moment. By order it is enough for the first case only: of a later
// one it must be certain that none before it was ready, and of a select that waits that none was at all.
//
// Spec: SE-03 (a losing case has no effect)
// Spec: SE-06 (a ready case needs no registration)
// Spec: SE-08 (SelectPriority takes the first ready case)
// Spec: SE-14 (a message goes directly, under the locks)
// Spec: SE-16 (a select never matches itself)
//
//go:norace
func (s *scratch) try(cs []Case, k *wait.Kit, f *Fiber, how selectPolicy, near park.Place) (int, park.Reason) {
	s.fit(len(cs))
	s.locks = s.locks[:0]
	if n := s.findReady(cs, false); n > 0 && (how == fairly || s.ready[0] == 0) {
		i := s.pick(k, f, how, n)
		if c := cs[i].core; c != nil {
			s.locks = s.locks[:1]
			s.locks[0] = c
			c.mu.Lock()
		}
		if r, ok := cs[i].try(s, near); ok {
			return i, r
		}
		s.unlockAll()
	}
	s.lockAll(cs)
	for n := s.findReady(cs, true); n > 0; n-- {
		i := s.pick(k, f, how, n)
		if r, ok := cs[i].try(s, near); ok {
			return i, r
		}
	}
	return -1, park.None
}

// findReady notes the cases that need not wait, in order, and returns their number. Without locks it is a guess: it reads words that
// others may be writing, and a word that is read so is some word that was written. With locks too a case may turn out not to be
// ready, if those who wait there have given up and are about to leave: so all are noted, also by order.
//
// Guarded by TestPriorityGoesOnToTheNextCase.
//
//go:norace
func (s *scratch) findReady(cs []Case, locked bool) (n int) {
	ready := s.ready
	for i := range cs {
		if xatomic.Instrumented && !locked && cs[i].core != nil {
			xatomic.Peek(&cs[i].core.mu)
		}
		if cs[i].ready() {
			ready[n] = i
			n++
		}
	}
	return n
}

// pick takes one of the n cases that have been noted, out of the list.
//
// Spec: SE-07 (select is fair)
//
//go:norace
func (s *scratch) pick(k *wait.Kit, f *Fiber, how selectPolicy, n int) int {
	at := uint64(0)
	if how == fairly && f != nil && f.simulated {
		at = uint64(f.nursery.rt.policy.Choose(f, n))
	} else if how == fairly {
		if k.Turn == 0 {
			k.Turn = rand.Uint64() // many that choose once must not all choose the same
		}
		// The turn goes round by the golden ratio: the choices are even over any stretch, and fall in step with nothing.
		k.Turn += 0x9E3779B97F4A7C15
		at, _ = bits.Mul64(k.Turn, uint64(n))
	}
	i := s.ready[at]
	if how == fairly {
		s.ready[at] = s.ready[n-1]
	} else {
		for j := 1; j < n; j++ {
			s.ready[j-1] = s.ready[j]
		}
	}
	return i
}

// ready reports whether the case would not wait.
//
//go:norace
func (cs *Case) ready() bool {
	switch cs.what {
	case caseSend:
		return cs.core.ready(sending)
	case caseRecv:
		return cs.core.ready(receiving)
	case caseEvent:
		return cs.event.over()
	case caseAfter:
		return cs.after <= 0
	}
	return false
}

//go:norace
func (cs *Case) side() int {
	if cs.what == caseSend {
		return sending
	}
	return receiving
}

// joins reports whether the case is the end of a fiber.
//
//go:norace
func (cs *Case) joins() bool {
	_, ok := cs.event.(*fiberEnd)
	return ok
}

// try does the case if it needs no wait. If it was done, every channel has been unlocked.
//
//go:norace
func (cs *Case) try(s *scratch, near park.Place) (park.Reason, bool) {
	r := park.Data
	var asleep *park.Parker
	var rest func()
	switch cs.what {
	case caseSend:
		r, asleep, rest = cs.port.sendValue(cs.val)
	case caseRecv:
		r, asleep = cs.port.recvTo(cs.dst)
	}
	if r == park.None {
		return r, false
	}
	s.unlockAll()
	asleep.Rouse(near)
	if rest != nil {
		rest()
	}
	return r, true
}

// register publishes the cases that are channels and lets go of them all. Then it registers those that are not. It notes what else
// there is.
//
// Spec: SE-04 (the winner is decided before a wake)
// Spec: SE-10 (the earliest deadline ends a select)
// Spec: SE-13 (no channel lock is held while waiting)
//
//go:norace
func (s *scratch) register(cs []Case, k *wait.Kit, p *park.Parker, t park.Ticket) {
	s.soonest, s.joins = -1, false
	events := false
	for i := range cs {
		c := &cs[i]
		var n *wait.Node
		switch c.what {
		case caseSend, caseRecv:
			n = c.port.register(c, k, indexOf(i), p, t)
		case caseEvent:
			events = true
			s.joins = s.joins || c.joins()
		case caseAfter:
			if s.soonest < 0 || c.after < cs[s.soonest].after {
				s.soonest = i
			}
		}
		s.nodes[i] = n
	}
	s.unlockAll()
	if events {
		s.subscribe(cs, k, p, t)
	}
}

// indexOf is the index of a case that fits a reason.
//
//go:norace
func indexOf(i int) uint16 { return uint16(min(i, park.MaxIndex)) }

var eventKind = wait.KindOf[struct{}]()

// subscribe registers the cases that are not channels.
//
//go:norace
func (s *scratch) subscribe(cs []Case, k *wait.Kit, p *park.Parker, t park.Ticket) {
	for i := range cs {
		if cs[i].what != caseEvent {
			continue
		}
		n := &wait.Get[struct{}](k, eventKind).Node
		n.Index = indexOf(i)
		s.nodes[i] = n
		if !cs[i].event.subscribe(n, p, t) {
			n.Parker, n.Ticket = p, t
			n.Claim(park.Data) // it has happened since we looked. We are awake: there is nobody to rouse
		}
	}
}

// byCase reports whether a select that ended for r was ended by one of its cases, and not by time or a cancel.
//
//go:norace
func byCase(r park.Reason) bool { return r.Kind() == park.Data || r.Kind() == park.Closed }

// withdraw takes every registration back and returns the index of the case that has ended the wait, or -1.
//
// Spec: SE-05 (losing registrations are removed first)
// Spec: SE-11 (a cancel ends a select)
// Spec: SE-19 (a late completion stays with its sender)
//
//go:norace
func (s *scratch) withdraw(cs []Case, k *wait.Kit, r park.Reason) int {
	won := -1
	if r == park.TimedOut {
		won = s.soonest
	}
	decided := byCase(r)
	for i, n := range s.nodes {
		if n == nil {
			continue
		}
		c := &cs[i]
		mine := decided && i == r.Index()
		if i >= park.MaxIndex || !mine {
			mine = c.unregister(n) && decided
		}
		if mine {
			won = i
			if c.port != nil {
				c.port.finish(n, c, r.Kind())
			}
		} else if c.port != nil {
			c.port.clear(n)
		}
		k.Put(n)
		s.nodes[i] = nil
	}
	return won
}

// unregister takes the node out of its queue. It reports whether it is marked as the one that won.
//
//go:norace
func (cs *Case) unregister(n *wait.Node) bool {
	if cs.what == caseEvent {
		return cs.event.unsubscribe(n)
	}
	c := cs.core
	c.mu.Lock()
	c.queue(cs.side()).Remove(n)
	won := n.Won
	c.mu.Unlock()
	return won
}

// Chan implements port.

//go:norace
func (c *Chan[T]) sendValue(v any) (r park.Reason, asleep *park.Parker, rest func()) {
	value, _ := v.(T) // it is one; a nil interface is the zero value
	r, asleep = c.put(value)
	if r == park.None && c.over != Wait {
		var lost T
		if lost, r = c.displace(value); r == park.Data {
			rest = func() { c.lose(lost) }
		}
	}
	if r == park.Closed {
		c.countFailure(sending, r)
	}
	return r, asleep, rest
}

//go:norace
func (c *Chan[T]) recvTo(dst unsafe.Pointer) (park.Reason, *park.Parker) {
	v, r, asleep := c.take()
	if r == park.Data {
		deliver(dst, v)
	}
	if r == park.Closed {
		c.countFailure(receiving, r)
	}
	return r, asleep
}

//go:norace
func (c *Chan[T]) register(cs *Case, k *wait.Kit, index uint16, p *park.Parker, t park.Ticket) *wait.Node {
	cell := wait.Get[T](k, c.kind)
	cell.Index = index
	var asleep *park.Parker
	if cs.what == caseSend {
		v, _ := cs.val.(T)
		asleep = c.publishSend(cell, v, p, t)
	} else {
		asleep = c.publishRecv(cell, p, t)
	}
	if asleep != nil {
		asleep.Rouse(here()) // a selector's
	}
	return &cell.Node
}

//go:norace
func (c *Chan[T]) finish(n *wait.Node, cs *Case, r park.Reason) {
	if cs.what == caseSend {
		c.leave(wait.CellOf[T](n), sending, r)
	} else if v := c.leave(wait.CellOf[T](n), receiving, r); r == park.Data {
		deliver(cs.dst, v)
	}
}

// deliver stores what a case has received, inside a hidden section.
//
//go:norace
func deliver[T any](dst unsafe.Pointer, v T) {
	if dst != nil {
		race.Wrote(dst, unsafe.Sizeof(v))
		*(*T)(dst) = v
	}
}

//go:norace
func (c *Chan[T]) clear(n *wait.Node) {
	var zero T
	wait.CellOf[T](n).Value = zero
}

// fiberEnd is the end of a fiber, as an event.
type fiberEnd Fiber

//go:norace
func (e *fiberEnd) over() bool {
	return (*Fiber)(e).ended()
}

//go:norace
func (e *fiberEnd) subscribe(n *wait.Node, p *park.Parker, t park.Ticket) bool {
	return (*Fiber)(e).addJoiner(n, p, t)
}

//go:norace
func (e *fiberEnd) unsubscribe(n *wait.Node) bool {
	(*Fiber)(e).removeJoiner(n)
	return n.Won // nobody else has the node any more
}

//go:norace
func (e *fiberEnd) op() Op { return Op{Kind: OpWait, Object: e.id, Name: e.name} }

//go:norace
func (e *fiberEnd) result(dst unsafe.Pointer) {
	f := (*Fiber)(e)
	race.Acquire(unsafe.Pointer(f))
	if dst != nil {
		race.Disable()
		race.Wrote(dst, unsafe.Sizeof(f.err))
		race.Enable()
		*(*error)(dst) = f.err
	}
}
