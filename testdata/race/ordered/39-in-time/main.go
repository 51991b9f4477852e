// Operations with a time limit, and those that never wait, order as the plain ones do.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

func main() {
	c := coir.NewChan[*int](1)
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("sends", func(ctx context.Context) error {
			defer c.Close()
			for i := range 100 {
				p := new(int)
				*p = 1
				for {
					var err error
					if i%2 == 0 {
						err = c.TrySend(p)
					} else {
						err = c.SendTimeout(ctx, p, 10*time.Microsecond)
					}
					if err == nil {
						break
					}
					*p = 1 // it is still ours
					coir.Yield(ctx)
				}
			}
			return nil
		})
		for i := 0; i < 100; {
			p, err := c.TryRecv()
			if err != nil {
				p, err = c.RecvTimeout(ctx, 10*time.Microsecond)
			}
			if err == nil {
				*p++
				i++
			}
			coir.Yield(ctx)
		}
		return nil
	})
}
