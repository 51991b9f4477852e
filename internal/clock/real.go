package clock

import (
	"math"
	"sync"
	"time"

	"github.com/coir-go/coir/internal/bubble"
)

// The real clock: a wheel, a mutex, and one Go timer that stands for the earliest deadline.
//
// The Go timer starts a pass: a short-lived goroutine that takes what is due out of the wheel, batch by batch, and calls
// Expire for it. Between passes the clock has no goroutine and uses no CPU, however many timers are armed, since it wakes
// for deadlines only and never to tidy the wheel.
// Spec: TM-08 (one Go timer stands for all)
// Spec: TM-09 (timers fire while workers sleep)
//
// Invariants:
//
//	R1 covered: if timers are armed, a pass is running, or the Go timer is set to wakeAt, and wakeAt is not later than the
//	            earliest deadline, or than a gap after the last pass if that is later.
//	R2 single:  at most one pass runs (firing). A callback of the Go timer that finds one leaves the work to it: R1 is
//	            restored by the pass when it ends. So Expire calls are never reordered.
//	R3 silent:  once Close has returned, no pass runs and none will take anything.
//
// Moving the Go timer goes through the runtime's own heap and locks, so it is done only when a deadline comes that is
// earlier than what it is set to: stopping the earliest timer leaves it set, and costs one pass that finds nothing.
//
// A clock that is made in a bubble of testing/synctest runs on the time of that bubble, because its Go timer does. It
// cannot be moved from elsewhere: outside another time counts, and the runtime would end the process. It knows no gap:
// in a bubble work takes no time, and tests count on deadlines to the nanosecond.
//
// # The gap
//
// With 100,000 sleepers over a second a deadline comes every 10 microseconds, and a wake for each costs far more than the
// work it does. So after a pass the Go timer is not set to less than [Gap] after the beginning of that pass: dense timers
// are fired in batches, up to Gap late, in at most 1/Gap passes a second. A timer with no pass shortly before it is not
// delayed.
//
// Measured, 100,000 random deadlines over 1 s on two cores of a Linux machine with nothing else in the process, one run:
//
//	  Gap      0   100 us   250 us   500 us   1 ms
//	  passes 2441     936      941      884    893
//	  CPU ms  101      88       81       78     67      (a time.AfterFunc each: 178)
//
// The median lateness was 0.5 to 0.6 ms in every column. Most of that, and the number of passes from 100 us on, is Go's
// doing: with nothing to run it waits in epoll, and rounds a wait of less than a millisecond up to one. A process that is
// awake has no such rounding, and there Gap is the only bound (read in the runtime's netpoll_epoll.go; not measured, the
// machine had no core to spare for it). 250 us stays below what an idle Go adds.
//
// Roads not taken: a goroutine that sleeps on a channel and a timer (a goroutine for each clock that somebody must end,
// and two switches a wake); passes run by idle workers (the fewest wakes, but then time depends on the scheduler, which
// is to know of time only through the Clock); a Go timer for each deadline (what this replaces: see BenchmarkArmStop).

// Gap is the shortest time from the beginning of a pass to the next wake of the Go timer.
const Gap = 250 * time.Microsecond

// movesMax bounds how many timers are sorted under one hold of the lock.
const movesMax = 2 * batchSize

// unset is the wakeAt of a Go timer that is not set: later than all deadlines that will ever come.
const unset = math.MaxInt64

// Real is the clock of the process. Make it with NewReal.
type Real struct {
	base time.Time
	home bubble.ID // where it was made: its Go timer belongs there

	mu       sync.Mutex
	wheel    wheel
	timer    *time.Timer
	wakeAt   int64 // what the Go timer is set to, or unset
	gap      int64 // Gap, or 0
	lastPass int64 // when the last pass began
	passes   uint64
	firing   bool
	closed   bool
	idle     sync.Cond // firing has become false

	batch batch // belongs to the pass, not to mu
}

// NewReal makes a clock that starts at 0.
//
//go:norace
func NewReal() *Real {
	c := &Real{base: time.Now(), home: bubble.Here(), wakeAt: unset, gap: int64(Gap), lastPass: -int64(Gap)}
	if c.home != 0 {
		c.gap = 0
	}
	c.idle.L = &c.mu
	c.timer = time.AfterFunc(math.MaxInt64, c.pass)
	c.timer.Stop()
	return c
}

// Now returns the monotonic nanoseconds since the clock was made.
//
//go:norace
func (c *Real) Now() int64 { return int64(time.Since(c.base)) }

// Arm is described at Clock. On a closed clock the timer is held, and never fires.
//
//go:norace
func (c *Real) Arm(t *Timer, when int64, target Target, ticket uint64) {
	c.mu.Lock()
	if t.place != 0 {
		c.mu.Unlock()
		panic(armedTwice)
	}
	c.wheel.arm(t, when, target, ticket)
	if when < c.wakeAt && !c.firing {
		if bubble.Abroad(c.home) {
			c.wheel.stop(t)
			c.mu.Unlock()
			panic(abroad(c.home))
		}
		c.wake(when)
	}
	c.mu.Unlock()
}

// abroad is what to say to a goroutine that asks for the time of another bubble.
//
//go:norace
func abroad(home bubble.ID) string {
	return "coir: a time limit was set " + bubble.Here().String() + " on a clock that was made " + home.String() +
		": set it where the runtime was made"
}

const armedTwice = "clock: Arm of a timer that is already armed; call Stop first"

// Stop is described at Clock.
//
//go:norace
func (c *Real) Stop(t *Timer) bool {
	c.mu.Lock()
	ok := c.wheel.stop(t)
	c.mu.Unlock()
	return ok
}

// Len returns how many timers are armed.
//
//go:norace
func (c *Real) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wheel.count
}

// Passes returns how often the clock has woken up.
//
//go:norace
func (c *Real) Passes() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.passes
}

// wake sees to it that a pass begins at when, or a gap after the last one if that is later, unless the Go timer is set to
// an earlier time already. Called with the lock held and no pass running.
//
//go:norace
func (c *Real) wake(when int64) {
	when = max(when, c.lastPass+c.gap)
	if when >= c.wakeAt || c.closed {
		return
	}
	c.wakeAt = when
	c.timer.Reset(time.Duration(when - c.Now()))
}

// pass fires what is due. It is the callback of the Go timer.
//
// A callback can be stale: the timer was moved while it was on its way. Then the Go timer is still set (now < wakeAt), and
// this pass finds nothing or little. The callback that wakeAt stands for takes note that the Go timer is spent even if it
// finds a pass running: that one may be stale and believe that the Go timer is still set, and R1 would be lost. Guarded
// by TestSpentTimerIsNoticed.
//
// What falls due while the pass works is left to the next one.
//
//go:norace
func (c *Real) pass() {
	c.mu.Lock()
	now := c.Now()
	if now >= c.wakeAt {
		c.wakeAt = unset
	}
	if c.firing || c.closed {
		c.mu.Unlock()
		return
	}
	c.firing = true
	c.passes++
	c.lastPass = now
	for more := true; more && !c.closed; {
		more = c.wheel.take(now, &c.batch, movesMax)
		c.mu.Unlock()
		c.batch.fire()
		c.mu.Lock()
	}
	c.firing = false
	if c.closed {
		c.idle.Broadcast()
	} else if when, ok := c.wheel.next(); ok {
		c.wake(when)
	}
	c.mu.Unlock()
}

// Close stops the clock. Timers that a running pass has taken are fired before Close returns; after it nothing fires. What
// is still armed stays armed, and can be stopped. Close must not be called from Expire: it would wait for itself.
//
//go:norace
func (c *Real) Close() {
	c.mu.Lock()
	c.closed = true
	c.timer.Stop()
	for c.firing {
		c.idle.Wait()
	}
	c.mu.Unlock()
}
