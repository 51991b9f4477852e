// A panic that the fiber recovers itself, even inside Blocking, orders nothing.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

var x int

func fails(ctx context.Context) {
	defer func() {
		recover()
		x++
	}()
	coir.Blocking(ctx, func() (int, error) { panic("caught") })
}

func main() {
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for range 2 {
			n.Go("fails", func(ctx context.Context) error { fails(ctx); return nil })
		}
		return nil
	})
}
