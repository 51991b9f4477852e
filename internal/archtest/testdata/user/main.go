// Command user is a program outside the module, so that generic code is compiled as for a user.
// TestHotFunctionsCallNothingNew looks at each of its functions but main.
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
			if err := send(ctx, a); err != nil {
				return err
			}
			if err := yield(ctx); err != nil {
				return err
			}
			return send(ctx, b)
		})
		v, err := recv(ctx, a)
		if err != nil {
			return err
		}
		var w int
		_, err = choose(ctx, a, b, &w)
		fmt.Println(v, w)
		return err
	})
	if err != nil {
		fmt.Println(err)
	}
}

//go:noinline
func send(ctx context.Context, c *coir.Chan[int]) error { return c.Send(ctx, 1) }

//go:noinline
func recv(ctx context.Context, c *coir.Chan[int]) (int, error) { return c.Recv(ctx) }

//go:noinline
func choose(ctx context.Context, a, b *coir.Chan[int], v *int) (int, error) {
	return coir.Select(ctx, a.RecvCase(v), b.RecvCase(v))
}

//go:noinline
func yield(ctx context.Context) error { return coir.Yield(ctx) }
