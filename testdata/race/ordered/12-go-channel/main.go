// A channel of Go orders fibers as it does goroutines, through Blocking and without.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

func main() {
	x := 0
	ping, pong := make(chan int), make(chan int)
	rt := coir.NewRuntime(coir.WithWorkers(2))
	rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("blocks as it is", func(ctx context.Context) error {
			for range 10 {
				x++
				ping <- 1
				<-pong
			}
			return nil
		})
		n.Go("says so", func(ctx context.Context) error {
			for range 10 {
				coir.Blocking(ctx, func() (int, error) { return <-ping, nil })
				x++
				coir.Blocking(ctx, func() (int, error) { pong <- 1; return 0, nil })
			}
			return nil
		})
		return nil
	})
}
