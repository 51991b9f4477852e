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
// Channels, timers and fibers point to hooks of a board, which has the ready list. See internal/board.
type Selector struct {
	b    *board.Board
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

	// Registrations by the slot of their hook. Wait reads it without regMu: an entry is written before its hook gets on
	// the ready list.
	slots board.Slots[registration]
}

// NewSelector makes a selector that has no cases.
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

	// List by number, under s.regMu.
	older, newer *registration
}

// pinned is an event of a case as a board sees it.
type pinned struct{ event }

// Withdraw implements board.Event.
//
//go:norace
func (e pinned) Withdraw(n *wait.Node) { e.withdraw(n) }

// Add registers a case and returns its number: 0 for the first, and never the same number twice. A time counts from
// now. A received value is stored where [Chan.RecvCase] says when Wait returns the case's number, and stays there until
// the next such event.
//
//go:norace
func (s *Selector) Add(cs Case) int {
	if cs.what == caseTake || cs.what == caseSignal {
		panic("coir: Selector.Add of a case of a lock, a Queue or a Cond: a registered case must be true until it is used up; use Select")
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
		asleep = s.b.WakeWaiter() // it kept its place under Nursery.Limit but now waits for a fiber: it starts over
	}
	race.Enable()
	s.regMu.Unlock() // not earlier: Close must not find it half made
	if asleep != nil {
		race.Disable()
		asleep.MakeReady(currentWorker())
		race.Enable()
	}
	by.stepped()
	return reg.id
}

// find returns the registration that a hook belongs to, or nil if it has been unregistered: then its slot is empty, or
// another registration's.
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
		h.ArmTimer(clk, after(clk, max(cs.after, 0)))
	}
	return asleep
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
	by.stepped()
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
	by.stepped()
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
	reg.s.b.Drop(reg.hook) // it may have become ready meanwhile
	return true
}

// Wait waits until one of the cases has happened, and returns its number. If the case's channel is closed, Wait also
// returns an error that is [ErrClosed], and the case is used up. If ctx is done, it returns -1 and the error of ctx.
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
			continue // it was removed
		}
		done, used, r := reg.try(&by)
		race.Enable()
		if !done || used && !s.unregister(reg) {
			continue // it is no longer ready, or was removed
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

// park waits until a registration is ready.
//
//go:norace
func (s *Selector) park(by *caller) park.Reason {
	w := by.waiter()
	defer w.done()
	t := by.arm(&w, (*toChoose)(s))
	if !s.b.Publish(w.p, t) {
		w.p.Disarm() // even if a cancel came first: there is no wait
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

// try performs the case, if it is still ready. It reports whether it did, whether the registration is used up, and the
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
	if !reg.hook.Watches() {
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
		reg.hook.EndWatch(c.ch, cs.side())
	} else if r != park.None && c.ch.Ready(cs.side()) {
		reg.hook.Push() // behind the others; no wake: we are the waiter
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
