// What comes after SendAsync is not before the receive of the value.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

var x int

func main() {
	c := coir.NewChan[int](0)
	coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("sends", func(ctx context.Context) error {
			c.SendAsync(n, 1)
			x = 1
			return nil
		})
		n.Go("receives", func(ctx context.Context) error {
			_, err := c.Recv(ctx)
			x = 2
			return err
		})
		return nil
	})
}
