// An answer that comes too late orders nothing before the waiter.
package main

import (
	"context"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/desk"
)

var x int

func main() {
	d := desk.New[int](desk.WithName("replies"))
	rt := coir.NewRuntime(coir.WithWorkers(1))
	rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		t, err := d.Open(ctx)
		if err != nil {
			return err
		}
		t.Cancel()
		n.Go("resolver", func(context.Context) error {
			x++
			_ = d.Resolve(t.ID(), 1)
			return nil
		})
		n.Go("waiter", func(ctx context.Context) error {
			_, _ = t.Wait(ctx)
			x++
			return nil
		})
		return nil
	})
}
