// A spawn is ordered before the child, on any worker.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

func main() {
	rt := coir.NewRuntime(coir.WithWorkers(2))
	rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		var x [10]int
		for i := range x {
			x[i] = i
			n.Go("child", func(context.Context) error {
				time.Sleep(time.Millisecond)
				x[i]++
				return nil
			})
		}
		return nil
	})
}
