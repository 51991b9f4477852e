package main

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
)

// Programs of a fixed size run on more and more workers.

const (
	couples  = 64   // pairs of fibers, whatever the number of workers
	sleepers = 1000 // fibers that sleep
	brood    = 16   // waiting children of a nursery
)

// onWorkers runs a program, which performs n operations, on a runtime with the given number of workers.
func onWorkers(do func(ctx context.Context, nur *coir.Nursery, n int) error) func(workers int) subject {
	return func(workers int) subject {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(workers)) // a runtime uses the number at its creation
		rt := coir.NewRuntime(coir.WithWorkers(workers))
		return subject{
			workers: workers,
			loop: func(times int) {
				must(rt.Run(context.Background(), func(ctx context.Context, nur *coir.Nursery) error {
					return do(ctx, nur, times)
				}))
			},
			close: func() { must(rt.Close(context.Background())) },
		}
	}
}

// each starts k fibers, which share n turns.
func each(nur *coir.Nursery, k, n int, turn func(ctx context.Context, i int) error) {
	for i := range k {
		nur.Go("", func(ctx context.Context) error {
			for range share(n, i, k) {
				if err := turn(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// share returns the part of n for the i-th of k.
func share(n, i, k int) int { return (n + k - 1 - i) / k }

func channels(n, capacity int) []*coir.Chan[int] {
	return shuffled(n, func() *coir.Chan[int] { return coir.NewChan[int](capacity) })
}

func receive(ctx context.Context, c *coir.Chan[int]) error {
	_, err := c.Recv(ctx)
	return err
}

func private(_ context.Context, nur *coir.Nursery, n int) error {
	cs := channels(couples, 0)
	each(nur, couples, n, func(ctx context.Context, i int) error { return cs[i].Send(ctx, i) })
	each(nur, couples, n, func(ctx context.Context, i int) error { return receive(ctx, cs[i]) })
	return nil
}

func timers(_ context.Context, nur *coir.Nursery, n int) error {
	cs := channels(couples, 0)
	each(nur, couples, n, func(ctx context.Context, i int) error { return cs[i].Send(ctx, i) })
	each(nur, couples, n, func(ctx context.Context, i int) error {
		_, err := cs[i].RecvTimeout(ctx, time.Hour)
		return err
	})
	return nil
}

func shared(_ context.Context, nur *coir.Nursery, n int) error {
	c := coir.NewChan[int](128)
	each(nur, couples, n, func(ctx context.Context, i int) error { return c.Send(ctx, i) })
	each(nur, couples, n, func(ctx context.Context, _ int) error { return receive(ctx, c) })
	return nil
}

func spawn(_ context.Context, nur *coir.Nursery, n int) error {
	each(nur, couples, n, func(ctx context.Context, _ int) error {
		return coir.Run(ctx, func(_ context.Context, nur *coir.Nursery) error {
			nur.Go("", func(context.Context) error { return nil })
			return nil
		})
	})
	return nil
}

func broods(_ context.Context, nur *coir.Nursery, n int) error {
	each(nur, couples, n/brood, func(ctx context.Context, _ int) error {
		c := coir.NewChan[int](0)
		return coir.Run(ctx, func(ctx context.Context, nur *coir.Nursery) error {
			each(nur, brood, brood, func(ctx context.Context, _ int) error { return receive(ctx, c) })
			for i := range brood {
				if err := c.Send(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
	})
	return nil
}

func sleep(_ context.Context, nur *coir.Nursery, n int) error {
	each(nur, sleepers, n, func(ctx context.Context, _ int) error { return coir.Sleep(ctx, time.Millisecond) })
	return nil
}

// ring has a fiber for each channel, which passes received values on to the next channel. There are as many values as
// couples, and four channels for each, so most fibers wait most of the time. A value is the number of its remaining
// wakes.
func ring(_ context.Context, nur *coir.Nursery, n int) error {
	cs := channels(4*couples, 1)
	var ended atomic.Int64
	for i := range couples {
		if err := cs[4*i].TrySend(n / couples); err != nil {
			return err
		}
	}
	for i, c := range cs {
		nur.Go("", func(ctx context.Context) error {
			for {
				v, err := c.Recv(ctx)
				switch {
				case err != nil:
					return nil // the channel was closed
				case v > 0:
					if err := cs[(i+1)%len(cs)].Send(ctx, v-1); err != nil {
						return err
					}
				case ended.Add(1) == couples:
					for _, c := range cs {
						c.Close()
					}
				}
			}
		})
	}
	return nil
}

func outside(ctx context.Context, nur *coir.Nursery, n int) error {
	cs := channels(couples, 0)
	each(nur, couples, n, func(ctx context.Context, i int) error { return receive(ctx, cs[i]) })
	var all sync.WaitGroup
	for i, c := range cs {
		all.Go(func() {
			for range share(n, i, couples) {
				must(c.Send(context.Background(), i))
			}
		})
	}
	_, err := coir.Blocking(ctx, func() (any, error) { all.Wait(); return nil, nil })
	return err
}
