package main

import (
	"context"

	"github.com/coir-go/coir"
)

// The cost of starting a task that returns a value, and of getting the value.
//
// The nursery is open, as in code that starts a task in the middle of a function. The other side makes a channel of
// capacity 1 for each result, so that the goroutine need not wait.

func answer(context.Context) (int, error) { return 42, nil }

func taskCoir() side {
	return onRuntime(func(ctx context.Context, nur *coir.Nursery, n int) error {
		for range n {
			if _, err := coir.Start(nur, "task", answer).Wait(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

func taskChan() side {
	type result struct {
		v   int
		err error
	}
	return side{loop: func(n int) {
		ctx := context.Background()
		for range n {
			c := make(chan result, 1)
			go func() {
				v, err := answer(ctx)
				c <- result{v, err}
			}()
			if r := <-c; r.err != nil {
				panic(r.err)
			}
		}
	}}
}
