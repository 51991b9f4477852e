// Code after a close is not ordered before code that sees the close.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

var x int

func main() {
	c := coir.NewChan[int](0)
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("closes", func(context.Context) error {
			c.Close()
			x = 1
			return nil
		})
		c.Recv(ctx)
		x = 2
		return nil
	})
}
