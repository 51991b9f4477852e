// Each fiber waits for the one before it, so the first is ordered before the last.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

func main() {
	x := 0
	rt := coir.NewRuntime(coir.WithWorkers(2))
	rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		last := n.Go("first", func(context.Context) error { x++; return nil })
		for range 20 {
			before := last
			last = n.Go("link", func(ctx context.Context) error {
				err := before.Wait(ctx)
				x++
				return err
			})
		}
		return nil
	})
	if x != 21 {
		panic("a link is missing")
	}
}
