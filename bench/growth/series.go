package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/desk"
)

var (
	numbers  = []int{1, 100, 10_000, 1_000_000}
	files    = []int{1, 100, 10_000} // limited by the number of files of a process
	machines = []int{2, 16, 64}
)

// all lists the series in the order in which they are run.
var all = []series{
	{"fiber-op", numbers, fiberOps, "ns", "a nursery with one empty child, joined, beside n fibers that wait"},
	{"fiber-op-go", numbers, fiberOpsGo, "ns", "go and WaitGroup beside n goroutines that wait"},
	{"selector-event", numbers, selectorEvents(hot), "ns",
		"a send that makes a channel ready and the Wait that takes the value; n registered, one in use"},
	{"selector-event-cold", numbers, selectorEvents(cold), "ns", "the same; n registered, each in turn"},
	{"waiter-pass", numbers, waiterPass, "ns",
		"a send and a receive on a channel of capacity 0, where n fibers wait to receive"},
	{"waiter-pass-go", numbers, waiterPassGo, "ns", "the same with goroutines and chan"},
	{"waiter-cancel", numbers, waiterCancel, "ns",
		"the cancel of any one of n fibers that wait on one channel, until it waits again"},
	{"waiter-cancel-go", numbers, waiterCancelGo, "ns",
		"the same with goroutines in a select of chan and ctx.Done, and context.WithCancel"},
	{"channel-op", numbers, channelOps(hot), "ns",
		"a send and a receive on a channel of capacity 1, neither of which waits; n channels, one in use"},
	{"channel-op-cold", numbers, channelOps(cold), "ns", "the same; n channels, each in turn"},
	{"channel-op-cold-go", numbers, channelOpsGo, "ns", "the same with chan; n channels, each in turn"},
	{"timer-op", numbers, timerOps, "ns", "a timer armed and stopped beside n others"},
	{"ticket-op", numbers, ticketOps, "ns", "a ticket opened, resolved and waited for beside n others"},
	{"conn-op", files, connOps, "ns", "a byte to a connection of netio and back, beside n idle connections"},
	{"idle-fibers", numbers, idle(parked), "ms", "processor time in 10 s of n fibers that wait, each with a timer an hour away"},
	{"idle-conns", files, idle(connected), "ms",
		"processor time in 10 s of n connections of netio, half of them in fibers that read, half by OnReadable"},
	{"workers-private", machines, onWorkers(private), "ns", "a value between 64 couples of fibers, each with a channel of capacity 0"},
	{"workers-shared", machines, onWorkers(shared), "ns", "a value from 64 fibers to 64 through one channel of capacity 128"},
	{"workers-spawn", machines, onWorkers(spawn), "ns", "a nursery with one empty child, joined, by 64 fibers at once"},
	{"workers-brood", machines, onWorkers(broods), "ns", "a child that waits once, in nurseries of 16, by 64 fibers at once"},
	{"workers-timers", machines, onWorkers(timers), "ns", "private with RecvTimeout: a timer is armed and stopped"},
	{"workers-sleep", machines, onWorkers(sleep), "ns", "a sleep of 1 ms, 1,000 fibers at once"},
	{"workers-ring", machines, onWorkers(ring), "ns", "a wake of the next of 256 fibers in a ring in which 64 values go round"},
	{"workers-outside", machines, onWorkers(outside), "ns", "private where the senders are goroutines"},
}

// A usage is how many of n things are used in turns.
type usage func(n int) int

func hot(int) int    { return 1 }
func cold(n int) int { return n }

// fiberOps has n fibers that wait until the end.
func fiberOps(n int) subject {
	end := coir.NewEvent()
	return onFiber(work{
		setUp: func(_ context.Context, nur *coir.Nursery) {
			for range n {
				nur.Go("wait", func(ctx context.Context) error { return end.Wait(ctx) })
			}
		},
		op: func(ctx context.Context, _ int) error {
			return coir.Run(ctx, func(_ context.Context, nur *coir.Nursery) error {
				nur.Go("child", func(context.Context) error { return nil })
				return nil
			})
		},
		end: func() { end.Set() },
	})
}

func fiberOpsGo(n int) subject {
	end := make(chan struct{})
	var waiting sync.WaitGroup
	for range n {
		waiting.Go(func() { <-end })
	}
	return subject{
		loop: func(times int) {
			for range times {
				var child sync.WaitGroup
				child.Go(func() {})
				child.Wait()
			}
		},
		close: func() {
			close(end)
			waiting.Wait()
		},
	}
}

// selectorEvents has one fiber that causes the events and waits for them. No fiber parks, so only the cost of the event
// remains.
func selectorEvents(use usage) func(n int) subject {
	return func(n int) subject {
		cs := shuffled(n, func() *coir.Chan[int] { return coir.NewChan[int](1) })
		s := coir.NewSelector()
		var v int
		for _, c := range cs {
			s.Add(c.RecvCase(&v))
		}
		at := turn[*coir.Chan[int]]{of: cs[:use(n)]}
		return onFiber(work{
			op: func(ctx context.Context, i int) error {
				if err := at.next().Send(ctx, i); err != nil {
					return err
				}
				_, err := s.Wait(ctx)
				return err
			},
			end: s.Clear,
		})
	}
}

// waiterPass has n fibers that receive in a loop. Each send goes to the fiber that has waited longest. Its memory is
// the coldest, and it then goes to the end of the queue. A round ends when all fibers are back in the queue.
func waiterPass(n int) subject {
	c := coir.NewChan[int](0)
	return onFiber(work{
		setUp: func(_ context.Context, nur *coir.Nursery) {
			for range n {
				nur.Go("wait", func(ctx context.Context) error {
					for {
						if _, err := c.Recv(ctx); err != nil {
							return nil
						}
					}
				})
			}
		},
		op:    func(ctx context.Context, i int) error { return c.Send(ctx, i) },
		after: func(ctx context.Context) error { return until(ctx, func() bool { return c.Stats().Recv.Waiting >= n }) },
		end:   func() { c.Close() },
	})
}

// waiterPassGo is the same with goroutines. One cannot observe when a goroutine is back in the queue, so a round ends
// when all values have been received.
func waiterPassGo(n int) subject {
	c := make(chan int)
	var started, received atomic.Int64
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			started.Add(1)
			for range c {
				received.Add(1)
			}
		})
	}
	for started.Load() < int64(n) {
		runtime.Gosched()
	}
	sent := int64(0)
	return subject{
		loop: func(times int) {
			for i := range times {
				c <- i
			}
			for sent += int64(times); received.Load() < sent; {
				runtime.Gosched()
			}
		},
		close: func() {
			close(c)
			wg.Wait()
		},
	}
}

// waiterCancel has n waiting fibers, each in its own scope, and cancels one after another, anywhere in the queue. Each
// fiber is back before the next is cancelled.
func waiterCancel(n int) subject {
	c := coir.NewChan[int](0)
	cancels := make([]atomic.Pointer[context.CancelCauseFunc], n)
	at := turn[int]{of: rand.New(rand.NewPCG(1, 2)).Perm(n)}
	var ended atomic.Int64
	back := func(ctx context.Context, before int64) error {
		return until(ctx, func() bool { return ended.Load() > before && c.Stats().Recv.Waiting >= n })
	}
	return onFiber(work{
		setUp: func(ctx context.Context, nur *coir.Nursery) {
			for i := range n {
				nur.Go("wait", func(ctx context.Context) error {
					for {
						scope, cancel := coir.WithCancelCause(ctx)
						cancels[i].Store(&cancel)
						_, err := c.Recv(scope)
						cancel(nil)
						if errors.Is(err, coir.ErrClosed) {
							return nil
						}
						ended.Add(1)
					}
				})
			}
			must(back(ctx, -1))
		},
		op: func(ctx context.Context, _ int) error {
			before := ended.Load()
			(*cancels[at.next()].Load())(nil)
			return back(ctx, before)
		},
		end: func() { c.Close() },
	})
}

// waiterCancelGo is the same with goroutines, whose contexts have a common parent like the fibers' scopes.
func waiterCancelGo(n int) subject {
	c := make(chan int)
	cancels := make([]atomic.Pointer[context.CancelFunc], n)
	at := turn[int]{of: rand.New(rand.NewPCG(1, 2)).Perm(n)}
	parent, end := context.WithCancel(context.Background())
	var begun atomic.Int64
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			for {
				ctx, cancel := context.WithCancel(parent)
				cancels[i].Store(&cancel)
				begun.Add(1)
				select {
				case <-c:
					cancel()
					return
				case <-ctx.Done():
				}
			}
		})
	}
	for begun.Load() < int64(n) {
		runtime.Gosched()
	}
	return subject{
		loop: func(times int) {
			for range times {
				before := begun.Load()
				(*cancels[at.next()].Load())()
				for begun.Load() == before {
					runtime.Gosched()
				}
			}
		},
		close: func() {
			close(c)
			wg.Wait()
			end()
		},
	}
}

func channelOps(use usage) func(n int) subject {
	return func(n int) subject {
		cs := shuffled(n, func() *coir.Chan[int] { return coir.NewChan[int](1) })
		at := turn[*coir.Chan[int]]{of: cs[:use(n)]}
		return onFiber(work{
			op: func(ctx context.Context, i int) error {
				c := at.next()
				if err := c.Send(ctx, i); err != nil {
					return err
				}
				_, err := c.Recv(ctx)
				return err
			},
			end: func() { runtime.KeepAlive(cs) },
		})
	}
}

func channelOpsGo(n int) subject {
	at := turn[chan int]{of: shuffled(n, func() chan int { return make(chan int, 1) })}
	return subject{loop: func(times int) {
		for i := range times {
			c := at.next()
			c <- i
			<-c
		}
	}}
}

func timerOps(n int) subject {
	ends := make([]context.CancelFunc, n)
	return onFiber(work{
		setUp: func(ctx context.Context, _ *coir.Nursery) {
			for i := range ends {
				_, ends[i] = coir.WithTimeout(ctx, time.Hour)
			}
		},
		op: func(ctx context.Context, _ int) error {
			_, end := coir.WithTimeout(ctx, time.Hour)
			end()
			return nil
		},
		end: func() {
			for _, end := range ends {
				end()
			}
		},
	})
}

func ticketOps(n int) subject {
	d := desk.New[int](desk.WithName("growth"))
	return onFiber(work{
		setUp: func(ctx context.Context, _ *coir.Nursery) {
			for range n {
				_, err := d.Open(ctx)
				must(err)
			}
		},
		op: func(ctx context.Context, i int) error {
			t, err := d.Open(ctx)
			if err != nil {
				return err
			}
			if err := d.Resolve(t.ID(), i); err != nil {
				return err
			}
			_, err = t.Wait(ctx)
			return err
		},
	})
}

// shuffled makes n things, in an order that is independent of their addresses.
func shuffled[C any](n int, create func() C) []C {
	cs := make([]C, n)
	for i := range cs {
		cs[i] = create()
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { cs[i], cs[j] = cs[j], cs[i] })
	return cs
}

// A turn cycles through several things, and continues the cycle in the next round.
type turn[E any] struct {
	of []E
	at int
}

func (t *turn[E]) next() E {
	e := t.of[t.at]
	if t.at++; t.at == len(t.of) {
		t.at = 0
	}
	return e
}

// until lets other fibers run until done reports true.
func until(ctx context.Context, done func() bool) error {
	for !done() {
		if err := coir.Yield(ctx); err != nil {
			return err
		}
	}
	return nil
}

// work is what a fiber does for a subject. All fields except op may be nil.
type work struct {
	setUp func(ctx context.Context, nur *coir.Nursery)
	op    func(ctx context.Context, i int) error
	after func(ctx context.Context) error // called at the end of a round
	end   func()                          // ends the other fibers of the nursery

	inDefault bool // run in the default runtime, in which netio waits for the network
}

// onFiber returns a subject that sets the work up in a fiber of a new runtime, and performs it as often as the loop
// asks for.
func onFiber(w work) subject {
	rt := coir.Default()
	if !w.inDefault {
		rt = coir.NewRuntime(coir.WithWorkers(1))
	}
	orders, reports := coir.NewChan[int](0), coir.NewChan[error](0)
	ended := make(chan error, 1)
	go func() {
		ended <- rt.Run(context.Background(), func(ctx context.Context, nur *coir.Nursery) error {
			if w.setUp != nil {
				w.setUp(ctx, nur)
			}
			if w.end != nil {
				defer w.end()
			}
			for times, err := range orders.All(ctx) {
				if err != nil {
					return err
				}
				if err := reports.Send(ctx, w.do(ctx, times)); err != nil {
					return err
				}
			}
			return nil
		})
	}()
	return subject{
		loop: func(times int) {
			ctx := context.Background()
			must(orders.Send(ctx, times))
			err, lost := reports.Recv(ctx)
			must(lost)
			must(err)
		},
		close: func() {
			orders.Close()
			must(<-ended)
			if !w.inDefault {
				must(rt.Close(context.Background()))
			}
		},
	}
}

// do performs a round.
func (w work) do(ctx context.Context, times int) error {
	for i := range times {
		if err := w.op(ctx, i); err != nil {
			return err
		}
	}
	if w.after != nil {
		return w.after(ctx)
	}
	return nil
}
