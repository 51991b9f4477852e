// State shows that the sibling has ended, but does not order it.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

var x int

func main() {
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		first := n.Go("first", func(context.Context) error { x = 1; return nil })
		n.Go("second", func(ctx context.Context) error {
			for first.State() != coir.StateEnded {
				coir.Yield(ctx)
			}
			x = 2
			return nil
		})
		return nil
	})
}
