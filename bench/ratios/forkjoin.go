package main

import (
	"context"
	"sync"

	"github.com/coir-go/coir"
)

// The cost of recursive fork and join.
//
// The program is fib, the usual one for this purpose: each call forks one half, computes the other itself, and waits
// for the first. The leaves do no work, so forks are the whole cost. On more than one processor the tree also shows
// whether stealing pays. Both sides have the same shape: each call has one child, and makes a new scope.

const (
	fibArg   = 16
	fibValue = 987
	fibForks = 1596 // calls of fib(16) with an argument above 1
)

func forkFibers() side {
	return onRuntime(func(ctx context.Context, _ *coir.Nursery, n int) error {
		for range n {
			checkFib(fibFibers(ctx, fibArg))
		}
		return nil
	})
}

func fibFibers(ctx context.Context, k int) int {
	if k < 2 {
		return k
	}
	var a, b int
	err := coir.Run(ctx, func(ctx context.Context, nur *coir.Nursery) error {
		nur.Go("fib", func(ctx context.Context) error {
			a = fibFibers(ctx, k-1)
			return nil
		})
		b = fibFibers(ctx, k-2)
		return nil
	})
	if err != nil {
		panic(err)
	}
	return a + b
}

func forkWaits() side {
	return onRuntime(func(ctx context.Context, nur *coir.Nursery, n int) error {
		for range n {
			checkFib(fibWaits(ctx, nur, fibArg))
		}
		return nil
	})
}

func fibWaits(ctx context.Context, nur *coir.Nursery, k int) int {
	if k < 2 {
		return k
	}
	var a int
	forked := nur.Go("fib", func(ctx context.Context) error {
		a = fibWaits(ctx, nur, k-1)
		return nil
	})
	b := fibWaits(ctx, nur, k-2)
	if err := forked.Wait(ctx); err != nil {
		panic(err)
	}
	return a + b
}

func forkGoroutines() side {
	return side{loop: func(n int) {
		for range n {
			checkFib(fibGoroutines(fibArg))
		}
	}}
}

func fibGoroutines(k int) int {
	if k < 2 {
		return k
	}
	var a int
	var wg sync.WaitGroup
	wg.Add(1)
	go func() {
		a = fibGoroutines(k - 1)
		wg.Done()
	}()
	b := fibGoroutines(k - 2)
	wg.Wait()
	return a + b
}

func checkFib(got int) {
	if got != fibValue {
		panic("fib is wrong: a join returned before its child had ended")
	}
}
