// A TryLock that fails is not after what the holder does, before or after.
package main

import (
	"context"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
)

var x int

func main() {
	var m locks.Mutex
	rt := coir.NewRuntime(coir.WithWorkers(1))
	rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		for range 2 {
			n.Go("tries", func(ctx context.Context) error {
				held := m.TryLock()
				x++
				for range 10 { // until the other has tried
					coir.Yield(ctx)
				}
				if held {
					m.Unlock()
				}
				return nil
			})
		}
		return nil
	})
}
