// The lock of a Cond orders fibers and goroutines, also around its waits and after a select.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

var x int

func main() {
	var c coir.Cond
	take := func(ctx context.Context, by int) {
		for range 10 {
			c.Lock()
			for x == 0 {
				if by == 0 {
					if c.Wait(ctx) != nil {
						panic("cancelled")
					}
					continue
				}
				changed := c.WaitCase()
				c.Unlock()
				if _, err := coir.Select(ctx, changed); err != nil {
					panic(err)
				}
				c.Lock()
			}
			x--
			c.Unlock()
		}
	}
	done := make(chan struct{})
	go func() {
		take(context.Background(), 0)
		close(done)
	}()
	coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		for by := range 2 {
			n.Go("takes", func(ctx context.Context) error {
				take(ctx, by)
				return nil
			})
		}
		n.Go("puts", func(ctx context.Context) error {
			for range 30 {
				c.Lock()
				x++
				if c.Signal(); x > 2 {
					c.Broadcast()
				}
				c.Unlock()
				coir.Yield(ctx)
			}
			return nil
		})
		return nil
	})
	<-done
}
