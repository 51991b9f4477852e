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
// call. A Selector looks only at cases that something has happened to, so that an event costs the same with ten cases
// and with a hundred thousand. [Selector.Add] and [Selector.Remove] may be called concurrently at any time;
// [Selector.Wait] by one caller at a time.
//
// A case stays registered until it is used up. A receive is used up when its channel is closed and holds no more
// values; a send, a time or the end of something when it has happened. Ready cases are served in turn.
//
// A registered case does not wait in its channel's queues; it is tried when the channel becomes ready. So waiting
// operations come first, and TrySend does not see the case. On a channel of capacity 0 at least one side must wait in
// an operation: two selectors never meet there.
//
// A selector that is no longer used need not be closed. The objects that it is registered with do not keep it alive,
// nor the values that its cases send, nor the variables that they receive to. When the selector is garbage collected,
// its registrations are removed.
//
// # How it works
//
// A channel lists the registrations that watch each of its sides. When a side may have become ready, the channel, under
// its lock, puts them on the ready lists of their selectors; if one is already on the list, that costs a look. Wait
// first takes a registration off the list and then tries it: a later event on the channel puts it back. Lock order:
// registrations, channel, board.
//
// A selector has two parts, so that it can be collected. Channels, timers and fibers point to a hook, and the hook to
// the board, which has the ready list. Neither points to the selector, its cases, or other objects of the program. When
// the selector is collected, its board is marked as gone. Channels drop the hooks of such a board when they come across
// them; the other hooks are removed immediately.
type Selector struct {
	b    *board
	busy xatomic.Bool // a caller is in Wait

	// The fields that handling an event does not need.
	regMu  xatomic.Mutex
	regs   map[int]*registration
	next   int
	fibers xatomic.Int32 // number of registrations that wait for the end of a fiber
	oldest *registration // list of regs by number, linked by newer
	newest *registration
	id     uint64      // for a policy; 0 until it is needed
	told   []policy.Op // the cases, as announced to the policy

	// Registrations by the slot of their hook. To grow, the slice is replaced under regMu. Wait reads it without regMu:
	// an entry is written before its hook gets on the ready list.
	slots atomic.Pointer[[]*registration]
	free  []int // free[:nfree] are the unused slots
	nfree int
}

// NewSelector makes a selector that has no cases.
func NewSelector() *Selector {
	s := &Selector{b: new(board), regs: make(map[int]*registration)}
	s.slots.Store(new([]*registration))
	// Spec: SE-25 (a dropped selector is collected)
	if !xatomic.Instrumented { // an exploration has no garbage collector
		runtime.AddCleanup(s, (*board).abandon, s.b)
	}
	return s
}

// board is the part of a selector that hooks point to.
type board struct {
	mu     xatomic.Mutex
	first  *hook // the ready list, in the order in which the cases became ready
	last   *hook
	waiter *park.Parker // the caller in Wait, while it is parked
	ticket park.Ticket
	gone   bool  // the selector has been collected
	once   *hook // hooks of cases that are not on channels, linked by after
}

// registration is a case of a selector.
type registration struct {
	s    *Selector
	hook *hook
	pin  *pin // only for an event
	id   int
	cs   Case

	// List by number, under s.regMu.
	older, newer *registration
}

// hook is the part of a registration that channels, timers and events point to. It must not lead to the selector, nor
// to any object of the program that might.
type hook struct {
	b    *board
	slot int

	watch channel.Watch // for a channel; ended once the registration is removed or used up

	// In the board's ready list, under b.mu.
	behind, ahead *hook
	queued        bool

	// For a case that is not on a channel.
	timer         clock.Timer
	clock         clock.Clock
	pin           weak.Pointer[pin]
	before, after *hook // in the board's list once, under b.mu
}

// pin is the part of a registration that points to an event. While it is in the event's queue it leads to the event,
// and so to objects of the program: a hook must not keep it alive.
type pin struct {
	parker park.Parker
	node   wait.Node
	event  event
	hook   *hook
}

// abandon releases what the selector is registered with, after it was collected.
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

// push puts a hook on the ready list. It returns the parker to ready, if any, and whether the selector is gone.
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

// wakeWaiter ends the wait of the caller that is parked in Wait, and returns its parker if that must be readied. The
// caller holds b.mu.
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

// note adds a hook of a case that is not on a channel to b.once.
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

// drop removes a hook that is no longer registered from the lists, so that they do not keep it until the next Wait.
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

// Add registers a case and returns its number: 0 for the first, and never the same number twice. A time counts from
// now. A received value is stored where [Chan.RecvCase] says when Wait returns the case's number, and stays there until
// the next such event.
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
	race.Release(unsafe.Pointer(reg)) // Add is ordered before the event
	race.Disable()
	asleep := reg.arm()
	if asleep == nil && cs.joins() {
		s.b.mu.Lock()
		asleep = s.b.wakeWaiter() // it kept its place under Nursery.Limit and now waits for a fiber: start over
		s.b.mu.Unlock()
	}
	race.Enable()
	s.regMu.Unlock() // not earlier: Close must not find it half made
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
// another registration's.
//
//go:norace
func (s *Selector) find(h *hook) *registration {
	if reg := (*s.slots.Load())[h.slot]; reg != nil && reg.hook == h {
		return reg
	}
	return nil
}

// unregister removes the registration from the selector. It reports whether it was registered.
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

// Len returns the number of registered cases.
func (s *Selector) Len() int {
	s.regMu.Lock()
	defer s.regMu.Unlock()
	return len(s.regs)
}

// String returns a short description of the selector: how many cases it has.
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

// arm makes what the case waits for notify the registration, and puts the registration on the ready list if that has
// happened already.
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
		p.parker.Commit() // no one sleeps: a waker of the parker calls Ready
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
func (p *pin) Ready(_ *park.Parker, near park.Place) { p.hook.happened(near) }

// Late implements park.Owner.
func (p *pin) Late(*park.Parker) {}

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

// Remove removes a case. After it has returned the case does not happen. It reports whether the case was still
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

// Close removes every case immediately. A selector that is dropped without Close costs its channels a little until it
// is collected. It may be used again after Close.
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

// remove removes the registration. For a case on a channel, the channel's lock decides: either Wait has used the case
// up, or it will not happen. For other cases, regMu decides.
//
//go:norace
func (reg *registration) remove() bool {
	cs := &reg.cs
	if c := cs.core; c != nil {
		race.Disable()
		c.ch.Lock()
		late := reg.hook.watch.Ended()
		c.ch.WithdrawWatch(cs.side(), &reg.hook.watch)
		race.Meet(unsafe.Pointer(reg)) // what has happened is ordered before the return
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
	reg.s.b.drop(reg.hook) // it may have become ready meanwhile
	return true
}

// Wait waits until one of the cases has happened, and returns its number. If the case's channel is closed, Wait also
// returns an error that is [ErrClosed], and the case is used up. If ctx is done, it returns -1 and the error of ctx.
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
			continue // it was removed
		}
		done, used, r := reg.try(&by)
		race.Enable()
		if !done || used && !s.unregister(reg) {
			continue // it is no longer ready, or was removed
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
		w.p.Disarm() // even if a cancel came first: there is no wait
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

// err returns the error of a case that ended for the reason r. It is called with the caller's synchronisation visible:
// a wait that finds a channel closed is ordered after the close.
//
//go:norace
func (reg *registration) err(r park.Reason) error {
	if reg.cs.core == nil {
		return nil
	}
	return reg.cs.core.resultErr(reg.cs.side(), r)
}

// try does the case, if it is still ready. It reports whether it did, whether the registration is used up, and the
// reason that the case ended for.
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
		reg.hook.b.push(reg.hook) // behind the others; no wake: we are the waiter
	}
	c.unlock(asleep, by.worker())
	if rest != nil {
		defer func() {
			if !done { // OnUndelivered panicked
				reg.s.unregister(reg)
			}
		}()
		race.EnterUser()
		rest()
		race.LeaveUser()
	}
	return r != park.None, used, r
}
