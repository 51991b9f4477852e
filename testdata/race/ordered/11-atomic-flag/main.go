// An atomic flag orders fibers as it does goroutines.
package main

import (
	"context"
	"sync/atomic"

	"github.com/coir-go/coir"
)

func main() {
	var ready atomic.Bool
	x := 0
	rt := coir.NewRuntime(coir.WithWorkers(1))
	rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("reads", func(ctx context.Context) error {
			for !ready.Load() {
				coir.Yield(ctx)
			}
			x++
			return nil
		})
		n.Go("writes", func(ctx context.Context) error {
			coir.Yield(ctx)
			x = 1
			ready.Store(true)
			return nil
		})
		return nil
	})
}
