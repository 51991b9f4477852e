package main

import (
	"context"
	"runtime"

	"github.com/coir-go/coir"
)

// A pool is compared with a buffered channel that holds the free values: both lend at most a fixed number of values,
// and a caller waits if none is free. A sync.Pool does neither: it has no bound, and the collector empties it. The
// values of the channel exist from the start; those of the pool have been created before the first round.
//
// An operation is one value taken and given back. A pool of at most 64 values records who has each value.

type lentValue struct{ uses int }

// newValues returns a pool of size values, all of which have been created.
func newValues(size int) *coir.Pool[*lentValue] {
	p := coir.NewPool(size, func(context.Context) (*lentValue, error) { return new(lentValue), nil }, nil)
	var all []*lentValue
	for range size {
		v, err := p.Get(context.Background())
		if err != nil {
			panic(err)
		}
		all = append(all, v)
	}
	for _, v := range all {
		if err := p.Put(v); err != nil {
			panic(err)
		}
	}
	return p
}

// poolBody takes values of a pool and gives them back. If yields is set, each caller yields while it has one.
func poolBody(size int, yields bool) func(ctx context.Context, n int) error {
	p := newValues(size)
	return func(ctx context.Context, n int) error {
		for range n {
			v, err := p.Get(ctx)
			if err != nil {
				return err
			}
			v.uses++
			if yields {
				if err := coir.Yield(ctx); err != nil {
					return err
				}
			}
			if err := p.Put(v); err != nil {
				return err
			}
		}
		return nil
	}
}

// freeListBody is the same with a channel.
func freeListBody(size int, yields bool) func(n int) {
	free := make(chan *lentValue, size)
	for range size {
		free <- new(lentValue)
	}
	return func(n int) {
		for range n {
			v := <-free
			v.uses++
			if yields {
				runtime.Gosched()
			}
			free <- v
		}
	}
}

// poolFibers has k fibers share a pool of size values.
func poolFibers(k, size int) func() side {
	return func() side { return fibersDo(k, poolBody(size, k > 1))() }
}

// poolGoroutine has a goroutine use a pool.
func poolGoroutine(size int) func() side {
	return func() side {
		body := poolBody(size, false)
		return goroutinesDo(1, func(n int) {
			if err := body(context.Background(), n); err != nil {
				panic(err)
			}
		})()
	}
}

// freeList has k goroutines share a channel of size values.
func freeList(k, size int) func() side {
	return func() side { return goroutinesDo(k, freeListBody(size, k > 1))() }
}
