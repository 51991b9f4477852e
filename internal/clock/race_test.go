//go:build race

package clock

import (
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
)

// The clock as race builds of coir use it: with its synchronisation hidden from the race detector. Without the pragmas
// the detector reports the wheel itself; remove the one of wheel.link to see that.
func TestSilentUnderRaceDisable(t *testing.T) {
	hidden := func(f func()) {
		runtime.RaceDisable()
		f()
		runtime.RaceEnable()
	}
	for _, clock := range []Clock{NewReal(), NewVirtual()} {
		var owners, expired sync.WaitGroup
		done := targetFunc(func(uint64) { expired.Done() })
		timers := make([]Timer, 64)
		for i := range timers {
			expired.Add(200)
			owners.Go(func() {
				for range 200 {
					hidden(func() {
						clock.Arm(&timers[i], clock.Now()+rand.Int64N(int64(Gap)), done, 0)
						if clock.Stop(&timers[i]) {
							clock.Arm(&timers[i], clock.Now()+rand.Int64N(int64(Gap)), done, 1)
						}
						for rand.IntN(2) == 0 && clock.Stop(&timers[i]) {
							clock.Arm(&timers[i], 0, done, 2)
						}
					})
					if v, ok := clock.(*Virtual); ok && i == 0 {
						hidden(func() { v.Advance(Gap / 8) })
					} else if ok {
						runtime.Gosched()
					}
					// A timer that has fired is armed again; one that has not is stopped.
					hidden(func() {
						if clock.Stop(&timers[i]) {
							expired.Done()
						}
					})
				}
			})
		}
		owners.Wait()
		expired.Wait()
		switch c := clock.(type) {
		case *Real:
			hidden(func() { c.Len(); c.Passes(); c.Close() })
		case *Virtual:
			hidden(func() { c.Len(); c.AdvanceToNext() })
		}
	}
}
