// A send whose value was dropped is ordered before no receive.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

var x int

func main() {
	c := coir.NewChan[int](1, coir.WithOverflow(coir.OverflowDropNewest))
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		c.TrySend(1)
		n.Go("is dropped", func(ctx context.Context) error {
			x = 1
			return c.Send(ctx, 2)
		})
		n.Go("receives", func(ctx context.Context) error {
			time.Sleep(20 * time.Millisecond)
			_, err := c.Recv(ctx)
			x = 2
			return err
		})
		return nil
	})
}
