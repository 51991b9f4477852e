// The steps of a fiber are ordered, for all kinds of waits and on all workers.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

func main() {
	rt := coir.NewRuntime(coir.WithWorkers(2))
	rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for range 8 {
			n.Go("moves", func(ctx context.Context) error {
				x := new(int)
				for range 20 {
					*x++
					coir.Yield(ctx)
					*x++
					coir.Sleep(ctx, 100*time.Microsecond)
					*x++
					coir.Blocking(ctx, func() (int, error) { *x++; return *x, nil })
				}
				return nil
			})
		}
		return nil
	})
}
