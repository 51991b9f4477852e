// Two that hold a permit each at the same time are not ordered.
package main

import (
	"context"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
)

var x int

func main() {
	s := locks.NewSemaphore(2)
	rt := coir.NewRuntime(coir.WithWorkers(1))
	rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		for range 2 {
			n.Go("holds", func(ctx context.Context) error {
				if err := s.Acquire(ctx, 1); err != nil {
					return err
				}
				for range 10 { // until both hold one
					coir.Yield(ctx)
				}
				x++
				s.Release(1)
				return nil
			})
		}
		return nil
	})
}
