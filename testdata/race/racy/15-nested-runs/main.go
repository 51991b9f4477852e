// Each sibling joins its own nursery, and neither joins the other.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

var x int

func main() {
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for range 2 {
			n.Go("outer", func(ctx context.Context) error {
				return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
					n.Go("inner", func(context.Context) error { x++; return nil })
					return nil
				})
			})
		}
		return nil
	})
}
