// The case that a fiber has ended stores its error where another reads.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

var end error

func main() {
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		f := n.Go("ends", func(context.Context) error { return nil })
		n.Go("selects", func(ctx context.Context) error {
			_, err := coir.Select(ctx, f.DoneCase(&end))
			return err
		})
		n.Go("reads", func(context.Context) error {
			time.Sleep(20 * time.Millisecond)
			return end
		})
		return nil
	})
}
