package coir

import (
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"unsafe"

	"github.com/coir-go/coir/internal/board"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/wait"
	"github.com/coir-go/coir/internal/xatomic"
)

// Selector waits for many cases that stay registered from one event to the next. Select checks all its cases on every
// call. A Selector checks only cases to which something has happened, so an event costs the same with ten cases as with
// a hundred thousand. [Selector.Add] and [Selector.Remove] may be called concurrently at any time. Only one caller at a
// time may call [Selector.Wait].
//
// A case stays registered until it is used up. A receive is used up when its channel is closed and empty. A send, a
// time, or the end of something is used up when it has happened. Ready cases are served in turn.
//
// A registered case does not wait in its channel's queues: the Selector tries it when the channel becomes ready. So
// waiting operations take precedence over it, and TrySend does not see it. On a channel of capacity 0 at least one side
// must wait in an operation: two Selectors cannot exchange a value there.
//
// A Selector that is no longer used need not be closed. The objects with which it is registered do not keep it alive,
// nor the values that its cases send, nor the variables to which they receive. When the Selector is garbage collected,
// its registrations are removed.
//
// # How it works
//
// A channel lists the registrations that watch each of its sides. When a side may have become ready, the channel, under
// its lock, adds them to the ready lists of their Selectors, unless they are already there. Wait removes a registration
// from the list before it tries it, so that a later event on the channel adds it again. Locks are taken in this order:
// registrations, channel, board.
//
// Channels, timers and fibers point to hooks of a board, which contains the ready list. See internal/board.
type Selector struct {
	b    *board.Board
	busy xatomic.Bool // a caller is in Wait

	// Fields that are not needed to handle an event.
	regMu  xatomic.Mutex
	regs   map[int]*registration
	next   int
	fibers xatomic.Int32 // number of registrations that wait for the end of a fiber
	oldest *registration // the registrations in the order of their numbers, linked by newer
	newest *registration
	id     uint64      // for a policy; 0 until needed
	told   []policy.Op // the cases, as announced to the policy

	// The registrations by the slots of their hooks. Wait reads slots without regMu. This is safe because an entry is
	// written before its hook can be added to the ready list.
	slots board.Slots[registration]
}

// NewSelector returns a selector without cases.
func NewSelector() *Selector {
	s := &Selector{b: new(board.Board), regs: make(map[int]*registration)}
	// Spec: SE-25 (a dropped selector is collected)
	if !xatomic.Instrumented { // an exploration has no garbage collector
		runtime.AddCleanup(s, (*board.Board).Abandon, s.b)
	}
	return s
}

// registration is a case of a selector.
type registration struct {
	s    *Selector
	hook *board.Hook
	pin  *board.Pin // only for an event
	id   int
	cs   Case

	// List in the order of numbers, under s.regMu.
	older, newer *registration
}

// pinned is the event of a case with the method that a board needs.
type pinned struct{ event }

// Withdraw implements board.Event.
//
//go:norace
func (e pinned) Withdraw(n *wait.Node) { e.withdraw(n) }

// Add registers a case and returns its number: 0 for the first case, and never the same number twice. The time of an
// [After] is measured from the call of Add. When Wait returns the number of a receive, the received value is in the
// variable passed to [Chan.RecvCase], and stays there until the next such event. Add panics for a case of a lock, a
// [Queue] or a [Cond]: use those with [Select].
//
//go:norace
func (s *Selector) Add(cs Case) int {
	if cs.what == caseTake || cs.what == caseSignal {
		panic("coir: Selector.Add of a case of a lock, a Queue or a Cond: the event of a registered case must stay true; use Select for locks")
	}
	by := s.announce(cs.core)
	reg := &registration{s: s, hook: board.NewHook(s.b), cs: cs}
	s.regMu.Lock()
	reg.hook.Slot = s.slots.Place(reg)
	reg.id = s.next
	s.next++
	s.regs[reg.id] = reg
	if reg.older = s.newest; reg.older == nil {
		s.oldest = reg
	} else {
		reg.older.newer = reg
	}
	s.newest = reg
	if cs.join {
		s.fibers.Add(1)
	}
	race.Release(unsafe.Pointer(reg)) // Add is ordered before the event
	race.Disable()
	asleep := reg.arm()
	if asleep == nil && cs.join {
		// The waiter has kept its place under Nursery.Limit. It now waits for a fiber, so it starts over and gives the
		// place up.
		asleep = s.b.WakeWaiter()
	}
	race.Enable()
	s.regMu.Unlock() // not earlier, because Close must not find the registration incomplete
	if asleep != nil {
		race.Disable()
		asleep.MakeReady(currentWorker())
		race.Enable()
	}
	by.stepped()
	return reg.id
}

// find returns the registration that a hook belongs to, or nil if that registration has been unregistered. In the
// latter case, its slot is empty or holds another registration.
//
//go:norace
func (s *Selector) find(h *board.Hook) *registration {
	if reg := s.slots.Get(h.Slot); reg != nil && reg.hook == h {
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
		s.slots.Remove(reg.hook.Slot)
	}
	s.regMu.Unlock()
	if ok && reg.cs.join {
		s.fibers.Add(-1)
	}
	if ok && reg.cs.core == nil {
		race.Disable()
		s.b.Drop(reg.hook)
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
	_ = s.id // panics here if the selector is nil, before synchronisation is hidden
	race.Disable()
	s.regMu.Lock()
	n := len(s.regs)
	s.regMu.Unlock()
	race.Enable()
	return "coir.Selector(cases: " + strconv.Itoa(n) + ")"
}

// arm registers with the object that the case waits for, so that the object notifies the registration. If the event has
// already happened, arm adds the registration to the ready list. The caller must ready the parker that arm returns, if
// it is not nil.
//
//go:norace
func (reg *registration) arm() (asleep *park.Parker) {
	h := reg.hook
	switch cs := &reg.cs; cs.what {
	case caseSend, caseRecv:
		return h.Watch(cs.core.ch, cs.side())
	case caseEvent:
		pin, t := h.Pin(pinned{cs.event()})
		reg.pin = pin
		if !cs.event().publish(&pin.Node, &pin.Parker, t) {
			asleep, _ = h.Push()
		}
	case caseAfter:
		race.EnterUser()
		clk := clockHere()
		race.LeaveUser()
		h.ArmTimer(clk, after(clk, max(cs.delay(), 0)))
	}
	return asleep
}

// Remove removes a case. After Remove has returned, the case cannot happen. Remove reports whether the case was still
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
	by.stepped()
	return removed
}

// Clear removes all cases immediately. If a selector is dropped without Clear, it makes its channels a little slower
// until it is garbage collected. The selector may be used again.
func (s *Selector) Clear() {
	by := s.announce(nil)
	s.regMu.Lock()
	regs := slices.Collect(maps.Values(s.regs))
	s.regMu.Unlock()
	for _, reg := range regs {
		reg.remove()
	}
	by.stepped()
}

// remove removes the registration. A concurrent Wait may be using up the case at the same time. For a case on a
// channel, the channel's lock decides which of the two comes first; for other cases, regMu does.
//
//go:norace
func (reg *registration) remove() bool {
	cs := &reg.cs
	if c := cs.core; c != nil {
		race.Disable()
		c.ch.Lock()
		watched := reg.hook.EndWatch(c.ch, cs.side())
		race.Meet(unsafe.Pointer(reg)) // what has happened is ordered before the return
		c.ch.Unlock()
		race.Enable()
		if !watched {
			return false
		}
	}
	if !reg.s.unregister(reg) {
		return false
	}
	race.Disable()
	defer race.Enable()
	if reg.pin != nil {
		reg.pin.Withdraw()
	}
	reg.hook.StopTimer()
	reg.s.b.Drop(reg.hook) // the case may have become ready in the meantime
	return true
}

// Wait waits until one of the cases has happened, and returns its number. If the case's channel is closed, Wait also
// returns an error that is [ErrClosed], and the case is used up. If ctx is done, Wait returns -1 and ctx's error.
func (s *Selector) Wait(ctx context.Context) (int, error) {
	// Spec: SE-21 (a Selector's events do not cost its size)
	// Spec: SE-22 (a Selector tries again before it reports)
	// Spec: SE-23 (a registration stays until used up)
	if s.b == nil {
		panic(notMade("Selector"))
	}
	by := resolve(ctx)
	if by.f != nil && by.f.simulated {
		by.f.stepSelector(s)
	}
	if e := by.refused(); e != nil {
		return -1, e.op
	}
	if s.busy.Swap(true) {
		return -1, errTwoWaiters
	}
	defer s.busy.Store(false)
	for {
		race.Disable()
		h := s.b.Shift()
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
			continue // the case was removed
		}
		done, used, r := reg.try(&by)
		race.Enable()
		if !done || used && !s.unregister(reg) {
			continue // the case is no longer ready, or was removed
		}
		if reg.cs.core == nil {
			_, _ = reg.cs.done(0, r)
		}
		err := reg.err(r)
		if by.f != nil && by.f.simulated {
			by.f.tellSelector(s, &reg.cs, r)
		}
		race.Disable()
		by.charge()
		race.Enable()
		return reg.id, err
	}
}

var errTwoWaiters = errors.New("coir: Selector.Wait is called while another waits: a selector has one waiter at a time")

// park parks the caller until a registration is ready, and returns Data, or until the wait was cancelled.
//
//go:norace
func (s *Selector) park(by *caller) park.Reason {
	w := by.waiter()
	defer w.done()
	t := by.arm(&w, (*toChoose)(s))
	if !s.b.Publish(w.p, t) {
		w.p.Disarm() // even if a cancellation came first, there is no wait
		return park.Data
	}
	fibers := s.fibers.Load() > 0
	if fibers {
		by.f.leavePlace()
	}
	r := by.await(&w, t, never)
	if r != park.Data {
		s.b.Withdraw()
	}
	if fibers {
		by.f.takePlace(r == park.Data)
	}
	return r
}

// err returns the error of a case that ended with reason r. It is called while the caller's synchronisation is visible,
// because a Wait that finds a channel closed is ordered after the close.
//
//go:norace
func (reg *registration) err(r park.Reason) error {
	if reg.cs.core == nil {
		return nil
	}
	return reg.cs.core.resultErr(reg.cs.side(), r)
}

// try completes the case if it is still ready. It reports whether it did, whether the registration is used up, and the
// reason with which the case ended.
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
	if !reg.hook.Watches() {
		c.ch.Unlock()
		return false, false, park.None
	}
	race.Meet(unsafe.Pointer(reg))
	if cs.what == caseSend {
		r, asleep, rest = c.ch.Port().Send(cs.arg)
		used = r != park.None
	} else {
		r, asleep = c.ch.Port().Recv(cs.ptr)
		used = r == park.Closed
	}
	race.Meet(unsafe.Pointer(reg))
	if used {
		reg.hook.EndWatch(c.ch, cs.side())
	} else if r != park.None && c.ch.Ready(cs.side()) {
		reg.hook.Push() // after the other ready cases; no wake is needed, because the caller is the waiter
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
