// What comes after a Signal and its Unlock is not before what its waiter does.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

var x int

func main() {
	var c coir.Cond
	signalled := false
	coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("one", func(ctx context.Context) error {
			c.Lock()
			defer c.Unlock()
			for !signalled {
				if err := c.Wait(ctx); err != nil {
					return err
				}
			}
			x = 1
			return nil
		})
		n.Go("other", func(ctx context.Context) error {
			c.Lock()
			signalled = true
			c.Signal()
			c.Unlock()
			x = 2
			return nil
		})
		return nil
	})
}
