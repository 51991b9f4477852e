package coir

import (
	"math/bits"

	"github.com/coir-go/coir/internal/channel"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/wait"
	"github.com/coir-go/coir/internal/xatomic"
)

// The fast path of a select by a fiber under its own context, over a few cases that are all on channels. Most selects
// are of this kind. It makes the four passes of every select (see select.go): beginFew is pass 1, waitFew is passes 2
// and 3, and endFew is pass 4.
//
// It omits what a few cases on plain channels do not need: lists on the heap, events and times, Selectors that watch
// the channels, overflow policies, and a runtime's policy. A select that turns out to need one of these is unfit for
// the fast path. It has then changed nothing, and starts over in beginSelect. A channel may stop being plain until it
// is locked, so the fast path checks again under the lock whether it is plain.
//
// Without this fast path, the select-2 and select-priority comparisons in bench/ratios take 1.25 times as long.

// fewCases is the largest number of cases that the fast path handles.
const fewCases = 4

// unfit is returned instead of a case index if the fast path cannot handle the select.
const unfit = -2

// beginFew completes a case that is ready, if there is one. Otherwise it publishes a wait of f for the cases under sc
// and returns None.
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

// waitFew continues after beginFew has found no case that is ready.
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
			ch.Publish(receiving, n, &f.task.Parker, t) // the port's Publish, without the interface call
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

// endFew ends a wait of beginFew. It finishes the chosen case, and withdraws all others.
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
			c.core.ch.Port().Finish(c.side(), n, r.Kind(), c.ptr)
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

// tryPlain is try for a plain channel whose overflow policy is to wait. So after unlocking, the caller only has to
// ready the parker.
//
//go:norace
func (c *Case) tryPlain() (r park.Reason, ready *park.Parker) {
	if c.what == caseRecv {
		return c.core.ch.Port().Recv(c.ptr)
	}
	r, ready, _ = c.core.ch.Port().Send(c.arg)
	return r, ready
}

// pickFew chooses one of the cases whose bits are set in ready.
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
