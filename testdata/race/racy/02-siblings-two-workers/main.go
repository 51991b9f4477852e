// Nothing orders two siblings that run on two workers at the same time.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

var x int

func main() {
	rt := coir.NewRuntime(coir.WithWorkers(2))
	rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for range 2 {
			n.Go("writer", func(context.Context) error {
				time.Sleep(5 * time.Millisecond) // holds its worker, so that the other one runs the sibling
				x++
				return nil
			})
		}
		return nil
	})
}
