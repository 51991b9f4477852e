// What comes before Resolve is before the end of a wait, and before a function that OnDone was given.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

var x int

func main() {
	p := coir.NewPromise[*int]()
	p.OnDone(func(v *int, _ error) { _ = *v + x })
	coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("waits", func(ctx context.Context) error {
			v, err := p.Wait(ctx)
			_ = *v + x
			return err
		})
		n.Go("selects", func(ctx context.Context) error {
			var v *int
			_, err := coir.Select(ctx, p.DoneCase(&v, nil))
			_ = *v + x
			return err
		})
		n.Go("resolves", func(context.Context) error {
			v := new(int)
			*v, x = 1, 1
			p.Resolve(v)
			return nil
		})
		return nil
	})
}
