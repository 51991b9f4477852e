package clock

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir/internal/race"
)

// The virtual clock: the same wheel, with a time that moves only by Advance and AdvanceToNext.
//
// Tests and the simulator drive it. Time goes from deadline to deadline: while Expire runs, Now is the deadline of the
// timer that is firing, as it would be on an infinitely fast machine. A timer that Expire arms is fired in the same
// move if it is due before the move ends.
//
// Invariants:
//
//	V1 still:    Now changes only inside Advance and AdvanceToNext, and never goes back, except that Rewind stops all
//	             timers and sets it to 0.
//	V2 fired:    when Advance returns, no timer that was armed before it has a deadline at or before Now.
//	V3 repeated: the same calls in the same order give the same Expire calls in the same order. Hence a deadline in the
//	             past counts as exactly Now. The real clock does not do that, because it would have to read the time.
//
// Rejected: the time of testing/synctest (it moves when all goroutines of the bubble are blocked, so the simulator
// could not choose when, and a parked fiber does not count as blocked); a sorted slice in place of the wheel (simple,
// but simulated tests would then not test the wheel; the slice is the model in model_test.go).

// Virtual is a clock whose time is moved by Advance. Make it with NewVirtual. Now, Arm, Stop and Len may be called from
// any goroutine; only one may move the time.
type Virtual struct {
	now atomic.Int64 // written with mu held

	mu     sync.Mutex
	wheel  wheel
	moving bool

	batch batch // belongs to the goroutine that moves the time
}

// NewVirtual makes a clock that stands at 0.
//
//go:norace
func NewVirtual() *Virtual { return new(Virtual) }

// Now returns the virtual nanoseconds since 0.
//
//go:norace
func (v *Virtual) Now() int64 { return v.now.Load() }

// Arm implements Clock. A deadline in the past counts as Now, and fires at the next Advance, even by 0.
//
//go:norace
func (v *Virtual) Arm(t *Timer, when int64, target Target, ticket uint64) {
	v.mu.Lock()
	if t.place != 0 {
		v.mu.Unlock()
		race.Enable() // as the caller would do: the panic may be recovered
		panic(armedTwice)
	}
	v.wheel.arm(t, max(when, v.now.Load()), target, ticket)
	v.mu.Unlock()
}

// Stop implements Clock.
//
//go:norace
func (v *Virtual) Stop(t *Timer) bool {
	v.mu.Lock()
	ok := v.wheel.stop(t)
	v.mu.Unlock()
	return ok
}

// Len returns how many timers are armed.
//
//go:norace
func (v *Virtual) Len() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.wheel.count
}

// Advance moves the time by d. On the way it fires the timers that become due, in order, on the caller's goroutine. If
// d would overflow int64, the time becomes the largest int64. If each Expire arms a timer for the current time, Advance
// does not return.
//
//go:norace
func (v *Virtual) Advance(d time.Duration) {
	if d < 0 {
		panic("coir: Advance by a negative duration: time does not go back")
	}
	v.lockToMove()
	to := v.now.Load() + int64(d)
	if to < 0 {
		to = math.MaxInt64
	}
	v.moveTo(to)
	v.moving = false
	v.mu.Unlock()
}

// AdvanceToNext moves the time to the earliest deadline, and fires all timers of that moment, except those that an
// Expire arms, so that a simulator can run the woken fibers first. It reports whether there was a timer.
//
//go:norace
func (v *Virtual) AdvanceToNext() bool {
	v.lockToMove()
	fired := v.fireNext(math.MaxInt64)
	v.moving = false
	v.mu.Unlock()
	return fired
}

// Rewind stops all timers, and sets the time to 0.
//
//go:norace
func (v *Virtual) Rewind() {
	v.lockToMove()
	for v.wheel.levels != 0 {
		v.wheel.stop(v.wheel.slots[v.wheel.first()].head)
	}
	v.wheel.cur = 0
	v.now.Store(0)
	v.moving = false
	v.mu.Unlock()
}

// lockToMove takes the lock and the right to move the time.
//
//go:norace
func (v *Virtual) lockToMove() {
	v.mu.Lock()
	if v.moving {
		v.mu.Unlock()
		panic("clock: the virtual time is being moved already: Advance was called from Expire or from a second goroutine")
	}
	v.moving = true
}

// moveTo moves the time to a moment that is not in the past, deadline by deadline. The lock is held when it is called
// and when it returns, but not while Expire runs.
//
//go:norace
func (v *Virtual) moveTo(to int64) {
	for v.fireNext(to) {
	}
	v.now.Store(to)
}

// fireNext moves the time to the earliest deadline that is not after limit, and fires its timers. It reports whether
// there was such a deadline. The lock is held as in moveTo.
//
//go:norace
func (v *Virtual) fireNext(limit int64) bool {
	moves := math.MaxInt
	t, _ := v.wheel.earliest(limit, &moves)
	if t == nil {
		return false
	}
	v.now.Store(t.when)
	v.wheel.take(t.when, &v.batch, math.MaxInt)
	v.mu.Unlock()
	v.batch.fire(math.MaxInt64)
	v.mu.Lock()
	return true
}
