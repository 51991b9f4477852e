// Nothing orders the two that write to one element; the others have elements of their own.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

func main() {
	s := make([]int, 4)
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for _, i := range []int{0, 1, 2, 3, 2} {
			n.Go("writer", func(context.Context) error { s[i]++; return nil })
		}
		return nil
	})
}
