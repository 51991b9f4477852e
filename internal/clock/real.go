package clock

import (
	"math"
	"runtime"
	"time"

	"github.com/coir-go/coir/internal/bubble"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/xatomic"
)

// The real clock: a wheel for each processor, and one Go timer that is set to the earliest deadline of all timers.
//
// The Go timer starts a pass: a short-lived goroutine that takes the timers that are due out of the wheels, batch by
// batch, and calls Expire for each. Between passes the clock has no goroutine and uses no CPU, however many timers are
// armed, because it wakes only for deadlines and never to tidy a wheel.
// Spec: TM-08 (one Go timer stands for all)
// Spec: TM-09 (timers fire while workers sleep)
//
// Arming or stopping a timer takes the lock of one wheel: see shard.go. Arm also takes the clock's own lock, under that
// of the wheel, if the deadline is earlier than all others of the shard. A pass takes it at its beginning and its end.
//
// Invariants:
//
//	R1 covered: if no pass runs, the Go timer is set to wakeAt, and wakeAt is not later than covered of any shard (S1),
//	            or than a gap after the last pass if that is later. If a pass runs, it will still read covered of
//	            each shard, or noted is not later than that.
//	R2 single:  at most one pass runs (firing). A callback of the Go timer that finds a pass running leaves the work to
//	            that pass, which restores R1 when it ends. So Expire calls are never reordered.
//	R3 silent:  once Close has returned, no pass runs, and no later pass takes a timer.
//
// Moving the Go timer takes locks of the runtime and changes its heap, so it is moved only for a deadline that is
// earlier than wakeAt. Stopping the earliest timer leaves it set, and costs one pass that finds nothing.
//
// A clock that is made in a bubble of testing/synctest runs on the time of that bubble, because its Go timer does. Code
// outside the bubble cannot set that Go timer: it has another time, and the runtime would end the process. Such a clock
// has no gap: in a bubble work takes no time, and tests rely on exact deadlines.
//
// # The gap
//
// With 100,000 sleepers over a second, there is a deadline every 10 microseconds, and a wake for each costs far more
// than the work it does. So a pass begins no earlier than [Gap] after the beginning of the pass before it. Dense timers
// are fired in batches, up to Gap late, in at most 1/Gap passes a second. A timer with no pass shortly before it is not
// delayed.
//
// Measured, 100,000 random deadlines over 1 s on two cores of a Linux machine with nothing else in the process, one
// run:
//
//	  Gap      0   100 us   250 us   500 us   1 ms
//	  passes 2441     936      941      884    893
//	  CPU ms  101      88       81       78     67      (a time.AfterFunc each: 178)
//
// The median lateness was 0.5 to 0.6 ms in every column. Most of that, and the number of passes from 100 us on, is
// caused by Go: with nothing to run it waits in epoll, which rounds a wait of less than a millisecond up to one. A
// process that is awake has no such rounding, so there only Gap bounds the lateness (read in the runtime's
// netpoll_epoll.go; not measured, because the machine had no spare core). 250 us is less than the delay that an idle Go
// adds.
//
// Rejected: a goroutine that sleeps on a channel and a timer (each clock would have a goroutine that must be ended, and
// a wake would take two switches); passes run by idle workers (the fewest wakes, but time would depend on the
// scheduler, which should know time only through the Clock); a Go timer for each deadline (slower: see
// BenchmarkArmStop).

// Gap is the shortest time from the beginning of a pass to the next wake of the Go timer.
const Gap = 250 * time.Microsecond

// unset is the wakeAt of a Go timer that is not set. It is later than all deadlines.
const unset = math.MaxInt64

// Real is the clock of the process. Make it with NewReal.
type Real struct {
	base   time.Time
	home   bubble.ID // the bubble of its Go timer
	shards []shard   // as many as a power of two
	alarm  alarm     // nil except in an exploration

	_ [128]byte // keeps fields that are only read in other cache lines than fields that are written

	mu       xatomic.Mutex // taken under the lock of a shard, never the other way round
	timer    *time.Timer
	wakeAt   int64 // the time that the Go timer is set to, or unset
	noted    int64 // the earliest deadline armed during the current pass, or unset
	gap      int64 // Gap, or 0
	lastPass int64 // when the last pass began
	passes   uint64
	firing   bool
	closed   xatomic.Bool // written with the lock held
	idle     xatomic.Cond // signalled when firing becomes false

	lanes []*shard // has room for all shards; used by the pass, not guarded by mu
}

// alarm replaces time and the Go timer in explorations of the code.
type alarm interface {
	now() int64
	set(when int64)
}

// All clocks of the process show the same time, and so do all clocks of a bubble, whenever they were made. So code may
// read one clock now and another one later. The default runtime of a bubble is collected when nothing refers to it, and
// later made again, with its clock; and fibers of two runtimes may use one limiter.
var (
	processStart = time.Now()
	bubbleStart  = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // according to package synctest
)

// NewReal makes a clock.
//
//go:norace
func NewReal() *Real {
	c := &Real{
		base: processStart, home: bubble.Here(), wakeAt: unset, noted: unset, gap: int64(Gap), lastPass: -int64(Gap),
	}
	n := 1
	if c.home != 0 {
		c.base, c.gap = bubbleStart, 0
	} else {
		for n < min(runtime.GOMAXPROCS(0), maxShards) {
			n *= 2
		}
	}
	c.divide(n)
	c.idle.L = &c.mu
	c.timer = time.AfterFunc(math.MaxInt64, c.pass)
	c.timer.Stop()
	return c
}

// Now returns the monotonic nanoseconds since the start of the process or the bubble.
//
//go:norace
func (c *Real) Now() int64 {
	if xatomic.Instrumented && c.alarm != nil {
		return c.alarm.now()
	}
	return int64(time.Since(c.base))
}

// Arm implements Clock. On a closed clock the timer is held, and never fires.
//
//go:norace
func (c *Real) Arm(t *Timer, when int64, target Target, ticket uint64) {
	if t.near == 0 {
		t.near = spread(t)
	}
	sh := c.shardOf(t)
	sh.mu.Lock()
	if t.place != 0 {
		sh.mu.Unlock()
		race.Enable() // as the caller would do: the panic may be recovered
		panic(armedTwice)
	}
	if sh.wheel == nil {
		sh.wheel = new(wheel)
	}
	sh.wheel.arm(t, when, target, ticket)
	if when < sh.covered.Load() && !c.cover(sh, when) {
		sh.wheel.stop(t)
		sh.mu.Unlock()
		race.Enable() // as the caller would do: the panic may be recovered
		panic(otherBubbleText(c.home))
	}
	sh.mu.Unlock()
}

// cover ensures that there will be a pass for a deadline that is earlier than all others of its shard. It returns false
// if that needs the Go timer and the caller is in another bubble. The caller holds the shard's lock.
//
//go:norace
func (c *Real) cover(sh *shard, when int64) bool {
	c.mu.Lock()
	switch {
	case c.firing:
		c.noted = min(c.noted, when)
	case when >= c.wakeAt:
	case bubble.Outside(c.home):
		c.mu.Unlock()
		return false
	default:
		c.wake(when)
	}
	sh.covered.Store(when)
	c.mu.Unlock()
	return true
}

// otherBubbleText returns the panic text for a goroutine that uses the clock of another bubble.
//
//go:norace
func otherBubbleText(home bubble.ID) string {
	return "coir: a time limit was set " + bubble.Here().String() + " on a clock that was made " + home.String() +
		": set it where the runtime was made"
}

const armedTwice = "clock: Arm of a timer that is already armed; call Stop first"

// Stop implements Clock.
//
//go:norace
func (c *Real) Stop(t *Timer) bool {
	if t.near == 0 {
		return false // it was never armed
	}
	sh := c.shardOf(t)
	sh.mu.Lock()
	ok := t.place != 0
	if ok {
		sh.wheel.stop(t)
	}
	sh.mu.Unlock()
	return ok
}

// Len returns how many timers are armed.
//
//go:norace
func (c *Real) Len() int {
	n := 0
	for i := range c.shards {
		sh := &c.shards[i]
		sh.mu.Lock()
		if sh.wheel != nil {
			n += sh.wheel.count
		}
		sh.mu.Unlock()
	}
	return n
}

// Passes returns the number of passes so far.
//
//go:norace
func (c *Real) Passes() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.passes
}

// wake sets the Go timer so that a pass begins at when, or a gap after the last pass if that is later. It does nothing
// if the Go timer is set to an earlier time. The caller holds the lock, and no pass runs.
//
//go:norace
func (c *Real) wake(when int64) {
	when = max(when, c.lastPass+c.gap)
	if when >= c.wakeAt || c.closed.Load() {
		return
	}
	c.wakeAt = when
	if xatomic.Instrumented && c.alarm != nil {
		c.alarm.set(when)
		return
	}
	c.timer.Reset(time.Duration(when - c.Now()))
}

// pass fires the timers that are due. It is the callback of the Go timer.
//
// A callback can be stale, if the Go timer was moved after it fired. Then the Go timer is still set (now < wakeAt), and
// this pass finds little or nothing. The callback for wakeAt records that the Go timer has fired, even if it finds a
// pass running. That pass may be stale and assume that the Go timer is still set, which would break R1.
// Guarded by TestSpentTimerIsNoticed.
//
// Timers that become due during the pass are left to the next pass.
//
//go:norace
func (c *Real) pass() {
	c.mu.Lock()
	now := c.Now()
	if now >= c.wakeAt {
		c.wakeAt = unset
	}
	if c.firing || c.closed.Load() {
		c.mu.Unlock()
		return
	}
	c.firing = true
	c.passes++
	c.lastPass = now
	c.noted = unset // before it looks at the shards
	c.mu.Unlock()
	c.fire(now)
	when := c.earliest()
	c.mu.Lock()
	c.firing = false
	if c.closed.Load() {
		c.idle.Signal()
	} else {
		c.wake(min(when, c.noted))
	}
	c.mu.Unlock()
}

// Close stops the clock. Timers that a running pass has taken are fired before Close returns; after that no timer
// fires. Timers that are still armed stay armed, and can be stopped. Close must not be called from Expire, because it
// would wait for itself.
//
//go:norace
func (c *Real) Close() {
	c.mu.Lock()
	c.closed.Store(true)
	c.timer.Stop()
	for c.firing {
		c.idle.Wait()
	}
	c.idle.Signal() // another Close
	c.mu.Unlock()
}
