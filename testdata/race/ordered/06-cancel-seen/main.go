// A cancel is ordered before the return of a Sleep and a Wait that it ended, so its cause may be read.
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
		see := func(ctx context.Context, err error) error {
			c, ok := context.Cause(ctx).(*cause)
			if !errors.Is(err, context.Canceled) || !ok || c.code != 7 || x != 1 {
				panic("the cancel was not seen")
			}
			return nil
		}
		sleeper := n.Go("sleeps", func(ctx context.Context) error { return see(ctx, coir.Sleep(ctx, time.Hour)) })
		n.Go("waits", func(ctx context.Context) error {
			err := sleeper.Wait(ctx)
			if err == nil { // the sleeper saw the cancel, and ended, first
				err = ctx.Err()
			}
			return see(ctx, err)
		})
		n.Go("cancels", func(ctx context.Context) error {
			coir.Sleep(ctx, 5*time.Millisecond)
			x = 1
			n.Cancel(&cause{7})
			return nil
		})
		return nil
	})
}
