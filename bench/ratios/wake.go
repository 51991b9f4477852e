package main

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/bench/internal/timing"
)

// The delay of a wake while every worker is busy.
//
// For each worker, two tasks repeatedly work for 100 microseconds and yield, so each worker always has something to
// run. Another fiber receives 1,000 times a second. The benchmark measures the delay until that fiber runs, and returns
// one quantile of all delays of a round. A round lasts a second, which is 1,000 delays.
//
// A busy worker cannot run the woken fiber before its task yields, so the delay is at best the rest of a task. A longer
// delay shows in which order a scheduler checks its queues. The order depends on the source of the wake, so there are
// three sources:
//
//	task     One of the busy tasks sends, at a random point of its work. The delay
//	         is from the send.
//	timer    A fiber sleeps until the next millisecond, and sends. The delay is from
//	         that millisecond, so a fiber that sleeps too long counts.
//	outside  A goroutine, not a fiber, does the same. The delay is from the send.
//
// The other side is the same program with goroutines, runtime.Gosched, time.Sleep and a Go channel. The channel is
// buffered, so that a source never waits for the receiver, and a late receiver does not hide the delays of the
// following wakes.

const (
	wakeTask   = 100 * time.Microsecond
	wakeEvery  = time.Millisecond
	wakeRound  = time.Second
	wakeRoom   = int(wakeRound / wakeEvery)
	wakeCrowd  = 2 // busy tasks for each worker
	wakeInMany = 4 // of this many tasks that begin, at most one sends, so that the sends spread over the tasks
)

type wakeSource int

const (
	fromTask wakeSource = iota
	fromTimer
	fromOutside
)

// A wakeClock counts from the beginning of a round.
type wakeClock struct {
	start time.Time
	round time.Duration
	due   atomic.Int64 // when a task sends next
}

func newWakeClock(round time.Duration) *wakeClock { return &wakeClock{start: time.Now(), round: round} }

func (c *wakeClock) now() time.Duration { return time.Since(c.start) }

// work is a task of the load. If a wake is due it calls send at a random point.
func (c *wakeClock) work(from wakeSource, send func(at time.Duration)) {
	began := c.now()
	if due := c.due.Load(); from == fromTask && int64(began) >= due && rand.IntN(wakeInMany) == 0 &&
		c.due.CompareAndSwap(due, due+int64(wakeEvery)) {
		spinUntil(c, began+rand.N(wakeTask))
		send(c.now())
	}
	spinUntil(c, began+wakeTask)
}

func spinUntil(c *wakeClock, end time.Duration) {
	for c.now() < end {
	}
}

// send is the source outside of the load: it sends once for every millisecond of the round.
func (c *wakeClock) send(from wakeSource, sleep func(time.Duration), send func(at time.Duration)) {
	for due := wakeEvery; due < c.round; due += wakeEvery {
		if d := due - c.now(); d > 0 {
			sleep(d)
		}
		if from == fromTimer {
			send(due)
		} else {
			send(c.now())
		}
	}
}

// wakeFibers measures the q-quantile of a round on coir's side.
func wakeFibers(from wakeSource, q float64) func() side {
	return func() side {
		rt := coir.NewRuntime()
		return side{
			measure: func() sample { return sample{Cost: timing.Quantile(wakesOfFibers(rt, from, wakeRound), q)} },
			close:   func() { shut(rt) },
		}
	}
}

func wakesOfFibers(rt *coir.Runtime, from wakeSource, round time.Duration) []float64 {
	c := coir.NewChan[time.Duration](wakeRoom)
	clock := newWakeClock(round)
	var delays []float64
	send := func(ctx context.Context) func(time.Duration) {
		return func(at time.Duration) {
			if err := c.Send(ctx, at); err != nil {
				panic("a send on an open channel failed: " + err.Error())
			}
		}
	}
	run(rt, func(ctx context.Context, nur *coir.Nursery) error {
		nur.Go("receive", func(ctx context.Context) error {
			for {
				at, err := c.Recv(ctx)
				if err != nil {
					return nil
				}
				delays = append(delays, micros(clock.now()-at))
			}
		})
		defer c.Close()
		return coir.Run(ctx, func(ctx context.Context, nur *coir.Nursery) error {
			for range wakeCrowd * runtime.GOMAXPROCS(0) {
				nur.Go("busy", func(ctx context.Context) error {
					for send := send(ctx); clock.now() < round; {
						clock.work(from, send)
						if err := coir.Yield(ctx); err != nil {
							return err
						}
					}
					return nil
				})
			}
			switch from {
			case fromTimer:
				clock.send(from, func(d time.Duration) { _ = coir.Sleep(ctx, d) }, send(ctx))
			case fromOutside:
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					clock.send(from, time.Sleep, send(context.Background()))
				}()
				_, _ = coir.Blocking(ctx, func() (struct{}, error) { return <-ended, nil })
			}
			return nil
		})
	})
	return delays
}

// wakeGoroutines is the same without coir.
func wakeGoroutines(from wakeSource, q float64) func() side {
	return func() side {
		return side{measure: func() sample { return sample{Cost: timing.Quantile(wakesOfGoroutines(from, wakeRound), q)} }}
	}
}

func wakesOfGoroutines(from wakeSource, round time.Duration) []float64 {
	c := make(chan time.Duration, wakeRoom)
	clock := newWakeClock(round)
	var delays []float64
	send := func(at time.Duration) { c <- at }
	var in, out sync.WaitGroup
	out.Go(func() {
		for at := range c {
			delays = append(delays, micros(clock.now()-at))
		}
	})
	for range wakeCrowd * runtime.GOMAXPROCS(0) {
		in.Go(func() {
			for clock.now() < round {
				clock.work(from, send)
				runtime.Gosched()
			}
		})
	}
	if from != fromTask {
		clock.send(from, time.Sleep, send)
	}
	in.Wait()
	close(c)
	out.Wait()
	return delays
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }
