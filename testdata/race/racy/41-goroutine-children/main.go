// Limit(1) runs one child after another, each on a goroutine that the end of the one before starts: that orders nothing.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

var x int

func main() {
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Limit(1)
		for range 3 {
			n.Go("child", func(context.Context) error { x++; return nil }, coir.WithGoroutine())
		}
		return nil
	})
}
