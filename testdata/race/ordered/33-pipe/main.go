// The last Close of one side of a pipe is ordered before code that finds the side gone, in a select or an operation.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

func main() {
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for _, pause := range []time.Duration{0, 10 * time.Millisecond} {
			x, y := 0, 0
			w, r := coir.Pipe[int](1)
			n.Go("reader waits", func(ctx context.Context) error {
				time.Sleep(pause)
				_, err := coir.Select(ctx, r.GoneCase())
				x++
				if v, err := r.Recv(ctx); v != 1 || err != nil {
					panic("the value was lost")
				}
				y = 1
				r.Close()
				return err
			})
			n.Go("writer waits", func(ctx context.Context) error {
				time.Sleep(pause)
				_, err := coir.Select(ctx, w.GoneCase())
				y++
				return err
			})
			time.Sleep(5 * time.Millisecond)
			w.Send(ctx, 1)
			x = 1
			w.Close()
		}
		return nil
	})
}
