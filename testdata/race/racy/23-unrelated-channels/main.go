// A receive is after the sends of its own channel, not after those of another.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

var x int

func main() {
	a, b := coir.NewChan[int](1), coir.NewChan[int](1)
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("sends on a", func(ctx context.Context) error { x = 1; return a.Send(ctx, 0) })
		n.Go("sends on b", func(ctx context.Context) error { return b.Send(ctx, 0) })
		n.Go("receives on b", func(ctx context.Context) error {
			time.Sleep(20 * time.Millisecond)
			_, err := b.Recv(ctx)
			x = 2
			return err
		})
		return nil
	})
}
