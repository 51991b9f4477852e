// Command user is a program outside the module, so that what is generic is compiled as for a user. See
// TestHotFunctionsCallNothingNew.
package main

import (
	"context"
	"fmt"

	"github.com/coir-go/coir"
)

func main() {
	a, b := coir.NewChan[int](0), coir.NewChan[int](1)
	err := coir.Run(context.Background(), func(ctx context.Context, nur *coir.Nursery) error {
		nur.Go("send", func(ctx context.Context) error {
			if err := a.Send(ctx, 1); err != nil {
				return err
			}
			if err := coir.Yield(ctx); err != nil {
				return err
			}
			return b.Send(ctx, 2)
		})
		v, err := a.Recv(ctx)
		if err != nil {
			return err
		}
		var w int
		_, err = coir.Select(ctx, a.RecvCase(&w), b.RecvCase(&w))
		fmt.Println(v, w)
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
}
