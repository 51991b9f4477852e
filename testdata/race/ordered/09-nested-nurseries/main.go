// A nursery is joined by its own Run, also inside another.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

func count(ctx context.Context, depth int) (sum int) {
	coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		if depth == 0 {
			sum = 1
			return nil
		}
		var parts [2]int
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			for i := range parts {
				n.Go("part", func(ctx context.Context) error { parts[i] = count(ctx, depth-1); return nil })
			}
			return nil
		})
		sum = parts[0] + parts[1]
		return err
	})
	return sum
}

func main() {
	if count(context.Background(), 5) != 32 {
		panic("not all were counted")
	}
}
