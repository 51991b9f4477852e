package main

import (
	"context"
	"sync"
	"time"

	"github.com/coir-go/coir"
)

// Values pass through channels in one direction.
//
// An operation is the way of one value from a send to its receive. Each side starts its senders and receivers for a
// round, passes n values and joins them. A round is long enough for the start to cost nothing, and longer where there
// are a thousand of them.

const crowdRound = 100 * time.Millisecond

// fibersThrough passes n values through a channel of coir with the given number of fibers at each end.
//
// This function and similar ones are not inlined into the table, because the compiler would then not inline the calls
// in their closures, as it does in a program.
//
//go:noinline
func fibersThrough(capacity, senders, receivers int) func() side {
	return func() side {
		return onRuntime(func(ctx context.Context, nur *coir.Nursery, n int) error {
			c := coir.NewChan[int](capacity)
			for range receivers {
				nur.Go("receive", func(ctx context.Context) error {
					for {
						if _, err := c.Recv(ctx); err != nil {
							return nil
						}
					}
				})
			}
			defer c.Close()
			return coir.Run(ctx, func(_ context.Context, nur *coir.Nursery) error {
				for i := range senders {
					turns := share(n, i, senders)
					nur.Go("send", func(ctx context.Context) error {
						for v := range turns {
							if err := c.Send(ctx, v); err != nil {
								return err
							}
						}
						return nil
					})
				}
				return nil
			})
		})
	}
}

// goroutinesThrough is the same with goroutines and a channel of Go.
//
//go:noinline
func goroutinesThrough(capacity, senders, receivers int) func() side {
	return func() side {
		return side{loop: func(n int) {
			c := make(chan int, capacity)
			var in, out sync.WaitGroup
			for range receivers {
				out.Go(func() {
					for range c {
					}
				})
			}
			for i := range senders {
				turns := share(n, i, senders)
				in.Go(func() {
					for v := range turns {
						c <- v
					}
				})
			}
			in.Wait()
			close(c)
			out.Wait()
		}}
	}
}

// goroutinesThroughCoir is goroutinesThrough with a channel of coir. It is the cost for a program in which neither end,
// or only one, has moved to fibers.
//
//go:noinline
func goroutinesThroughCoir(capacity, senders, receivers int) func() side {
	return func() side {
		ctx := context.Background()
		return side{loop: func(n int) {
			c := coir.NewChan[int](capacity)
			var in, out sync.WaitGroup
			for range receivers {
				out.Go(func() {
					for {
						if _, err := c.Recv(ctx); err != nil {
							return
						}
					}
				})
			}
			for i := range senders {
				turns := share(n, i, senders)
				in.Go(func() {
					for v := range turns {
						if err := c.Send(ctx, v); err != nil {
							panic("a send on an open channel failed: " + err.Error())
						}
					}
				})
			}
			in.Wait()
			c.Close()
			out.Wait()
		}}
	}
}

// share returns the part of n for the i-th of k.
func share(n, i, k int) int { return (n + k - 1 - i) / k }
