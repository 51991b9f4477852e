package coir

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/clock"
	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/wait"
	"github.com/coir-go/coir/internal/xatomic"
)

// What other packages need to build operations that wait for time, other than Sleep: the caller's clock, a queue in
// which only the first waiter has a timer, words for reports, and a random time that a simulation chooses.
//
// A Timer has one turn. Only the caller that has the turn has a timer on a clock. When its wait ends, by time or by
// cancellation, it passes the turn to the next caller in the queue, which then asks the schedule for its own time. So a
// caller that gives up has no effect on the others: it has taken nothing from the schedule.
//
// Invariants, under mu:
//
//	T1 turn:  if taken is false, no caller waits in the queue.
//	T2 order: the turn goes to the first in the queue whose wait can still be claimed.
//	T3 last:  Take is called for the caller that has the turn, or while taken is false.
//
// Rejected: computing a time for each waiter on arrival. That saves one switch for each wait, but when a waiter gives
// up, the times of all later waiters are wrong.

// Timer lets callers wait by a [Schedule], one after the other, in the order of arrival. It is for packages that
// implement tickers, rate limiters and similar types. While no caller waits, a Timer uses no clock, so it need not be
// stopped.
//
// To the race detector, a wait by a Timer orders nothing: neither other waits nor calls of the schedule.
type Timer struct {
	object
	schedule   Schedule
	background bool

	mu    xatomic.Mutex // guards the following fields, and the schedule
	taken bool          // a caller has the turn
	queue wait.Queue    // the callers that wait for the turn
}

// Schedule determines when the waits of a [Timer] end. Times are those of [Now], on the clock of the caller that waits.
// n is the number that the caller passed to the Timer.
//
// The Timer calls Due and Take under a lock, so they need no lock of their own. They must be short, must not panic, and
// must not call an operation of this package. Mark them //go:norace: that lock is hidden from the race detector, for
// the reason given at [Resource].
type Schedule interface {
	// Due returns the earliest time at which a wait for n may end. If that is not after now, the wait ends.
	Due(n int, now time.Duration) time.Duration
	// Take is called once for each wait that ends by time, when the wait is due. The wait returns the result of Take.
	Take(n int, now time.Duration) int
	// Words describes a wait for n, such as "for 3 tokens of", which reports put before the Timer's name. It is called
	// without the lock, and needs no mark.
	Words(n int) string
}

// TimerOption is an option of [NewTimer]. A [NameOption] is one.
type TimerOption interface{ setTimer(*Timer) }

type timerOption func(*Timer)

func (o timerOption) setTimer(t *Timer) { o(t) }

// WithBackground makes a [Timer] a background one. Its waits do not keep a program alive: if nothing else can happen,
// package sim reports a deadlock.
func WithBackground() TimerOption { return timerOption(func(t *Timer) { t.background = true }) }

// NewTimer returns a Timer that waits by the schedule s. Use [WithName] to give it a name, which reports show.
func NewTimer(s Schedule, opts ...TimerOption) *Timer {
	if s == nil {
		panic("coir: NewTimer: the Schedule is nil: pass one that says when waits end")
	}
	t := &Timer{schedule: s}
	for _, o := range opts {
		o.setTimer(t)
	}
	return t
}

// Now returns the time on the caller's clock: the duration since the start of the program or of the bubble of
// testing/synctest, or the time that a virtual clock shows. [Sleep] and [WithTimeout] use the same clock.
//
//go:norace
func Now(ctx context.Context) time.Duration {
	if f, _ := ownFiber(ctx); f != nil {
		return time.Duration(f.nursery.rt.s.Clock().Now())
	}
	by := resolve(ctx)
	return time.Duration(by.runtime().s.Clock().Now())
}

// Jitter returns a random duration in [0, d), or 0 if d is not positive. Under package sim the schedule chooses one of
// four durations.
//
//go:norace
func Jitter(ctx context.Context, d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	by := resolve(ctx)
	if by.f == nil || !by.f.simulated {
		return rand.N(d)
	}
	race.Disable()
	i := by.f.nursery.rt.policy.Choose(4)
	race.Enable()
	return time.Duration(i) * (d / 4)
}

// check panics for a Timer that would otherwise cause a panic later, under the lock and with synchronisation hidden.
//
//go:norace
func (t *Timer) check() {
	if t.schedule == nil {
		panic(notMade("Timer"))
	}
}

// Wait waits until a wait for n is due, and returns the result of Take. If ctx ends first, it returns ctx's error. If
// no earlier caller waits, and ctx will end before the wait is due, Wait immediately fails with [ErrTimeout].
//
//go:norace
func (t *Timer) Wait(ctx context.Context, n int) (int, error) {
	t.check()
	f, sc := ownFiber(ctx)
	if f == nil || f.simulated || sc.mayBeDone() {
		return t.waitAny(ctx, n)
	}
	clk := f.nursery.rt.s.Clock()
	race.Disable()
	got, due, turn := t.begin(clk, n)
	if turn == turnServed {
		f.charge()
	}
	race.Enable()
	if turn == turnServed {
		return got, nil
	}
	by := caller{ctx: ctx, f: f, sc: sc, own: true}
	return t.rest(&by, clk, n, due, turn)
}

// waitAny implements Wait for every kind of caller. If fibers used it too, the limiter comparison in bench/ratios would
// take 1.3 times as long.
//
//go:noinline
//go:norace
func (t *Timer) waitAny(ctx context.Context, n int) (int, error) {
	by := resolve(ctx)
	if simulating.Load() > 0 {
		t.announce(by.f, t.op(n))
	}
	if e := by.refused(); e != nil {
		return 0, e.op
	}
	clk := by.runtime().s.Clock()
	race.Disable()
	got, due, turn := t.begin(clk, n)
	if turn == turnServed {
		by.charge()
	}
	race.Enable()
	if turn == turnServed {
		return got, nil
	}
	return t.rest(&by, clk, n, due, turn)
}

// turnState is what a caller has of the turn of a Timer.
type turnState uint8

const (
	turnServed turnState = iota // it needs none: its wait has ended
	turnHeld                    // it has the turn
	turnQueued                  // another caller has it
)

// TryWait is like Wait, but never waits. It returns the result of Take and true, or false if a wait for n is not due
// yet or other callers are waiting.
//
//go:norace
func (t *Timer) TryWait(n int) (int, bool) {
	t.check()
	var f *Fiber
	if simulating.Load() > 0 {
		f = t.announce(currentFiber(), t.object.op(verbTryWait))
	}
	clk := clockHere()
	race.Disable()
	t.mu.Lock()
	got, ok := 0, false
	if now := time.Duration(clk.Now()); !t.taken && t.schedule.Due(n, now) <= now {
		got, ok = t.schedule.Take(n, now), true
	}
	t.mu.Unlock()
	race.Enable()
	if f != nil {
		f.tellTried(ok)
		f.stepped()
	}
	return got, ok
}

// WaitCase returns a case that happens when a wait for 1 is due. If got is not nil, the case stores the result of Take
// in *got. Use the case in one select only, immediately. The case does not queue: if several callers wait, the first to
// run takes what is due. So use it only with schedules whose Due depends on time alone, such as a ticker's.
//
//go:norace
func (t *Timer) WaitCase(got *int) Case {
	t.check()
	escapes(t)
	if simulating.Load() > 0 { // the time when the case is due depends on what others have taken
		if f := currentFiber(); f != nil && f.simulated { // the select of a goroutine announces it
			t.announce(f, t.object.op(verbLook))
			defer f.stepped()
		}
	}
	clk := clockHere()
	race.Disable()
	t.mu.Lock()
	now := time.Duration(clk.Now())
	d := t.schedule.Due(1, now) - now
	t.mu.Unlock()
	race.Enable()
	return Case{what: caseAfter, arg: t, ptr: unsafe.Pointer(got), num: int64(d)}
}

// take is called when the time of a case of t has come.
//
//go:norace
func (t *Timer) take(c *Case) {
	clk := clockHere()
	race.Disable()
	t.mu.Lock()
	got := t.schedule.Take(1, time.Duration(clk.Now()))
	t.mu.Unlock()
	if c.ptr != nil {
		race.Wrote(c.ptr, unsafe.Sizeof(got))
		*(*int)(c.ptr) = got
	}
	race.Enable()
}

// String returns a short description of the timer: its name, or its number if it has none, and how many callers wait.
//
//go:norace
func (t *Timer) String() string {
	_ = t.name // panics here if the timer is nil, before synchronisation is hidden
	race.Disable()
	defer race.Enable()
	t.mu.Lock()
	n := t.queue.Len()
	if t.taken {
		n++
	}
	t.mu.Unlock()
	return "coir.Timer(" + t.title() + ", " + strconv.Itoa(n) + " waiting)"
}

// begin ends a wait that is due, if no other caller is waiting. Otherwise it takes the turn and returns the time when
// the wait is due, or it reports that another caller has the turn.
//
//go:norace
func (t *Timer) begin(clk clock.Clock, n int) (got int, due time.Duration, _ turnState) {
	t.mu.Lock()
	if t.taken {
		t.mu.Unlock()
		return 0, 0, turnQueued
	}
	now := time.Duration(clk.Now())
	if due = t.schedule.Due(n, now); due <= now {
		got = t.schedule.Take(n, now)
		t.mu.Unlock()
		return got, due, turnServed
	}
	t.taken = true
	t.mu.Unlock()
	return 0, due, turnHeld
}

// rest is the part of Wait after begin, for a caller that has to wait.
//
//go:noinline
//go:norace
func (t *Timer) rest(by *caller, clk clock.Clock, n int, due time.Duration, turn turnState) (got int, err error) {
	race.Disable()
	r := park.None
	if turn == turnQueued {
		if r = t.await(by); r == park.None {
			got, due, r = t.look(by, clk, n)
		}
	}
	for r == park.None {
		got, due, r = t.sleep(by, clk, n, due)
	}
	race.Enable()
	switch r {
	case park.Data:
		return got, nil
	case park.TimedOut:
		return 0, plainTimeout.op
	}
	return 0, by.cancelled().op
}

// await waits for the turn. It returns None once the caller has the turn.
//
//go:norace
func (t *Timer) await(by *caller) park.Reason {
	w := by.waiter()
	defer w.done()
	ticket := by.arm(&w, (*toTick)(t))
	node := w.kit.Event()
	t.mu.Lock()
	if !t.taken {
		t.taken = true
		t.mu.Unlock()
		w.p.Disarm() // even if a cancellation came first: the wait for time will find it
		return park.None
	}
	t.queue.Push(node, w.p, ticket)
	t.mu.Unlock()
	r := by.await(&w, ticket, never)
	if r == park.Data {
		return park.None
	}
	t.mu.Lock()
	t.queue.Withdraw(node)
	t.mu.Unlock()
	return r
}

// look ends the caller's wait and returns Data if the wait is due. Otherwise it returns None and the time when the wait
// is due. The caller has the turn.
//
//go:norace
func (t *Timer) look(by *caller, clk clock.Clock, n int) (got int, due time.Duration, _ park.Reason) {
	t.mu.Lock()
	now := time.Duration(clk.Now())
	if due = t.schedule.Due(n, now); due > now {
		t.mu.Unlock()
		return 0, due, park.None
	}
	got = t.schedule.Take(n, now)
	next := t.pass()
	t.mu.Unlock()
	next.MakeReady(by.worker())
	return got, due, park.Data
}

// sleep waits until due and then calls look. The caller has the turn. If its context ends, sleep passes the turn on.
//
//go:norace
func (t *Timer) sleep(by *caller, clk clock.Clock, n int, due time.Duration) (int, time.Duration, park.Reason) {
	r := park.TimedOut
	end, known := by.ends(clk)
	late := known && end < due
	if !late {
		w := by.waiter()
		r = by.await(&w, by.arm(&w, (*toTick)(t)), int64(due))
		w.done()
		if r == park.TimedOut {
			return t.look(by, clk, n)
		}
	}
	t.mu.Lock()
	next := t.pass()
	t.mu.Unlock()
	next.MakeReady(by.worker())
	return 0, 0, r
}

// pass gives the turn to the first caller in the queue, and returns the parker to ready after unlocking. The caller of
// pass holds mu.
//
//go:norace
func (t *Timer) pass() *park.Parker {
	for node := t.queue.Shift(); node != nil; node = t.queue.Shift() {
		if won, asleep := node.Claim(park.Data); won {
			return asleep
		}
	}
	t.taken = false
	return nil
}

// ends returns the deadline of the caller's context, on the caller's clock, if it is known. The deadline of a context
// of package context is meaningless on a virtual clock.
//
//go:norace
func (c *caller) ends(clk clock.Clock) (at time.Duration, ok bool) {
	race.EnterUser()
	defer race.LeaveUser()
	if _, virtual := clk.(*clock.Virtual); !virtual {
		deadline, ok := c.ctx.Deadline()
		if !ok {
			return 0, false // without reading the time, which would make a tick slower
		}
		return time.Duration(clk.Now()) + time.Until(deadline), true
	}
	for ctx := c.ctx; ; {
		switch x := ctx.(type) {
		case *timedScope:
			if x.rt.s.Clock() == clk && (!ok || x.at < int64(at)) {
				at, ok = time.Duration(x.at), true
			}
			ctx = x.up
		case *scopeContext:
			ctx = x.up
		case *fiberContext:
			ctx = x.nursery.up
		default:
			return at, ok
		}
	}
}

// op returns the Op of a wait for n.
//
//go:norace
func (t *Timer) op(n int) policy.Op {
	op := t.object.op(&policy.Verb{Name: "wait", Waits: t.schedule.Words(n)})
	op.Background = t.background
	return op
}

var (
	verbTryWait = &policy.Verb{Name: "try wait"}
	verbLook    = &policy.Verb{Name: "look at"}
)
