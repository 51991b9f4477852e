// Giving a value back to a pool is ordered before the next Get of that value.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

func main() {
	rt := coir.NewRuntime(coir.WithWorkers(2))
	rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		create := func(context.Context) (*int, error) { return new(int), nil }
		pool := coir.NewPool(2, create, func(p *int) error { *p++; return nil })
		for range 10 {
			n.Go("borrows", func(ctx context.Context) error {
				for range 10 {
					p, err := pool.Get(ctx)
					if err != nil {
						return err
					}
					*p++
					coir.Yield(ctx)
					*p++
					pool.Put(p)
				}
				return nil
			})
		}
		return nil
	})
}
