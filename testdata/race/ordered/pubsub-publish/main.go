// What happens before Publish is ordered before what each subscriber does with the value.
package main

import (
	"context"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/pubsub"
)

var x int

func main() {
	b := pubsub.NewBroadcast[int]()
	rt := coir.NewRuntime(coir.WithWorkers(2))
	rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for i := range 4 {
			sub := b.Subscribe(i)
			n.Go("subscriber", func(ctx context.Context) error {
				_, err := sub.Recv(ctx)
				_ = x
				return err
			})
		}
		n.Go("publisher", func(ctx context.Context) error {
			x = 1
			return b.Publish(ctx, 1)
		})
		return nil
	})
}
