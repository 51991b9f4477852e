// Under a Shield the fiber continues, ordered after the cancel that it has seen, and is joined as usual.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

func main() {
	x := 0
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("cleans up", func(ctx context.Context) error {
			coir.Sleep(ctx, time.Hour)
			x++
			return coir.Run(coir.Shield(ctx), func(ctx context.Context, n *coir.Nursery) error {
				n.Go("child", func(ctx context.Context) error {
					err := coir.Sleep(ctx, time.Millisecond)
					x++
					return err
				})
				return nil
			})
		})
		coir.Sleep(ctx, 5*time.Millisecond)
		x++
		n.Cancel(nil)
		return nil
	})
	if x != 3 {
		panic("something was left out")
	}
}
