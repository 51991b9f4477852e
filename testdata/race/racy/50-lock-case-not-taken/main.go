// A select that did not take a lock is not after what the holder did.
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
	rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		c := coir.NewChan[int](1)
		c.TrySend(1)
		n.Go("holds", func(ctx context.Context) error {
			if err := m.Lock(ctx); err != nil {
				return err
			}
			x = 1
			m.Unlock()
			return nil
		})
		n.Go("selects", func(ctx context.Context) error {
			_, err := coir.SelectPriority(ctx, c.RecvCase(nil), m.LockCase())
			x = 2
			return err
		})
		return nil
	})
}
