// Nothing orders two siblings, though one worker runs one after the other.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

var x int

func main() {
	rt := coir.NewRuntime(coir.WithWorkers(1))
	rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for range 2 {
			n.Go("writer", func(context.Context) error { x++; return nil })
		}
		return nil
	})
}
