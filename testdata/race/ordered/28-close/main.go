// A close is ordered before code that finds the channel closed, in an operation or a select, waiting or later.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

func main() {
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for _, end := range []func(*coir.Chan[int]){
			func(c *coir.Chan[int]) { c.Close() },
			func(c *coir.Chan[int]) { c.Abort(nil) },
		} {
			c, x := coir.NewChan[int](0), 0
			see := func(_ int, err error) error {
				if err == nil || x != 1 {
					panic("the close was not seen")
				}
				return nil
			}
			n.Go("receives", func(ctx context.Context) error { return see(c.Recv(ctx)) })
			n.Go("selects", func(ctx context.Context) error { return see(coir.Select(ctx, c.RecvCase(nil))) })
			n.Go("late", func(ctx context.Context) error {
				time.Sleep(200 * time.Millisecond)
				return see(c.Recv(ctx))
			})
			n.Go("sends late", func(ctx context.Context) error {
				time.Sleep(200 * time.Millisecond)
				return see(0, c.Send(ctx, 1))
			})
			time.Sleep(5 * time.Millisecond)
			x = 1
			end(c)
		}
		return nil
	})
}
