// The function of a Once is ordered before the return of every Do, even of one that did not wait.
package main

import (
	"context"
	"errors"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
)

var x int

func main() {
	var o locks.Once
	coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		for range 10 {
			n.Go("uses", func(ctx context.Context) error {
				for range 3 {
					err := o.Do(ctx, func(context.Context) error {
						x++
						coir.Yield(ctx)
						if x < 3 {
							return errors.New("not yet")
						}
						return nil
					})
					if err == nil && x != 3 {
						panic("not done")
					}
				}
				return nil
			})
		}
		return nil
	})
}
