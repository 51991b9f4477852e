// A fiber that panics is ordered before the Run that panics in turn; the value of the panic may be read.
package main

import (
	"context"

	"github.com/coir-go/coir"
)

type value struct{ code int }

func run(ctx context.Context) (code int) {
	x := 0
	defer func() {
		pe := recover().(*coir.PanicError)
		if pe.Fiber != "panics" || len(pe.Stack) == 0 || x != 1 {
			panic("not the panic that was to come")
		}
		code = pe.Value.(*value).code
	}()
	coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("panics", func(ctx context.Context) error {
			x = 1
			panic(&value{7})
		})
		return nil
	})
	return 0
}

func main() {
	if run(context.Background()) != 7 {
		panic("the value is another")
	}
}
