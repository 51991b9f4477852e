package main

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/desk"
)

// A wait that another completes by an id.
//
// An operation is one ticket: one fiber opens it, passes the id to another
// fiber through a channel, and waits; the other resolves the id. Without coir
// there are two goroutines, a map from a number to a channel with one place,
// which is made for each wait, and a mutex.

func ticketFibers() side {
	rt := coir.NewRuntime()
	return side{
		loop: func(n int) {
			d := desk.New[int]("bench")
			run(rt, func(_ context.Context, nur *coir.Nursery) error {
				ids := coir.NewChan[desk.ID](1)
				nur.Go("resolver", func(ctx context.Context) error {
					for id, err := range ids.All(ctx) {
						if err != nil {
							return err
						}
						if err := d.Resolve(id, 1); err != nil {
							return err
						}
					}
					return nil
				})
				nur.Go("caller", func(ctx context.Context) error {
					defer ids.Close()
					for range n {
						t, err := d.Open(ctx)
						if err != nil {
							return err
						}
						if err := ids.Send(ctx, t.ID()); err != nil {
							return err
						}
						if _, err := t.Wait(ctx); err != nil {
							return err
						}
					}
					return nil
				})
				return nil
			})
		},
		close: func() { shut(rt) },
	}
}

func ticketGoroutines() side {
	return side{loop: func(n int) {
		ctx := context.Background()
		d := desk.New[int]("bench")
		ids := make(chan desk.ID, 1)
		var wg sync.WaitGroup
		wg.Go(func() {
			for id := range ids {
				if err := d.Resolve(id, 1); err != nil {
					panic(err)
				}
			}
		})
		for range n {
			t, err := d.Open(ctx)
			if err != nil {
				panic(err)
			}
			ids <- t.ID()
			if _, err := t.Wait(ctx); err != nil {
				panic(err)
			}
		}
		close(ids)
		wg.Wait()
	}}
}

func ticketMap() side {
	return side{loop: func(n int) {
		var (
			mu      sync.Mutex
			waiting = make(map[uint64]chan int)
			last    atomic.Uint64
		)
		ids := make(chan uint64, 1)
		var wg sync.WaitGroup
		wg.Go(func() {
			for id := range ids {
				mu.Lock()
				c, ok := waiting[id]
				delete(waiting, id)
				mu.Unlock()
				if !ok {
					panic("no such wait")
				}
				c <- 1
			}
		})
		for range n {
			id, c := last.Add(1), make(chan int, 1)
			mu.Lock()
			waiting[id] = c
			mu.Unlock()
			ids <- id
			<-c
		}
		close(ids)
		wg.Wait()
	}}
}
