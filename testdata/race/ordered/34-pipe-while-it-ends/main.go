// The last Close of the readers is ordered before code that finds them gone, even while it still hands values back.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

func main() {
	x := 0
	rt := coir.NewRuntime(coir.WithWorkers(2))
	rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		w, r := coir.Pipe[int](1, coir.OnUndelivered(func(int) { time.Sleep(20 * time.Millisecond) }))
		w.Send(ctx, 1)
		n.Go("reads", func(context.Context) error {
			x = 1
			r.Close()
			return nil
		})
		for {
			if _, err := coir.TrySelect(w.GoneCase()); err == nil {
				break
			}
			coir.Yield(ctx)
		}
		x++
		return nil
	})
}
