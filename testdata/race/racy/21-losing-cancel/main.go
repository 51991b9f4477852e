// Only the cancel that took effect is ordered before code that sees it, not a later one.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

var x int

func main() {
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Cancel(nil)
		n.Go("cancels again", func(context.Context) error {
			x = 1
			n.Cancel(nil)
			return nil
		})
		n.Go("sees the first", func(ctx context.Context) error {
			time.Sleep(20 * time.Millisecond)
			if ctx.Err() != nil {
				x = 2
			}
			return nil
		})
		return nil
	})
}
