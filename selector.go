package coir

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"unsafe"

	"github.com/coir-go/coir/internal/clock"
	"github.com/coir-go/coir/internal/park"
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
// # How it works
//
// A channel knows the registrations that want to hear of each of its sides, and under its lock puts them on the ready lists of
// their selectors when that side may have become ready; one that is on the list already costs a look. Wait takes the first
// off the list and then tries it: whatever happens to the channel after that puts it back. Lock order: book, channel,
// selector.
type Selector struct {
	mu     xatomic.Mutex
	first  *registration // ready, in the order in which they became so
	last   *registration
	waiter *park.Parker // of whoever is in Wait, while it is parked
	ticket park.Ticket
	busy   xatomic.Bool // somebody is in Wait

	// What events do not need.
	book   xatomic.Mutex
	regs   map[int]*registration
	next   int
	fibers xatomic.Int32 // registrations that wait for the end of a fiber
	oldest *registration // of those in regs, by number, through newer
	newest *registration
	id     uint64 // for a policy; 0 before it is told of the selector
	told   []Op   // what it is told
}

// NewSelector makes a selector without cases.
func NewSelector() *Selector { return &Selector{regs: make(map[int]*registration)} }

// registration is a case of a selector.
type registration struct {
	s    *Selector
	id   int
	cs   Case
	gone bool // a channel's: it has been removed or used up. Under the channel's lock

	// In the book, by number, under its lock.
	older, newer *registration

	// In the channel's list, under its lock.
	prev, next *registration

	// In the selector's ready list, under its lock.
	behind, ahead *registration
	queued        bool

	// Of a case that is not a channel.
	parker park.Parker
	node   wait.Node
	timer  clock.Timer
	clock  clock.Clock
}

// watchers are the registrations of a channel, by side.
type watchers [2]*registration

// becameReady tells the selectors that one side of the channel may have become ready. It returns a waiter to be roused
// without the lock.
//
// Spec: SE-21
//
//go:norace
func (c *core) becameReady(side int) *park.Parker {
	if c.watch == nil {
		return nil
	}
	return c.watch.tell(side)
}

//go:noinline
//go:norace
func (w *watchers) tell(side int) (asleep *park.Parker) {
	for reg := w[side]; reg != nil; reg = reg.next {
		if p := reg.s.push(reg); p != nil {
			if asleep != nil {
				asleep.Rouse(here()) // one selector a channel is usual
			}
			asleep = p
		}
	}
	return asleep
}

// push puts a registration on the ready list. It returns whom to rouse.
//
//go:norace
func (s *Selector) push(reg *registration) (asleep *park.Parker) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if reg.queued {
		return nil
	}
	reg.queued = true
	if s.last == nil {
		s.first = reg
	} else {
		s.last.behind, reg.ahead = reg, s.last
	}
	s.last = reg
	return s.wakeWaiter()
}

// wakeWaiter ends the wait of whoever is parked in Wait, and returns whom to rouse. The caller has the lock.
//
//go:norace
func (s *Selector) wakeWaiter() *park.Parker {
	if p := s.waiter; p != nil {
		s.waiter = nil
		if p.Claim(s.ticket, park.Data) == park.Asleep {
			return p
		}
	}
	return nil
}

// shift takes the first registration off the ready list.
//
//go:norace
func (s *Selector) shift() *registration {
	s.mu.Lock()
	defer s.mu.Unlock()
	reg := s.first
	if reg != nil {
		s.unqueue(reg)
	}
	return reg
}

// drop takes a registration that is gone off the ready list, so that it keeps nothing until the next Wait.
//
//go:norace
func (s *Selector) drop(reg *registration) {
	s.mu.Lock()
	if reg.queued {
		s.unqueue(reg)
	}
	s.mu.Unlock()
}

//go:norace
func (s *Selector) unqueue(reg *registration) {
	if reg.ahead == nil {
		s.first = reg.behind
	} else {
		reg.ahead.behind = reg.behind
	}
	if reg.behind == nil {
		s.last = reg.ahead
	} else {
		reg.behind.ahead = reg.ahead
	}
	reg.ahead, reg.behind, reg.queued = nil, nil, false
}

// Add registers a case and returns its number: 0 for the first, and never the same twice. A time counts from now. What a case
// receives is stored where [Chan.RecvCase] says when Wait returns its number, and stays until the next such event.
//
//go:norace
func (s *Selector) Add(cs Case) int {
	by := s.announce(cs.core)
	reg := &registration{s: s, cs: cs}
	s.book.Lock()
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
		s.mu.Lock()
		asleep = s.wakeWaiter() // it kept its place under Nursery.Limit, and waits for a fiber now: let it begin anew
		s.mu.Unlock()
	}
	race.Enable()
	s.book.Unlock() // not before: Close must not find it half made
	if asleep != nil {
		race.Disable()
		asleep.Rouse(here())
		race.Enable()
	}
	if by != nil {
		by.stepped()
	}
	return reg.id
}

// strike takes the registration out of the book. It reports false if it was not there.
//
//go:norace
func (s *Selector) strike(reg *registration) bool {
	s.book.Lock()
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
	}
	s.book.Unlock()
	if ok && reg.cs.joins() {
		s.fibers.Add(-1)
	}
	return ok
}

// Len returns how many cases are registered.
func (s *Selector) Len() int {
	s.book.Lock()
	defer s.book.Unlock()
	return len(s.regs)
}

// String describes the selector in a few words: how many cases it has.
//
//go:norace
func (s *Selector) String() string {
	_ = s.id // a nil selector fails here, before synchronisation is hidden
	race.Disable()
	s.book.Lock()
	n := len(s.regs)
	s.book.Unlock()
	race.Enable()
	return "coir.Selector(cases: " + strconv.Itoa(n) + ")"
}

// arm has the registration hear of what it waits for, and puts it on the ready list if that is so already.
//
//go:norace
func (reg *registration) arm() (asleep *park.Parker) {
	switch cs := &reg.cs; cs.what {
	case caseSend, caseRecv:
		side := cs.side()
		c := cs.core
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.watch == nil {
			c.watch = new(watchers)
		}
		if reg.next = c.watch[side]; reg.next != nil {
			reg.next.prev = reg
		}
		c.watch[side] = reg
		if cs.ready() {
			return reg.s.push(reg)
		}
	case caseEvent:
		reg.parker.Init(reg)
		t := reg.parker.Arm()
		reg.parker.Commit() // nobody sleeps; whoever wakes the parker calls Ready
		if !cs.event.subscribe(&reg.node, &reg.parker, t) {
			return reg.s.push(reg)
		}
	case caseAfter:
		reg.clock = clockHere()
		reg.clock.Arm(&reg.timer, after(reg.clock, max(cs.after, 0)), reg, 0)
	}
	return nil
}

// Ready implements park.Owner: the event has happened.
//
//go:norace
func (reg *registration) Ready(near park.Place) {
	reg.s.push(reg).Rouse(near)
}

// Late implements park.Owner.
func (reg *registration) Late() {}

// Expire implements clock.Target: the time has come.
//
//go:norace
func (reg *registration) Expire(uint64) {
	race.Disable()
	reg.Ready(nil)
	race.Enable()
}

// Remove takes a case out. Once it has returned the case does not happen any more. It reports whether the case was still
// registered.
//
// Spec: SE-24
//
//go:norace
func (s *Selector) Remove(id int) bool {
	by := s.announce(nil)
	s.book.Lock()
	reg := s.regs[id]
	s.book.Unlock()
	removed := reg != nil && reg.remove()
	if by != nil {
		by.stepped()
	}
	return removed
}

// Close removes every case. A channel keeps the selectors that are registered with it, so a selector that is no longer needed
// should be closed if its channels live on. It may be used again.
func (s *Selector) Close() {
	by := s.announce(nil)
	s.book.Lock()
	regs := slices.Collect(maps.Values(s.regs))
	s.book.Unlock()
	for _, reg := range regs {
		reg.remove()
	}
	if by != nil {
		by.stepped()
	}
}

// remove takes the registration out. A channel's is gone or not under the channel's lock: either Wait has used it up, or it will
// not happen any more. The others are decided by the book.
//
//go:norace
func (reg *registration) remove() bool {
	cs := &reg.cs
	if c := cs.core; c != nil {
		race.Disable()
		c.mu.Lock()
		late := reg.gone
		reg.retire(c)
		race.Meet(unsafe.Pointer(reg)) // what has happened is before the return
		c.mu.Unlock()
		race.Enable()
		if late {
			return false
		}
	}
	if !reg.s.strike(reg) {
		return false
	}
	race.Disable()
	defer race.Enable()
	switch cs.what {
	case caseEvent:
		cs.event.unsubscribe(&reg.node)
	case caseAfter:
		reg.clock.Stop(&reg.timer)
	}
	reg.s.drop(reg)
	return true
}

// retire takes the registration out of its channel's list for good.
//
//go:norace
func (reg *registration) retire(c *core) {
	if reg.gone {
		return
	}
	reg.gone = true
	if reg.prev == nil {
		c.watch[reg.cs.side()] = reg.next
	} else {
		reg.prev.next = reg.next
	}
	if reg.next != nil {
		reg.next.prev = reg.prev
	}
	reg.prev, reg.next = nil, nil
}

// Wait waits until one of the cases has happened and returns its number. It comes with an error that is [ErrClosed] if the
// case's channel is closed, and is then used up. A number of -1 comes with an error of ctx.
//
// Spec: SE-21, SE-22, SE-23
func (s *Selector) Wait(ctx context.Context) (int, error) {
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
		reg := s.shift()
		if reg == nil {
			r := s.park(&by)
			race.Enable()
			if r == park.Cancelled {
				return -1, by.cancelled().op
			}
			continue
		}
		done, used, err := reg.try(&by)
		race.Enable()
		if !done || used && !s.strike(reg) {
			continue // it was ready and is not any more, or has been removed
		}
		if reg.cs.what == caseEvent {
			reg.cs.event.result(reg.cs.dst)
		}
		race.Disable()
		by.spend()
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
	s.mu.Lock()
	if s.first != nil {
		s.mu.Unlock()
		w.p.Disarm() // if a cancel was faster that changes nothing: there is no wait
		return park.Data
	}
	s.waiter, s.ticket = w.p, t
	s.mu.Unlock()
	fibers := s.fibers.Load() > 0
	if fibers {
		by.f.leavePlace()
	}
	r := by.await(&w, t, never)
	if r != park.Data {
		s.mu.Lock()
		s.waiter = nil
		s.mu.Unlock()
	}
	if fibers {
		by.f.takePlace(r == park.Data)
	}
	return r
}

// try does the case, if it is still ready. It reports whether it was done, and whether the registration is used up.
//
//go:norace
func (reg *registration) try(by *caller) (done, used bool, err error) {
	cs := &reg.cs
	if cs.port == nil {
		return true, true, nil
	}
	var r park.Reason
	var asleep *park.Parker
	var rest func()
	c := cs.core
	c.mu.Lock()
	if reg.gone {
		c.mu.Unlock()
		return false, false, nil
	}
	race.Meet(unsafe.Pointer(reg))
	if cs.what == caseSend {
		r, asleep, rest = cs.port.sendValue(cs.val)
		used = r != park.None
	} else {
		r, asleep = cs.port.recvTo(cs.dst)
		used = r == park.Closed
	}
	race.Meet(unsafe.Pointer(reg))
	if used {
		reg.retire(c)
	} else if r != park.None && cs.ready() {
		reg.s.push(reg) // behind the others. We are the waiter, and awake
	}
	c.mu.Unlock()
	asleep.Rouse(by.near())
	if rest != nil {
		defer func() {
			if !done { // OnUndelivered has panicked
				reg.s.strike(reg)
			}
		}()
		rest()
	}
	return r != park.None, used, c.resultErr(cs.side(), r)
}
