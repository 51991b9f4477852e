// The turn of a limiter passes from one fiber to the next, but orders nothing.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/pace"
)

var x int

func main() {
	limiter := pace.NewLimiter(time.Millisecond, 1)
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for range 3 {
			n.Go("writer", func(ctx context.Context) error {
				err := limiter.Wait(ctx)
				x++
				return err
			})
		}
		return nil
	})
}
