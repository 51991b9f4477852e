// Both see a deadline pass, each its own: the clock that fires both does not order them.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

var x int

func main() {
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for i := range 2 {
			n.Go("waits", func(ctx context.Context) error {
				x++
				ctx, stop := coir.WithTimeout(ctx, time.Duration(5+10*i)*time.Millisecond)
				defer stop()
				coir.Sleep(ctx, time.Hour)
				x++
				return nil
			})
		}
		return nil
	})
}
