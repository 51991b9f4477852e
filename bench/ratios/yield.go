package main

import (
	"context"
	"iter"
	"runtime"
	"sync"

	"github.com/coir-go/coir"
)

// The cost of a switch.
//
// Two fibers yield to each other on one worker, so that each Yield is one switch and nothing is stolen. The minimum
// cost of such a switch is one swap of iter.Pull, on which coir is built; without coir, users would call
// runtime.Gosched. Both sides run under GOMAXPROCS(1): Gosched between two goroutines on two Ps would not switch at
// all.

func yieldCoir() side {
	return onRuntime(func(_ context.Context, nur *coir.Nursery, n int) error {
		for i := range 2 {
			turns := (n + i) / 2
			nur.Go("yield", func(ctx context.Context) error {
				for range turns {
					if err := coir.Yield(ctx); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return nil
	}, coir.WithWorkers(1))
}

// yieldPull counts one call of next as two swaps: into the coroutine and out of it.
func yieldPull() side {
	return side{loop: func(n int) {
		next, stop := iter.Pull(func(yield func(struct{}) bool) {
			for yield(struct{}{}) {
			}
		})
		for range (n + 1) / 2 {
			next()
		}
		stop()
	}}
}

func yieldGosched() side {
	return side{loop: func(n int) {
		var wg sync.WaitGroup
		for i := range 2 {
			turns := (n + i) / 2
			wg.Go(func() {
				for range turns {
					runtime.Gosched()
				}
			})
		}
		wg.Wait()
	}}
}

// onRuntime is a side that runs body on a runtime of its own.
//
//go:noinline
func onRuntime(body func(ctx context.Context, nur *coir.Nursery, n int) error, opts ...coir.RuntimeOption) side {
	rt := coir.NewRuntime(opts...)
	return side{
		loop: func(n int) {
			run(rt, func(ctx context.Context, nur *coir.Nursery) error { return body(ctx, nur, n) })
		},
		close: func() { shut(rt) },
	}
}

// keptRuntime makes a runtime on which one Run stays open until the runtime is shut, as in a service. An unused runtime
// releases its workers and coroutines between two rounds, and each round would pay for new ones, while Go keeps its
// dead goroutines forever.
func keptRuntime() (rt *coir.Runtime, close func()) {
	rt = coir.NewRuntime()
	ctx, end := context.WithCancel(context.Background())
	var kept sync.WaitGroup
	kept.Go(func() {
		run(rt, func(context.Context, *coir.Nursery) error {
			_ = coir.WaitCancel(ctx) // waits for the end of the side
			return nil
		})
	})
	return rt, func() {
		end()
		kept.Wait()
		shut(rt)
	}
}

// run is rt.Run for a body that must not fail.
func run(rt *coir.Runtime, fn func(context.Context, *coir.Nursery) error) {
	if err := rt.Run(context.Background(), fn); err != nil {
		panic("the measured program failed: " + err.Error())
	}
}

// shut is rt.Close for a runtime on which nothing runs any more.
func shut(rt *coir.Runtime) {
	if err := rt.Close(context.Background()); err != nil {
		panic("the runtime did not close: " + err.Error())
	}
}
