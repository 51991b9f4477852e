// A goroutine that sends on is not after the fiber that received.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

func main() {
	c := coir.NewChan[*int](0)
	done := make(chan struct{})
	go func() {
		p := new(int)
		c.Send(context.Background(), p)
		*p = 1
		close(done)
	}()
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		p, err := c.Recv(ctx)
		*p = 2
		return err
	})
	<-done
}
