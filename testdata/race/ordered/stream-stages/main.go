// What a stage does before it passes an element on is ordered before what the next stage does with it, also across a
// boundary, through workers, by a function of the program and by the spawn forms; and all of it before what comes after the sink.
package main

import (
	"context"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/stream"
)

func main() {
	rt := coir.NewRuntime(coir.WithWorkers(2))
	rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		cells := make([]int, 100)
		made := 0
		s := stream.FromSeq(func(yield func(*int) bool) {
			for i := range cells {
				made++
				cells[i] = 1
				if !yield(&cells[i]) {
					return
				}
			}
		})
		work := func(_ context.Context, c *int) (*int, error) {
			*c++
			return c, nil
		}
		s = stream.Merge(stream.Buffer(s, 4))
		s = stream.ParallelUnordered(stream.Parallel(s, 4, work), 3, work)
		s = stream.ParallelPerKey(s, 4, func(c *int) int { return *c }, work)
		s = stream.Stage(s, func(ctx context.Context, s stream.Stream[*int], emit func(context.Context, *int) error) error {
			return stream.ForEach(ctx, s, func(ctx context.Context, c *int) error {
				*c++
				return emit(ctx, c)
			})
		})
		s = stream.From(stream.Downstream(n, "down", s, 1))
		sum, err := stream.Reduce(ctx, s, 0, func(a int, c *int) int {
			*c++
			return a + *c
		})
		if err != nil || sum != 6*len(cells) || made != len(cells) {
			panic("wrong sum")
		}
		return nil
	})
}
