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

// What a package outside needs to build a wait for time that is not a plain Sleep: the caller's clock, a queue in which
// only the first waits for time, words for reports, and a random time that a simulation decides.
//
// A Timer has one turn. The caller that has the turn, and no other, has a time on a clock. When its wait ends, by time
// or by a cancel, it hands the turn to the next in the queue, which then asks the schedule for its own time. So a
// caller that gives up changes nothing: it has taken nothing from the schedule yet.
//
// Invariants, under mu:
//
//	T1 turn:  if taken is false, no one waits in the queue.
//	T2 order: the turn goes to the first in the queue whose wait can still be claimed.
//	T3 last:  Take is called for the caller that has the turn, or if taken is false.
//
// The road not taken is a time of its own for each waiter, computed when it comes. That needs one switch less for each
// wait, but the times of all that come later are wrong when one gives up.

// Timer lets callers wait by a [Schedule], one after the other, in the order in which they came. It is for packages
// that build tickers, rate limiters and the like. A Timer holds no time on any clock while no caller waits, so there is
// nothing to stop.
//
// A wait by a Timer orders no memory: neither with another wait nor with the calls of the schedule.
type Timer struct {
	object
	schedule   Schedule
	background bool

	mu    xatomic.Mutex // guards what follows, and the schedule
	taken bool          // a caller has the turn
	queue wait.Queue    // those who wait for the turn
}

// Schedule says when the waits of a [Timer] end. Times are those of [Now], by the clock of the caller that waits. n is
// the number that the caller has given.
//
// The Timer calls Due and Take under a lock, so they need no lock of their own. They must be short, must call no
// operation of this package, and must be marked //go:norace, because that lock is hidden from the race detector.
type Schedule interface {
	// Due returns the time before which a wait for n must not end. If it is not after now, the wait ends.
	Due(n int, now time.Duration) time.Duration
	// Take is called once for each wait that ends by time, at a time when it was due. Its result is that of the wait.
	Take(n int, now time.Duration) int
	// Words returns what a wait for n waits for, such as "for 3 tokens of", to which reports add the Timer's name.
	Words(n int) string
}

// NewTimer returns a Timer that waits by the schedule s. [WithName] gives it a name, which reports show.
//
// The waits of a Timer in the background do not keep a program going: in a simulation by package sim, a program in
// which nothing else can happen is a deadlock.
func NewTimer(s Schedule, background bool, opts ...NameOption) *Timer {
	if s == nil {
		panic("coir: NewTimer needs a Schedule: it says when waits end")
	}
	t := &Timer{schedule: s, background: background}
	t.name = nameOf(opts)
	return t
}

// Now returns the time by the caller's clock: how long ago the clock began. [Sleep] and [WithTimeout] go by the same
// clock, which is virtual in a simulation. Times of two runtimes have nothing to do with each other.
//
//go:norace
func Now(ctx context.Context) time.Duration {
	if f, _ := ownFiber(ctx); f != nil {
		return time.Duration(f.nursery.rt.s.Clock().Now())
	}
	by := resolve(ctx)
	return time.Duration(by.runtime().s.Clock().Now())
}

// Jitter returns a random time that is not negative, and less than d if d is positive. In a simulation by package sim
// the schedule decides which: it is one of four.
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
	i := by.f.nursery.rt.policy.Choose(by.f, 4)
	race.Enable()
	return time.Duration(i) * (d / 4)
}

// Wait waits until the schedule lets a wait for n end, and returns what Take returns. It returns an error of ctx if ctx
// ends earlier. It fails with [ErrTimeout] immediately if it is the caller's turn, and ctx is known to end before the
// time that the schedule gives.
//
//go:norace
func (t *Timer) Wait(ctx context.Context, n int) (int, error) {
	f, sc := ownFiber(ctx)
	if f == nil || f.simulated || sc.mayBeDone() {
		return t.waitAny(ctx, n)
	}
	clk := f.nursery.rt.s.Clock()
	race.Disable()
	got, due, place := t.begin(clk, n)
	if place == served {
		f.charge()
	}
	race.Enable()
	if place == served {
		return got, nil
	}
	by := caller{ctx: ctx, f: f, sc: sc, own: true}
	return t.rest(&by, clk, n, due, place)
}

// waitAny is Wait for every caller.
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
	got, due, place := t.begin(clk, n)
	if place == served {
		by.charge()
	}
	race.Enable()
	if place == served {
		return got, nil
	}
	return t.rest(&by, clk, n, due, place)
}

// place is where a caller stands that wants to wait.
type place uint8

const (
	served place = iota // its wait has ended
	first               // it has the turn
	behind              // another has it
)

// TryTake ends a wait for n without waiting: it returns what Take returns, and true. It returns false if the wait is
// not due yet, or if others wait.
//
//go:norace
func (t *Timer) TryTake(n int) (int, bool) {
	var f *Fiber
	if simulating.Load() > 0 {
		f = t.announce(currentFiber(), t.object.op(verbTryTake))
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

// WaitCase is a case that happens when the schedule lets a wait for 1 end. It stores what Take returns in *got, unless
// got is nil. The case is for one select, which follows. It does not queue: if several callers wait, the first to run
// takes what there is. So it is for a schedule whose Due depends on time alone, such as a ticker's.
//
//go:norace
func (t *Timer) WaitCase(got *int) Case {
	escapes(t)
	clk := clockHere()
	race.Disable()
	t.mu.Lock()
	now := time.Duration(clk.Now())
	d := t.schedule.Due(1, now) - now
	t.mu.Unlock()
	race.Enable()
	return Case{what: caseAfter, arg: t, dst: unsafe.Pointer(got), after: d}
}

// take is called when the time of a case of t has come.
//
//go:norace
func (t *Timer) take(cs *Case) {
	clk := clockHere()
	race.Disable()
	t.mu.Lock()
	got := t.schedule.Take(1, time.Duration(clk.Now()))
	t.mu.Unlock()
	if cs.dst != nil {
		race.Wrote(cs.dst, unsafe.Sizeof(got))
		*(*int)(cs.dst) = got
	}
	race.Enable()
}

// String describes the timer in a few words: its name, or its number if it has none, and how many wait.
//
//go:norace
func (t *Timer) String() string {
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

// begin ends a wait that is due if no other waits. Otherwise it takes the turn, and returns when the wait is due, or
// reports that another has it.
//
//go:norace
func (t *Timer) begin(clk clock.Clock, n int) (got int, due time.Duration, _ place) {
	t.mu.Lock()
	if t.taken {
		t.mu.Unlock()
		return 0, 0, behind
	}
	now := time.Duration(clk.Now())
	if due = t.schedule.Due(n, now); due <= now {
		got = t.schedule.Take(n, now)
		t.mu.Unlock()
		return got, due, served
	}
	t.taken = true
	t.mu.Unlock()
	return 0, due, first
}

// rest is what follows begin for a caller that has to wait.
//
//go:noinline
//go:norace
func (t *Timer) rest(by *caller, clk clock.Clock, n int, due time.Duration, at place) (got int, err error) {
	race.Disable()
	r := park.None
	if at == behind {
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

// await waits for the turn. It returns None if the caller has it.
//
//go:norace
func (t *Timer) await(by *caller) park.Reason {
	w := by.waiter()
	defer w.done()
	ticket := by.arm(&w)
	node := w.kit.Event()
	t.mu.Lock()
	if !t.taken {
		t.taken = true
		t.mu.Unlock()
		w.p.Disarm() // if a cancel was faster, that changes nothing: the wait for time will find it
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

// look ends the wait of the caller, which has the turn, if it is due, and returns Data. Otherwise it returns None, and
// when the wait is due.
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
	next.Rouse(by.worker())
	return got, due, park.Data
}

// sleep waits until due, and looks. The caller has the turn; if its context ends, it gives the turn up.
//
//go:norace
func (t *Timer) sleep(by *caller, clk clock.Clock, n int, due time.Duration) (int, time.Duration, park.Reason) {
	r := park.TimedOut
	end, known := by.ends(clk)
	late := known && end < due
	if !late {
		w := by.waiter()
		r = by.await(&w, by.arm(&w), int64(due))
		w.done()
		if r == park.TimedOut {
			return t.look(by, clk, n)
		}
	}
	t.mu.Lock()
	next := t.pass()
	t.mu.Unlock()
	next.Rouse(by.worker())
	return 0, 0, r
}

// pass hands the turn to the first in the queue, and returns the parker to ready after unlocking. The caller holds mu.
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

// ends returns when the caller's context ends for its deadline, by its clock, if that is known. The deadline of a
// context of package context says nothing on a virtual clock.
//
//go:norace
func (c *caller) ends(clk clock.Clock) (at time.Duration, ok bool) {
	race.EnterUser()
	defer race.LeaveUser()
	if _, virtual := clk.(*clock.Virtual); !virtual {
		deadline, ok := c.ctx.Deadline()
		if !ok {
			return 0, false // without a look at the time, which a tick would pay for
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

// op is a wait for n, as a policy sees it.
//
//go:norace
func (t *Timer) op(n int) policy.Op {
	op := t.object.op(&policy.Verb{Name: "wait", Waits: t.schedule.Words(n)})
	op.Background = t.background
	return op
}

var verbTryTake = &policy.Verb{Name: "try take"}
