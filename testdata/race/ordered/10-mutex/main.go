// A sync.Mutex orders fibers as it does goroutines.
package main

import (
	"context"
	"sync"

	"github.com/coir-go/coir"
)

func main() {
	var mu sync.Mutex
	x := 0
	rt := coir.NewRuntime(coir.WithWorkers(2))
	rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for range 20 {
			n.Go("locks", func(ctx context.Context) error {
				for range 5 {
					mu.Lock()
					x++
					mu.Unlock()
					coir.Yield(ctx)
				}
				return nil
			})
		}
		return nil
	})
	if x != 100 {
		panic("an increment was lost")
	}
}
