package main

import (
	"context"
	"math/rand/v2"
	"reflect"
	"sync"

	"github.com/coir-go/coir"
)

// One receiver selects from many channels.
//
// An operation is the way of one value from a send to the select that receives it. The receiver is the body that a
// comparison provides. Senders send all the time, each on its own channels, all of capacity 0. So sometimes a select
// finds a waiting sender, and sometimes it must wait.
//
// The cases are written where select is called, as in ordinary code. Go has only this form; coir would also take a
// slice that was made once.

// fibersInto passes n values from the senders to one fiber, which runs body.
//
//go:noinline
func fibersInto(channels, senders int, body func(ctx context.Context, cs []*coir.Chan[int], n int) error) func() side {
	return func() side {
		cs := make([]*coir.Chan[int], channels)
		for i := range cs {
			cs[i] = coir.NewChan[int](0)
		}
		return onRuntime(func(ctx context.Context, nur *coir.Nursery, n int) error {
			for i := range senders {
				turns, own := share(n, i, senders), part(cs, i, senders)
				nur.Go("send", func(ctx context.Context) error {
					at := 0
					for v := range turns {
						if err := own[at].Send(ctx, v); err != nil {
							return err
						}
						if at++; at == len(own) {
							at = 0
						}
					}
					return nil
				})
			}
			return body(ctx, cs, n)
		})
	}
}

// goroutinesInto is the same with goroutines and channels of Go.
//
//go:noinline
func goroutinesInto(channels, senders int, body func(cs []chan int, n int)) func() side {
	return func() side {
		cs := make([]chan int, channels)
		for i := range cs {
			cs[i] = make(chan int)
		}
		return side{loop: func(n int) {
			var wg sync.WaitGroup
			for i := range senders {
				turns, own := share(n, i, senders), part(cs, i, senders)
				wg.Go(func() {
					at := 0
					for v := range turns {
						own[at] <- v
						if at++; at == len(own) {
							at = 0
						}
					}
				})
			}
			body(cs, n)
			wg.Wait()
		}}
	}
}

// part returns the elements for the i-th of k senders: every k-th, shuffled, so that they are not used in the order of
// their addresses.
func part[E any](all []E, i, k int) (own []E) {
	for ; i < len(all); i += k {
		own = append(own, all[i])
	}
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(len(own), func(a, b int) { own[a], own[b] = own[b], own[a] })
	return own
}

func select2Coir(ctx context.Context, c []*coir.Chan[int], n int) error {
	c0, c1 := c[0], c[1]
	var v int
	for range n {
		if _, err := coir.Select(ctx, c0.RecvCase(&v), c1.RecvCase(&v)); err != nil {
			return err
		}
	}
	return nil
}

func select2Go(c []chan int, n int) {
	c0, c1 := c[0], c[1]
	for range n {
		select {
		case <-c0:
		case <-c1:
		}
	}
}

func select8Coir(ctx context.Context, c []*coir.Chan[int], n int) error {
	c0, c1, c2, c3, c4, c5, c6, c7 := c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]
	var v int
	for range n {
		_, err := coir.Select(ctx,
			c0.RecvCase(&v), c1.RecvCase(&v), c2.RecvCase(&v), c3.RecvCase(&v),
			c4.RecvCase(&v), c5.RecvCase(&v), c6.RecvCase(&v), c7.RecvCase(&v))
		if err != nil {
			return err
		}
	}
	return nil
}

func select8Go(c []chan int, n int) {
	c0, c1, c2, c3, c4, c5, c6, c7 := c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]
	for range n {
		select {
		case <-c0:
		case <-c1:
		case <-c2:
		case <-c3:
		case <-c4:
		case <-c5:
		case <-c6:
		case <-c7:
		}
	}
}

func priorityCoir(ctx context.Context, c []*coir.Chan[int], n int) error {
	high, low := c[0], c[1]
	var v int
	for range n {
		if _, err := coir.SelectPriority(ctx, high.RecvCase(&v), low.RecvCase(&v)); err != nil {
			return err
		}
	}
	return nil
}

// priorityGo is the usual way to write a priority in Go. It is weaker: if both channels become ready while it waits,
// either case may be taken.
func priorityGo(c []chan int, n int) {
	high, low := c[0], c[1]
	for range n {
		select {
		case <-high:
		default:
			select {
			case <-high:
			case <-low:
			}
		}
	}
}

func selectorCoir(ctx context.Context, cs []*coir.Chan[int], n int) error {
	s := coir.NewSelector()
	defer s.Clear()
	var v int
	for _, c := range cs {
		s.Add(c.RecvCase(&v))
	}
	for range n {
		if _, err := s.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

func selectorGo(cs []chan int, n int) {
	cases := make([]reflect.SelectCase, len(cs))
	for i, c := range cs {
		cases[i] = reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(c)}
	}
	for range n {
		reflect.Select(cases)
	}
}

// fiberOver runs body in one fiber, with channels that hold one value each. The body puts back the value that it takes,
// so that every case is always ready: an operation is a select and a send, and neither waits.
func fiberOver(channels int, body func(ctx context.Context, cs []*coir.Chan[int], n int) error) func() side {
	return func() side {
		cs := make([]*coir.Chan[int], channels)
		for i := range cs {
			cs[i] = coir.NewChan[int](1)
			if err := cs[i].TrySend(i); err != nil {
				panic("a new channel has no room: " + err.Error())
			}
		}
		return onRuntime(func(ctx context.Context, _ *coir.Nursery, n int) error {
			return body(ctx, cs, n)
		})
	}
}

// goroutineOver is the same with channels of Go.
func goroutineOver(channels int, body func(cs []chan int, n int)) func() side {
	return func() side {
		cs := make([]chan int, channels)
		for i := range cs {
			cs[i] = make(chan int, 1)
			cs[i] <- i
		}
		return side{loop: func(n int) { body(cs, n) }}
	}
}

func ready2Coir(ctx context.Context, c []*coir.Chan[int], n int) error {
	c0, c1 := c[0], c[1]
	var v int
	for range n {
		i, err := coir.Select(ctx, c0.RecvCase(&v), c1.RecvCase(&v))
		if err != nil {
			return err
		}
		if err := c[i].Send(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

func ready2Go(c []chan int, n int) {
	c0, c1 := c[0], c[1]
	for range n {
		select {
		case v := <-c0:
			c0 <- v
		case v := <-c1:
			c1 <- v
		}
	}
}

func ready8Coir(ctx context.Context, c []*coir.Chan[int], n int) error {
	c0, c1, c2, c3, c4, c5, c6, c7 := c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]
	var v int
	for range n {
		i, err := coir.Select(ctx,
			c0.RecvCase(&v), c1.RecvCase(&v), c2.RecvCase(&v), c3.RecvCase(&v),
			c4.RecvCase(&v), c5.RecvCase(&v), c6.RecvCase(&v), c7.RecvCase(&v))
		if err != nil {
			return err
		}
		if err := c[i].Send(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

func ready8Go(c []chan int, n int) {
	c0, c1, c2, c3, c4, c5, c6, c7 := c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7]
	for range n {
		select {
		case v := <-c0:
			c0 <- v
		case v := <-c1:
			c1 <- v
		case v := <-c2:
			c2 <- v
		case v := <-c3:
			c3 <- v
		case v := <-c4:
			c4 <- v
		case v := <-c5:
			c5 <- v
		case v := <-c6:
			c6 <- v
		case v := <-c7:
			c7 <- v
		}
	}
}
