package coir

import (
	"math/bits"

	"github.com/coir-go/coir/internal/channel"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/wait"
	"github.com/coir-go/coir/internal/xatomic"
)

// The fast path of a select over a few cases, all of them on channels, by a fiber in a context of its own. Most selects
// are of this kind. It has the four passes of every select (see select.go): beginFew is pass 1, waitFew 2 and 3, endFew
// 4.
//
// It omits what few cases and plain channels do not need: lists in the heap, events and times, watching Selectors,
// overflow policies, and a runtime's policy. A select that turns out to need one of them is unfit: it has changed
// nothing, and starts over in beginSelect. A channel may stop being plain until it is locked, so that is checked again
// with the lock.
//
// Without it the comparisons select-2 and select-priority of bench/ratios take 1.25 times as long.

// fewCases is the largest number of cases that the fast path handles.
const fewCases = 4

// unfit is returned in place of the index of a case.
const unfit = -2

// beginFew performs one of the cases if that needs no wait; otherwise it publishes a wait of f for them under sc and
// returns None.
//
//go:noinline
//go:norace
func (f *Fiber) beginFew(sc *scope, cs []Case, how selectPolicy) (int, park.Reason) {
	if sc.done() {
		return -1, park.Cancelled
	}
	ready, bit := uint(0), uint(1)
	for i := range cs {
		c := &cs[i]
		if c.core == nil {
			return unfit, park.None
		}
		ch := c.core.ch
		if ch == nil {
			race.Enable()
			panic(notMade("Chan"))
		}
		if xatomic.Instrumented {
			ch.Peek()
		}
		if !ch.Plain() || c.what == caseSend && ch.Overflows() {
			return unfit, park.None
		}
		if ch.Ready(c.side()) {
			ready |= bit
		}
		bit <<= 1
	}
	if ready != 0 && (how == fairly || ready&1 != 0) {
		i := pickFew(f.task.Kit(), ready, how)
		ch := cs[i].core.ch
		ch.Lock()
		if !ch.Plain() {
			ch.Unlock()
			return unfit, park.None
		}
		ch.UsedBy(cs[i].side(), f.id)
		r, p := cs[i].tryPlain()
		ch.Unlock()
		if r != park.None {
			f.ready(p)
			f.charge()
			return i, r
		}
	}
	return f.waitFew(sc, cs, how)
}

// waitFew continues where beginFew found no case that is ready.
//
//go:noinline
//go:norace
func (f *Fiber) waitFew(sc *scope, cs []Case, how selectPolicy) (int, park.Reason) {
	var few [fewCases]*channel.Core
	locks := few[:len(cs)]
	for i := range cs {
		locks[i] = cs[i].core.ch
	}
	channel.LockAll(locks)
	ready, bit, plain := uint(0), uint(1), true
	for i := range cs {
		ch := cs[i].core.ch
		plain = plain && ch.Plain()
		if ch.Ready(cs[i].side()) {
			ready |= bit
		}
		bit <<= 1
	}
	if !plain {
		channel.UnlockAll(locks)
		return unfit, park.None
	}
	k := f.task.Kit()
	for ready != 0 {
		i := pickFew(k, ready, how)
		ready &^= 1 << i
		if r, p := cs[i].tryPlain(); r != park.None {
			channel.UnlockAll(locks)
			f.ready(p)
			f.charge()
			return i, r
		}
	}
	s := scratchOf(k)
	s.grow(fewCases)
	t := f.arm(sc, s)
	for i := range cs {
		ch := cs[i].core.ch
		n := s.nodes[i]
		if n == nil || !n.Is(ch.Cells()) {
			n = s.newNode(k, i, ch.Port())
		}
		ch.UsedBy(cs[i].side(), f.id)
		if cs[i].what == caseRecv {
			s.on[i] = (*toRecv)(cs[i].core)
			ch.Publish(receiving, n, &f.task.Parker, t) // the port's Publish without its interface call
		} else {
			s.on[i] = (*toSend)(cs[i].core)
			ch.Port().Publish(sending, n, cs[i].arg, &f.task.Parker, t)
		}
	}
	channel.UnlockAll(locks)
	if f.shouldPark(sc) {
		return -1, park.None
	}
	return f.endFew(cs, park.Cancelled)
}

// endFew ends a wait of beginFew: it finishes the chosen case, and withdraws all others.
//
// Spec: SE-05 (losing registrations are removed first)
//
//go:noinline
//go:norace
func (f *Fiber) endFew(cs []Case, r park.Reason) (int, park.Reason) {
	k := f.task.Kit()
	s := scratchOf(k)
	won := -1
	if byCase(r) {
		won = r.Index()
	}
	for i := range cs {
		c, n := &cs[i], s.nodes[i]
		s.on[i] = nil
		if i == won {
			c.core.ch.Port().Finish(c.side(), n, r.Kind(), c.dst)
		} else {
			c.core.ch.WithdrawCase(c.side(), n)
			if c.what == caseSend {
				c.core.ch.Port().Clear(n)
			}
		}
		if n.Large() {
			k.Put(n)
			s.nodes[i] = nil
		}
	}
	return won, r.Kind()
}

// tryPlain is try for a channel that is plain and does not overflow: after unlocking, the caller only has to ready the
// parker.
//
//go:norace
func (cs *Case) tryPlain() (r park.Reason, ready *park.Parker) {
	if cs.what == caseRecv {
		return cs.core.ch.Port().Recv(cs.dst)
	}
	r, ready, _ = cs.core.ch.Port().Send(cs.arg)
	return r, ready
}

// pickFew returns one of the cases whose bits are set.
//
// Spec: SE-07 (select is fair)
//
//go:norace
func pickFew(k *wait.Kit, ready uint, how selectPolicy) int {
	if how == fairly && ready&(ready-1) != 0 {
		for at := k.Turn(bits.OnesCount(ready)); at > 0; at-- {
			ready &= ready - 1
		}
	}
	return bits.TrailingZeros(ready)
}
