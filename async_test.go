package coir_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/coir-go/coir"
)

// checkNoWaiters fails if an operation waits at one of the channels.
func checkNoWaiters(t *testing.T, cs ...*coir.Chan[int]) {
	t.Helper()
	for _, c := range cs {
		if s := c.Stats(); s.Send.Waiting+s.Recv.Waiting != 0 {
			t.Errorf("%d sends and %d receives wait", s.Send.Waiting, s.Recv.Waiting)
		}
	}
}

// Values are received in the order of the calls of SendAsync, and each promise is resolved, but none before its value
// has found room or a receiver: by calls of a fiber and of a goroutine, and in a nursery with a limit, which they do
// not count against.
//
// Spec: CH-52 (async operations return a promise)
func TestSendAsyncKeepsTheOrder(t *testing.T) {
	const n = 20
	rt := newRuntime(t)
	for _, capacity := range []int{0, 1, 3, coir.Unbounded} {
		for _, outside := range []bool{false, true} {
			t.Run(fmt.Sprint(capacity, ", outside ", outside), func(t *testing.T) {
				c := coir.NewChan[int](capacity)
				var got []int
				err := rt.Run(context.Background(), func(ctx context.Context, nur *coir.Nursery) error {
					nur.Limit(1)
					var sent []*coir.Promise[struct{}]
					begin := func() {
						for i := range n {
							sent = append(sent, c.SendAsync(nur, i))
						}
					}
					if outside {
						done := make(chan struct{})
						go func() {
							defer close(done)
							begin()
						}()
						<-done
					} else {
						begin()
					}
					for i, p := range sent {
						if at, _ := coir.TrySelect(p.DoneCase(nil, nil)); at == 0 && i >= capacity {
							t.Errorf("promise %d is complete, and nothing was received", i)
						}
					}
					for range n {
						v, err := c.Recv(ctx)
						if err != nil {
							return err
						}
						got = append(got, v)
					}
					for _, p := range sent {
						if _, err := p.Wait(ctx); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil || len(got) != n || !slices.IsSorted(got) {
					t.Errorf("received %v, %v, want %d values in order", got, err, n)
				}
				checkNoWaiters(t, c)
			})
		}
	}
}

// The receives that began first get the first values.
//
// Spec: CH-52 (async operations return a promise)
func TestRecvAsyncKeepsTheOrder(t *testing.T) {
	const n = 20
	c := coir.NewChan[int](0)
	err := newRuntime(t).Run(context.Background(), func(ctx context.Context, nur *coir.Nursery) error {
		var got []*coir.Promise[int]
		for range n {
			got = append(got, c.RecvAsync(nur))
		}
		for i := range n {
			if err := c.Send(ctx, i); err != nil {
				return err
			}
		}
		for i, p := range got {
			if v, err := p.Wait(ctx); v != i || err != nil {
				return fmt.Errorf("receive %d has %d, %w", i, v, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	checkNoWaiters(t, c)
}

// Operations end with the errors of Send and Recv, whether the end comes before or after them. That fails no nursery,
// and leaves no waiter.
//
// Spec: CH-52 (async operations return a promise)
func TestAsyncEndsWithTheErrorsOfTheChannel(t *testing.T) {
	rt := newRuntime(t)
	for _, e := range []struct {
		name string
		end  func(c *coir.Chan[int], nur *coir.Nursery)
		want error
	}{
		{"abort", func(c *coir.Chan[int], _ *coir.Nursery) { c.Abort(nil) }, coir.ErrClosed},
		{"cancel", func(_ *coir.Chan[int], nur *coir.Nursery) { nur.Cancel(nil) }, context.Canceled},
	} {
		for _, before := range []bool{false, true} {
			t.Run(fmt.Sprint(e.name, ", before ", before), func(t *testing.T) {
				c, d := coir.NewChan[int](0, coir.WithName("c")), coir.NewChan[int](0)
				var sent, got error
				err := rt.Run(context.Background(), func(_ context.Context, nur *coir.Nursery) error {
					if before {
						e.end(c, nur)
						e.end(d, nur)
					}
					c.SendAsync(nur, 1).OnDone(func(_ struct{}, err error) { sent = err })
					d.RecvAsync(nur).OnDone(func(_ int, err error) { got = err })
					if !before {
						e.end(c, nur)
						e.end(d, nur)
					}
					return nil
				})
				if err != nil || !errors.Is(sent, e.want) || !errors.Is(got, e.want) {
					t.Errorf("the send ended with %v, the receive with %v, want %v; Run returned %v", sent, got, e.want, err)
				}
				checkNoWaiters(t, c, d)
			})
		}
	}
}

// Only the operation completes its promise: a Resolve or Reject by others returns false and changes nothing. In
// particular a send does not deliver a value whose promise was rejected.
//
// Spec: CH-52 (async operations return a promise)
func TestOnlyTheOperationCompletesItsPromise(t *testing.T) {
	c := coir.NewChan[int](0)
	gone := errors.New("gone")
	err := newRuntime(t).Run(context.Background(), func(ctx context.Context, nur *coir.Nursery) error {
		sent, got := c.SendAsync(nur, 1), coir.NewChan[int](0).RecvAsync(nur)
		if sent.Reject(gone) || sent.Resolve(struct{}{}) || got.Reject(gone) || got.Resolve(7) {
			t.Error("a promise of an operation was completed from outside")
		}
		if v, err := c.Recv(ctx); v != 1 || err != nil {
			t.Errorf("received %d, %v, want 1, nil", v, err)
		}
		if _, err := sent.Wait(ctx); err != nil {
			t.Errorf("the value was received, and the send ended with %v", err)
		}
		if sent.Reject(gone) {
			t.Error("a promise was completed twice")
		}
		nur.Cancel(nil)
		got.OnDone(func(v int, err error) {
			if v != 0 || !errors.Is(err, context.Canceled) {
				t.Errorf("the cancelled receive has %d, %v", v, err)
			}
		})
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	checkNoWaiters(t, c)
}

// A send to a channel with an overflow policy does what Send does, which does not wait.
func TestSendAsyncOverflows(t *testing.T) {
	c := coir.NewChan[int](1, coir.WithOverflow(coir.OverflowDropOldest))
	d := coir.NewChan[int](1, coir.WithOverflow(coir.OverflowFail))
	err := newRuntime(t).Run(context.Background(), func(ctx context.Context, nur *coir.Nursery) error {
		for i := range 3 {
			if _, err := c.SendAsync(nur, i).Wait(ctx); err != nil {
				return err
			}
		}
		if v, err := c.RecvAsync(nur).Wait(ctx); v != 2 || err != nil {
			t.Errorf("received %d, %v, want 2", v, err)
		}
		d.SendAsync(nur, 1)
		if _, err := d.SendAsync(nur, 2).Wait(ctx); !errors.Is(err, coir.ErrWouldBlock) {
			t.Errorf("a send to a full channel that fails: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A send to a channel with an overflow policy is like any other: it does not count against a limit, sends nothing in a
// nursery that has been cancelled or has ended, and is completed though the handler of what it drops panics.
func TestSendAsyncOverflowsLikeOthers(t *testing.T) {
	drop := coir.WithOverflow(coir.OverflowDropOldest)
	var ended *coir.Nursery
	err := newRuntime(t).Run(context.Background(), func(ctx context.Context, nur *coir.Nursery) error {
		ended = nur
		nur.Limit(1)
		c := coir.NewChan[int](1, drop)
		return nur.Go("child", func(ctx context.Context) error {
			_, err := c.SendAsync(nur, 1).Wait(ctx)
			return err
		}).Wait(ctx)
	})
	if err != nil {
		t.Error(err)
	}
	c := coir.NewChan[int](1, drop)
	if panicValue(func() { c.SendAsync(ended, 1) }) == nil || c.Len() != 0 {
		t.Errorf("a nursery that has ended sends, or does not panic; %d values", c.Len())
	}
	err = newRuntime(t).Run(context.Background(), func(ctx context.Context, nur *coir.Nursery) error {
		nur.Cancel(nil)
		if _, err := c.SendAsync(nur, 1).Wait(coir.Shield(ctx)); !errors.Is(err, context.Canceled) || c.Len() != 0 {
			t.Errorf("in a nursery that was cancelled: %v, %d values", err, c.Len())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	loud := coir.NewChan[int](1, drop, coir.OnUndelivered(func(v int) { panic(v) }))
	err = newRuntime(t).Run(context.Background(), func(ctx context.Context, nur *coir.Nursery) error {
		loud.SendAsync(nur, 1)
		if v := panicValue(func() { loud.SendAsync(nur, 2) }); v != 1 {
			t.Errorf("the handler panicked with %v", v)
		}
		return nil
	})
	if v, _ := loud.TryRecv(); v != 2 || err != nil {
		t.Errorf("the value after one that was dropped is %d; Run returned %v", v, err)
	}
}

// A function that OnDone was given runs in a fiber, not under the lock of the channel: it may use the channel itself.
func TestAsyncCallbackUsesTheChannel(t *testing.T) {
	c := coir.NewChan[int](0)
	err := newRuntime(t).Run(context.Background(), func(ctx context.Context, nur *coir.Nursery) error {
		var last coir.Promise[int]
		var next func(v int, err error)
		next = func(v int, err error) {
			if v == 10 || err != nil {
				last.Resolve(v)
				return
			}
			if coir.Self(ctx) == nil {
				t.Error("the function runs in no fiber")
			}
			c.RecvAsync(nur).OnDone(next)
			c.SendAsync(nur, v+1)
		}
		next(0, nil)
		v, err := last.Wait(ctx)
		if v != 10 {
			t.Errorf("the last value is %d", v)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	checkNoWaiters(t, c)
}

// An observer sees the fiber of an operation wait, and continue when the wait has ended, even if there was nothing to
// wait for.
func TestObserverOfAnAsyncOperation(t *testing.T) {
	var got []string
	note := func(what string) func(*coir.Fiber) {
		return func(f *coir.Fiber) {
			if f.Name() == "Chan.SendAsync" {
				got = append(got, what)
			}
		}
	}
	o := &hooked{onParked: note("parked"), onReady: note("ready")}
	c := coir.NewChan[int](1)
	err := newRuntime(t, coir.WithWorkers(1), coir.WithObserver(o)).Run(context.Background(),
		func(ctx context.Context, n *coir.Nursery) error {
			_, err := c.SendAsync(n, 1).Wait(ctx)
			return err
		})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"parked", "ready"}; !slices.Equal(got, want) {
		t.Errorf("the observer saw %q, want %q", got, want)
	}
}

// panicValue returns what f panics with, or nil.
func panicValue(f func()) (v any) {
	defer func() { v = recover() }()
	f()
	return nil
}
