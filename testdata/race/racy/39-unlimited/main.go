// A send on an unbounded channel never waits for room, and is after no receive.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

var x int

func main() {
	c := coir.NewChan[int](coir.Unbounded)
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		c.TrySend(1)
		n.Go("receives", func(ctx context.Context) error {
			x = 1
			_, err := c.Recv(ctx)
			return err
		})
		n.Go("sends", func(ctx context.Context) error {
			time.Sleep(20 * time.Millisecond)
			err := c.Send(ctx, 2)
			x = 2
			return err
		})
		return nil
	})
}
