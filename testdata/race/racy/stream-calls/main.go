// Two calls that Parallel runs at the same time write one variable. Nothing orders them.
package main

import (
	"context"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/stream"
)

var x int

func main() {
	rt := coir.NewRuntime(coir.WithWorkers(1))
	rt.Run(context.Background(), func(ctx context.Context, _ *coir.Nursery) error {
		both := stream.Parallel(stream.FromSlice([]int{1, 2}), 2, func(ctx context.Context, v int) (int, error) {
			if err := coir.Yield(ctx); err != nil {
				return 0, err
			}
			x += v
			return v, coir.Yield(ctx)
		})
		_, err := stream.Count(ctx, both)
		return err
	})
}
