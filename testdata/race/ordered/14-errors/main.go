// A fiber is ordered before the Run or Wait that returns its error; the error may be read.
package main

import (
	"context"
	"errors"

	"github.com/coir-go/coir"
)

type failure struct{ code int }

func (f *failure) Error() string { return "failure" }

func main() {
	rt := coir.NewRuntime(coir.WithWorkers(2))
	err := rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for i := range 5 {
			n.Go("fails", func(context.Context) error { return &failure{i} })
		}
		child := n.Go("fails", func(context.Context) error { return &failure{7} })
		var f *failure
		if err := child.Wait(coir.Shield(ctx)); !errors.As(err, &f) || f.code != 7 {
			panic("not its error")
		}
		return &failure{8}
	})
	sum := 0
	for _, e := range err.(interface{ Unwrap() []error }).Unwrap() {
		sum += e.(*failure).code
	}
	if sum != 10+7+8 {
		panic("an error is missing")
	}
}
