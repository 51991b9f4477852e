// What comes before Set is before the end of a wait, a case that happens, and a look that sees it.
package main

import (
	"context"
	"runtime"

	"github.com/coir-go/coir"
)

var x int

func main() {
	var e coir.Event
	done := make(chan struct{})
	go func() {
		for !e.IsSet() {
			runtime.Gosched()
		}
		_ = x
		close(done)
	}()
	coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("waits", func(ctx context.Context) error {
			err := e.Wait(ctx)
			_ = x
			return err
		})
		n.Go("selects", func(ctx context.Context) error {
			_, err := coir.Select(ctx, e.DoneCase())
			_ = x
			return err
		})
		n.Go("sets", func(context.Context) error {
			x = 1
			e.Set()
			return nil
		})
		return nil
	})
	<-done
}
