// Limit(1) runs one child after another, but bounds only how many: it does not order them.
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
			n.Go("child", func(context.Context) error { x++; return nil })
		}
		return nil
	})
}
