// RecvMany writes into a slice that another uses.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

func main() {
	c := coir.NewChan[int](2)
	into := make([]int, 2)
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		c.TrySend(1)
		c.TrySend(2)
		n.Go("receives", func(ctx context.Context) error {
			_, err := c.RecvMany(ctx, into)
			return err
		})
		n.Go("uses", func(context.Context) error {
			into[1]++
			return nil
		})
		return nil
	})
}
