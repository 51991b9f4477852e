// Run joins ten thousand fibers that exist at the same time, each with a variable of its own.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

func main() {
	x := make([]int, 10_000)
	err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for i := range x {
			n.Go("child", func(ctx context.Context) error {
				err := coir.Sleep(ctx, 100*time.Millisecond)
				x[i]++
				coir.Yield(ctx)
				x[i]++
				return err
			})
		}
		return nil
	})
	for _, v := range x {
		if v != 2 || err != nil {
			panic("one is missing")
		}
	}
}
