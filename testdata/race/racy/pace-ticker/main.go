// Two fibers that share a ticker, one in a select, get one tick after the other, which orders nothing.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/pace"
)

var x int

func main() {
	ticker := pace.NewTicker(time.Millisecond)
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("waits", func(ctx context.Context) error {
			_, err := ticker.Wait(ctx)
			x++
			return err
		})
		n.Go("selects", func(ctx context.Context) error {
			var ticks int
			_, err := coir.Select(ctx, ticker.WaitCase(&ticks))
			x++
			return err
		})
		return nil
	})
}
