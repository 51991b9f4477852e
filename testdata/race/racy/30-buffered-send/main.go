// A send into a buffer does not wait for the receive, and is not after it.
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
		f := n.Go("sends", func(ctx context.Context) error {
			err := c.Send(ctx, 1)
			x = 1
			return err
		})
		for f.State() != coir.StateEnded {
			coir.Sleep(ctx, time.Millisecond)
		}
		x = 2
		_, err := c.Recv(ctx)
		return err
	})
}
