// A send that has failed orders nothing.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

var x int

func main() {
	c := coir.NewChan[int](1)
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		c.TrySend(1)
		n.Go("fails", func(context.Context) error {
			x = 1
			c.TrySend(2)
			return nil
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
