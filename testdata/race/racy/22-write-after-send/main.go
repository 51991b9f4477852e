// Code after a send is not ordered before the receive.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

func main() {
	c := coir.NewChan[*int](1)
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("sends", func(ctx context.Context) error {
			p := new(int)
			err := c.Send(ctx, p)
			*p = 1
			return err
		})
		p, err := c.Recv(ctx)
		*p = 2
		return err
	})
}
