// A child on a goroutine of its own is after its spawn, and before those that waited for it and the return of Run.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

func main() {
	x := 0
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for range 10 {
			x++
			child := n.Go("child", func(ctx context.Context) error {
				x++
				return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
					n.Go("inner", func(context.Context) error { x++; return nil }, coir.WithGoroutine())
					return nil
				})
			}, coir.WithGoroutine())
			if err := child.Wait(ctx); err != nil {
				return err
			}
		}
		n.Go("last", func(ctx context.Context) error { x++; return nil }, coir.WithGoroutine())
		return nil
	})
	x++
}
