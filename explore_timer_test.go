//go:build coirinterleave

package coir

// The real code for the turn of a Timer, in every order of its memory accesses.

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/coir-go/coir/internal/interleave"
)

// plain is a schedule in which a wait for n is due at time n, and a wait for -1 never. It counts the waits that ended.
type plain struct{ taken int }

func (p *plain) Due(n int, _ time.Duration) time.Duration {
	if n < 0 {
		return math.MaxInt64
	}
	return time.Duration(n)
}

func (p *plain) Take(n int, _ time.Duration) int {
	p.taken++
	return n
}

func (p *plain) Words(int) string { return "" }

// timedScene is a scene on a clock.
func timedScene(c *Clock) *scene {
	s := &scene{newNursery()}
	s.n.init(context.Background(), NewRuntime(WithWorkers(1), WithClock(c)), nil, &s.make().Fiber)
	s.n.tie()
	return s
}

// Some fibers wait, of which the first has the turn, while their nursery is cancelled and time passes. A fiber of
// another nursery waits behind them, or before them: it must always be served. Then the turn is free, no one waits, and
// as many were served as said so.
func TestExploreTurnOfATimer(t *testing.T) {
	for _, waits := range [][]int{{-1}, {-1, -1}, {5}, {5, 5}} {
		t.Run(fmt.Sprint(waits), func(t *testing.T) {
			var cfg interleave.Config
			if len(waits) > 1 || waits[0] > 0 {
				cfg.Bound = 2 // every order takes too long, and source-DPOR does not see the clock's own accesses
			}
			interleave.Check(t, cfg, func() {
				clock := NewClock()
				s, other, p := timedScene(clock), timedScene(clock), new(plain)
				timer := NewTimer(p)
				served := make([]int, len(waits)+1)
				for i, n := range waits {
					b := s.fiber()
					interleave.Go("wait", func() {
						if _, err := timer.Wait(b.here(), n); err == nil {
							served[i]++
						}
					})
				}
				last, n := other.fiber(), max(waits[0], 0)
				interleave.Go("last", func() {
					if got, err := timer.Wait(last.here(), n); err != nil || got != n {
						interleave.Failf("the last got %d, %v", got, err)
					}
					served[len(waits)]++
				})
				if n > 0 {
					interleave.Go("time", func() { clock.Advance(time.Duration(n)) })
				}
				s.n.Cancel(errStopped)
				interleave.JoinAll()
				sum := 0
				for _, k := range served {
					sum += k
				}
				if timer.taken || !timer.queue.Empty() || sum != p.taken {
					interleave.Failf("the turn is taken: %v; %d wait; %d were served, and %d say so",
						timer.taken, timer.queue.Len(), p.taken, sum)
				}
			})
		})
	}
}

// Of two fibers one is cancelled, which has the turn or waits for it. When it returns, no one is in the queue: it has
// left, or has handed the turn to the other.
func TestExploreTimerForgetsThoseWhoLeave(t *testing.T) {
	interleave.Check(t, interleave.Config{}, func() {
		clock := NewClock()
		s, other := timedScene(clock), timedScene(clock)
		timer := NewTimer(new(plain))
		leaver, stayer := s.fiber(), other.fiber()
		interleave.Go("leave", func() {
			_, _ = timer.Wait(leaver.here(), -1)
			timer.mu.Lock()
			if !timer.queue.Empty() {
				interleave.Failf("%d wait", timer.queue.Len())
			}
			timer.mu.Unlock()
			other.n.Cancel(errStopped)
		})
		interleave.Go("stay", func() { _, _ = timer.Wait(stayer.here(), -1) })
		s.n.Cancel(errStopped)
		interleave.JoinAll()
	})
}
