// Spawning into the same nursery does not order the two spawners.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

var x int

func main() {
	rt := coir.NewRuntime(coir.WithWorkers(1))
	rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		nothing := func(context.Context) error { return nil }
		for range 2 {
			n.Go("spawner", func(context.Context) error {
				n.Go("child", nothing)
				x++
				n.Go("child", nothing)
				return nil
			})
		}
		return nil
	})
}
