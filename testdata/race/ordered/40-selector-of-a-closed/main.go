// A selector that finds a channel closed is after the close.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

func main() {
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		x, s, c := 0, coir.NewSelector(), coir.NewChan[int](0)
		s.Add(c.RecvCase(nil))
		n.Go("closes", func(context.Context) error {
			x = 1
			c.Close()
			return nil
		})
		if _, err := s.Wait(ctx); err != coir.ErrClosed {
			return err
		}
		x++
		return nil
	})
}
