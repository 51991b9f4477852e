// A cancel is ordered before code that finds Done closed or Err set, even if Done was called before the cancel.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

func main() {
	x := 0
	rt := coir.NewRuntime(coir.WithWorkers(4))
	see := func(ok bool) {
		if !ok || x != 1 {
			panic("the cancel was not seen")
		}
	}
	for _, asked := range []bool{true, false} {
		x = 0
		rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
			if asked {
				n.Go("done before", func(ctx context.Context) error { <-ctx.Done(); see(true); return nil })
			}
			n.Go("err", func(ctx context.Context) error { time.Sleep(20 * time.Millisecond); see(ctx.Err() != nil); return nil })
			n.Go("done after", func(ctx context.Context) error {
				time.Sleep(20 * time.Millisecond)
				<-ctx.Done()
				see(true)
				return nil
			})
			x = 1
			n.Cancel(nil)
			return nil
		})
	}
}
