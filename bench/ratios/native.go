package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
)

// Fibers block natively, as they do in a library that is not aware of fibers.
//
// Each of n fibers sleeps a few times with time.Sleep, which blocks its worker. The other side is the same number of
// goroutines that do the same. The cost is that of one round of all of them. Undeclared means that the runtime has to
// detect it; declared, that the call is inside Blocking.

type nativeLoad struct {
	n      int           // how many at a time
	sleeps int           // of each
	nap    time.Duration // each sleep
}

var (
	native100x5ms  = nativeLoad{100, 1, 5 * time.Millisecond}
	native1000x5ms = nativeLoad{1000, 20, 5 * time.Millisecond}
	native1000x1ms = nativeLoad{1000, 100, time.Millisecond}
	native200x1ms  = nativeLoad{200, 1, time.Millisecond}
)

// undeclared blocks the fiber that calls it, outside of Blocking.
func undeclared(_ context.Context, nap time.Duration) { time.Sleep(nap) }

// computes works for about as long without blocking. The runtime must never mistake that for blocking.
func computes(_ context.Context, d time.Duration) {
	computed.Store(int64(spin(1, spins*int(d/time.Microsecond))))
}

var computed atomic.Int64 // so that the compiler does not remove the work

// declared blocks the fiber that calls it inside Blocking.
func declared(ctx context.Context, nap time.Duration) {
	_, _ = coir.Blocking(ctx, func() (struct{}, error) {
		time.Sleep(nap)
		return struct{}{}, nil
	})
}

func nativeFibers(l nativeLoad, block func(context.Context, time.Duration), opts ...coir.FiberOption) func() side {
	return func() side {
		rt, shut := keptRuntime()
		return side{
			loop: func(n int) {
				for range n {
					run(rt, func(_ context.Context, nur *coir.Nursery) error {
						for range l.n {
							nur.Go("sleeper", func(ctx context.Context) error {
								for range l.sleeps {
									block(ctx, l.nap)
								}
								return nil
							}, opts...)
						}
						return nil
					})
				}
			},
			close: shut,
		}
	}
}

func nativeGoroutines(l nativeLoad, block func(context.Context, time.Duration)) func() side {
	return func() side {
		return side{loop: func(n int) {
			for range n {
				var wg sync.WaitGroup
				for range l.n {
					wg.Go(func() {
						for range l.sleeps {
							block(context.Background(), l.nap)
						}
					})
				}
				wg.Wait()
			}
		}}
	}
}
