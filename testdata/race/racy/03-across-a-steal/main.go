// A steal does not order the thief after the worker that it stole from.
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
		n.Go("busy", func(context.Context) error {
			child := n.Go("stolen", func(context.Context) error { x++; return nil })
			x++
			for child.State() != coir.StateEnded { // which does not order
				time.Sleep(time.Millisecond)
			}
			return nil
		})
		return nil
	})
	if rt.Stats().Stolen == 0 {
		panic("nothing was stolen")
	}
}
