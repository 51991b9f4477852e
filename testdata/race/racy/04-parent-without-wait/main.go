// The parent reads a variable that its child writes, after the spawn and without a Wait.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

var x int

func main() {
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("child", func(context.Context) error { x = 1; return nil })
		coir.Yield(ctx)
		if x == 2 {
			panic("never")
		}
		return nil
	})
}
