// Package board implements the list of ready cases of a selector. Channels, timers and events point to it.
//
// A selector has two parts, so that it can be garbage collected while its cases are registered. Channels, timers and
// events point to a [Hook], one for each case, and the hook points to the [Board], which has the ready list. Neither
// points to the selector, its cases, or other objects of the program. When the selector is collected, its board is
// marked as gone. Channels drop the hooks of such a board when they come across them; [Board.Abandon] removes the other
// hooks.
//
// A hook is on the ready list at most once, however often its case becomes ready. The selector first takes a hook off
// the list and then tries its case, so that an event after that puts the hook back. Lock order: a channel's lock, then
// the board's. Like package channel, this package readies a parker only when no lock is held.
package board

import (
	"weak"

	"github.com/coir-go/coir/internal/channel"
	"github.com/coir-go/coir/internal/clock"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/wait"
	"github.com/coir-go/coir/internal/xatomic"
)

// Board has the ready list of a selector. The zero value is empty.
type Board struct {
	mu     xatomic.Mutex
	first  *Hook // the ready list, in the order in which the cases became ready
	last   *Hook
	waiter *park.Parker // the caller that waits for a hook, or nil
	ticket park.Ticket
	gone   bool  // the selector has been collected
	once   *Hook // the hooks of cases that are not on channels, linked by after
}

// Abandon withdraws the board's hooks from timers and events, after the selector was collected.
//
//go:norace
func (b *Board) Abandon() {
	race.Disable()
	b.mu.Lock()
	b.gone, b.first, b.last = true, nil, nil
	h := b.once
	b.once = nil
	b.mu.Unlock()
	for h != nil {
		h.StopTimer()
		if p := h.pin.Value(); p != nil {
			p.Withdraw()
		}
		next := h.after
		h.before, h.after = nil, nil
		h = next
	}
	race.Enable()
}

// Shift removes the first hook from the ready list and returns it, or returns nil if the list is empty.
//
//go:norace
func (b *Board) Shift() *Hook {
	b.mu.Lock()
	defer b.mu.Unlock()
	h := b.first
	if h != nil {
		b.unqueue(h)
	}
	return h
}

// Publish publishes the wait t of p, which the next hook on the ready list ends. It returns false if a hook is on the
// list already.
//
//go:norace
func (b *Board) Publish(p *park.Parker, t park.Ticket) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.first != nil {
		return false
	}
	b.waiter, b.ticket = p, t
	return true
}

// Withdraw withdraws the wait that Publish has published.
//
//go:norace
func (b *Board) Withdraw() {
	b.mu.Lock()
	b.waiter = nil
	b.mu.Unlock()
}

// WakeWaiter ends the published wait, if there is one. It returns the waiter's parker if that must be readied.
//
//go:norace
func (b *Board) WakeWaiter() *park.Parker {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.claimWaiter()
}

// claimWaiter is WakeWaiter for a caller that holds b.mu.
//
//go:norace
func (b *Board) claimWaiter() *park.Parker {
	if p := b.waiter; p != nil {
		b.waiter = nil
		if p.Claim(b.ticket, park.Data) == park.Asleep {
			return p
		}
	}
	return nil
}

// Drop removes a hook that is no longer registered from the lists, so that they do not keep it alive.
//
//go:norace
func (b *Board) Drop(h *Hook) {
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

// note adds a hook of a case that is not on a channel to b.once.
//
//go:norace
func (b *Board) note(h *Hook) {
	b.mu.Lock()
	if h.after = b.once; h.after != nil {
		h.after.before = h
	}
	b.once = h
	b.mu.Unlock()
}

// unqueue removes a hook from the ready list. The caller holds b.mu.
//
//go:norace
func (b *Board) unqueue(h *Hook) {
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

// Hook is the part of a registered case that channels, timers and events point to. It must not point, directly or not,
// to the selector or to any object of the program that might point to it.
type Hook struct {
	Slot int // the case's number in the selector's Slots

	board *Board
	watch channel.Watch // for a channel

	// In the board's ready list, under board.mu.
	behind, ahead *Hook
	queued        bool

	// For a case that is not on a channel.
	timer         clock.Timer
	clock         clock.Clock // nil unless the case is a time
	pin           weak.Pointer[Pin]
	before, after *Hook // in the board's list once, under board.mu
}

// NewHook makes a hook of the board, for a case that is not armed yet.
//
//go:norace
func NewHook(b *Board) *Hook { return &Hook{board: b} }

// Push puts the hook on the ready list. It returns the parker to ready, if any, and whether the selector is gone.
//
//go:norace
func (h *Hook) Push() (asleep *park.Parker, gone bool) {
	b := h.board
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
	return b.claimWaiter(), false
}

// BecameReady implements channel.Watcher.
//
//go:norace
func (h *Hook) BecameReady() (ready *park.Parker, gone bool) { return h.Push() }

// Gone implements channel.Watcher.
//
//go:norace
func (h *Hook) Gone() bool {
	h.board.mu.Lock()
	defer h.board.mu.Unlock()
	return h.board.gone
}

// Watch registers the hook with one side of a channel, which then pushes it each time the side may have become ready,
// and pushes it now if it is ready. It returns the parker to ready, if any.
//
//go:norace
func (h *Hook) Watch(c *channel.Core, side channel.Side) (asleep *park.Parker) {
	h.watch.Watcher = h
	c.Lock()
	defer c.Unlock()
	c.Watch(side, &h.watch)
	if c.Ready(side) {
		asleep, _ = h.Push()
	}
	return asleep
}

// Watches reports whether the hook still watches its channel, whose lock the caller holds.
//
//go:norace
func (h *Hook) Watches() bool { return !h.watch.Ended() }

// EndWatch ends the watch of a channel, whose lock the caller holds. It reports whether the watch had not ended before.
//
//go:norace
func (h *Hook) EndWatch(c *channel.Core, side channel.Side) bool {
	had := h.Watches()
	c.WithdrawWatch(side, &h.watch)
	return had
}

// ArmTimer arms a timer that pushes the hook when the clock shows when.
//
//go:norace
func (h *Hook) ArmTimer(clk clock.Clock, when int64) {
	h.clock = clk
	h.board.note(h)
	clk.Arm(&h.timer, when, h, 0)
}

// StopTimer stops the hook's timer, if it has one.
//
//go:norace
func (h *Hook) StopTimer() {
	if h.clock != nil {
		h.clock.Stop(&h.timer)
	}
}

// Expire implements clock.Target: it pushes the hook.
//
//go:norace
func (h *Hook) Expire(uint64) {
	race.Disable()
	h.happened(nil)
	race.Enable()
}

// happened pushes the hook and readies the waiter. No lock is held.
//
//go:norace
func (h *Hook) happened(here park.Place) {
	asleep, _ := h.Push()
	asleep.MakeReady(here)
}

// Event is something that happens once. It has a queue of nodes.
type Event interface {
	// Withdraw removes a node that was published to the event.
	Withdraw(n *wait.Node)
}

// Pin is the part of a registered case that points to an event. While its node is in the event's queue, it leads to the
// event, and so to objects of the program. Therefore a hook does not keep it alive.
type Pin struct {
	Parker park.Parker
	Node   wait.Node
	event  Event
	hook   *Hook
}

// Pin returns a new pin of the hook for an event. The caller publishes the pin's node to the event with the pin's
// parker and the ticket. Then the event pushes the hook when it happens.
//
//go:norace
func (h *Hook) Pin(e Event) (*Pin, park.Ticket) {
	p := &Pin{event: e, hook: h}
	h.pin = weak.Make(p)
	h.board.note(h)
	p.Parker.Init(p)
	t := p.Parker.Arm()
	p.Parker.Commit() // nothing sleeps here; a waker of the parker calls Ready
	return p, t
}

// Withdraw removes the pin's node from the event.
//
//go:norace
func (p *Pin) Withdraw() { p.event.Withdraw(&p.Node) }

// Ready implements park.Owner: the event has happened.
//
//go:norace
func (p *Pin) Ready(_ *park.Parker, here park.Place) { p.hook.happened(here) }

// Late implements park.Owner.
//
//go:norace
func (p *Pin) Late(*park.Parker) {}
