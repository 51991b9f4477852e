// Two fibers get the same value of a Latest before and after they write. Get does not order them.
package main

import (
	"context"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/pubsub"
)

var x int

func main() {
	l := pubsub.NewLatest(0)
	rt := coir.NewRuntime(coir.WithWorkers(1))
	rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for range 2 {
			n.Go("getter", func(context.Context) error {
				l.Get()
				x++
				l.Get()
				return nil
			})
		}
		return nil
	})
}
