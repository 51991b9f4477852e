// A function given to AfterFunc is ordered after the call of AfterFunc and after the cancel, whichever came first.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

func main() {
	for _, late := range []bool{false, true} {
		x, ran := 0, make(chan int, 2)
		coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
			n.Go("registers", func(ctx context.Context) error {
				if late {
					time.Sleep(10 * time.Millisecond)
				}
				y := 1
				f := func() { ran <- x + y }
				context.AfterFunc(ctx, f)
				ctx.(interface{ AfterFunc(func()) func() bool }).AfterFunc(f)
				return nil
			})
			n.Go("cancels", func(context.Context) error {
				if !late {
					time.Sleep(10 * time.Millisecond)
				}
				x = 1
				n.Cancel(nil)
				return nil
			})
			return nil
		})
		if <-ran+<-ran != 4 {
			panic("not what was written before")
		}
	}
}
