// The cancel of a context derived from a fiber's own is before the fiber that waited under it.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

func main() {
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		x, y := 0, 0
		inner, cancel := context.WithCancel(ctx)
		n.Go("cancels the inner", func(ctx context.Context) error {
			coir.Sleep(ctx, 2*time.Millisecond)
			x = 1
			cancel()
			return nil
		})
		if coir.Sleep(inner, time.Hour) == nil || x != 1 {
			panic("the cancel was not seen")
		}
		outer, stop := context.WithCancel(ctx)
		defer stop()
		n.Go("cancels the nursery", func(ctx context.Context) error {
			coir.Sleep(ctx, 2*time.Millisecond)
			y = 1
			n.Cancel(nil)
			return nil
		})
		if coir.Sleep(outer, time.Hour) == nil || y != 1 {
			panic("the cancel was not seen")
		}
		return nil
	})
}
