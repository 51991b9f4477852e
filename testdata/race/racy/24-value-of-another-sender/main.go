// A receive is after the send of the value that it got, not after a later one.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

var x int

func main() {
	c := coir.NewChan[int](2)
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for i := range 2 {
			f := n.Go("sends", func(ctx context.Context) error {
				x = i
				return c.Send(ctx, i)
			})
			for f.State() != coir.StateEnded {
				coir.Sleep(ctx, time.Millisecond)
			}
		}
		_, err := c.Recv(ctx)
		x = 2
		return err
	})
}
