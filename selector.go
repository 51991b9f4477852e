package coir

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"sync/atomic"
	"unsafe"
	"weak"

	"github.com/coir-go/coir/internal/channel"
	"github.com/coir-go/coir/internal/clock"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/wait"
	"github.com/coir-go/coir/internal/xatomic"
)

// Selector waits for many cases that stay registered from one event to the next. Select looks at all its cases on every
// call; a Selector looks at those that something has happened to, so that an event costs the same with ten cases and with a
// hundred thousand. [Selector.Add] and [Selector.Remove] may be called by anybody at any time; [Selector.Wait] by one at a time.
//
// A case stays until it is used up: a receive when its channel is closed and has nothing left; a send, a time or the end of
// something when it has happened. Cases that are ready are served in turn.
//
// A registered case does not wait in its channel's queues; it is tried when the channel becomes ready. So those who wait in
// operations come first, TrySend does not see it, and on a channel of capacity 0 one side at least has to wait in an operation:
// two selectors never meet there.
//
// A selector that is no longer used need not be closed: what it is registered with does not keep it, nor what its cases
// send or where they receive to. The garbage collector takes it, and its registrations go with it.
//
// # How it works
//
// A channel knows the registrations that want to hear of each of its sides, and under its lock puts them on the ready
// lists of their selectors when that side may have become ready; one that is on the list already costs a look. Wait
// takes the first off the list and then tries it: whatever happens to the channel after that puts it back. Lock order:
// registrations, channel, board.
//
// A selector is in two parts, so that it can be collected. What channels, timers and fibers point to is a hook, with
// the board that has the ready list; neither leads to the selector, its cases, or anything of the program's. When the
// selector is collected its board is marked as abandoned: channels drop the hooks of such a board when they come across
// them, and the others are taken out.
type Selector struct {
	b    *board
	busy xatomic.Bool // somebody is in Wait

	// What events do not need.
	regMu  xatomic.Mutex
	regs   map[int]*registration
	next   int
	fibers xatomic.Int32 // registrations that wait for the end of a fiber
	oldest *registration // of those in regs, by number, through newer
	newest *registration
	id     uint64      // for a policy; 0 before it is told of the selector
	told   []policy.Op // what it is told

	// Registrations by the slot of their hook. The slice is replaced, under regMu, when there are more; Wait
	// reads it without. What it reads there was written before the hook came on the ready list.
	slots atomic.Pointer[[]*registration]
	free  []int // slots that are not used, the first nfree of them
	nfree int
}

// NewSelector makes a selector without cases.
func NewSelector() *Selector {
	s := &Selector{b: new(board), regs: make(map[int]*registration)}
	s.slots.Store(new([]*registration))
	// Spec: SE-25 (a dropped selector is collected)
	if !xatomic.Instrumented { // an exploration knows no garbage collector
		runtime.AddCleanup(s, (*board).abandon, s.b)
	}
	return s
}

// board is what is known of a selector where its cases happen.
type board struct {
	mu     xatomic.Mutex
	first  *hook // ready, in the order in which they became so
	last   *hook
	waiter *park.Parker // of whoever is in Wait, while it is parked
	ticket park.Ticket
	gone   bool  // the selector has been collected
	once   *hook // those that do not wait for a channel, through after
}

// registration is a case of a selector.
type registration struct {
	s    *Selector
	hook *hook
	pin  *pin // of an event
	id   int
	cs   Case

	// By number, under its lock.
	older, newer *registration
}

// hook is the part of a registration that is known where its case happens. It must not lead to the selector, nor to
// anything of the program's that might.
type hook struct {
	b    *board
	slot int

	watch channel.Watch // of a channel. It is ended once the registration has been removed or used up

	// In the board's ready list, under its lock.
	behind, ahead *hook
	queued        bool

	// Of a case that is not a channel.
	timer         clock.Timer
	clock         clock.Clock
	pin           weak.Pointer[pin]
	before, after *hook // in the board's list, under its lock
}

// pin is what an event that happens once knows of a registration. While it is in the event's queue it leads to the
// event, and so to things of the program's: so a hook must not keep it.
type pin struct {
	parker park.Parker
	node   wait.Node
	event  event
	hook   *hook
}

// abandon is called when the selector has been collected.
//
//go:norace
func (b *board) abandon() {
	race.Disable()
	b.mu.Lock()
	b.gone, b.first, b.last = true, nil, nil
	h := b.once
	b.once = nil
	b.mu.Unlock()
	for h != nil {
		if h.clock != nil {
			h.clock.Stop(&h.timer)
		}
		if p := h.pin.Value(); p != nil {
			p.event.withdraw(&p.node)
		}
		next := h.after
		h.before, h.after = nil, nil
		h = next
	}
	race.Enable()
}

// BecameReady implements channel.Watcher.
//
//go:norace
func (h *hook) BecameReady() (ready *park.Parker, gone bool) { return h.b.push(h) }

// Gone implements channel.Watcher.
//
//go:norace
func (h *hook) Gone() bool {
	h.b.mu.Lock()
	defer h.b.mu.Unlock()
	return h.b.gone
}

// push puts a hook on the ready list. It returns whom to rouse, or that the selector is gone.
//
//go:norace
func (b *board) push(h *hook) (asleep *park.Parker, gone bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if h.queued || b.gone {
		return nil, b.gone
	}
	h.queued = true
	if b.last == nil {
		b.first = h
	} else {
		b.last.behind, h.ahead = h, b.last
	}
	b.last = h
	return b.wakeWaiter(), false
}

// wakeWaiter ends the wait of whoever is parked in Wait, and returns whom to rouse. The caller has the lock.
//
//go:norace
func (b *board) wakeWaiter() *park.Parker {
	if p := b.waiter; p != nil {
		b.waiter = nil
		if p.Claim(b.ticket, park.Data) == park.Asleep {
			return p
		}
	}
	return nil
}

// shift takes the first hook off the ready list.
//
//go:norace
func (b *board) shift() *hook {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.first
	if h != nil {
		b.unqueue(h)
	}
	return h
}

// note puts a hook that does not wait for a channel into the list of those.
//
//go:norace
func (b *board) note(h *hook) {
	b.mu.Lock()
	if h.after = b.once; h.after != nil {
		h.after.before = h
	}
	b.once = h
	b.mu.Unlock()
}

// drop takes a hook that is gone off the lists, so that it keeps nothing until the next Wait.
//
//go:norace
func (b *board) drop(h *hook) {
	b.mu.Lock()
	if h.queued {
		b.unqueue(h)
	}
	if h.before != nil {
		h.before.after = h.after
	} else if b.once == h {
		b.once = h.after
	}
	if h.after != nil {
		h.after.before = h.before
	}
	h.before, h.after = nil, nil
	b.mu.Unlock()
}

//go:norace
func (b *board) unqueue(h *hook) {
	if h.ahead == nil {
		b.first = h.behind
	} else {
		h.ahead.behind = h.behind
	}
	if h.behind == nil {
		b.last = h.ahead
	} else {
		h.behind.ahead = h.ahead
	}
	h.ahead, h.behind, h.queued = nil, nil, false
}

// Add registers a case and returns its number: 0 for the first, and never the same twice. A time counts from now. What a case
// receives is stored where [Chan.RecvCase] says when Wait returns its number, and stays until the next such event.
//
//go:norace
func (s *Selector) Add(cs Case) int {
	by := s.announce(cs.core)
	reg := &registration{s: s, hook: &hook{b: s.b}, cs: cs}
	s.regMu.Lock()
	s.place(reg)
	reg.id = s.next
	s.next++
	s.regs[reg.id] = reg
	if reg.older = s.newest; reg.older == nil {
		s.oldest = reg
	} else {
		reg.older.newer = reg
	}
	s.newest = reg
	if cs.joins() {
		s.fibers.Add(1)
	}
	race.Release(unsafe.Pointer(reg)) // before it happens
	race.Disable()
	asleep := reg.arm()
	if asleep == nil && cs.joins() {
		s.b.mu.Lock()
		asleep = s.b.wakeWaiter() // it kept its place under Nursery.Limit, and waits for a fiber now: let it begin anew
		s.b.mu.Unlock()
	}
	race.Enable()
	s.regMu.Unlock() // not before: Close must not find it half made
	if asleep != nil {
		race.Disable()
		asleep.Rouse(currentWorker())
		race.Enable()
	}
	if by != nil {
		by.stepped()
	}
	return reg.id
}

// place gives a registration a slot. The caller holds regMu.
//
//go:norace
func (s *Selector) place(reg *registration) {
	slots := *s.slots.Load()
	if s.nfree == 0 {
		n := max(2*len(slots), 8)
		more, free := make([]*registration, n), make([]int, n)
		for i, old := range slots { //nolint:staticcheck // the race detector would see a copy
			more[i] = old
		}
		for i := len(slots); i < n; i++ {
			free[s.nfree] = i
			s.nfree++
		}
		slots, s.free = more, free
		s.slots.Store(&more)
	}
	s.nfree--
	reg.hook.slot = s.free[s.nfree]
	slots[reg.hook.slot] = reg
}

// find returns the registration that a hook belongs to, or nil if it has been unregistered: then its slot is empty, or
// another's.
//
//go:norace
func (s *Selector) find(h *hook) *registration {
	if reg := (*s.slots.Load())[h.slot]; reg != nil && reg.hook == h {
		return reg
	}
	return nil
}

// unregister takes the registration out of the selector. It reports false if it was not there.
//
//go:norace
func (s *Selector) unregister(reg *registration) bool {
	s.regMu.Lock()
	_, ok := s.regs[reg.id]
	delete(s.regs, reg.id)
	if ok {
		if reg.older == nil {
			s.oldest = reg.newer
		} else {
			reg.older.newer = reg.newer
		}
		if reg.newer == nil {
			s.newest = reg.older
		} else {
			reg.newer.older = reg.older
		}
		reg.older, reg.newer = nil, nil
		(*s.slots.Load())[reg.hook.slot] = nil
		s.free[s.nfree] = reg.hook.slot
		s.nfree++
	}
	s.regMu.Unlock()
	if ok && reg.cs.joins() {
		s.fibers.Add(-1)
	}
	if ok && reg.cs.core == nil {
		race.Disable()
		s.b.drop(reg.hook)
		race.Enable()
	}
	return ok
}

// Len returns how many cases are registered.
func (s *Selector) Len() int {
	s.regMu.Lock()
	defer s.regMu.Unlock()
	return len(s.regs)
}

// String describes the selector in a few words: how many cases it has.
//
//go:norace
func (s *Selector) String() string {
	_ = s.id // a nil selector fails here, before synchronisation is hidden
	race.Disable()
	s.regMu.Lock()
	n := len(s.regs)
	s.regMu.Unlock()
	race.Enable()
	return "coir.Selector(cases: " + strconv.Itoa(n) + ")"
}

// arm has the registration hear of what it waits for, and puts it on the ready list if that is so already.
//
//go:norace
func (reg *registration) arm() (asleep *park.Parker) {
	h := reg.hook
	switch cs := &reg.cs; cs.what {
	case caseSend, caseRecv:
		h.watch.Watcher = h
		c := cs.core.ch
		c.Lock()
		defer c.Unlock()
		c.Watch(cs.side(), &h.watch)
		if c.Ready(cs.side()) {
			asleep, _ = h.b.push(h)
		}
	case caseEvent:
		p := &pin{event: cs.event(), hook: h}
		reg.pin, h.pin = p, weak.Make(p)
		h.b.note(h)
		p.parker.Init(p)
		t := p.parker.Arm()
		p.parker.Commit() // nobody sleeps; whoever wakes the parker calls Ready
		if !p.event.publish(&p.node, &p.parker, t) {
			asleep, _ = h.b.push(h)
		}
	case caseAfter:
		race.EnterUser()
		h.clock = clockHere()
		race.LeaveUser()
		h.b.note(h)
		h.clock.Arm(&h.timer, after(h.clock, max(cs.after, 0)), h, 0)
	}
	return asleep
}

// Ready implements park.Owner: the event has happened.
//
//go:norace
func (p *pin) Ready(near park.Place) { p.hook.happened(near) }

// Late implements park.Owner.
func (p *pin) Late() {}

//go:norace
func (h *hook) happened(near park.Place) {
	asleep, _ := h.b.push(h)
	asleep.Rouse(near)
}

// Expire implements clock.Target: the time has come.
//
//go:norace
func (h *hook) Expire(uint64) {
	race.Disable()
	h.happened(nil)
	race.Enable()
}

// Remove takes a case out. Once it has returned the case does not happen any more. It reports whether the case was still
// registered.
//
//go:norace
func (s *Selector) Remove(id int) bool {
	// Spec: SE-24 (a removed case does not happen)
	by := s.announce(nil)
	s.regMu.Lock()
	reg := s.regs[id]
	s.regMu.Unlock()
	removed := reg != nil && reg.remove()
	if by != nil {
		by.stepped()
	}
	return removed
}

// Close removes every case, at once: a selector that is only dropped costs its channels a little until it is collected.
// It may be used again.
func (s *Selector) Close() {
	by := s.announce(nil)
	s.regMu.Lock()
	regs := slices.Collect(maps.Values(s.regs))
	s.regMu.Unlock()
	for _, reg := range regs {
		reg.remove()
	}
	if by != nil {
		by.stepped()
	}
}

// remove takes the registration out. A channel's is gone or not under the channel's lock: either Wait has used it up, or it will
// not happen any more. The others are decided by regMu.
//
//go:norace
func (reg *registration) remove() bool {
	cs := &reg.cs
	if c := cs.core; c != nil {
		race.Disable()
		c.ch.Lock()
		late := reg.hook.watch.Ended()
		c.ch.WithdrawWatch(cs.side(), &reg.hook.watch)
		race.Meet(unsafe.Pointer(reg)) // what has happened is before the return
		c.ch.Unlock()
		race.Enable()
		if late {
			return false
		}
	}
	if !reg.s.unregister(reg) {
		return false
	}
	race.Disable()
	defer race.Enable()
	switch h := reg.hook; cs.what {
	case caseEvent:
		reg.pin.event.withdraw(&reg.pin.node)
	case caseAfter:
		h.clock.Stop(&h.timer)
	}
	reg.s.b.drop(reg.hook) // it may have happened meanwhile
	return true
}

// Wait waits until one of the cases has happened and returns its number. It comes with an error that is [ErrClosed] if the
// case's channel is closed, and is then used up. A number of -1 comes with an error of ctx.
func (s *Selector) Wait(ctx context.Context) (int, error) {
	// Spec: SE-21 (a Selector's events do not cost its size)
	// Spec: SE-22 (a Selector tries again before it reports)
	// Spec: SE-23 (a registration stays until used up)
	by := resolve(ctx)
	if by.f != nil && by.f.simulated {
		by.f.stepSelector(s)
	}
	if e := by.ended(); e != nil {
		return -1, e.op
	}
	if s.busy.Swap(true) {
		return -1, errTwoWaiters
	}
	defer s.busy.Store(false)
	for {
		race.Disable()
		h := s.b.shift()
		if h == nil {
			r := s.park(&by)
			race.Enable()
			if r == park.Cancelled {
				return -1, by.cancelled().op
			}
			continue
		}
		reg := s.find(h)
		if reg == nil {
			race.Enable()
			continue // it has been removed
		}
		done, used, r := reg.try(&by)
		race.Enable()
		if !done || used && !s.unregister(reg) {
			continue // it was ready and is not any more, or has been removed
		}
		if reg.cs.what == caseEvent {
			reg.cs.event().result(reg.cs.dst)
		}
		err := reg.err(r)
		race.Disable()
		by.charge()
		race.Enable()
		return reg.id, err
	}
}

var errTwoWaiters = errors.New("coir: Selector.Wait is called while another waits: a selector has one waiter at a time")

// park waits until a registration is ready.
//
//go:norace
func (s *Selector) park(by *caller) park.Reason {
	w := by.waiter()
	defer w.done()
	t := by.arm(&w)
	b := s.b
	b.mu.Lock()
	if b.first != nil {
		b.mu.Unlock()
		w.p.Disarm() // if a cancel was faster that changes nothing: there is no wait
		return park.Data
	}
	b.waiter, b.ticket = w.p, t
	b.mu.Unlock()
	fibers := s.fibers.Load() > 0
	if fibers {
		by.f.leavePlace()
	}
	r := by.await(&w, t, never)
	if r != park.Data {
		b.mu.Lock()
		b.waiter = nil
		b.mu.Unlock()
	}
	if fibers {
		by.f.takePlace(r == park.Data)
	}
	return r
}

// err is the error of a case that was done for r. It is called with the caller's synchronisation visible: a wait that finds
// a channel closed is ordered after the close.
//
//go:norace
func (reg *registration) err(r park.Reason) error {
	if reg.cs.core == nil {
		return nil
	}
	return reg.cs.core.resultErr(reg.cs.side(), r)
}

// try does the case, if it is still ready. It reports whether it was done, whether the registration is used up, and how the
// case ended.
//
//go:norace
func (reg *registration) try(by *caller) (done, used bool, r park.Reason) {
	cs := &reg.cs
	if cs.core == nil {
		return true, true, park.Data
	}
	var asleep *park.Parker
	var rest func()
	c := cs.core
	c.ch.Lock()
	if reg.hook.watch.Ended() {
		c.ch.Unlock()
		return false, false, park.None
	}
	race.Meet(unsafe.Pointer(reg))
	if cs.what == caseSend {
		r, asleep, rest = c.ch.Port().Send(cs.arg)
		used = r != park.None
	} else {
		r, asleep = c.ch.Port().Recv(cs.dst)
		used = r == park.Closed
	}
	race.Meet(unsafe.Pointer(reg))
	if used {
		c.ch.WithdrawWatch(cs.side(), &reg.hook.watch)
	} else if r != park.None && c.ch.Ready(cs.side()) {
		reg.hook.b.push(reg.hook) // behind the others. We are the waiter, and awake
	}
	c.unlock(asleep, by.worker())
	if rest != nil {
		defer func() {
			if !done { // OnUndelivered has panicked
				reg.s.unregister(reg)
			}
		}()
		race.EnterUser()
		rest()
		race.LeaveUser()
	}
	return r != park.None, used, r
}
