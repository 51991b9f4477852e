// SendMany reads a slice that another writes.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

func main() {
	c := coir.NewChan[int](2)
	from := make([]int, 2)
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("sends", func(ctx context.Context) error {
			_, err := c.SendMany(ctx, from)
			return err
		})
		n.Go("writes", func(context.Context) error {
			from[1] = 1
			return nil
		})
		return nil
	})
}
