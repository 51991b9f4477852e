// Two mutexes order nothing between those that lock the one and those that lock the other.
package main

import (
	"context"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
)

var x int

func main() {
	var a, b locks.Mutex
	coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("one", func(ctx context.Context) error {
			if err := a.Lock(ctx); err != nil {
				return err
			}
			x = 1
			a.Unlock()
			return nil
		})
		n.Go("other", func(ctx context.Context) error {
			if err := b.Lock(ctx); err != nil {
				return err
			}
			x = 2
			b.Unlock()
			return nil
		})
		return nil
	})
}
