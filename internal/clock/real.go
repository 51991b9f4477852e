package clock

import (
	"math"
	"runtime"
	"time"

	"github.com/coir-go/coir/internal/bubble"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/xatomic"
)

// The real clock: a wheel for each processor, and one Go timer that is set to the earliest deadline of all.
//
// The Go timer starts a pass: a short-lived goroutine that takes what is due out of the wheels, batch by batch, and
// calls Expire for it. Between passes the clock has no goroutine and uses no CPU, however many timers are armed, since
// it wakes for deadlines only and never to tidy a wheel.
// Spec: TM-08 (one Go timer stands for all)
// Spec: TM-09 (timers fire while workers sleep)
//
// Arming or stopping a timer takes the lock of one wheel: see shard.go. The clock's own lock is taken under it when a
// deadline comes that is earlier than all that the shard has, and by a pass when it begins and when it ends.
//
// Invariants:
//
//	R1 covered: if no pass runs, the Go timer is set to wakeAt, and wakeAt is not later than what any shard is covered
//	            for (S1), or than a gap after the last pass if that is later. If a pass runs, it will see what each
//	            shard is covered for, or noted is not later.
//	R2 single:  at most one pass runs (firing). A callback of the Go timer that finds one leaves the work to it: R1 is
//	            restored by the pass when it ends. So Expire calls are never reordered.
//	R3 silent:  once Close has returned, no pass runs and none will take anything.
//
// Moving the Go timer goes through the runtime's own heap and locks, so the Go timer is moved only for a deadline that
// is earlier than wakeAt: stopping the earliest timer leaves it set, and costs one pass that finds nothing.
//
// A clock that is made in a bubble of testing/synctest runs on the time of that bubble, because its Go timer does. Code
// outside of the bubble cannot set that timer: it has another time, and the runtime would end the process. Such a clock
// has no gap: in a bubble work takes no time, and tests rely on exact deadlines.
//
// # The gap
//
// With 100,000 sleepers over a second a deadline comes every 10 microseconds, and a wake for each costs far more than
// the work it does. So after a pass the Go timer is not set to less than [Gap] after the beginning of that pass: dense
// timers are fired in batches, up to Gap late, in at most 1/Gap passes a second. A timer with no pass shortly before it
// is not delayed.
//
// Measured, 100,000 random deadlines over 1 s on two cores of a Linux machine with nothing else in the process, one
// run:
//
//	  Gap      0   100 us   250 us   500 us   1 ms
//	  passes 2441     936      941      884    893
//	  CPU ms  101      88       81       78     67      (a time.AfterFunc each: 178)
//
// The median lateness was 0.5 to 0.6 ms in every column. Most of that, and the number of passes from 100 us on, is
// caused by Go: with nothing to run it waits in epoll, and rounds a wait of less than a millisecond up to one. A
// process that is awake has no such rounding, and there Gap is the only bound (read in the runtime's netpoll_epoll.go;
// not measured, the machine had no core to spare for it). 250 us stays below what an idle Go adds.
//
// Rejected: a goroutine that sleeps on a channel and a timer (each clock would have a goroutine that must be ended, and
// a wake would take two switches); passes run by idle workers (the fewest wakes, but time would depend on the
// scheduler, which should know time only through the Clock); a Go timer for each deadline (slower: see
// BenchmarkArmStop).

// Gap is the shortest time from the beginning of a pass to the next wake of the Go timer.
const Gap = 250 * time.Microsecond

// unset is the wakeAt of a Go timer that is not set: later than all deadlines.
const unset = math.MaxInt64

// Real is the clock of the process. Make it with NewReal.
type Real struct {
	base   time.Time
	home   bubble.ID // the bubble of its Go timer
	shards []shard   // a power of two
	alarm  alarm     // of an exploration; otherwise nil

	_ [128]byte // keeps the fields that all read apart from those that are written

	mu       xatomic.Mutex // taken under that of a shard, not the other way round
	timer    *time.Timer
	wakeAt   int64 // what the Go timer is set to, or unset
	noted    int64 // the earliest deadline that came while a pass ran, or unset
	gap      int64 // Gap, or 0
	lastPass int64 // when the last pass began
	passes   uint64
	firing   bool
	closed   xatomic.Bool // changed with the lock held
	idle     xatomic.Cond // firing has become false

	lanes []*shard // room for all; belongs to the pass, not to mu
}

// alarm takes the place of time and of the Go timer in explorations of the code.
type alarm interface {
	now() int64
	set(when int64)
}

// All clocks of the process show the same time, and all of a bubble do, whenever they were made: what has read one
// clock may read another one later. The default runtime of a bubble is collected when nothing refers to it, and made
// again, with its clock; and a limiter may be used by fibers of two runtimes.
var (
	processStart = time.Now()
	bubbleStart  = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // so says package synctest
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

// Now returns the monotonic nanoseconds since the process has started, or the bubble.
//
//go:norace
func (c *Real) Now() int64 {
	if xatomic.Instrumented && c.alarm != nil {
		return c.alarm.now()
	}
	return int64(time.Since(c.base))
}

// Arm is described at Clock. On a closed clock the timer is held, and never fires.
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

// cover ensures that a pass comes for a deadline that is earlier than all others of its shard. It reports false if that
// needs the Go timer and the caller is in another bubble. The caller holds the shard's lock.
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

// Stop is described at Clock.
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

// wake sets the Go timer so that a pass begins at when, or a gap after the last one if that is later. It does nothing
// if the timer is set to an earlier time. It is called with the lock held and no pass running.
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

// pass fires what is due. It is the callback of the Go timer.
//
// A callback can be stale, if the timer was moved after it fired. Then the Go timer is still set (now < wakeAt), and
// this pass finds little or nothing. The callback for wakeAt records that the Go timer has fired, even if it finds a
// pass running: that pass may be stale and assume that the Go timer is still set, which would break R1.
// Guarded by TestSpentTimerIsNoticed.
//
// Timers that fall due during the pass are left to the next one.
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

// Close stops the clock. Timers that a running pass has taken are fired before Close returns; after it nothing fires.
// Timers that are still armed stay armed, and can be stopped. Close must not be called from Expire: it would wait for
// itself.
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
