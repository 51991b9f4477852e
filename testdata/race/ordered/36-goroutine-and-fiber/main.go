// Channels order goroutines and fibers with each other, in both directions.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

func main() {
	for _, capacity := range []int{0, 1, coir.Unbounded, coir.Conflated} {
		there, back := coir.NewChan[*int](capacity), coir.NewChan[*int](capacity)
		go func() {
			ctx := context.Background()
			for p, err := range there.All(ctx) {
				if err != nil {
					return
				}
				*p++
				back.Send(ctx, p)
			}
			back.Close()
		}()
		p := new(int)
		coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
			for range 50 {
				*p++
				if err := there.Send(ctx, p); err != nil {
					return err
				}
				var err error
				if p, err = back.Recv(ctx); err != nil {
					return err
				}
			}
			there.Close()
			return nil
		})
		if _, err := back.Recv(context.Background()); err == nil || *p != 100 {
			panic("an increment was lost")
		}
	}
}
