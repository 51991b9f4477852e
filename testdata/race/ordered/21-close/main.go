// All that ran on a runtime is before the return of its Close.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

func main() {
	x := 0
	rt := coir.NewRuntime(coir.WithWorkers(2))
	go rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("cleans up", func(ctx context.Context) error {
			coir.Sleep(ctx, time.Hour)
			x = 1
			return nil
		})
		return nil
	})
	time.Sleep(20 * time.Millisecond)
	if err := rt.Close(context.Background()); err != nil {
		panic(err)
	}
	x++
}
