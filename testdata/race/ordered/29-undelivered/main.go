// A send is before the call that hands its value back: dropped, replaced or left in a channel that was aborted.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

func main() {
	back := coir.OnUndelivered(func(p *int) { *p++ })
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for _, c := range []*coir.Chan[*int]{
			coir.NewChan[*int](4, back),
			coir.NewChan[*int](4, coir.WithOverflow(coir.OverflowDropOldest), back),
			coir.NewChan[*int](4, coir.WithOverflow(coir.OverflowDropNewest), back),
			coir.NewChan[*int](coir.Unbounded, back),
			coir.NewChan[*int](coir.Conflated, back),
		} {
			ready := coir.NewChan[int](2)
			for range 2 {
				n.Go("sends", func(ctx context.Context) error {
					for range 20 {
						p := new(int)
						*p = 1
						c.TrySend(p)
					}
					return ready.Send(ctx, 1)
				})
			}
			ready.Recv(ctx)
			ready.Recv(ctx)
			c.Abort(nil)
		}
		return nil
	})
}
