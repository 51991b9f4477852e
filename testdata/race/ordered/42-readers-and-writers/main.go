// A writer is after the readers and writers before it, and readers are after the writers before them.
package main

import (
	"context"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
)

var x int

func main() {
	var m locks.RWMutex
	var last [8]int // by each reader, under its read lock
	coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		for i := range len(last) {
			n.Go("reads", func(ctx context.Context) error {
				for range 10 {
					if err := m.RLock(ctx); err != nil {
						return err
					}
					last[i] = x
					coir.Yield(ctx)
					m.RUnlock()
				}
				return nil
			})
		}
		for range 3 {
			n.Go("writes", func(ctx context.Context) error {
				for range 10 {
					if err := m.Lock(ctx); err != nil {
						return err
					}
					x++
					for i := range last {
						x += last[i] - last[i]
					}
					m.Unlock()
				}
				return nil
			})
		}
		return nil
	})
}
