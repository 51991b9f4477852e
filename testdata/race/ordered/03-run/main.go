// All fibers of a nursery are ordered before the return of its Run.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

func main() {
	x := 0
	for range 10 {
		coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
			x++
			n.Go("child", func(ctx context.Context) error {
				coir.Yield(ctx)
				x++
				return nil
			})
			return nil
		})
		x++
	}
}
