package main

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/bench/internal/cputime"
)

// What sleeping costs in processor time.
//
// 100,000 sleepers take random times up to a second, so a round lasts a second
// on either side whatever the library does; the wall says nothing. Counted is
// the processor time of the process from before the first start until the last
// has ended: starting, arming, firing, waking and ending. Both sides sleep the
// same times.

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
	rt, d := coir.NewRuntime(), naps()
	return side{
		measure: func() sample {
			return processorTime(func() {
				run(rt, func(_ context.Context, nur *coir.Nursery) error {
					for _, nap := range d {
						nur.Go("sleeper", func(ctx context.Context) error {
							return coir.Sleep(ctx, nap)
						})
					}
					return nil
				})
			})
		},
		close: func() { shut(rt) },
	}
}

func sleepGoroutines() side {
	d := naps()
	return side{measure: func() sample {
		return processorTime(func() {
			var wg sync.WaitGroup
			for _, nap := range d {
				wg.Go(func() { time.Sleep(nap) })
			}
			wg.Wait()
		})
	}}
}

// processorTime returns what one sleeper of fn cost.
func processorTime(fn func()) sample {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := cputime.Used()
	fn()
	used := cputime.Used() - began
	runtime.ReadMemStats(&after)
	return sample{
		Cost:   float64(used.Nanoseconds()) / sleepers,
		Allocs: float64(after.Mallocs-before.Mallocs) / sleepers,
	}
}
