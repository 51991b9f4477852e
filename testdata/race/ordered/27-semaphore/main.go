// A channel of capacity 1 that is sent to before and received from after is a lock.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

func main() {
	x := 0
	lock := coir.NewChan[struct{}](1)
	rt := coir.NewRuntime(coir.WithWorkers(2))
	rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for range 20 {
			n.Go("locks", func(ctx context.Context) error {
				for range 10 {
					if err := lock.Send(ctx, struct{}{}); err != nil {
						return err
					}
					x++
					coir.Yield(ctx)
					x--
					if _, err := lock.Recv(ctx); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return nil
	})
}
