package main

import (
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// Every wake of a source outside of the load arrives, on both sides, and none before it was sent. A task sends only if
// one is working when a wake is due, which is not certain on a loaded machine. So of those wakes, only some must
// arrive.
func TestWakesArrive(t *testing.T) {
	const round = 100 * time.Millisecond
	const sends = int(round/wakeEvery) - 1
	rt := coir.NewRuntime()
	defer shut(rt)
	for from := fromTask; from <= fromOutside; from++ {
		for name, delays := range map[string][]float64{
			"fibers":     wakesOfFibers(rt, from, round),
			"goroutines": wakesOfGoroutines(from, round),
		} {
			if len(delays) == 0 || len(delays) > sends+1 || from != fromTask && len(delays) != sends {
				t.Errorf("%s, source %d: %d wakes arrived, want %d", name, from, len(delays), sends)
			}
			for _, d := range delays {
				if d < 0 {
					t.Errorf("%s, source %d: a wake arrived %g µs before it was sent", name, from, -d)
				}
			}
		}
	}
}
