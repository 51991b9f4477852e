// A case of a select stores where another writes.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

var x int

func main() {
	c := coir.NewChan[int](1)
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		c.TrySend(1)
		n.Go("selects", func(ctx context.Context) error {
			_, err := coir.Select(ctx, c.RecvCase(&x))
			return err
		})
		n.Go("writes", func(context.Context) error {
			x = 2
			return nil
		})
		return nil
	})
}
