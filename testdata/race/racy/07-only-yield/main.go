// Yield lets others run and orders nothing.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

var x int

func main() {
	rt := coir.NewRuntime(coir.WithWorkers(1))
	rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for range 2 {
			n.Go("yields", func(ctx context.Context) error {
				for range 10 {
					coir.Yield(ctx)
					x++
					coir.Yield(ctx)
				}
				return nil
			})
		}
		return nil
	})
}
