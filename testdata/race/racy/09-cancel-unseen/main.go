// A cancel orders only code that sees it; the reader never checks for it.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/coir-go/coir"
)

var x int

func main() {
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("cancels", func(context.Context) error {
			x = 1
			n.Cancel(errors.New("enough"))
			return nil
		})
		n.Go("does not look", func(context.Context) error {
			time.Sleep(20 * time.Millisecond)
			x = 2
			return nil
		})
		return nil
	})
}
