package main

import (
	"context"
	"sync"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/pubsub"
)

// One publisher has 100 subscribers.
//
// An operation is one value, published and received by all. Without coir there is a channel for each subscriber, and
// the publisher sends to one after the other. The channels hold 16 values on both sides.

const listeners = 100

func broadcastOurs() side {
	return onRuntime(func(ctx context.Context, nur *coir.Nursery, n int) error {
		b := pubsub.NewBroadcast[int]()
		for range listeners {
			sub := b.Subscribe(16)
			nur.Go("subscriber", func(ctx context.Context) error {
				for _, err := range sub.All(ctx) {
					if err != nil {
						return err
					}
				}
				return nil
			})
		}
		nur.Go("publisher", func(ctx context.Context) error {
			defer b.Close()
			for i := range n {
				if err := b.Publish(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
		return nil
	})
}

func broadcastTheirs() side {
	return side{loop: func(n int) {
		cs := make([]chan int, listeners)
		var wg sync.WaitGroup
		for i := range cs {
			cs[i] = make(chan int, 16)
			wg.Go(func() {
				for range cs[i] {
				}
			})
		}
		for i := range n {
			for _, c := range cs {
				c <- i
			}
		}
		for _, c := range cs {
			close(c)
		}
		wg.Wait()
	}}
}
