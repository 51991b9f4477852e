// What comes after Resolve is not ordered before what follows the wait.
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
		n.Go("resolver", func(context.Context) error {
			err := d.Resolve(t.ID(), 1)
			x++
			return err
		})
		n.Go("waiter", func(ctx context.Context) error {
			_, err := t.Wait(ctx)
			x++
			return err
		})
		return nil
	})
}
