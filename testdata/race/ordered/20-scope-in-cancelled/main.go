// A cancel is ordered before code that sees it through a scope made inside afterwards.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/coir-go/coir"
)

type cause struct{ code int }

func (c *cause) Error() string { return "cause" }

func main() {
	x := 0
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("late", func(ctx context.Context) error {
			time.Sleep(20 * time.Millisecond)
			ctx, stop := coir.WithTimeout(ctx, time.Hour)
			defer stop()
			return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				err := coir.Sleep(ctx, time.Hour)
				c, ok := context.Cause(ctx).(*cause)
				if !errors.Is(err, context.Canceled) || !ok || c.code != 7 || x != 1 {
					panic("the cancel was not seen")
				}
				return nil
			})
		})
		n.Go("cancels", func(context.Context) error {
			x = 1
			n.Cancel(&cause{7})
			return nil
		})
		return nil
	})
}
