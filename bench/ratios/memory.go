package main

import (
	"context"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/bench/internal/timing"
)

// The memory that a parked fiber holds.
//
// A million fibers are started and parked, and garbage is collected. The figure is the growth of heap objects and
// stacks, divided by a million. The growth of Sys or of the resident set would include memory that the collector has
// not returned yet, which depends on when it last ran.
//
// Each measurement has a process of its own. The Go runtime never frees the descriptor of a goroutine, but reuses it.
// So in a process that has had a million goroutines before, the next million seem some 400 bytes cheaper than they are.
// There is hardly any noise in bytes, so three rounds are enough.
//
// The fibers wait for another fiber to end, and the goroutines for a channel to be closed: the simplest wait on each
// side. The second body has 1 KiB of locals that are live during the wait, since a stack that the library's own frames
// have filled doubles as soon as the user's code needs some of it.

const (
	parked      = 1_000_000
	parkedChild = "parked/"
)

// parkedIn returns a side that measures in a process of its own.
func parkedIn(kind string) func() side {
	return func() side {
		return side{measure: func() sample {
			var s sample
			if err := callSelf(&s, "-child", parkedChild+kind); err != nil {
				panic("parked " + kind + ": " + err.Error())
			}
			return s
		}}
	}
}

// parkedMain is the main function of such a process.
func parkedMain(kind string) sample {
	switch kind {
	case "fiber":
		return parkFibers(func(ctx context.Context, gate *coir.Fiber, up *atomic.Int64) error {
			up.Add(1)
			return gate.Wait(ctx)
		})
	case "fiber-1k":
		return parkFibers(func(ctx context.Context, gate *coir.Fiber, up *atomic.Int64) error {
			var locals [1024]byte
			fill(&locals)
			up.Add(1)
			err := gate.Wait(ctx)
			fill(&locals)
			return err
		})
	case "goroutine":
		return parkGoroutines(func(gate <-chan struct{}, up *atomic.Int64) {
			up.Add(1)
			<-gate
		})
	case "goroutine-1k":
		return parkGoroutines(func(gate <-chan struct{}, up *atomic.Int64) {
			var locals [1024]byte
			fill(&locals)
			up.Add(1)
			<-gate
			fill(&locals)
		})
	}
	panic("unknown kind of parked thing: " + kind)
}

// fill uses the locals, and is not inlined, so that they must exist.
//
//go:noinline
func fill(locals *[1024]byte) {
	for i := range locals {
		locals[i]++
	}
}

func parkFibers(body func(context.Context, *coir.Fiber, *atomic.Int64) error) sample {
	rt := coir.NewRuntime()
	var got sample
	run(rt, func(ctx context.Context, nur *coir.Nursery) error {
		var up atomic.Int64
		open, release := coir.WithTimeout(ctx, time.Hour)
		gate := nur.Go("gate", func(context.Context) error {
			// The gate ends without an error when it is released.
			_ = coir.Sleep(open, time.Hour)
			return nil
		})
		grown := growth()
		for range parked {
			nur.Go("parked", func(ctx context.Context) error { return body(ctx, gate, &up) })
		}
		for up.Load() < parked {
			if err := coir.Yield(ctx); err != nil {
				return err
			}
		}
		got = grown()
		release()
		return nil
	})
	shut(rt)
	return got
}

func parkGoroutines(body func(<-chan struct{}, *atomic.Int64)) sample {
	var up atomic.Int64
	gate := make(chan struct{})
	grown := growth()
	for range parked {
		go body(gate, &up)
	}
	for up.Load() < parked {
		runtime.Gosched()
	}
	got := grown()
	close(gate)
	return got
}

// growth returns a function that returns how much the memory has grown since then.
func growth() func() sample {
	bytes, mallocs := timing.Held()
	return func() sample {
		b, m := timing.Held()
		return sample{Cost: (b - bytes) / parked, Allocs: (m - mallocs) / parked}
	}
}
