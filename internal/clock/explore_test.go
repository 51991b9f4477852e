//go:build coirinterleave

package clock

// The real clock with two shards, through the orders of its accesses. Time and the Go timer are replaced by a number.

import (
	"testing"

	"github.com/coir-go/coir/internal/interleave"
	"github.com/coir-go/coir/internal/xatomic"
)

// hand is an alarm whose time is moved by hand. The setting of the Go timer is in the clock's wakeAt.
type hand struct{ at int64 }

func (h *hand) now() int64 { return h.at }
func (h *hand) set(int64)  {}

// explored is a clock in an exploration, with a record of its timers.
type explored struct {
	*Real
	hand   *hand
	timers []Timer
	due    []int64 // the deadlines
	fired  []int
	inside xatomic.Bool // an Expire runs
	shut   xatomic.Bool // a Close has returned
}

// explore makes a clock that stands at 100, with timers for these deadlines, none of them armed. Timer i belongs to
// shard i%2. Each fires at or after its deadline, once.
func explore(due ...int64) *explored {
	e := &explored{Real: NewReal(), hand: &hand{100}, due: due}
	e.timers, e.fired = make([]Timer, len(due)), make([]int, len(due))
	e.alarm, e.gap, e.lastPass = e.hand, 0, 0
	e.divide(2)
	for i := range e.timers {
		e.timers[i].Near(uint32(i % 2))
	}
	return e
}

func (e *explored) arm(i int) { e.Arm(&e.timers[i], e.due[i], e, uint64(i)) }

// Expire implements Target.
func (e *explored) Expire(ticket uint64) {
	when := e.due[ticket]
	if e.inside.Swap(true) {
		interleave.Failf("two passes call Expire at once")
	}
	if e.shut.Load() {
		interleave.Failf("timer %d fired after Close had returned", ticket)
	}
	if e.hand.at < when {
		interleave.Failf("timer %d fired at %d, before %d", ticket, e.hand.at, when)
	}
	e.fired[ticket]++
	e.inside.Store(false)
}

// play advances the time while the Go timer is set, as if nothing else happened, and fails unless each timer has then
// been fired as often as it should be.
func (e *explored) play(want ...int) {
	if err := e.check(); err != nil {
		interleave.Failf("%v", err)
	}
	for e.wakeAt != unset {
		e.hand.at = max(e.hand.at, e.wakeAt)
		e.pass()
	}
	for i, n := range e.fired {
		if n != want[i] {
			interleave.Failf("timer %d was fired %d times, not %d", i, n, want[i])
		}
	}
	if n := e.Len(); n != 0 {
		interleave.Failf("%d timers are armed, and the Go timer is not set", n)
	}
}

// While a pass runs, two threads arm timers, earlier and later than the existing ones, in shards that the pass has
// visited and in shards that it will visit. No timer is lost.
//
// Spec: TM-03 (no timer fires early)
// Spec: TM-04 (no timer is lost)
func TestExploreArmAgainstPass(t *testing.T) {
	for name, due := range map[string][]int64{
		"all due":      {50, 60, 40, 30},
		"all later":    {50, 60, 140, 130},
		"one shard":    {50, 160, 140, 30},
		"shard is new": {150, 0, 140, 130},
	} {
		t.Run(name, func(t *testing.T) {
			interleave.Check(t, interleave.Config{}, func() {
				e := explore(due...)
				e.arm(0)
				armed := []int{1, 1, 1, 1}
				if due[1] == 0 {
					armed[1] = 0
				} else {
					e.arm(1)
				}
				interleave.Go("pass", e.pass)
				interleave.Go("worker 0", func() { e.arm(2) })
				interleave.Go("worker 1", func() { e.arm(3) })
				interleave.JoinAll()
				e.play(armed...)
			})
		})
	}
}

// Two callbacks of the Go timer, one of them stale, and a timer that is armed meanwhile: one pass runs at a time, and
// the Go timer is set when both have ended.
//
// Spec: TM-04 (no timer is lost)
func TestExploreTwoPasses(t *testing.T) {
	interleave.Check(t, interleave.Config{}, func() {
		e := explore(50, 60, 140)
		e.arm(0)
		e.arm(1)
		interleave.Go("pass", e.pass)
		interleave.Go("another pass", e.pass)
		interleave.Go("worker 0", func() { e.arm(2) })
		interleave.JoinAll()
		e.play(1, 1, 1)
	})
}

// Each arming ends in a Stop that returns true, or in one Expire. A thread that has stopped its timer may arm it in
// another shard.
//
// Spec: TM-04 (no timer is lost)
func TestExploreStopAgainstPass(t *testing.T) {
	interleave.Check(t, interleave.Config{}, func() {
		e := explore(50, 60, 150)
		want := []int{1, 1, 1}
		for i := range e.timers {
			e.arm(i)
		}
		interleave.Go("pass", e.pass)
		interleave.Go("worker 0", func() {
			if e.Stop(&e.timers[0]) {
				want[0] = 0
			}
		})
		interleave.Go("worker 1", func() {
			if e.Stop(&e.timers[1]) {
				e.timers[1].Near(0)
				e.arm(1)
			}
			e.Stop(&e.timers[2]) // is not due, so nothing else takes it
			want[2] = 0
		})
		interleave.JoinAll()
		e.play(want...)
	})
}

// Each of two callers of Close waits for the timers that the pass has taken. After that nothing fires.
func TestExploreCloseAgainstPass(t *testing.T) {
	interleave.Check(t, interleave.Config{}, func() {
		e := explore(50, 60, 40)
		e.arm(0)
		e.arm(1)
		interleave.Go("pass", e.pass)
		for range 2 {
			interleave.Go("close", func() {
				e.Close()
				e.shut.Store(true)
			})
		}
		interleave.Go("worker 0", func() { e.arm(2) })
		interleave.JoinAll()
		for i, n := range e.fired {
			if armed := e.Stop(&e.timers[i]); n > 1 || armed == (n == 1) {
				interleave.Failf("timer %d was fired %d times; is it armed: %v", i, n, armed)
			}
		}
	})
}
