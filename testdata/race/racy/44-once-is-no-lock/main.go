// A Once orders its users after its function, but not among each other.
package main

import (
	"context"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
)

var x int

func main() {
	var o locks.Once
	load := func(context.Context) error { return nil }
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		if err := o.Do(ctx, load); err != nil {
			return err
		}
		for range 2 {
			n.Go("uses", func(ctx context.Context) error {
				x++
				return o.Do(ctx, load)
			})
		}
		return nil
	})
}
