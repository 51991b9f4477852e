// Only the Resolve that completed a promise is before those that wait for it, not one that came after.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

var x int

func main() {
	p := coir.NewPromise[int]()
	p.Resolve(1)
	coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("one", func(ctx context.Context) error {
			x = 1
			p.Resolve(2)
			return nil
		})
		n.Go("other", func(ctx context.Context) error {
			if _, err := p.Wait(ctx); err != nil {
				return err
			}
			x = 2
			return nil
		})
		return nil
	})
}
