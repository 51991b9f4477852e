package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/bench/internal/timing"
)

// The cost of sleeping, in processor time.
//
// 100,000 sleepers sleep for random times up to a second. So a round lasts a second on either side, and wall time shows
// nothing. The figure is the processor time of the process from before the first start until the last sleeper has
// ended: starting, arming, firing, waking and ending. Both sides sleep for the same times.

const sleepers = 100_000

// naps returns the sleepers' times. The seed is fixed, so both sides get the same.
func naps() []time.Duration {
	r := rand.New(rand.NewPCG(3, 4))
	d := make([]time.Duration, sleepers)
	for i := range d {
		d[i] = time.Duration(r.Int64N(int64(time.Second)))
	}
	return d
}

func sleepFibers() side {
	rt, shut := keptRuntime()
	d := naps()
	return side{
		measure: func() sample {
			return sampleOf(sleepers, true, func() {
				run(rt, func(_ context.Context, nur *coir.Nursery) error {
					for _, nap := range d {
						nur.Go("sleeper", func(ctx context.Context) error { return coir.Sleep(ctx, nap) })
					}
					return nil
				})
			})
		},
		close: shut,
	}
}

func sleepGoroutines() side {
	d := naps()
	return side{measure: func() sample {
		return sampleOf(sleepers, true, func() {
			var wg sync.WaitGroup
			for _, nap := range d {
				wg.Go(func() { time.Sleep(nap) })
			}
			wg.Wait()
		})
	}}
}

// sampleOf returns the cost of one of the n operations of fn.
func sampleOf(n float64, cpu bool, fn func()) sample {
	c := timing.Of(cpu, fn)
	return sample{Cost: float64(c.Time.Nanoseconds()) / n, Allocs: c.Mallocs / n}
}
