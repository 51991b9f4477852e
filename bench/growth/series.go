package main

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/coir-go/coir"
)

var (
	registrations = []int{10, 1_000, 100_000}
	numbers       = []int{1, 100, 10_000, 1_000_000}
	many          = []int{1_000, 1_000_000} // where one alone cannot be measured
)

// all lists the series in the order in which they are run.
var all = []series{
	{
		name: "selector-event", unit: "ns", sizes: registrations, setUp: selectorEvents(hot),
		what: "a send that makes a channel ready and the Wait that takes the value; n registered, one in use",
	},
	{
		name: "selector-event-cold", unit: "ns", sizes: registrations, setUp: selectorEvents(cold),
		what: "the same; n registered, each in turn",
	},
	{
		name: "waiter-pass", unit: "ns", sizes: numbers, setUp: waiterPass,
		what: "a send and a receive on a channel of capacity 0, where n fibers wait to receive",
	},
	{
		name: "waiter-pass-go", unit: "ns", sizes: numbers, setUp: waiterPassGo,
		what: "the same with goroutines and chan",
	},
	{
		name: "waiter-cancel", unit: "ns", sizes: numbers, setUp: waiterCancel,
		what: "the cancel of any one of n fibers that wait on one channel, until it waits again",
	},
	{
		name: "waiter-cancel-go", unit: "ns", sizes: numbers, setUp: waiterCancelGo,
		what: "the same with goroutines in a select of chan and ctx.Done, and context.WithCancel",
	},
	{
		name: "channel-op", unit: "ns", sizes: numbers, setUp: channelOps(hot),
		what: "a send and a receive on a channel of capacity 1, neither of which waits; n channels, one in use",
	},
	{
		name: "channel-op-cold", unit: "ns", sizes: numbers, setUp: channelOps(cold),
		what: "the same; n channels, each in turn",
	},
	{
		name: "channel-op-cold-go", unit: "ns", sizes: numbers, setUp: channelOpsGo,
		what: "the same with chan; n channels, each in turn",
	},
	{
		name: "channel-bytes", unit: "B", sizes: many, setUp: bytesOf(func() *coir.Chan[int] { return coir.NewChan[int](0) }),
		what: "memory of a channel of capacity 0 that nobody has used, one of n",
	},
	{
		name: "channel-bytes-go", unit: "B", sizes: many, setUp: bytesOf(func() chan int { return make(chan int) }),
		what: "the same with chan",
	},
}

// A usage is how many of n things are used by turns.
type usage func(n int) int

func hot(int) int    { return 1 }
func cold(n int) int { return n }

// selectorEvents has one fiber cause the events and wait for them: nobody parks,
// and what remains is the event itself.
func selectorEvents(use usage) func(n int) subject {
	return func(n int) subject {
		cs := channels(n, func() *coir.Chan[int] { return coir.NewChan[int](1) })
		s := coir.NewSelector()
		var v int
		for _, c := range cs {
			s.Add(c.RecvCase(&v))
		}
		at := turn[*coir.Chan[int]]{of: cs[:use(n)]}
		return onFiber(func(ctx context.Context, _ *coir.Nursery) work {
			return work{
				do: func(times int) error {
					for i := range times {
						if err := at.next().Send(ctx, i); err != nil {
							return err
						}
						if _, err := s.Wait(ctx); err != nil {
							return err
						}
					}
					return nil
				},
				end: s.Close,
			}
		})
	}
}

// waiterPass has n fibers receive for ever. Each send goes to the one that has
// waited longest, and whose memory is the coldest; it comes back to the end of
// the queue. A round ends when all are back.
func waiterPass(n int) subject {
	c := coir.NewChan[int](0)
	return onFiber(func(ctx context.Context, nur *coir.Nursery) work {
		for range n {
			nur.Go("wait", func(ctx context.Context) error {
				for {
					if _, err := c.Recv(ctx); err != nil {
						return nil
					}
				}
			})
		}
		return work{
			do: func(times int) error {
				for i := range times {
					if err := c.Send(ctx, i); err != nil {
						return err
					}
				}
				return allWait(ctx, c, n)
			},
			end: func() { c.Close() },
		}
	})
}

// waiterPassGo is the same with goroutines. A goroutine that is back in the queue
// cannot be seen; a round ends when all values have been received.
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

// waiterCancel has n fibers wait, each in a scope of its own, and cancels one
// after the other, from anywhere in the queue. Each is back before the next is
// cancelled.
func waiterCancel(n int) subject {
	c := coir.NewChan[int](0)
	cancels := make([]atomic.Pointer[context.CancelCauseFunc], n)
	at := turn[int]{of: rand.New(rand.NewPCG(1, 2)).Perm(n)}
	return onFiber(func(ctx context.Context, nur *coir.Nursery) work {
		var ended atomic.Int64
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
		return work{
			do: func(times int) error {
				if err := allWait(ctx, c, n); err != nil {
					return err
				}
				for range times {
					before := ended.Load()
					(*cancels[at.next()].Load())(nil)
					for ended.Load() == before || c.Stats().Recv.Waiting < n {
						if err := coir.Yield(ctx); err != nil {
							return err
						}
					}
				}
				return nil
			},
			end: func() { c.Close() },
		}
	})
}

// waiterCancelGo is the same with goroutines, whose contexts have a parent in common
// as the fibers' scopes have.
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

// allWait lets others run until n wait to receive.
func allWait(ctx context.Context, c *coir.Chan[int], n int) error {
	for c.Stats().Recv.Waiting < n {
		if err := coir.Yield(ctx); err != nil {
			return err
		}
	}
	return nil
}

func channelOps(use usage) func(n int) subject {
	return func(n int) subject {
		cs := channels(n, func() *coir.Chan[int] { return coir.NewChan[int](1) })
		at := turn[*coir.Chan[int]]{of: cs[:use(n)]}
		return onFiber(func(ctx context.Context, _ *coir.Nursery) work {
			return work{do: func(times int) error {
				for i := range times {
					c := at.next()
					if err := c.Send(ctx, i); err != nil {
						return err
					}
					if _, err := c.Recv(ctx); err != nil {
						return err
					}
				}
				runtime.KeepAlive(cs)
				return nil
			}}
		})
	}
}

func channelOpsGo(n int) subject {
	at := turn[chan int]{of: channels(n, func() chan int { return make(chan int, 1) })}
	return subject{loop: func(times int) {
		for i := range times {
			c := at.next()
			c <- i
			<-c
		}
	}}
}

// bytesOf makes n and divides what the heap has grown by.
func bytesOf[C any](create func() C) func(n int) subject {
	return func(n int) subject {
		return subject{cost: func() float64 {
			cs := make([]C, n)
			before := heap()
			for i := range cs {
				cs[i] = create()
			}
			after := heap()
			runtime.KeepAlive(cs)
			return float64(after-before) / float64(n)
		}}
	}
}

// heap is what is held after a collection.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// channels makes n of them, in an order that has nothing to do with memory.
func channels[C any](n int, create func() C) []C {
	cs := make([]C, n)
	for i := range cs {
		cs[i] = create()
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { cs[i], cs[j] = cs[j], cs[i] })
	return cs
}

// A turn goes round and round over several things, from one round to the next.
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

// work is what a fiber does when it is told to.
type work struct {
	do  func(times int) error
	end func() // has the other fibers of the nursery end; may be nil
}

// onFiber has a fiber of a runtime of its own set the work up, and do it as often
// as the loop says.
func onFiber(setUp func(ctx context.Context, nur *coir.Nursery) work) subject {
	rt := coir.NewRuntime(coir.WithWorkers(1))
	orders, reports := coir.NewChan[int](0), coir.NewChan[error](0)
	ended := make(chan error, 1)
	go func() {
		ended <- rt.Run(context.Background(), func(ctx context.Context, nur *coir.Nursery) error {
			w := setUp(ctx, nur)
			if w.end != nil {
				defer w.end()
			}
			for times, err := range orders.All(ctx) {
				if err != nil {
					return err
				}
				if err := reports.Send(ctx, w.do(times)); err != nil {
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
			must(rt.Close(context.Background()))
		},
	}
}

func must(err error) {
	if err != nil {
		panic("the measured program failed: " + err.Error())
	}
}
