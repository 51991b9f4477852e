// A send whose value was replaced is not ordered after the one that replaced it.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

var x int

func main() {
	c := coir.NewChan[int](coir.Conflated)
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		f := n.Go("is replaced", func(ctx context.Context) error {
			err := c.Send(ctx, 1)
			x = 1
			return err
		})
		for f.State() != coir.StateEnded {
			coir.Sleep(ctx, time.Millisecond)
		}
		err := c.Send(ctx, 2)
		x = 2
		return err
	})
}
