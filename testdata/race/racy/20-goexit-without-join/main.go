// A fiber that ended by Goexit is ordered before the return of a wait for it; here there is none.
package main

import (
	"context"
	"runtime"
	"time"

	"github.com/coir-go/coir"
)

var x int

func main() {
	coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("exits", func(context.Context) error {
			x = 1
			runtime.Goexit()
			return nil
		})
		n.Go("sibling", func(ctx context.Context) error {
			coir.Sleep(ctx, 10*time.Millisecond)
			x = 2
			return nil
		})
		return nil
	})
}
