// Many children, and the children that they start, are ordered before the return of Run.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

func main() {
	var x [200]int
	rt := coir.NewRuntime(coir.WithWorkers(2))
	rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for i := range 100 {
			n.Go("child", func(ctx context.Context) error {
				n.Go("grandchild", func(context.Context) error { x[100+i] = 1; return nil })
				coir.Yield(ctx)
				x[i] = 1
				return nil
			})
		}
		return nil
	})
	sum := 0
	for _, v := range x {
		sum += v
	}
	if sum != len(x) {
		panic("not all have run")
	}
}
