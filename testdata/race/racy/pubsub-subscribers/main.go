// Two subscribers get the same value, and nothing orders what they do with it.
package main

import (
	"context"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/pubsub"
)

var x int

func main() {
	b := pubsub.NewBroadcast[int]()
	rt := coir.NewRuntime(coir.WithWorkers(1))
	rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for range 2 {
			sub := b.Subscribe(1)
			n.Go("subscriber", func(ctx context.Context) error {
				_, err := sub.Recv(ctx)
				x++
				return err
			})
		}
		n.Go("publisher", func(ctx context.Context) error { return b.Publish(ctx, 1) })
		return nil
	})
}
