// What happens before Set is ordered before what a watcher does with the value, and before a Get that returns it.
package main

import (
	"context"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/pubsub"
)

var x int

func main() {
	l := pubsub.NewLatest(0)
	rt := coir.NewRuntime(coir.WithWorkers(2))
	rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		w := l.Watch()
		n.Go("watcher", func(ctx context.Context) error {
			for v := 0; v != 1; {
				var err error
				if v, err = w.Recv(ctx); err != nil {
					return err
				}
			}
			_ = x
			return nil
		})
		n.Go("getter", func(ctx context.Context) error {
			for l.Get() != 1 {
				if err := coir.Yield(ctx); err != nil {
					return err
				}
			}
			_ = x
			return nil
		})
		n.Go("setter", func(context.Context) error {
			x = 1
			return l.Set(1)
		})
		return nil
	})
}
