// A case of a select orders as the operation does, whichever side waits, and between two selects.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

func main() {
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		a, b := coir.NewChan[*int](0), coir.NewChan[*int](1)
		n.Go("sends", func(ctx context.Context) error {
			for i := range 100 {
				p := new(int)
				*p = 1
				if _, err := coir.Select(ctx, a.SendCase(p), b.SendCase(p)); err != nil {
					return err
				}
				if i%10 == 0 {
					time.Sleep(time.Millisecond)
				}
			}
			a.Close()
			b.Close()
			return nil
		})
		for i := 0; ; i++ {
			var p *int
			if _, err := coir.Select(ctx, a.RecvCase(&p), b.RecvCase(&p), coir.After(time.Hour)); err != nil {
				break
			}
			*p++
			if i%15 == 0 {
				time.Sleep(2 * time.Millisecond)
			}
		}
		for p, err := range b.All(ctx) {
			if err != nil {
				return err
			}
			*p++
		}
		return nil
	})
}
