//go:build coirinterleave

package coir

// The real code of WithGrace, in every order of its memory accesses.

import (
	"testing"
	"time"

	"github.com/coir-go/coir/internal/interleave"
)

// The context ends while the scope is cancelled, twice. Then the scope has ended, and no timer is left.
func TestExploreGraceAgainstCancel(t *testing.T) {
	interleave.Check(t, interleave.Config{Bound: 3}, func() {
		clock := NewClock()
		s := timedScene(clock)
		work, cancel := WithGrace(s.fiber().here(), time.Second)
		interleave.Go("end", func() { s.n.Cancel(errStopped) })
		interleave.Go("cancel", cancel)
		cancel()
		if work.Err() == nil {
			interleave.Failf("it is cancelled, and has not ended")
		}
		interleave.JoinAll()
		if n := clock.Len(); n > 0 {
			interleave.Failf("%d timers are left", n)
		}
	})
}

// The context ends while time passes. The scope ends by its timer, or its timer is armed.
func TestExploreGraceAgainstTime(t *testing.T) {
	interleave.Check(t, interleave.Config{Bound: 3}, func() {
		clock := NewClock()
		s := timedScene(clock)
		work, cancel := WithGrace(s.fiber().here(), time.Second)
		interleave.Go("end", func() { s.n.Cancel(errStopped) })
		clock.Advance(time.Second)
		interleave.JoinAll()
		if over := work.Err() != nil; over != (clock.Len() == 0) {
			interleave.Failf("ended: %v, and %d timers are left", over, clock.Len())
		}
		clock.Advance(time.Second)
		if work.Err() == nil {
			interleave.Failf("its time has passed")
		}
		cancel()
	})
}
