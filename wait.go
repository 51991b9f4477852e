package coir

import (
	"context"
	"math"
	"runtime"
	"sync"
	"time"

	"github.com/coir-go/coir/internal/bubble"
	"github.com/coir-go/coir/internal/clock"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/sched"
	"github.com/coir-go/coir/internal/wait"
)

// caller is whoever has called an operation: a fiber, or a goroutine.
//
// Identity is checked, not believed. A context tells which fiber it was made for, but contexts are handed around: the
// caller is that fiber only if the running goroutine is the fiber's own. If not, the registry of frames is asked
// whether the goroutine is some other fiber's; if that fails too the caller is a goroutine and blocks as one. So a context
// that strayed is never a bug.
type caller struct {
	ctx context.Context
	f   *Fiber // nil for a goroutine
	sc  *scope // the coir scope whose cancel is ctx's cancel; nil if ctx is none of ours
	own bool   // f may wait under sc without registering

	derived *Runtime // of the scope that ctx was derived from, if sc is nil for that reason
}

// Spec: FB-19 (an operation parks the fiber, not the worker)
// Spec: FB-20 (an operation blocks a goroutine as one)
// Spec: FB-21 (the caller's identity is checked)
//
//go:norace
func resolve(ctx context.Context) (c caller) {
	c.ctx = ctx
	switch x := ctx.(type) {
	case *fiberContext:
		c.f = (*Fiber)(x)
		c.sc = &c.f.nursery.scope
	case *scopeContext:
		c.sc = (*scope)(x)
		c.f = c.sc.owner
	case *timedScope:
		c.sc = (*scope)(&x.scopeContext)
		c.f = c.sc.owner
	default:
		c.resolveForeign()
	}
	if c.f == nil || !c.f.task.Here() {
		c.f = currentFiber()
	}
	c.own = c.f != nil && c.sc != nil && (c.sc.owner == c.f || c.sc == &c.f.nursery.scope)
	return c
}

// resolveForeign looks for a fiber or scope of ours that a foreign context was derived from. Its cancel counts as ours
// only if the two share the Done channel, as after context.WithValue.
//
//go:noinline
func (c *caller) resolveForeign() {
	switch x := c.ctx.Value(contextKey{}).(type) {
	case *fiberContext:
		c.f = (*Fiber)(x)
		c.sc = &c.f.nursery.scope
	case *scopeContext:
		c.sc = (*scope)(x)
		c.f = c.sc.owner
	default:
		return
	}
	if c.ctx.Done() != c.sc.doneChan() { // which has polled what c.sc hangs on, so that ctx is as it should be
		c.derived = c.sc.rt
		c.sc = nil
	}
}

// ownFiber is resolve for the common case, a fiber under a scope of its own: it returns the two, or nil.
//
// Operations treat that case apart, and in parts: one that arms and publishes and returns, then Task.Park, then one that
// cleans up. What is on the stack while a fiber waits is only the operation itself. That keeps the stack of a fiber
// that waits within its first two kilobytes, and spares the processor returns that it would predict wrongly.
//
//go:norace
func ownFiber(ctx context.Context) (*Fiber, *scope) {
	switch x := ctx.(type) {
	case *fiberContext:
		if f := (*Fiber)(x); f.task.Here() {
			return f, &f.nursery.scope
		}
	case *scopeContext:
		if f := x.owner; f != nil && f.task.Here() {
			return f, (*scope)(x)
		}
	case *timedScope:
		if f := x.owner; f != nil && f.task.Here() {
			return f, (*scope)(&x.scopeContext)
		}
	}
	return nil, nil
}

// arm begins a wait of the fiber under sc, one of its own scopes, or nobody. It notes the scope first, so that it is true
// of the ticket.
//
// Spec: PK-47 (a fiber is armed for one ticket at a time)
//
//go:norace
func (f *Fiber) arm(sc *scope) park.Ticket {
	if sc == &f.nursery.scope {
		sc = nil
	}
	f.waitUnder(sc)
	return f.task.Arm()
}

// parks reports whether f, armed and published, must park. It returns false if sc was cancelled and the wait has been
// disarmed.
//
//go:norace
func (f *Fiber) parks(sc *scope) bool {
	f.budget = budget
	return sc.state.Load() != scopeCancelled || !f.task.Disarm()
}

// currentFiber returns the fiber that the calling goroutine is, or nil.
func currentFiber() *Fiber {
	race.Disable()
	defer race.Enable()
	if t := sched.Current(); t != nil {
		return fiberOf(t)
	}
	return nil
}

// here is the worker that runs the calling fiber, as a place to wake others near. It is nil in a goroutine. To find out is not
// free: ask only if there is somebody to wake.
//
//go:norace
func here() park.Place {
	if f := currentFiber(); f != nil {
		return f.task.Worker()
	}
	return nil
}

// runtime is where the caller's timers run, and its fibers.
func (c *caller) runtime() *Runtime {
	if c.f != nil {
		return c.f.nursery.rt
	}
	if x := c.sc; x != nil && !x.rt.abroad() {
		return x.rt
	}
	if c.derived != nil && !c.derived.abroad() {
		return c.derived
	}
	return defaultRuntime()
}

// near is the place to wake others near.
//
//go:norace
func (c *caller) near() park.Place {
	if c.f == nil {
		return nil
	}
	return c.f.task.Worker()
}

// ended returns how the caller's context ended, or nil if it has not.
//
//go:norace
func (c *caller) ended() *ending {
	if c.sc == nil {
		return endingOf(c.ctx)
	}
	if c.sc.state.Load() == scopeLive || !c.sc.poll() {
		if c.abroad() {
			c.sc.checkDone() // while there is no wait yet
		}
		return nil
	}
	return c.sc.ending()
}

// cancelled returns how the caller's context ended, after a wait that ended by Cancelled.
func (c *caller) cancelled() *ending {
	if c.sc != nil {
		return c.sc.ending()
	}
	if e := endingOf(c.ctx); e != nil {
		return e
	}
	return plainCancel // by Interrupt
}

// failureReason returns the reason to count for an operation under sc that ended for r: a scope that ran out of time was
// not cancelled.
//
//go:norace
func (sc *scope) failureReason(r park.Reason) park.Reason {
	if r == park.Cancelled {
		return sc.ending().reason()
	}
	return r
}

// waiter is the caller in a wait: its word, its node, its timer.
type waiter struct {
	p     *park.Parker
	kit   *wait.Kit
	timer *clock.Timer
	g     *guest // nil for a fiber
}

// guest is what a goroutine waits with.
type guest struct {
	park.Guest
	kit   wait.Kit
	timer clock.Timer
}

var guests = sync.Pool{New: func() any {
	g := new(guest)
	g.Init()
	return g
}}

//go:norace
func (c *caller) waiter() waiter {
	if f := c.f; f != nil {
		return waiter{p: &f.task.Parker, kit: f.task.Kit(), timer: f.task.Timer()}
	}
	g := guests.Get().(*guest)
	return waiter{p: &g.Parker, kit: &g.kit, timer: &g.timer, g: g}
}

//go:norace
func (w *waiter) done() {
	if w.g != nil {
		guests.Put(w.g)
	}
}

// arm begins a wait.
//
//go:norace
func (c *caller) arm(w *waiter) park.Ticket {
	if c.f == nil {
		return w.p.Arm()
	}
	if c.own {
		return c.f.arm(c.sc)
	}
	return c.f.arm(nobody)
}

// nobody is the scope of waits that no scope's cancel ends. Those under uncut Interrupt does not end either: they end when others have come
// to their end.
var nobody, uncut = new(scope), new(scope)

// waitUnder notes whose cancel ends the next wait. It is mostly the same as for the last one.
func (f *Fiber) waitUnder(sc *scope) {
	if f.waiting.Load() != sc {
		f.waiting.Store(sc)
	}
}

// forever is a wait without a time limit of its own; never is when it ends.
const (
	forever time.Duration = -1
	never                 = math.MaxInt64
)

// after is the clock's time d from now.
//
//go:norace
func after(clk clock.Clock, d time.Duration) int64 {
	at := clk.Now() + int64(d)
	if at < 0 {
		return never - 1
	}
	return at
}

// clock is what the caller's waits are timed by.
//
//go:norace
func (c *caller) clock() clock.Clock { return c.runtime().s.Clock() }

// clockHere is the clock of the calling fiber or goroutine.
//
//go:norace
func clockHere() clock.Clock {
	c := caller{f: currentFiber()}
	return c.clock()
}

// deadline is the clock's time d from now; forever is never.
//
//go:norace
func (c *caller) deadline(d time.Duration) int64 {
	if d == forever {
		return never
	}
	return after(c.clock(), d)
}

// armTimer has the wait t of f end after d.
//
//go:norace
func (f *Fiber) armTimer(t park.Ticket, d time.Duration) {
	clk := f.nursery.rt.s.Clock()
	clk.Arm(f.task.Timer(), after(clk, d), &f.task.Parker, uint64(t))
}

//go:norace
func (f *Fiber) stopTimer() { f.nursery.rt.s.Clock().Stop(f.task.Timer()) }

// await ends an armed wait that has been published: by whoever was told of it, by the cancel of ctx, or, unless
// deadline is never, by time. It serves every caller; for a fiber under its own scope there is a shorter way.
//
//go:norace
func (c *caller) await(w *waiter, t park.Ticket, deadline int64) park.Reason {
	var node *wait.Node // in the list of a scope's guests
	abroad := c.abroad()
	switch {
	case c.own:
		if !c.f.parks(c.sc) {
			return park.Cancelled
		}
	case c.sc != nil && !abroad:
		node = &wait.Get[struct{}](w.kit, eventKind).Node
		if !c.sc.addGuest(node, w.p, t) && w.p.Disarm() {
			w.kit.Put(node)
			return park.Cancelled
		}
	}
	var clk clock.Clock
	if deadline != never {
		clk = c.clock()
		clk.Arm(w.timer, deadline, w.p, uint64(t))
	}
	var r park.Reason
	switch {
	case c.sc == nil || abroad:
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

// abroad reports whether the caller is a goroutine in another bubble of testing/synctest than its context. Such a wait must not be
// woken by the scope itself: it is woken by the channel of the context.
//
//go:norace
func (c *caller) abroad() bool {
	return bubble.Possible && c.f == nil && c.sc != nil && c.sc.rt.abroad()
}

// parkForeign parks under a context that is none of ours, or abroad. Its end wakes a goroutine by its channel, and a fiber by a call back, or
// under a policy when the next step finds it done. That is foreign code, with its own synchronisation, which is not hidden.
//
//go:norace
func (c *caller) parkForeign(w *waiter, t park.Ticket) park.Reason {
	race.Enable()
	done := c.ctx.Done()
	race.Disable()
	if c.f == nil {
		return w.g.Park(done)
	}
	if done == nil {
		return c.f.task.Park()
	}
	if cs := c.f.nursery.rt.contexts; cs != nil {
		watch := &watched{ctx: c.ctx, done: done, p: w.p, t: t}
		cs.add(watch)
		r := c.f.task.Park()
		cs.remove(watch)
		return r
	}
	race.Enable()
	stop := wakeAfter(c.ctx, w.p, t)
	race.Disable()
	r := c.f.task.Park()
	race.Enable()
	stop()
	race.Disable()
	return r
}

// wakeAfter has the end of ctx wake p from its wait t. It is a function of its own because what the call back holds is allocated.
func wakeAfter(ctx context.Context, p *park.Parker, t park.Ticket) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		race.Disable()
		p.Wake(t, park.Cancelled, nil)
		race.Enable()
	})
}

// rouse rouses whom f has woken, if anybody.
//
//go:norace
func (f *Fiber) rouse(asleep *park.Parker) {
	if asleep != nil {
		asleep.Rouse(f.task.Worker())
	}
}

// went is the end of an operation of f that did not wait and has succeeded: it rouses whom the operation has woken.
//
//go:norace
func (f *Fiber) went(asleep *park.Parker) {
	f.rouse(asleep)
	f.spend()
}

// spend counts an operation that did not wait. A fiber that does nothing else lets others run now and then.
//
// Spec: SC-20 (a fiber yields after 128 operations)
//
//go:norace
func (f *Fiber) spend() {
	if f.budget--; f.budget <= 0 {
		f.spent()
	}
}

//go:norace
func (c *caller) spend() {
	if c.f != nil {
		c.f.spend()
	}
}

//go:noinline
//go:norace
func (f *Fiber) spent() {
	f.budget = budget
	if f.simulated && f.nursery.rt.policy.Stepped(f) {
		return
	}
	f.task.Yield()
}

const budget = 128

// Yield lets other fibers run. In a goroutine it is runtime.Gosched. It returns an error if ctx is over.
//
//go:norace
func Yield(ctx context.Context) error {
	if x, ok := ctx.(*fiberContext); ok && x.task.Here() && x.nursery.state.Load() == scopeLive && !x.simulated {
		race.Disable()
		x.budget = budget
		x.task.Yield()
		race.Enable()
		return nil
	}
	return yieldSlow(ctx)
}

//go:noinline
//go:norace
func yieldSlow(ctx context.Context) error {
	c := resolve(ctx)
	c.announce(Op{Kind: OpYield})
	if e := c.ended(); e != nil {
		return e.op
	}
	if c.f == nil {
		runtime.Gosched()
		return nil
	}
	if c.f.simulated {
		return nil
	}
	race.Disable()
	c.f.budget = budget
	c.f.task.Yield()
	race.Enable()
	return nil
}

// Sleep waits for d, by the runtime's clock. It returns early, with an error, if ctx is over.
//
//go:norace
func Sleep(ctx context.Context, d time.Duration) error {
	// Spec: TM-02 (a sleeper is in no run queue)
	f, sc := ownFiber(ctx)
	if f == nil || d <= 0 {
		return sleepSlow(ctx, d)
	}
	if f.simulated {
		f.step(Op{Kind: OpSleep, For: d})
	}
	race.Disable()
	ok := f.beginSleep(sc, d) && f.endSleep(f.task.Park())
	race.Enable()
	if !ok {
		return sc.ending().op
	}
	return nil
}

//go:noinline
//go:norace
func (f *Fiber) beginSleep(sc *scope, d time.Duration) bool {
	if sc.done() {
		return false
	}
	t := f.arm(sc)
	if !f.parks(sc) {
		return false
	}
	f.armTimer(t, d)
	return true
}

//go:noinline
//go:norace
func (f *Fiber) endSleep(r park.Reason) bool {
	if r == park.TimedOut {
		return true
	}
	f.stopTimer()
	return false
}

//go:noinline
//go:norace
func sleepSlow(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return Yield(ctx)
	}
	c := resolve(ctx)
	c.announce(Op{Kind: OpSleep, For: d})
	if e := c.ended(); e != nil {
		return e.op
	}
	race.Disable()
	w := c.waiter()
	r := c.await(&w, c.arm(&w), c.deadline(d))
	w.done()
	race.Enable()
	if r == park.TimedOut {
		return nil
	}
	return c.cancelled().op
}
