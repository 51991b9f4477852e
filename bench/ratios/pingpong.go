package main

import (
	"context"
	"sync"
	"time"

	"github.com/coir-go/coir"
)

// A receive has a limit that would end it if its value did not arrive.
//
// Values nearly always arrive; the benchmark measures the cost that a time limit, or a context that can be cancelled,
// adds to a receive that waits. So two sides play ping-pong over two channels of capacity 0: after its send a side only
// waits for the answer, and each receive waits. One turn is two operations, each a receive under the limit and a plain
// send.

const (
	pings = 2         // operations in a turn
	long  = time.Hour // a limit that is not reached
)

// fibersPing makes two fibers play n turns. half receives from in, under the limit, and sends on out, that many times.
func fibersPing(half func(ctx context.Context, in, out *coir.Chan[int], turns int) error) func() side {
	return func() side {
		return onRuntime(func(_ context.Context, nur *coir.Nursery, n int) error {
			ping, pong := coir.NewChan[int](0), coir.NewChan[int](0)
			nur.Go("server", func(ctx context.Context) error { return half(ctx, ping, pong, n) })
			nur.Go("client", func(ctx context.Context) error {
				if err := ping.Send(ctx, 0); err != nil {
					return err
				}
				if err := half(ctx, pong, ping, n-1); err != nil {
					return err
				}
				_, err := pong.Recv(ctx)
				return err
			})
			return nil
		})
	}
}

// goroutinesPing is the same with goroutines and channels of Go.
func goroutinesPing(half func(in <-chan int, out chan<- int, turns int)) func() side {
	return func() side {
		return side{loop: func(n int) {
			ping, pong := make(chan int), make(chan int)
			var wg sync.WaitGroup
			wg.Go(func() { half(ping, pong, n) })
			wg.Go(func() {
				ping <- 0
				half(pong, ping, n-1)
				<-pong
			})
			wg.Wait()
		}}
	}
}

func timeoutCoir(ctx context.Context, in, out *coir.Chan[int], turns int) error {
	for range turns {
		v, err := in.RecvTimeout(ctx, long)
		if err != nil {
			return err
		}
		if err := out.Send(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

func timeoutGo(in <-chan int, out chan<- int, turns int) {
	for range turns {
		t := time.NewTimer(long)
		select {
		case v := <-in:
			t.Stop()
			out <- v
		case <-t.C:
			panic("a timer that was an hour away fired")
		}
	}
}

// cancelCoir waits in a scope that the program could cancel.
func cancelCoir(ctx context.Context, in, out *coir.Chan[int], turns int) error {
	ctx, cancel := coir.WithCancelCause(ctx)
	defer cancel(nil)
	for range turns {
		v, err := in.Recv(ctx)
		if err != nil {
			return err
		}
		if err := out.Send(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

func cancelGo(in <-chan int, out chan<- int, turns int) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for range turns {
		select {
		case v := <-in:
			out <- v
		case <-ctx.Done():
			panic("a context was cancelled that must not be")
		}
	}
}
