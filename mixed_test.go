package coir_test

// Small programs in which goroutines and fibers interact, for coir test. Each has a few operations that race with each
// other, and a property that must hold in every order. go test runs each once; make coirtest explores their orders.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/explore"
)

// mixed runs fn as a fiber, on each of one and two workers.
func mixed(t *testing.T, fn func(t *testing.T, ctx context.Context, n *coir.Nursery, guests *sync.WaitGroup) error) {
	for _, workers := range []int{1, 2} {
		t.Run(fmt.Sprint("workers=", workers), func(t *testing.T) {
			explore.Test(t, func(t *testing.T) {
				rt := coir.NewRuntime(coir.WithWorkers(workers))
				var guests sync.WaitGroup
				err := rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
					return fn(t, ctx, n, &guests)
				})
				guests.Wait()
				if err != nil {
					t.Error(err)
				}
				if err := rt.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A receive by a goroutine is cancelled while a fiber sends: the send succeeds if and only if the receive does.
func TestMixedCancelAgainstSend(t *testing.T) {
	mixed(t, func(t *testing.T, ctx context.Context, n *coir.Nursery, guests *sync.WaitGroup) error {
		c := coir.NewChan[int](0)
		waiting, cancel := context.WithCancel(context.Background())
		var received, sent atomic.Bool
		guests.Go(func() {
			_, err := c.Recv(waiting)
			received.Store(err == nil)
		})
		guests.Go(cancel)
		if err := n.Go("send", func(ctx context.Context) error {
			sent.Store(c.SendTimeout(ctx, 1, time.Second) == nil)
			return nil
		}).Wait(ctx); err != nil {
			return err
		}
		blocking(ctx, guests.Wait)
		if received.Load() != sent.Load() {
			t.Errorf("received %v, sent %v", received.Load(), sent.Load())
		}
		return nil
	})
}

// A channel is closed while goroutines send: exactly the sent values are received.
func TestMixedCloseAgainstSends(t *testing.T) {
	mixed(t, func(t *testing.T, ctx context.Context, n *coir.Nursery, guests *sync.WaitGroup) error {
		c := coir.NewChan[int](1)
		var sent atomic.Int32
		for range 2 {
			guests.Go(func() {
				if c.Send(context.Background(), 1) == nil {
					sent.Add(1)
				}
			})
		}
		n.Go("close", func(context.Context) error { c.Close(); return nil })
		received := int32(0)
		for _, err := range c.All(ctx) {
			if err != nil {
				return err
			}
			received++
		}
		blocking(ctx, guests.Wait)
		if sent.Load() != received {
			t.Errorf("sent %d, received %d", sent.Load(), received)
		}
		return nil
	})
}

// A channel is aborted while goroutines send and one receives: each sent value is received or handed over.
func TestMixedAbortAgainstSends(t *testing.T) {
	mixed(t, func(t *testing.T, ctx context.Context, n *coir.Nursery, guests *sync.WaitGroup) error {
		var sent, received, dropped atomic.Int32
		c := coir.NewChan[int](1, coir.OnUndelivered(func(int) { dropped.Add(1) }))
		for range 2 {
			guests.Go(func() {
				if c.Send(context.Background(), 1) == nil {
					sent.Add(1)
				}
			})
		}
		guests.Go(func() {
			if _, err := c.Recv(context.Background()); err == nil {
				received.Add(1)
			}
		})
		abort := n.Go("abort", func(context.Context) error { c.Abort(nil); return nil })
		blocking(ctx, guests.Wait)
		if err := abort.Wait(ctx); err != nil {
			return err
		}
		if s, r, d := sent.Load(), received.Load(), dropped.Load(); s != r+d {
			t.Errorf("sent %d, received %d, handed over %d", s, r, d)
		}
		return nil
	})
}

// A goroutine and a fiber select on two channels in opposite order, and meet in exactly one of them.
func TestMixedSelectsMeet(t *testing.T) {
	mixed(t, func(t *testing.T, ctx context.Context, n *coir.Nursery, guests *sync.WaitGroup) error {
		a, b := coir.NewChan[int](0), coir.NewChan[int](0)
		var got, sent [2]int
		guests.Go(func() {
			i, err := coir.Select(context.Background(), a.SendCase(1), b.RecvCase(&got[0]))
			if err != nil {
				t.Error(err)
			}
			sent[0] = i
		})
		i, err := coir.Select(ctx, b.SendCase(1), a.RecvCase(&got[1]))
		if err != nil {
			return err
		}
		blocking(ctx, guests.Wait)
		if sent[1] = i; sent[0]+sent[1] != 1 || got[0]+got[1] != 1 {
			t.Errorf("the cases were %v, and %v was received", sent, got)
		}
		return nil
	})
}

// The time limit of a goroutine passes while a fiber sends: the send succeeds if the receive does.
func TestMixedTimeAgainstData(t *testing.T) {
	mixed(t, func(t *testing.T, ctx context.Context, n *coir.Nursery, guests *sync.WaitGroup) error {
		c := coir.NewChan[int](0)
		var received, sent atomic.Bool
		guests.Go(func() {
			_, err := c.RecvTimeout(context.Background(), time.Millisecond)
			received.Store(err == nil)
		})
		n.Go("send", func(ctx context.Context) error {
			err := coir.Sleep(ctx, time.Millisecond)
			sent.Store(c.TrySend(1) == nil)
			return err
		})
		blocking(ctx, guests.Wait)
		if err := coir.Sleep(ctx, time.Millisecond); err != nil {
			return err
		}
		if received.Load() != sent.Load() {
			t.Errorf("received %v, sent %v", received.Load(), sent.Load())
		}
		return nil
	})
}

// A nursery is cancelled from a goroutine while fibers are started in it and wait: each ends, once, and Run returns.
func TestMixedCancelAgainstGo(t *testing.T) {
	mixed(t, func(t *testing.T, ctx context.Context, _ *coir.Nursery, guests *sync.WaitGroup) error {
		var began, ended atomic.Int32
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			guests.Go(func() { n.Cancel(nil) })
			for i := range 2 {
				n.Go("sleep", func(ctx context.Context) error {
					began.Add(1)
					defer ended.Add(1)
					return coir.Sleep(ctx, time.Hour)
				}, coir.WithIndex(i))
			}
			return nil
		})
		if began.Load() != ended.Load() {
			t.Errorf("%d fibers began, and %d ended", began.Load(), ended.Load())
		}
		return err
	})
}

// A fiber waits under a context of package context, which a goroutine cancels. The AfterFunc of the same context is
// called once, and the wait returns the cause.
func TestMixedContexts(t *testing.T) {
	mixed(t, func(t *testing.T, ctx context.Context, n *coir.Nursery, guests *sync.WaitGroup) error {
		cause := errors.New("cause")
		inner, cancel := context.WithCancelCause(ctx)
		var calls atomic.Int32
		called := coir.NewChan[bool](1)
		context.AfterFunc(inner, func() {
			calls.Add(1)
			_ = called.Send(context.Background(), true)
		})
		guests.Go(func() { cancel(cause) })
		_, err := coir.NewChan[int](0).Recv(inner)
		if !isCancelFor(err, cause) {
			t.Errorf("%v, want a cancel for %v", err, cause)
		}
		if _, err := called.Recv(ctx); err != nil || calls.Load() != 1 {
			t.Errorf("%d calls, %v", calls.Load(), err)
		}
		return nil
	})
}

// There is one place for two fibers, each of which waits for a goroutine: a place that a waiter gives up is not lost.
func TestMixedLimit(t *testing.T) {
	mixed(t, func(t *testing.T, ctx context.Context, n *coir.Nursery, guests *sync.WaitGroup) error {
		n.Limit(1)
		var inside atomic.Int32
		for i := range 2 {
			c := coir.NewChan[int](0)
			guests.Go(func() { _ = c.Send(context.Background(), 1) })
			n.Go("recv", func(ctx context.Context) error {
				if inside.Add(1) > 1 {
					t.Error("two fibers have the one place")
				}
				inside.Add(-1)
				_, err := c.Recv(ctx)
				return err
			}, coir.WithIndex(i))
		}
		return nil
	})
}

// One goroutine closes a runtime while another runs something on it: that runs to its end or not at all.
func TestMixedCloseAgainstRun(t *testing.T) {
	explore.Test(t, func(t *testing.T) {
		rt := coir.NewRuntime(coir.WithWorkers(2))
		var wg sync.WaitGroup
		var began, ended atomic.Bool
		wg.Go(func() {
			err := rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
				began.Store(true)
				n.Go("sleep", func(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) })
				defer ended.Store(true)
				return coir.Sleep(ctx, time.Hour)
			})
			if err == nil {
				t.Error("Run has slept for an hour, and returned nil")
			}
		})
		wg.Go(func() {
			if err := rt.Close(context.Background()); err != nil {
				t.Error(err)
			}
			if began.Load() != ended.Load() {
				t.Error("Close has returned, and a fiber runs")
			}
		})
		wg.Wait()
	})
}

// A fiber blocks in a native channel, in Blocking. A goroutine sends there, and then receives from the fiber.
func TestMixedBlocking(t *testing.T) {
	mixed(t, func(t *testing.T, ctx context.Context, n *coir.Nursery, guests *sync.WaitGroup) error {
		native, ours := make(chan bool), coir.NewChan[bool](0)
		n.Go("native", func(ctx context.Context) error {
			blocking(ctx, func() { <-native })
			return ours.Send(ctx, true)
		})
		guests.Go(func() {
			native <- true
			_, _ = ours.Recv(context.Background())
		})
		return nil
	})
}
