// With a capacity of c, receive k is before the return of send k+c, whether the sender had to wait or not.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

func main() {
	const capacity = 3
	var x [10 * capacity]int
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		c := coir.NewChan[int](capacity)
		n.Go("receives", func(ctx context.Context) error {
			time.Sleep(5 * time.Millisecond)
			for i := range x {
				x[i] = 1
				if _, err := c.Recv(ctx); err != nil {
					return err
				}
				if i%5 == 0 {
					time.Sleep(time.Millisecond)
				}
			}
			return nil
		})
		for i := range len(x) {
			if err := c.Send(ctx, i); err != nil {
				return err
			}
			if i >= capacity {
				x[i-capacity]++
			}
			if i%7 == 0 {
				time.Sleep(2 * time.Millisecond)
			}
		}
		return nil
	})
}
