// What was done before a case was added is before it happens; a case that has happened is before the return of its removal.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

func main() {
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		s, in, out := coir.NewSelector(), coir.NewChan[int](1), coir.NewChan[*int](0)
		waits, stop := coir.WithCancelCause(ctx)
		n.Go("waits", func(context.Context) error {
			for {
				if _, err := s.Wait(waits); err != nil {
					return nil
				}
			}
		})
		x := 1
		id := s.Add(in.RecvCase(&x))
		in.Send(ctx, 2)
		for in.Len() > 0 {
			coir.Yield(ctx)
		}
		s.Remove(id)
		x++
		f := n.Go("receives", func(ctx context.Context) error {
			p, err := out.Recv(ctx)
			*p++
			return err
		})
		p := new(int)
		*p = 1
		s.Add(out.SendCase(p))
		err := f.Wait(ctx)
		stop(nil)
		return err
	})
}
