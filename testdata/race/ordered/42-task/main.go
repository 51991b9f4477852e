// The function of a task is before a wait for it, or a select, that returns its value; and before the return of Map.
package main

import (
	"context"
	"slices"

	"github.com/coir-go/coir"
)

func main() {
	x := 0
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for range 10 {
			add := func(context.Context) (*int, error) { x++; return &x, nil }
			v, err := coir.Start(n, "task", add).Wait(ctx)
			if err != nil {
				return err
			}
			*v++
			if _, err := coir.Select(ctx, coir.Start(n, "task", add).DoneCase(&v, nil)); err != nil {
				return err
			}
			*v++
			if v, err = coir.Race(ctx, add); err != nil {
				return err
			}
			*v++
			all, err := coir.Map(ctx, 2, slices.Values([]int{1, 2}), func(_ context.Context, i int) (int, error) {
				if i == 1 {
					x++
				}
				return i, nil
			})
			if err != nil {
				return err
			}
			all[0]++
			x++
		}
		return nil
	})
}
