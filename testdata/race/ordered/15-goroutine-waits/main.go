// A fiber is before a goroutine that waited for it.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

func main() {
	x := 0
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		child := n.Go("child", func(ctx context.Context) error {
			coir.Sleep(ctx, 5*time.Millisecond)
			x = 1
			return nil
		})
		done := make(chan int)
		go func() {
			if err := child.Wait(context.Background()); err != nil {
				panic(err)
			}
			x++
			close(done)
		}()
		coir.Blocking(ctx, func() (int, error) { return <-done, nil })
		x++
		return nil
	})
}
