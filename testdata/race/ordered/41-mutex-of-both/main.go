// A mutex orders fibers and goroutines that lock it by any means.
package main

import (
	"context"
	"sync"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
)

var x int

func main() {
	var m locks.Mutex
	never := coir.NewChan[int](0)
	work := func(ctx context.Context, i int) {
		for range 20 {
			switch i % 3 {
			case 0:
				if m.Lock(ctx) != nil {
					return
				}
			case 1:
				if !m.TryLock() {
					continue
				}
			case 2:
				if _, err := coir.Select(ctx, never.RecvCase(nil), m.LockCase()); err != nil {
					return
				}
			}
			x++
			coir.Yield(ctx)
			x++
			m.Unlock()
		}
	}
	var goroutines sync.WaitGroup
	coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		for i := range 9 {
			n.Go("locks", func(ctx context.Context) error {
				work(ctx, i)
				return nil
			})
			goroutines.Go(func() { work(context.Background(), i) })
		}
		return nil
	})
	goroutines.Wait()
}
