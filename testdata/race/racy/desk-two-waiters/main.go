// Two fibers wait for one ticket, and nothing orders what they do next.
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
		for range 2 {
			n.Go("waiter", func(ctx context.Context) error {
				_, err := t.Wait(ctx)
				x++
				return err
			})
		}
		n.Go("resolver", func(context.Context) error { return d.Resolve(t.ID(), 1) })
		return nil
	})
}
