package coir

import (
	"context"
	"strconv"
	"unsafe"

	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/wait"
	"github.com/coir-go/coir/internal/xatomic"
)

// Cond is a lock, with a first-in, first-out queue of fibers and goroutines that wait for the guarded data to change.
// It is the base for types with operations that wait:
//
//	func (b *Buffer) Get(ctx context.Context) (byte, error) {
//		b.cond.Lock()
//		defer b.cond.Unlock()
//		for len(b.data) == 0 {
//			if err := b.cond.Wait(ctx); err != nil {
//				return 0, err
//			}
//		}
//		v := b.data[0]
//		b.data = b.data[1:]
//		return v, nil
//	}
//
// Hold the lock only briefly: between Lock and Unlock, call no operation of coir except those of the Cond. Under
// package sim, each operation may let other fibers run, and if one of them calls Lock, sim reports it as blocked. For a
// lock that may be held while waiting, use locks.Mutex.
//
// Each call of Signal that returns true ends exactly one wait, even if a cancellation or deadline comes at the same
// moment. The wait is a Wait, which then returns nil, or a select with a [Cond.WaitCase].
//
// The zero value is an unlocked Cond without waiters or name. A Cond must not be copied after first use.
type Cond struct {
	object
	mu      xatomic.Mutex
	waiters wait.Queue
	woken   wait.Queue     // claimed waiters that are asleep; Unlock readies them
	away    int            // waiters that look at their contexts, and have not been signalled: see whileAway
	called  int            // the same, and have been signalled
	changes xatomic.Uint64 // number of calls of Signal and Broadcast
	what    *policy.Verb   // describes a wait, if Describe was called
}

var (
	verbLock    = &policy.Verb{Name: "lock"}
	verbTryLock = &policy.Verb{Name: "try lock"}
	verbSignal  = &policy.Verb{Name: "wait", Waits: "for a signal of", Ends: "signal"}
)

// NewCond returns an unlocked Cond without waiters. Use [WithName] to give it a name, which reports show.
func NewCond(opts ...NameOption) *Cond {
	c := new(Cond)
	c.name = nameOf(opts)
	return c
}

// Init sets the name of a Cond that is a field of another object. Call it before the Cond is first used.
func (c *Cond) Init(opts ...NameOption) { c.name = nameOf(opts) }

// Describe sets the words that reports and snapshots use for a wait for c, in place of "for a signal of". Call it
// before c is first used.
func (c *Cond) Describe(v *Verb) { c.what = (*policy.Verb)(v) }

// Lock locks c. It blocks the calling thread while another fiber or goroutine has c locked.
func (c *Cond) Lock() {
	if simulating.Load() > 0 {
		c.announce(currentFiber(), c.op(verbLock))
	}
	c.mu.Lock()
}

// TryLock locks c if it is unlocked, and reports whether it did. It is for types that choose among several Conds.
func (c *Cond) TryLock() bool {
	var by *Fiber
	if simulating.Load() > 0 {
		by = c.announce(currentFiber(), c.op(verbTryLock))
	}
	ok := c.mu.TryLock()
	if !ok {
		by.stepped()
	}
	return ok
}

// Unlock unlocks c and readies the waiters that have been signalled.
//
//go:norace
func (c *Cond) Unlock() {
	c.release()
	if simulating.Load() > 0 {
		if f := currentFiber(); f != nil && f.simulated {
			f.stepped()
		}
	}
}

// Wait unlocks c, waits for a Signal or Broadcast, and locks c again before it returns. If ctx ended first, it returns
// ctx's error and has not used up a Signal. The caller must hold the lock. When Wait returns, the caller must check its
// condition again, because another fiber may have changed it.
func (c *Cond) Wait(ctx context.Context) error {
	_ = c.name // panics here if the Cond is nil, before synchronisation is hidden
	f, sc := ownFiber(ctx)
	if f == nil {
		return c.waitAny(ctx)
	}
	err := c.wait(f, sc)
	c.mu.Lock()
	return err
}

// wait implements Wait for a fiber under a scope of its own. It returns without the lock.
//
//go:norace
func (c *Cond) wait(f *Fiber, sc *scope) error {
	race.Disable()
	r := c.begin(f, sc)
	if r == park.None {
		// Task.Park, inlined by hand: see Task.BeginPark.
		if s := f.task.BeginPark(); s != nil {
			if s.Odd {
				s.Next()
			} else {
				s.Yield(struct{}{})
			}
			f.task.EndPark()
		}
		if r = f.task.Reason(); r != park.Data {
			c.withdraw(f.task.Kit().Event())
		}
	}
	race.Enable()
	if r != park.Data {
		f.tellEnding(sc)
		return sc.ending().op
	}
	return nil
}

// begin starts a wait of f under sc, and unlocks c. It returns None if f must park.
//
//go:noinline
//go:norace
func (c *Cond) begin(f *Fiber, sc *scope) park.Reason {
	if sc.ends() {
		if r := c.checkEnd(sc); r != park.None {
			c.unlock(nil)
			return r
		}
	}
	t := f.arm(sc, (*toSignal)(c))
	c.waiters.Push(f.task.Kit().Event(), &f.task.Parker, t)
	c.unlock(f)
	if f.shouldPark(sc) {
		return park.None
	}
	c.withdraw(f.task.Kit().Event())
	return park.Cancelled
}

// checkEnd checks whether sc has ended. It returns None if it has not, and the caller has not been signalled meanwhile.
//
//go:noinline
//go:norace
func (c *Cond) checkEnd(sc *scope) park.Reason {
	ended := false
	race.EnterUser()
	signalled := c.whileAway(func() bool {
		race.Disable()
		ended = sc.done()
		race.Enable()
		return ended
	})
	race.LeaveUser()
	switch {
	case signalled:
		return park.Data
	case ended:
		return park.Cancelled
	}
	return park.None
}

// waitAny implements Wait for all other callers. If fibers used it too, the cond comparison in bench/ratios would take
// 1.29 times as long.
//
//go:noinline
//go:norace
func (c *Cond) waitAny(ctx context.Context) error {
	var by caller
	var e *ending
	signalled := c.whileAway(func() bool {
		by = resolve(ctx)
		e = by.ended()
		return e != nil
	})
	if signalled {
		return nil
	}
	if e != nil {
		by.tellRefused(e)
		return e.op
	}
	race.Disable()
	w := by.waiter()
	t := by.arm(&w, (*toSignal)(c))
	x := w.kit.Event()
	c.waiters.Push(x, w.p, t)
	c.unlock(by.f)
	defer c.mu.Lock() // also if a method of ctx panics
	r := by.await(&w, t, never)
	if r != park.Data {
		c.withdraw(x)
	}
	w.done()
	race.Enable()
	if r != park.Data {
		return by.cancelled().op
	}
	return nil
}

// whileAway calls check, which looks at the context of a waiter that is about to wait, without the lock, and locks c
// again. With the lock, check could wait for ever: it may cancel a scope and so call functions that lock c. It may also
// call methods of the context, which may panic or exit.
//
// Meanwhile Signal, Broadcast and Len count the caller as a waiter. Signal chooses it only if no other waits, and not
// by name: if several are away, the first one to come back takes the signal. check reports whether the context has
// ended. Then the caller takes a signal only if it has to.
func (c *Cond) whileAway(check func() (ended bool)) (signalled bool) {
	c.away++
	c.release()
	ended, returned := true, false
	defer func() {
		c.mu.Lock()
		if c.called == 0 || ended && c.away > 0 {
			c.away--
			return
		}
		c.called--
		if signalled = returned; !returned {
			c.Signal() // in place of the one that this waiter had to take
		}
	}()
	ended = check()
	returned = true
	return false
}

// callAway signals up to most waiters that are away, and returns their number.
//
//go:norace
func (c *Cond) callAway(most int) int {
	n := min(c.away, most)
	c.away -= n
	c.called += n
	return n
}

// release is Unlock without announcing a step to the policy.
//
//go:norace
func (c *Cond) release() {
	if c.woken.Empty() {
		c.mu.Unlock()
		return
	}
	woken := c.woken
	c.woken = wait.Queue{}
	c.mu.Unlock()
	race.Disable()
	readyAll(&woken)
	race.Enable()
}

// unlock unlocks c inside a hidden section. The unlocking itself is visible to the race detector, because it orders
// accesses to the guarded data before the next Lock. After unlocking, it announces the wait of f. The announcement may
// let other fibers run, and they must not find c locked.
//
//go:norace
func (c *Cond) unlock(f *Fiber) {
	race.EnterUser()
	c.release()
	if f != nil && f.simulated {
		c.announce(f, c.waitOp())
	}
	race.LeaveUser()
}

// Signal ends the wait of the first waiter. It reports whether there was a waiter. The caller must hold the lock.
//
//go:norace
func (c *Cond) Signal() bool {
	c.changes.Add(1)
	if c.waiters.Empty() {
		return c.callAway(1) > 0
	}
	race.Disable()
	defer race.Enable()
	for {
		x := c.waiters.Shift()
		if x == nil {
			return c.callAway(1) > 0
		}
		if won, asleep := x.Claim(park.Data); won {
			if asleep != nil {
				c.woken.Push(x, asleep, 0)
			}
			return true
		}
	}
}

// Broadcast ends the waits of all waiters, and returns their number. The caller must hold the lock.
//
//go:norace
func (c *Cond) Broadcast() int {
	c.changes.Add(1)
	n := c.callAway(c.away)
	if c.waiters.Empty() {
		return n
	}
	race.Disable()
	defer race.Enable()
	return n + claimAll(&c.waiters, &c.woken)
}

// WaitCase returns a case that happens when Signal or Broadcast is called after WaitCase. Call WaitCase with the lock
// held, and the select without it:
//
//	c.Lock()
//	for !ready() {
//		changed := c.WaitCase()
//		c.Unlock()
//		_, err := coir.Select(ctx, changed, quit.DoneCase())
//		...
//		c.Lock()
//	}
//
// A Signal between WaitCase and the select also makes the case happen, even if that Signal ended the wait of another
// waiter.
func (c *Cond) WaitCase() Case {
	escapes(c)
	return Case{what: caseSignal, ptr: unsafe.Pointer(c), num: int64(c.changes.Load())}
}

// Len returns the number of waiters. The count may include a waiter that is about to give up. The caller must hold the
// lock.
//
//go:norace
func (c *Cond) Len() int { return c.waiters.Len() + c.away }

// String returns a short description of c: its name, or its number if it has none, and how many waiters it has. The
// caller must not hold the lock.
//
//go:norace
func (c *Cond) String() string {
	_ = c.name // panics here if the Cond is nil, before synchronisation is hidden
	race.Disable()
	c.mu.Lock()
	n := c.Len()
	c.mu.Unlock()
	race.Enable()
	return "coir.Cond(" + c.title() + ", " + strconv.Itoa(n) + " waiting)"
}

// waitOp returns the Op of a Wait. Its Again is set because the caller locks c again after the Wait.
//
//go:norace
func (c *Cond) waitOp() policy.Op {
	op := c.op(verbSignal)
	if c.what != nil {
		op.Verb = c.what
	}
	op.Again = true
	return op
}

//go:norace
func (c *Cond) withdraw(x *wait.Node) bool {
	c.mu.Lock()
	c.waiters.Withdraw(x)
	c.mu.Unlock()
	return x.Won
}

// signalCase is the event of a Case that waits for a signal.
type signalCase Case

//go:norace
func (c *signalCase) cond() *Cond { return (*Cond)(c.ptr) }

//go:norace
func (c *signalCase) happened() bool { return c.cond().changes.Load() != uint64(c.num) }

//go:norace
func (c *signalCase) publish(x *wait.Node, p *park.Parker, t park.Ticket) bool {
	cond := c.cond()
	cond.mu.Lock()
	defer cond.mu.Unlock()
	if c.happened() {
		return false
	}
	cond.waiters.Push(x, p, t)
	return true
}

//go:norace
func (c *signalCase) withdraw(x *wait.Node) bool { return c.cond().withdraw(x) }

//go:norace
func (c *signalCase) op() policy.Op {
	op := c.cond().waitOp()
	op.Again = false
	return op
}

func (c *signalCase) result(*Case) {}
