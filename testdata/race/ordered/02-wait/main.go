// A child is ordered before the return of a Wait for it.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

func main() {
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		x := 0
		for range 10 {
			child := n.Go("child", func(context.Context) error { x++; return nil })
			if err := child.Wait(ctx); err != nil {
				return err
			}
			x++
		}
		return nil
	})
}
