// The Wait is for another fiber, not for the one that writes.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

var x int

func main() {
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("writer", func(context.Context) error { x = 1; return nil })
		other := n.Go("other", func(ctx context.Context) error { return coir.Yield(ctx) })
		if err := other.Wait(ctx); err != nil {
			return err
		}
		x = 2
		return nil
	})
}
