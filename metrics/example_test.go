package metrics_test

import (
	"context"
	"fmt"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/metrics"
)

// A program reads its own metrics.
func ExampleCollector_Samples() {
	rt := coir.NewRuntime()
	c := metrics.New(rt)
	_ = rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for range 3 {
			n.Go("work", func(context.Context) error { return nil })
		}
		return nil
	})
	for _, s := range c.Samples() {
		if s.Name == "coir_fibers_spawned_total" || s.Name == "coir_fibers_live" {
			fmt.Println(s.Name, s.Value)
		}
	}
	_ = rt.Close(context.Background())
	// Output:
	// coir_fibers_live 0
	// coir_fibers_spawned_total 4
}
