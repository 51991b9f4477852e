// A barrier orders what comes before it, not what comes after it.
package main

import (
	"context"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
)

var x int

func main() {
	b := locks.NewBarrier(2)
	coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		for range 2 {
			n.Go("goes on", func(ctx context.Context) error {
				_, _, err := b.Wait(ctx)
				x++
				return err
			})
		}
		return nil
	})
}
