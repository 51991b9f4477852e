// What comes before a cancel is ordered before what follows the wait for a ticket that the cancel has ended. So is what
// comes before the ticket was opened.
package main

import (
	"context"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/desk"
)

var x int

func main() {
	d := desk.New[int](desk.WithName("replies"))
	rt := coir.NewRuntime()
	rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		in, cancel := coir.WithCancel(ctx)
		x++
		t, err := d.Open(in)
		if err != nil {
			return err
		}
		n.Go("canceller", func(context.Context) error {
			x++
			cancel()
			return nil
		})
		n.Go("waiter", func(ctx context.Context) error {
			_, err := t.Wait(ctx)
			if x++; err == nil {
				panic("the ticket has no answer")
			}
			return nil
		})
		return nil
	})
}
