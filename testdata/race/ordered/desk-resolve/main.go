// What comes before Resolve is ordered before what follows the wait, a select with the ticket, and its callbacks.
package main

import (
	"context"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/desk"
)

var x int

func main() {
	d := desk.New[int](desk.WithName("replies"))
	rt := coir.NewRuntime()
	rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		t, err := d.Open(ctx)
		if err != nil {
			return err
		}
		t.OnDone(func(v int, _ error) {
			if x != v {
				panic("the callback has been called too early")
			}
		})
		n.Go("resolver", func(context.Context) error {
			x++
			return d.Resolve(t.ID(), 1)
		})
		n.Go("waiter", func(ctx context.Context) error {
			_, err := t.Wait(ctx)
			if x != 1 {
				panic("the waiter has run too early")
			}
			return err
		})
		n.Go("selecter", func(ctx context.Context) error {
			_, err := coir.Select(ctx, t.DoneCase(nil, nil))
			if x != 1 {
				panic("the select has ended too early")
			}
			return err
		})
		return nil
	})
}
