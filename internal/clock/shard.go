package clock

import (
	"math"
	"unsafe"

	"github.com/coir-go/coir/internal/xatomic"
)

// The shards of the real clock: wheels, each with a lock.
//
// Every receive with a timeout arms a timer and stops it. With one lock for all, the workers of a large machine would
// contend for it (docs/design/0012). So each worker arms its timers in its own shard. Other callers, such as
// goroutines, use a shard chosen by the address of the timer: a goroutine takes its timer from a pool of its processor,
// and usually gets the same one again. A timer is stopped in the shard in which it was armed, on any worker.
//
// A pass fires the timers that are due in all shards in the order of the deadlines, as if there were one wheel. It
// takes a batch from each shard in which timers are due, and always fires the earliest. Timers of one nanosecond in two
// shards have no order.
//
// Invariants:
//
//	S1 covered: no timer of a shard has a deadline before covered, unless a pass is emptying the shard. Covered is
//	            written with the shard's lock held, and lowered with the clock's lock held too, so R1 covers the timer.
//	S2 passed:  a pass that ends without a Close has left no timer in a shard that was due when it looked there.
//
// A pass reads covered without the lock, and skips the shard if covered is after now. If a deadline is armed just then,
// the caller sees that a pass runs, and notes the deadline in the clock: see cover.
//
// Rejected: firing shard after shard, without the merge. A timer could then overtake another by the length of a pass.
// Also rejected: a Go timer for each shard. That needs no lock of the clock, but a mostly idle process with many
// workers would wake up many times instead of once.

// maxShards bounds the memory: a wheel has 17 KiB. A shard's wheel is created for its first timer.
const maxShards = 64

// movesMax bounds how many timers are sorted under one hold of the lock.
const movesMax = 2 * batchSize

// shard is a wheel and its lock, in its own cache lines.
type shard struct {
	mu      xatomic.Mutex
	covered xatomic.Int64 // see S1; unset if the shard has no timers
	wheel   *wheel        // nil before the first timer

	// Used by the pass.
	due  *batch // nil before the first pass that needs it
	more bool   // more timers may be due than have been taken

	_ [88]byte
}

// divide makes the shards of a new clock.
//
//go:norace
func (c *Real) divide(n int) {
	c.shards = make([]shard, n)
	c.lanes = make([]*shard, n)
	for i := range c.shards {
		c.shards[i].covered.Store(unset)
	}
}

// shardOf returns the shard in which the timer is armed, or will be armed.
//
//go:norace
func (c *Real) shardOf(t *Timer) *shard { return &c.shards[int(t.near)&(len(c.shards)-1)] }

// spread chooses a shard for a timer that no worker arms.
//
//go:norace
func spread(t *Timer) uint16 {
	return uint16(uint64(uintptr(unsafe.Pointer(t)))*0x9e3779b97f4a7c15>>49) + 1
}

// fire calls Expire for the timers that are due at now in all shards, in the order of the deadlines.
//
//go:norace
func (c *Real) fire(now int64) {
	n := 0 // the number of lanes: shards whose batch is not empty
	for i := range c.shards {
		if sh := &c.shards[i]; sh.covered.Load() <= now && c.refill(sh, now) {
			c.lanes[n] = sh
			n++
		}
	}
	for n > 0 {
		at, first, second := 0, c.lanes[0].first(), int64(math.MaxInt64)
		for i := 1; i < n; i++ {
			if when := c.lanes[i].first(); when < first {
				at, first, second = i, when, first
			} else if when < second {
				second = when
			}
		}
		sh := c.lanes[at]
		sh.due.fire(second)
		if sh.due.n == 0 && !(sh.more && c.refill(sh, now)) {
			n--
			c.lanes[at] = c.lanes[n]
		}
	}
}

// first returns the earliest deadline that has been taken out of the shard and not yet fired.
//
//go:norace
func (sh *shard) first() int64 { return sh.due.list[sh.due.at].when }

// refill takes timers that are due at now out of the shard, at most a batch, and reports whether there were any. If the
// clock is closed, refill takes nothing.
//
//go:norace
func (c *Real) refill(sh *shard, now int64) bool {
	if sh.due == nil {
		sh.due = new(batch)
	}
	for sh.more = true; sh.more && sh.due.n == 0; {
		sh.mu.Lock()
		if c.closed.Load() {
			sh.mu.Unlock()
			return false
		}
		sh.more = sh.wheel.take(now, sh.due, movesMax)
		if !sh.more {
			sh.covered.Store(sh.wheel.next())
		}
		sh.mu.Unlock()
	}
	return sh.due.n > 0
}

// earliest returns a time before which no timer is due, except for timers that are being armed.
//
//go:norace
func (c *Real) earliest() int64 {
	when := int64(unset)
	for i := range c.shards {
		when = min(when, c.shards[i].covered.Load())
	}
	return when
}
