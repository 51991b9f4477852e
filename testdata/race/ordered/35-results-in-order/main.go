// A task of an ordered queue is ordered before the receive of its result.
package main

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

func main() {
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		q := coir.NewOrdered[*int](4)
		n.Go("gives", func(ctx context.Context) error {
			defer q.Close()
			for i := range 20 {
				p := new(int)
				*p = i
				err := q.Go(ctx, n, "task", func(ctx context.Context) (*int, error) {
					coir.Sleep(ctx, time.Duration(i%3)*time.Millisecond)
					*p++
					return p, nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		i := 0
		for p, err := range q.All(ctx) {
			if err != nil {
				return err
			}
			i++
			if *p != i {
				panic("out of order")
			}
			*p = 0
		}
		return nil
	})
}
