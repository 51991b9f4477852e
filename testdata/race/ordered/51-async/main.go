// What comes before SendAsync is before the receive of the value, and what comes before a send is before the end of a
// RecvAsync.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

var x, y int

func main() {
	c, d := coir.NewChan[*int](0), coir.NewChan[int](0)
	coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("sends", func(ctx context.Context) error {
			v := new(int)
			*v, x = 1, 1
			c.SendAsync(n, v)
			return nil
		})
		n.Go("receives", func(ctx context.Context) error {
			v, err := c.Recv(ctx)
			if err != nil {
				return err
			}
			_ = *v + x
			y = 1
			return d.Send(ctx, 1)
		})
		d.RecvAsync(n).OnDone(func(int, error) { y = 2 })
		return nil
	})
	y = 3
}
