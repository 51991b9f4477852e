// On a channel of capacity 0 a receive is ordered before the return of the send, no matter which side comes first.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

func main() {
	var x [2]int
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for i, pause := range []time.Duration{0, 20 * time.Millisecond} {
			c := coir.NewChan[int](0)
			n.Go("receives", func(ctx context.Context) error {
				time.Sleep(pause)
				x[i] = 1
				_, err := c.Recv(ctx)
				return err
			})
			n.Go("sends", func(ctx context.Context) error {
				time.Sleep(20*time.Millisecond - pause)
				err := c.Send(ctx, 1)
				x[i] = 2
				return err
			})
		}
		return nil
	})
}
