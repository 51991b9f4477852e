// A holder of all permits is ordered after earlier holders of some, and before later holders.
package main

import (
	"context"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
)

var x int

func main() {
	s := locks.NewSemaphore(3)
	var slots [6]int
	coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		for i := range slots {
			n.Go("holds one", func(ctx context.Context) error {
				for range 10 {
					if err := s.Acquire(ctx, 1); err != nil {
						return err
					}
					slots[i] = x
					coir.Yield(ctx)
					s.Release(1)
				}
				return nil
			})
		}
		n.Go("holds all", func(ctx context.Context) error {
			for range 10 {
				if err := s.Acquire(ctx, 3); err != nil {
					return err
				}
				x++
				for i := range slots {
					slots[i]++
				}
				s.Release(3)
			}
			return nil
		})
		return nil
	})
}
