package main

import (
	"context"
	"runtime"
	"sync"

	"github.com/alitto/pond/v2"
	"github.com/coir-go/coir"
	"github.com/panjf2000/ants/v2"
	"golang.org/x/sync/errgroup"
)

// The cost of starting an empty child and waiting for it, one at a time.
//
// In the comparisons with WaitGroup and errgroup, each side makes a new scope every time, like a function that forks.
// The pools are made once, as their documentation shows, and are as large as the machine; in the comparisons with them
// the nursery is opened once too. The child is empty, so only starting, switching and joining are measured.

func emptyChild(context.Context) error { return nil }

func spawnNursery() side {
	return onRuntime(func(ctx context.Context, _ *coir.Nursery, n int) error {
		for range n {
			err := coir.Run(ctx, func(_ context.Context, nur *coir.Nursery) error {
				nur.Go("child", emptyChild)
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// spawnWait leaves the nursery open. It shows the cost of spawnNursery without that of a new scope.
func spawnWait() side {
	return onRuntime(func(ctx context.Context, nur *coir.Nursery, n int) error {
		for range n {
			if err := nur.Go("child", emptyChild).Wait(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

func spawnWaitGroup() side {
	return side{loop: func(n int) {
		for range n {
			var wg sync.WaitGroup
			wg.Add(1)
			go wg.Done()
			wg.Wait()
		}
	}}
}

func spawnErrgroup() side {
	return side{loop: func(n int) {
		for range n {
			var g errgroup.Group
			g.Go(func() error { return nil })
			if err := g.Wait(); err != nil {
				panic(err)
			}
		}
	}}
}

func spawnAnts() side {
	pool, err := ants.NewPool(runtime.GOMAXPROCS(0))
	if err != nil {
		panic(err)
	}
	return side{
		loop: func(n int) {
			for range n {
				var wg sync.WaitGroup
				wg.Add(1)
				if err := pool.Submit(wg.Done); err != nil {
					panic(err)
				}
				wg.Wait()
			}
		},
		close: pool.Release,
	}
}

func spawnPond() side {
	pool := pond.NewPool(runtime.GOMAXPROCS(0))
	return side{
		loop: func(n int) {
			for range n {
				if err := pool.Submit(func() {}).Wait(); err != nil {
					panic(err)
				}
			}
		},
		close: pool.StopAndWait,
	}
}
