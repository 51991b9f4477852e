// What a selector receives is after its send, and what it sends is before the receive.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

func main() {
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		var in [4]*int
		s, out := coir.NewSelector(), coir.NewChan[*int](0)
		for i := range in {
			c := coir.NewChan[*int](i % 2)
			s.Add(c.RecvCase(&in[i]))
			n.Go("sends", func(ctx context.Context) error {
				defer c.Close()
				for range 10 {
					p := new(int)
					*p = 1
					if err := c.Send(ctx, p); err != nil {
						return err
					}
				}
				return nil
			})
		}
		n.Go("receives", func(ctx context.Context) error {
			for p, err := range out.All(ctx) {
				if err != nil {
					return err
				}
				*p++
			}
			return nil
		})
		for s.Len() > 0 {
			i, err := s.Wait(ctx)
			if i >= len(in) || err != nil {
				continue
			}
			*in[i]++
			s.Add(out.SendCase(in[i]))
		}
		out.Close()
		return nil
	})
}
