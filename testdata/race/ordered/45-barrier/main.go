// All calls of Wait of a barrier are ordered before the return of each of them.
package main

import (
	"context"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
)

func main() {
	const members = 4
	b := locks.NewBarrier(members)
	var slots [members]int
	coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		for i := range members {
			n.Go("member", func(ctx context.Context) error {
				for range 10 {
					slots[i]++
					if _, _, err := b.Wait(ctx); err != nil {
						return err
					}
					for _, v := range slots {
						if v != slots[i] {
							panic("out of step")
						}
					}
					if _, _, err := b.Wait(ctx); err != nil {
						return err
					}
				}
				return nil
			})
		}
		return nil
	})
}
