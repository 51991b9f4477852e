// Nothing orders two siblings that write to one map, on one worker.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

func main() {
	m := map[string]int{}
	rt := coir.NewRuntime(coir.WithWorkers(1))
	rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for _, key := range []string{"a", "b"} {
			n.Go("writer", func(context.Context) error { m[key] = 1; return nil })
		}
		return nil
	})
}
