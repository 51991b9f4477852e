package coir

import (
	"context"
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/bubble"
	"github.com/coir-go/coir/internal/clock"
	"github.com/coir-go/coir/internal/race"
)

// How an object that no fiber waits for ends with its scope, or at a given time. For example, a ticket of package desk
// stays open until an answer comes, its scope ends, or its time runs out. A Watch is a node in a ring of the scope,
// next to the scope's guests. An Alarm is a timer. Neither needs a goroutine, and both are fields of the object that
// they end.
//
// Invariants:
//
//	W1 once:  a Start that returned nil is followed by either one Stop that returns true, or one call of Ended, never
//	          both. To claim a watch, remove it from the ring under the scope's lock. For alarms, the clock's lock
//	          decides.
//	W2 clean: once Stop has returned or Ended has been called, neither the scope nor the clock refers to the object.
//
// Ended is called with no lock held, but during a cancellation or while the clock is being moved. To a policy, the
// operations of Ended are therefore part of that step, and are not announced: see callEnded. Both steps conflict with
// all others.
//
// Rejected alternatives: a context.AfterFunc for each object, which allocates four objects, and calls from a goroutine
// that a simulation does not control; and a parker whose owner makes the call, which needs another claim.

// Watch calls a method of its owner when a context ends. It is for types that hold something on behalf of a caller that
// may give up, such as a table of unanswered requests; package desk uses it. A Watch starts no goroutine. In the
// context of a fiber or scope, and in a context that never ends, it allocates nothing; in other contexts it needs a
// [context.AfterFunc].
//
// The zero value has not been started. A Watch that has been stopped may be started again. Its methods must not be
// called at the same time, and it must not be copied after first use.
type Watch struct {
	to  Watcher
	sc  *scope // the scope that the Watch watches; nil if the context never ends
	ctx context.Context

	private bool // sc was made for this watch, inside a context that is not coir's

	prev, next *Watch // in the ring of sc, under its lock
	linked     bool   // w is in the ring; under the lock of sc
}

// Watcher is the owner of a [Watch] or an [Alarm].
type Watcher interface {
	// Ended is called with the error that an operation in the context would return now, or, by an Alarm, with
	// [ErrTimeout]. The canceller or the clock calls it. So Ended must be short, must not wait or panic, and must not
	// call [runtime.Goexit], which would stop the clock. It may use operations that do not wait, such as
	// [Promise.Reject]. Functions of the user, such as those passed to [Promise.OnDone], must run on a separate
	// goroutine.
	//
	// Start and the cancellation are ordered before Ended.
	Ended(err error)
}

// Start arranges that to.Ended is called, once, when ctx ends. If ctx has already ended, Start returns ctx's error and
// does not call Ended.
//
//go:norace
func (w *Watch) Start(ctx context.Context, to Watcher) error {
	by := resolve(ctx)
	if e := by.ended(); e != nil {
		return e.op
	}
	w.to, w.ctx, w.sc, w.private = to, ctx, nil, false
	switch {
	case by.sc != nil && !by.inOtherBubble():
		w.sc = by.sc
	case by.done != nil:
		w.sc, w.private = newScope(), true
		w.sc.init(ctx, by.runtime(), nil, nil)
	default:
		return nil
	}
	race.Release(unsafe.Pointer(w)) // for Ended
	race.Disable()
	ok := w.sc.addWatch(w)
	race.Enable()
	if ok {
		return nil
	}
	w.detach()
	return w.sc.ending().op
}

// Covers reports whether w is started and would call Ended when ctx ends, and ctx has not ended. It may return false
// even if that is so.
//
//go:norace
func (w *Watch) Covers(ctx context.Context) bool {
	if f, sc := scopeOf(ctx); sc != nil {
		return sc == w.sc && !sc.mayBeDone() && (f != nil && f.task.Here() || !bubble.Possible || !sc.rt.inOtherBubble())
	}
	return sameObject(ctx, w.ctx) && ctx.Err() == nil
}

// sameObject reports whether a and b are the same object. It does not compare them, because contexts need not be
// comparable.
//
//go:norace
func sameObject(a, b context.Context) bool {
	return *(*[2]uintptr)(unsafe.Pointer(&a)) == *(*[2]uintptr)(unsafe.Pointer(&b))
}

// Stop stops the watch. If it returns true, Ended will not be called; if it returns false, Ended has been called or
// will be. In a context that never ends, Stop returns true.
//
//go:norace
func (w *Watch) Stop() bool {
	ok := true
	if w.sc != nil {
		race.Disable()
		ok = w.sc.dropWatch(w)
		race.Enable()
		w.detach()
	}
	if ok {
		w.to, w.ctx, w.sc = nil, nil, nil
	}
	return ok
}

// detach detaches the scope that was made for the watch from its context.
func (w *Watch) detach() {
	if w.private {
		w.sc.detach()
	}
}

// Alarm calls a method of its owner at a given time. It is like a [Watch], for a deadline instead of a context. The
// zero value has not been started. An Alarm must not be copied after first use.
type Alarm struct {
	timer clock.Timer
	rt    *Runtime
	to    Watcher
}

// Start arranges that to.Ended is called, once, with [ErrTimeout], when d has passed on the caller's clock. Start must
// not be called again before that, unless Stop has returned true.
//
//go:norace
func (a *Alarm) Start(ctx context.Context, to Watcher, d time.Duration) {
	by := resolve(ctx)
	a.rt, a.to = by.runtime(), to
	race.Release(unsafe.Pointer(a)) // for Ended
	race.Disable()
	clk := a.rt.s.Clock()
	clk.Arm(&a.timer, after(clk, max(d, 0)), (*alarmTarget)(a), 0)
	race.Enable()
}

// Stop stops the alarm. If it returns true, Ended will not be called. If it returns false, Ended has been called or
// will be, or the alarm was not started.
//
//go:norace
func (a *Alarm) Stop() bool {
	if a.rt == nil {
		return false
	}
	race.Disable()
	ok := a.rt.s.Clock().Stop(&a.timer)
	race.Enable()
	return ok
}

// alarmTarget is an Alarm as the target of its timer.
type alarmTarget Alarm

// Expire implements clock.Target.
//
//go:norace
func (a *alarmTarget) Expire(uint64) {
	race.Disable()
	callEnded(a.rt, unsafe.Pointer(a), unsafe.Pointer(a), a.to, plainTimeout.op)
	race.Enable()
}

// callEnded calls to.Ended. The call is ordered after Start, which has released started, and after the cancellation,
// which has released ended. callEnded is called in a hidden section. On a runtime with a policy, the operations of
// Ended are not announced: they are part of the runtime's current step.
//
//go:norace
func callEnded(rt *Runtime, started, ended unsafe.Pointer, to Watcher, err error) {
	race.Alone(func() {
		race.Acquire(started)
		race.Acquire(ended)
		if rt.policy != nil {
			rt.quiet.Add(1)
			defer rt.quiet.Add(-1)
		}
		to.Ended(err)
	})
}

// addWatch appends a watch to the ring. It returns false if the scope has been cancelled.
//
//go:norace
func (sc *scope) addWatch(w *Watch) bool {
	c := sc.cold()
	c.scopeMu.Lock()
	defer c.scopeMu.Unlock()
	if sc.state.Load() == scopeCancelled {
		return false
	}
	w.linked = true
	first := c.watches
	if first == nil {
		w.prev, w.next, c.watches = w, w, w
		return true
	}
	w.prev, w.next = first.prev, first
	w.prev.next, first.prev = w, w
	return true
}

// dropWatch removes a watch from the ring. It reports whether the watch was in the ring.
//
//go:norace
func (sc *scope) dropWatch(w *Watch) bool {
	c := sc.cold()
	c.scopeMu.Lock()
	defer c.scopeMu.Unlock()
	return c.unlinkWatch(w)
}

// unlinkWatch is dropWatch for a caller that holds scopeMu.
//
//go:norace
func (c *coldScope) unlinkWatch(w *Watch) bool {
	if !w.linked {
		return false
	}
	if w.next == w {
		c.watches = nil
	} else {
		w.prev.next, w.next.prev = w.next, w.prev
		if c.watches == w {
			c.watches = w.next
		}
	}
	w.prev, w.next, w.linked = nil, nil, false
	return true
}

// endWatches calls Ended for the watches of a scope that has been cancelled, in the order in which they were started.
// It is called in a hidden section.
//
//go:norace
func (sc *scope) endWatches() {
	for c := sc.cold(); ; {
		c.scopeMu.Lock()
		w := c.watches
		if w == nil {
			c.scopeMu.Unlock()
			return
		}
		to := w.to
		c.unlinkWatch(w)
		c.scopeMu.Unlock()
		callEnded(sc.rt, unsafe.Pointer(w), unsafe.Pointer(sc), to, c.how.op)
	}
}
