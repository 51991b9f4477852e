// Two that hold a read lock are not ordered, at the same time or one after the other: neither may write.
package main

import (
	"context"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
)

var x int

func main() {
	var m locks.RWMutex
	coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		for range 2 {
			n.Go("writes", func(ctx context.Context) error {
				if err := m.RLock(ctx); err != nil {
					return err
				}
				x++
				m.RUnlock()
				return nil
			})
		}
		return nil
	})
}
