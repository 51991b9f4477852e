// Making a channel orders nothing.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

var x int

func main() {
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("first", func(context.Context) error {
			x = 1
			coir.NewChan[int](0)
			return nil
		})
		n.Go("second", func(context.Context) error {
			time.Sleep(20 * time.Millisecond)
			coir.NewChan[int](0)
			x = 2
			return nil
		})
		return nil
	})
}
