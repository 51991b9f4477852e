// Two Runs from two goroutines: that both use the default runtime orders nothing.
package main

import (
	"context"
	"sync"
	"time"

	"github.com/coir-go/coir"
)

var x int

func nothing(context.Context, *coir.Nursery) error { return nil }

func main() {
	var wg sync.WaitGroup
	wg.Go(func() {
		x = 1
		coir.Run(context.Background(), nothing)
	})
	wg.Go(func() {
		time.Sleep(20 * time.Millisecond)
		coir.Run(context.Background(), nothing)
		x = 2
	})
	wg.Wait()
}
