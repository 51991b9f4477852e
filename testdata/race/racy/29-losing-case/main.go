// A losing case of a select orders nothing.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

var x int

func main() {
	a, b := coir.NewChan[int](1), coir.NewChan[int](1)
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("selects", func(ctx context.Context) error {
			x = 1
			_, err := coir.SelectPriority(ctx, a.SendCase(1), b.SendCase(2))
			return err
		})
		n.Go("sends on b", func(ctx context.Context) error { return b.Send(ctx, 3) })
		n.Go("receives on b", func(ctx context.Context) error {
			time.Sleep(20 * time.Millisecond)
			_, err := b.Recv(ctx)
			x = 2
			return err
		})
		return nil
	})
}
