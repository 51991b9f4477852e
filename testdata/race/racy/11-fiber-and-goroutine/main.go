// Nothing orders a fiber and a goroutine that it has not started.
package main

import (
	"context"
	"sync"

	"github.com/coir-go/coir"
)

var x int

func main() {
	var wg sync.WaitGroup
	wg.Go(func() { x++ })
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("fiber", func(context.Context) error { x++; return nil })
		return nil
	})
	wg.Wait()
}
