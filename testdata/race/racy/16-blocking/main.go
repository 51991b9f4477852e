// Blocking gives the worker away and back, and orders nothing.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

var x int

func main() {
	rt := coir.NewRuntime(coir.WithWorkers(1))
	rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for i := range 2 {
			n.Go("blocks", func(ctx context.Context) error {
				coir.Blocking(ctx, func() (int, error) {
					time.Sleep(time.Duration(1+10*i) * time.Millisecond)
					x++
					return x, nil
				})
				return nil
			})
		}
		return nil
	})
}
