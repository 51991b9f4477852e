// Values that are sent and received by the slice are ordered one by one.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

func main() {
	for _, capacity := range []int{0, 5, coir.Unbounded} {
		c := coir.NewChan[*int](capacity)
		coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
			n.Go("sends", func(ctx context.Context) error {
				defer c.Close()
				values := make([]*int, 10)
				for range 10 {
					for i := range values {
						values[i] = new(int)
						*values[i] = 1
					}
					if _, err := c.SendMany(ctx, values); err != nil {
						return err
					}
				}
				return nil
			})
			into := make([]*int, 7)
			for {
				got, err := c.RecvMany(ctx, into)
				if err != nil {
					return nil
				}
				for _, p := range into[:got] {
					*p++
				}
			}
		})
	}
}
