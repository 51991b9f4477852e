// Receive k is ordered before the return of send k+c even if values passed directly, without the buffer.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

func main() {
	x := 0
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		c := coir.NewChan[int](1)
		n.Go("receives first", func(ctx context.Context) error {
			x = 1
			_, err := c.Recv(ctx)
			return err
		})
		for c.Stats().Recv.Waiting == 0 {
			coir.Yield(ctx)
		}
		f := n.Go("sends first", func(ctx context.Context) error { return c.Send(ctx, 1) })
		for f.State() != coir.StateEnded {
			coir.Yield(ctx)
		}
		err := c.Send(ctx, 2)
		x++
		return err
	})
}
