package coir

import (
	"context"
	"math"
	"time"

	"github.com/coir-go/coir/internal/clock"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/wait"
)

// arm starts a wait of the fiber for on under sc, which is one of the fiber's own scopes or noScope. It records both
// before it arms the parker, so that whoever sees the new ticket sees them too. on is a subject; its type is any
// because package wait, which stores it, cannot import this package.
//
// Spec: PK-47 (a fiber is armed for one ticket at a time)
//
//go:norace
func (f *Fiber) arm(sc *scope, on any) park.Ticket {
	f.waitUnder(sc)
	f.task.Kit().On = on
	return f.task.Arm()
}

// waitUnder records the scope whose cancellation ends the fiber's next wait. Usually the scope is that of the previous
// wait, and there is nothing to record.
//
//go:norace
func (f *Fiber) waitUnder(sc *scope) {
	if f.waitScope.Load() != sc {
		f.changeScope(sc)
	}
}

// shouldPark reports whether f, whose wait is armed and published, must park. If sc was cancelled, shouldPark disarms
// the wait. It returns false if it has done so; if a waker came first, it returns true. Because the wait lets others
// run, shouldPark also gives f a new budget: see charge. The fast paths rely on that.
//
//go:norace
func (f *Fiber) shouldPark(sc *scope) bool {
	f.budget = budget
	return sc.state.Load() != scopeCancelled || f.armedStill()
}

//go:noinline
//go:norace
func (f *Fiber) armedStill() bool { return !f.task.Disarm() }

// waiter holds the resources of a waiting caller: its parker, its node and its timer.
type waiter struct {
	p     *park.Parker
	kit   *wait.Kit
	timer *clock.Timer // of a fiber: nil until await needs it
	g     *guest       // nil for a fiber
}

//go:norace
func (c *caller) waiter() waiter {
	if f := c.f; f != nil {
		return waiter{p: &f.task.Parker, kit: f.task.Kit()}
	}
	g := guests.Get().(*guest)
	return waiter{p: &g.Parker, kit: &g.kit, timer: &g.timer, g: g}
}

//go:norace
func (w *waiter) done() {
	if w.g != nil {
		w.g.leave()
	}
}

// arm starts a wait for on, which is a subject.
//
//go:norace
func (c *caller) arm(w *waiter, on any) park.Ticket {
	if c.f == nil {
		c.enter(w.g, on)
		return w.p.Arm()
	}
	if c.own {
		return c.f.arm(c.sc, on)
	}
	return c.f.arm(noScope, on)
}

// noScope stands for the scope of a wait that no scope ends without a registration. noInterrupt does so too, for a wait
// that Interrupt must not end either: such a wait ends when other fibers end.
var noScope, noInterrupt = new(scope), new(scope)

//go:noinline
//go:norace
func (f *Fiber) changeScope(sc *scope) {
	if !f.listed && !f.isMain() && sc == &f.nursery.scope {
		f.nursery.list(f)
	}
	f.waitScope.Store(sc)
}

// forever is the duration of a wait without a time limit, and never is its deadline.
const (
	forever time.Duration = -1
	never                 = math.MaxInt64
)

// after returns the clock's time d from now.
//
//go:norace
func after(clk clock.Clock, d time.Duration) int64 {
	at := clk.Now() + int64(d)
	if at < 0 {
		return never - 1
	}
	return at
}

// deadline returns the clock's time d from now, or never if d is forever.
//
//go:norace
func (c *caller) deadline(d time.Duration) int64 {
	if d == forever {
		return never
	}
	return after(c.clock(), d)
}

// armTimer arms a timer that ends the wait t of f after d.
//
//go:norace
func (f *Fiber) armTimer(t park.Ticket, d time.Duration) {
	clk := f.nursery.rt.s.Clock()
	clk.Arm(f.task.Timer(), after(clk, d), &f.task.Parker, uint64(t))
}

//go:noinline
//go:norace
func (f *Fiber) stopTimer() { f.nursery.rt.s.Clock().Stop(f.task.Armed()) }

// await parks the caller until its wait t, which is armed and published, has ended: because its event happened, because
// the context was cancelled, or because the deadline has passed. It serves every caller. For a fiber under its own
// scope, operations have fast paths.
//
//go:norace
func (c *caller) await(w *waiter, t park.Ticket, deadline int64) park.Reason {
	var node *wait.Node // the caller's node in the scope's list of guests
	inOtherBubble := c.inOtherBubble()
	switch {
	case c.own:
		if !c.f.shouldPark(c.sc) {
			return park.Cancelled
		}
	case c.sc != nil && !inOtherBubble:
		node = &wait.Get[struct{}](w.kit, eventKind).Node
		if !c.sc.addGuest(node, w.p, t) && w.p.Disarm() {
			w.kit.Put(node)
			return park.Cancelled
		}
	}
	if c.f == nil {
		w.g.stamp()
	}
	var clk clock.Clock
	if deadline != never {
		clk = c.clock()
		if c.f != nil {
			w.timer = c.f.task.Timer()
		}
		clk.Arm(w.timer, deadline, w.p, uint64(t))
	}
	var r park.Reason
	switch {
	case c.sc == nil || inOtherBubble:
		r = c.parkForeign(w, t)
	case c.f == nil:
		r = w.g.Park(nil)
	default:
		r = c.f.task.Park()
	}
	if node != nil {
		c.sc.removeGuest(node)
		w.kit.Put(node)
	}
	if clk != nil && r != park.TimedOut {
		clk.Stop(w.timer)
	}
	return r
}

// parkForeign parks under a context that coir did not make, or that belongs to another bubble. When the context ends, a
// goroutine is woken through the Done channel, and a fiber through a callback. With a policy there is no callback: the
// next step that finds the context done wakes the fiber. The methods of the context are user code, so their
// synchronisation is not hidden.
//
//go:norace
func (c *caller) parkForeign(w *waiter, t park.Ticket) park.Reason {
	if c.f == nil {
		return w.g.Park(c.done)
	}
	if c.done == nil {
		return c.f.task.Park()
	}
	if cs := c.f.nursery.rt.contexts; cs != nil {
		race.EnterUser()
		watch := cs.Add(c.ctx, c.done, dependent{p: w.p, t: t})
		race.LeaveUser()
		r := c.f.task.Park()
		cs.Remove(watch)
		return r
	}
	race.EnterUser()
	stop := wakeAfter(c.ctx, w.p, t)
	race.LeaveUser()
	r := c.f.task.Park()
	race.EnterUser()
	stop()
	race.LeaveUser()
	return r
}

// wakeAfter arranges that the end of ctx wakes p from its wait t. It is a separate function because the variables that
// the callback captures are allocated when their function is entered.
func wakeAfter(ctx context.Context, p *park.Parker, t park.Ticket) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		race.Disable()
		p.Wake(t, park.Cancelled, nil)
		race.Enable()
	})
}

// ready readies p, which an operation of f has claimed. It does nothing if p is nil.
//
//go:norace
func (f *Fiber) ready(p *park.Parker) {
	if p != nil {
		f.task.Worker().Ready(p)
	}
}

// charge counts an operation that did not wait, so that a fiber that performs only such operations yields from time to
// time.
//
// Spec: SC-20 (a fiber yields after 128 operations)
//
//go:norace
func (f *Fiber) charge() {
	if f.budget--; f.budget <= 0 {
		f.yieldBudget()
	}
}

//go:norace
func (c *caller) charge() {
	if c.f != nil {
		c.f.charge()
	}
}

//go:noinline
//go:norace
func (f *Fiber) yieldBudget() {
	f.budget = budget
	if f.simulated && (f.nursery.rt.quiet.Load() > 0 || f.nursery.rt.policy.Stepped(f)) {
		return
	}
	f.task.Yield()
}

const budget = 128
