package main

import (
	"context"

	"github.com/gammazero/chanqueue"
	"github.com/smallnest/chanx"

	"github.com/coir-go/coir"
)

// A burst of values passes through an unbounded channel.
//
// Go has no such channel; the libraries put a goroutine with a buffer between two channels. One fiber or goroutine
// sends the whole burst and then receives it. An operation is one value, sent and received. The channels are made once,
// as the libraries' documentation shows, so a burst finds a channel in the state that the previous burst left.

const burst = 10_000

func burstCoir() side {
	c := coir.NewChan[int](coir.Unbounded)
	return onRuntime(func(ctx context.Context, _ *coir.Nursery, n int) error {
		for range n {
			for v := range burst {
				if err := c.Send(ctx, v); err != nil {
					return err
				}
			}
			for range burst {
				if _, err := c.Recv(ctx); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func burstChanqueue() side {
	q := chanqueue.New[int]()
	return side{
		loop:  func(n int) { bursts(q.In(), q.Out(), n) },
		close: q.Shutdown,
	}
}

func burstChanx() side {
	c := chanx.NewUnboundedChan[int](context.Background(), 1000)
	return side{
		loop:  func(n int) { bursts(c.In, c.Out, n) },
		close: func() { close(c.In) },
	}
}

func bursts(in chan<- int, out <-chan int, n int) {
	for range n {
		for v := range burst {
			in <- v
		}
		for range burst {
			<-out
		}
	}
}
