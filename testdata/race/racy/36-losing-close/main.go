// Only the close that took effect is ordered before code that sees it, not a later one.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

var x int

func main() {
	c := coir.NewChan[int](0)
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		c.Close()
		n.Go("closes again", func(context.Context) error {
			x = 1
			c.Close()
			return nil
		})
		n.Go("sees the first", func(ctx context.Context) error {
			time.Sleep(20 * time.Millisecond)
			if _, err := c.Recv(ctx); err != nil {
				x = 2
			}
			return nil
		})
		return nil
	})
}
