package main

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/bench/internal/timing"
)

const (
	couples  = 64   // of fibers, whatever the number of workers
	sleepers = 1000 // fibers that sleep
	brood    = 16   // children of a nursery that wait
	least    = 1024 // operations of a round, so that each fiber of each program has some
)

// A program does n operations on a runtime.
type program struct {
	name string
	what string
	do   func(ctx context.Context, nur *coir.Nursery, n int) error
}

var programs = []program{
	{"private", "a value between 64 couples of fibers, each with a channel of capacity 0", private},
	{"shared", "a value from 64 fibers to 64 through one channel of capacity 128", shared},
	{"spawn", "a nursery with one empty child, joined, by 64 fibers at once", spawn},
	{"brood", "a child that waits once, in nurseries of 16, by 64 fibers at once", broods},
	{"timers", "private with RecvTimeout: a timer is armed and stopped", timers},
	{"sleep", "a sleep of 1 ms, 1,000 fibers at once", sleep},
	{"ring", "a wake of the next of 256 fibers in a ring in which 64 values go round", ring},
	{"outside", "private where the senders are goroutines", outside},
}

// A loop is a program on a runtime with that many workers.
type loop struct {
	p       program
	workers int
	rt      *coir.Runtime
	n       int // operations of a round
}

// newLoop finds how many operations take about target.
func newLoop(p program, workers int, target time.Duration) *loop {
	runtime.GOMAXPROCS(workers) // a runtime is made for as many
	l := &loop{p: p, workers: workers, rt: coir.NewRuntime(coir.WithWorkers(workers)), n: least}
	for {
		d := l.time()
		if d >= target/4 {
			l.n = max(least, int(float64(l.n)*float64(target)/float64(d)))
			return l
		}
		l.n *= 2
	}
}

// cost is the processor time of an operation in a round.
func (l *loop) cost() float64 { return float64(l.time()) / float64(l.n) }

func (l *loop) time() time.Duration {
	runtime.GOMAXPROCS(l.workers)
	runtime.GC()
	began := timing.Now(true)
	err := l.rt.Run(context.Background(), func(ctx context.Context, nur *coir.Nursery) error {
		return l.p.do(ctx, nur, l.n)
	})
	if err != nil {
		panic("the measured program failed: " + err.Error())
	}
	return timing.Now(true) - began
}

func (l *loop) close() {
	if err := l.rt.Close(context.Background()); err != nil {
		panic("the runtime did not close: " + err.Error())
	}
}

// each starts k fibers, which share n turns.
func each(nur *coir.Nursery, k, n int, fn func(ctx context.Context, i, turns int) error) {
	for i := range k {
		nur.Go("", func(ctx context.Context) error { return fn(ctx, i, (n+k-1-i)/k) })
	}
}

func send(ctx context.Context, c *coir.Chan[int], turns int) error {
	for v := range turns {
		if err := c.Send(ctx, v); err != nil {
			return err
		}
	}
	return nil
}

func receive(ctx context.Context, c *coir.Chan[int], turns int) error {
	for range turns {
		if _, err := c.Recv(ctx); err != nil {
			return err
		}
	}
	return nil
}

func channels(n, capacity int) []*coir.Chan[int] {
	cs := make([]*coir.Chan[int], n)
	for i := range cs {
		cs[i] = coir.NewChan[int](capacity)
	}
	return cs
}

func private(_ context.Context, nur *coir.Nursery, n int) error {
	cs := channels(couples, 0)
	each(nur, couples, n, func(ctx context.Context, i, turns int) error { return send(ctx, cs[i], turns) })
	each(nur, couples, n, func(ctx context.Context, i, turns int) error { return receive(ctx, cs[i], turns) })
	return nil
}

func timers(_ context.Context, nur *coir.Nursery, n int) error {
	cs := channels(couples, 0)
	each(nur, couples, n, func(ctx context.Context, i, turns int) error { return send(ctx, cs[i], turns) })
	each(nur, couples, n, func(ctx context.Context, i, turns int) error {
		for range turns {
			if _, err := cs[i].RecvTimeout(ctx, time.Hour); err != nil {
				return err
			}
		}
		return nil
	})
	return nil
}

func shared(_ context.Context, nur *coir.Nursery, n int) error {
	c := coir.NewChan[int](128)
	each(nur, couples, n, func(ctx context.Context, _, turns int) error { return send(ctx, c, turns) })
	each(nur, couples, n, func(ctx context.Context, _, turns int) error { return receive(ctx, c, turns) })
	return nil
}

func spawn(_ context.Context, nur *coir.Nursery, n int) error {
	each(nur, couples, n, func(ctx context.Context, _, turns int) error {
		for range turns {
			err := coir.Run(ctx, func(_ context.Context, nur *coir.Nursery) error {
				nur.Go("", func(context.Context) error { return nil })
				return nil
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return nil
}

func broods(_ context.Context, nur *coir.Nursery, n int) error {
	each(nur, couples, n/brood, func(ctx context.Context, _, turns int) error {
		for range turns {
			c := coir.NewChan[int](0)
			err := coir.Run(ctx, func(ctx context.Context, nur *coir.Nursery) error {
				for range brood {
					nur.Go("", func(ctx context.Context) error { return receive(ctx, c, 1) })
				}
				return send(ctx, c, brood)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return nil
}

func sleep(_ context.Context, nur *coir.Nursery, n int) error {
	each(nur, sleepers, n, func(ctx context.Context, _, turns int) error {
		for range turns {
			if err := coir.Sleep(ctx, time.Millisecond); err != nil {
				return err
			}
		}
		return nil
	})
	return nil
}

// ring has a fiber for each channel, which passes on to the next one what it receives. With as many values as there are
// couples, and four channels for each, most fibers wait most of the time. A value is the number of wakes that it has
// left.
func ring(_ context.Context, nur *coir.Nursery, n int) error {
	cs := channels(4*couples, 1)
	var ended atomic.Int64
	for i := range couples {
		if err := cs[4*i].TrySend(n / couples); err != nil {
			return err
		}
	}
	each(nur, len(cs), 0, func(ctx context.Context, i, _ int) error {
		for {
			v, err := cs[i].Recv(ctx)
			switch {
			case err != nil:
				return nil // closed
			case v > 0:
				if err := cs[(i+1)%len(cs)].Send(ctx, v-1); err != nil {
					return err
				}
			case ended.Add(1) == couples:
				for _, c := range cs {
					c.Close()
				}
			}
		}
	})
	return nil
}

func outside(ctx context.Context, nur *coir.Nursery, n int) error {
	cs := channels(couples, 0)
	each(nur, couples, n, func(ctx context.Context, i, turns int) error { return receive(ctx, cs[i], turns) })
	var all sync.WaitGroup
	for i, c := range cs {
		turns := (n + couples - 1 - i) / couples
		all.Go(func() {
			if err := send(context.Background(), c, turns); err != nil {
				panic("a send on an open channel failed: " + err.Error())
			}
		})
	}
	_, err := coir.Blocking(ctx, func() (any, error) { all.Wait(); return nil, nil })
	return err
}
