// Time orders nothing: one fiber writes immediately, the other long after.
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
			n.Go("sleeps", func(ctx context.Context) error {
				coir.Sleep(ctx, time.Duration(1+20*i)*time.Millisecond)
				x++
				coir.Sleep(ctx, time.Millisecond)
				return nil
			})
		}
		return nil
	})
}
