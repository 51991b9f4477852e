package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"sync"
	"sync/atomic"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/desk"
)

// One fiber waits, and another completes the wait by its id.
//
// An operation is one ticket: one fiber opens it, passes the id to another fiber through a channel, and waits; the
// other resolves the id. Without coir there are two goroutines, a mutex, and a map from the id to a channel of capacity
// 1, which is made for each wait.
//
// A ticket has an id that cannot be guessed, and ends with its context. A map of numbers provides neither. The other
// side of the rows called like provides both: its ids are random, and it waits in a select with the context.

func ticketFibers() side {
	return onRuntime(func(_ context.Context, nur *coir.Nursery, n int) error {
		d := desk.New[int](desk.WithName("bench"))
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
}

// ticketChannels passes the id and the answer through two channels. There is no table of waits, so this is the cost of
// a ticket without the desk.
func ticketChannels() side {
	return onRuntime(func(_ context.Context, nur *coir.Nursery, n int) error {
		ids, answers := coir.NewChan[desk.ID](1), coir.NewChan[int](1)
		nur.Go("resolver", func(ctx context.Context) error {
			for _, err := range ids.All(ctx) {
				if err != nil {
					return err
				}
				if err := answers.Send(ctx, 1); err != nil {
					return err
				}
			}
			return nil
		})
		nur.Go("caller", func(ctx context.Context) error {
			defer ids.Close()
			for range n {
				if err := ids.Send(ctx, desk.ID{}); err != nil {
					return err
				}
				if _, err := answers.Recv(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		return nil
	})
}

func ticketGoroutines() side {
	return side{loop: func(n int) {
		ctx, stop := context.WithCancel(context.Background())
		defer stop()
		d := desk.New[int](desk.WithName("bench"))
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
			if _, err := t.Wait(context.Background()); err != nil { // the ticket ends with ctx
				panic(err)
			}
		}
		close(ids)
		wg.Wait()
	}}
}

// waits is the usual table of waits. Its ids are numbers, or random texts if it must not be possible to guess them.
type waits[K comparable] struct {
	mu      sync.Mutex
	waiting map[K]chan int
	newID   func() K
}

// open registers a wait.
func (t *waits[K]) open() (K, chan int) {
	id, c := t.newID(), make(chan int, 1)
	t.mu.Lock()
	t.waiting[id] = c
	t.mu.Unlock()
	return id, c
}

// take removes a wait, and reports whether there was one.
func (t *waits[K]) take(id K) (chan int, bool) {
	t.mu.Lock()
	c, ok := t.waiting[id]
	delete(t.waiting, id)
	t.mu.Unlock()
	return c, ok
}

// ticketMap is the other side with ids that newID makes. With cancel the wait also ends with a context, like the wait
// for a ticket, and then the entry is removed.
func ticketMap[K comparable](newID func() K, cancel bool) func() side {
	return func() side {
		return side{loop: func(n int) {
			ctx, stop := context.WithCancel(context.Background())
			defer stop()
			t := &waits[K]{waiting: make(map[K]chan int), newID: newID}
			ids := make(chan K, 1)
			var wg sync.WaitGroup
			wg.Go(func() {
				for id := range ids {
					c, ok := t.take(id)
					if !ok {
						panic("no such wait")
					}
					c <- 1
				}
			})
			for range n {
				id, c := t.open()
				ids <- id
				if !cancel {
					<-c
					continue
				}
				select {
				case <-c:
				case <-ctx.Done():
					t.take(id)
				}
			}
			close(ids)
			wg.Wait()
		}}
	}
}

var lastNumber atomic.Uint64

func number() uint64 { return lastNumber.Add(1) }

// secret returns 128 random bits, as text.
func secret() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}
