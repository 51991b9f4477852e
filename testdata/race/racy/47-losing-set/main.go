// Only the Set that made an event happen is before those that wait for it, not one that came after.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

var x int

func main() {
	var e coir.Event
	e.Set()
	coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("one", func(ctx context.Context) error {
			x = 1
			e.Set()
			return nil
		})
		n.Go("other", func(ctx context.Context) error {
			if err := e.Wait(ctx); err != nil {
				return err
			}
			x = 2
			return nil
		})
		return nil
	})
}
