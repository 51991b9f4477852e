// A send that has timed out orders nothing.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

var x int

func main() {
	c := coir.NewChan[int](0)
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		vain := n.Go("waits in vain", func(ctx context.Context) error {
			x = 1
			c.SendTimeout(ctx, 1, time.Millisecond)
			return nil
		})
		for vain.State() != coir.StateEnded {
			coir.Sleep(ctx, time.Millisecond)
		}
		n.Go("sends", func(ctx context.Context) error { return c.Send(ctx, 2) })
		_, err := c.Recv(ctx)
		x = 2
		return err
	})
}
