package main

import (
	"context"
	"sync"

	"github.com/coir-go/coir"
)

// A value passes through a row of stages.
//
// Each stage receives from the channel on its left and sends on the channel to its right. A source feeds the first
// channel, and a sink drains the last. An operation is the whole way of one value, so it costs one more transfer than
// there are stages.

const stages = 8

func pipelineFibers() side { return onRuntime(pipeline) }

func pipeline(ctx context.Context, nur *coir.Nursery, n int) error {
	first := coir.NewChan[int](0)
	last := first
	for range stages {
		in, out := last, coir.NewChan[int](0)
		nur.Go("stage", func(ctx context.Context) error {
			defer out.Close()
			for {
				v, err := in.Recv(ctx)
				if err != nil {
					return nil
				}
				if err := out.Send(ctx, v); err != nil {
					return err
				}
			}
		})
		last = out
	}
	nur.Go("sink", func(ctx context.Context) error {
		for {
			if _, err := last.Recv(ctx); err != nil {
				return nil
			}
		}
	})
	defer first.Close()
	for v := range n {
		if err := first.Send(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

func pipelineGoroutines() side {
	return side{loop: func(n int) {
		var wg sync.WaitGroup
		first := make(chan int)
		last := first
		for range stages {
			in, out := last, make(chan int)
			wg.Go(func() {
				defer close(out)
				for v := range in {
					out <- v
				}
			})
			last = out
		}
		wg.Go(func() {
			for range last {
			}
		})
		for v := range n {
			first <- v
		}
		close(first)
		wg.Wait()
	}}
}
