// A fiber in its own timeout scope needs no other order, and children inside the scope are joined as usual.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/coir-go/coir"
)

func main() {
	x := 0
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		ctx, stop := coir.WithTimeout(ctx, 5*time.Millisecond)
		defer stop()
		x++
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("child", func(ctx context.Context) error {
				err := coir.Sleep(ctx, time.Hour)
				x++
				return err
			})
			return nil
		})
		x++
		if !errors.Is(err, coir.ErrTimeout) || x != 3 {
			panic("not the timeout that was to come")
		}
		return nil
	})
}
