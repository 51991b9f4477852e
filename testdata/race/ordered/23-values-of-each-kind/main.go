// A send is ordered before the receive of its value, for every kind of channel, no matter which side comes first.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

func main() {
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for _, capacity := range []int{0, 1, 8, coir.Unbounded, coir.Conflated} {
			for _, first := range []string{"sender", "receiver"} {
				c, back := coir.NewChan[*int](capacity), coir.NewChan[*int](capacity)
				f := n.Go("other", func(ctx context.Context) error {
					if first == "receiver" {
						time.Sleep(5 * time.Millisecond)
					}
					for range 10 {
						p, err := back.Recv(ctx)
						if err != nil {
							return err
						}
						*p++
						if err := c.Send(ctx, p); err != nil {
							return err
						}
					}
					return nil
				})
				if first == "sender" {
					time.Sleep(5 * time.Millisecond)
				}
				p := new(int)
				for range 10 {
					*p++
					if err := back.Send(ctx, p); err != nil {
						return err
					}
					var err error
					if p, err = c.Recv(ctx); err != nil {
						return err
					}
				}
				if *p != 20 {
					panic("an increment was lost")
				}
				if err := f.Wait(ctx); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
