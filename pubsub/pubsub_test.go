package pubsub_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/pubsub"
)

// A random history of a Broadcast with a subscription is compared with a sequential model: a list with the policy of
// the channel.
func TestBroadcastAgainstModel(t *testing.T) {
	type sub struct {
		s      *pubsub.Subscription[int]
		over   coir.OverflowPolicy
		size   int
		want   []int
		lagged uint64
	}
	policies := []coir.OverflowPolicy{coir.OverflowDropOldest, coir.OverflowDropNewest, coir.OverflowFail}
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		b := pubsub.NewBroadcast[int](coir.WithName("prices"))
		var subs []*sub
		err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
			for i := range 200 {
				switch at := rnd.IntN(max(len(subs), 1)); rnd.IntN(6) {
				case 0:
					x := &sub{over: policies[rnd.IntN(3)], size: 1 + rnd.IntN(4)}
					x.s = b.Subscribe(x.size, coir.WithOverflow(x.over))
					subs = append(subs, x)
				case 1, 2, 3:
					if err := b.Publish(ctx, i); err != nil {
						return err
					}
					for _, x := range subs {
						switch {
						case len(x.want) < x.size:
							x.want = append(x.want, i)
						case x.over == coir.OverflowDropOldest:
							x.want = append(x.want[1:], i)
							x.lagged++
						default:
							x.lagged++
						}
					}
				case 4:
					if len(subs) == 0 {
						continue
					}
					x := subs[at]
					v, err := x.s.TryRecv()
					if len(x.want) == 0 {
						if !errors.Is(err, coir.ErrWouldBlock) {
							t.Fatalf("seed %d: got %d, %v of an empty subscription", seed, v, err)
						}
						continue
					}
					if err != nil || v != x.want[0] {
						t.Fatalf("seed %d: got %d, %v, want %d", seed, v, err, x.want[0])
					}
					x.want = x.want[1:]
				case 5:
					if len(subs) > 0 && rnd.IntN(4) == 0 {
						subs[at].s.Close()
						subs = slices.Delete(subs, at, at+1)
					}
				}
				if b.Len() != len(subs) {
					t.Fatalf("seed %d: %d subscribers, want %d", seed, b.Len(), len(subs))
				}
				for _, x := range subs {
					if got := x.s.Lagged(); got != x.lagged {
						t.Fatalf("seed %d: lagged %d, want %d", seed, got, x.lagged)
					}
				}
			}
			b.Close()
			for _, x := range subs {
				var got []int
				for v, err := range x.s.All(ctx) {
					if err != nil {
						return err
					}
					got = append(got, v)
				}
				if !slices.Equal(got, x.want) {
					t.Fatalf("seed %d: after Close: got %v, want %v", seed, got, x.want)
				}
			}
			if err := b.Publish(ctx, 1); !errors.Is(err, coir.ErrClosed) {
				t.Errorf("Publish after Close: %v", err)
			}
			if _, err := b.Subscribe(1).Recv(ctx); !errors.Is(err, coir.ErrClosed) {
				t.Errorf("Recv of a subscription after Close: %v", err)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A random history of a Latest is compared with a sequential model: a value, and for each watcher whether it has seen
// it.
func TestLatestAgainstModel(t *testing.T) {
	type watcher struct {
		s      *pubsub.Subscription[int]
		unseen bool
		lagged uint64
	}
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		l := pubsub.NewLatest(-1, coir.WithName("config"))
		value, closed := -1, false
		var ws []*watcher
		for i := range 200 {
			switch at := rnd.IntN(max(len(ws), 1)); rnd.IntN(8) {
			case 0:
				ws = append(ws, &watcher{s: l.Watch(), unseen: true})
			case 1, 2, 3:
				if err := l.Set(i); errors.Is(err, coir.ErrClosed) != closed {
					t.Fatalf("seed %d: Set: %v", seed, err)
				}
				if closed {
					continue
				}
				value = i
				for _, w := range ws {
					if w.unseen {
						w.lagged++
					}
					w.unseen = true
				}
			case 4, 5, 6:
				if len(ws) == 0 {
					continue
				}
				w := ws[at]
				v, err := w.s.TryRecv()
				switch {
				case w.unseen && (err != nil || v != value):
					t.Fatalf("seed %d: got %d, %v, want %d", seed, v, err, value)
				case !w.unseen && closed && !errors.Is(err, coir.ErrClosed):
					t.Fatalf("seed %d: got %d, %v of one that is closed", seed, v, err)
				case !w.unseen && !closed && !errors.Is(err, coir.ErrWouldBlock):
					t.Fatalf("seed %d: got %d, %v, but it has seen all", seed, v, err)
				}
				w.unseen = false
			case 7:
				if len(ws) > 0 && rnd.IntN(3) == 0 {
					ws[at].s.Close()
					ws = slices.Delete(ws, at, at+1)
				}
				if rnd.IntN(30) == 0 {
					l.Close()
					closed = true
				}
			}
			if got := l.Get(); got != value {
				t.Fatalf("seed %d: Get: %d, want %d", seed, got, value)
			}
			if !closed && l.Len() != len(ws) || closed && l.Len() != 0 {
				t.Fatalf("seed %d: %d watchers, want %d, closed: %v", seed, l.Len(), len(ws), closed)
			}
			for _, w := range ws {
				if got := w.s.Lagged(); got != w.lagged {
					t.Fatalf("seed %d: lagged %d, want %d", seed, got, w.lagged)
				}
			}
		}
	}
}

// Values that a subscriber had not received when it closed go to OnUndelivered, and are counted.
func TestCloseDropsWhatIsLeft(t *testing.T) {
	b := pubsub.NewBroadcast[int]()
	var lost []int
	sub := b.Subscribe(4, coir.OnUndelivered(func(v int) { lost = append(lost, v) }))
	for i := range 3 {
		if err := b.Publish(t.Context(), i); err != nil {
			t.Fatal(err)
		}
	}
	if v, err := sub.Recv(t.Context()); v != 0 || err != nil {
		t.Fatal(v, err)
	}
	sub.Close()
	if !slices.Equal(lost, []int{1, 2}) || sub.Lagged() != 2 {
		t.Errorf("lost %v, lagged %d", lost, sub.Lagged())
	}
	if _, err := sub.Recv(t.Context()); !errors.Is(err, coir.ErrClosed) {
		t.Errorf("Recv after Close: %v", err)
	}
}

// A subscriber whose channel is full misses the value, and Publish returns nil. With OverflowFail the value does not go
// to OnUndelivered.
func TestAFullSubscriberMissesTheNewest(t *testing.T) {
	for policy, want := range map[coir.OverflowPolicy][]int{coir.OverflowFail: nil, coir.OverflowDropNewest: {1}} {
		b := pubsub.NewBroadcast[int]()
		var lost []int
		sub := b.Subscribe(1, coir.WithOverflow(policy), coir.OnUndelivered(func(v int) { lost = append(lost, v) }))
		for i := range 2 {
			if err := b.Publish(t.Context(), i); err != nil {
				t.Errorf("%v: %v", policy, err)
			}
		}
		v, err := sub.TryRecv()
		if v != 0 || err != nil || !slices.Equal(lost, want) || sub.Lagged() != 1 {
			t.Errorf("%v: received %d, %v; lost %v, lagged %d", policy, v, err, lost, sub.Lagged())
		}
	}
}

// If OnUndelivered of some subscribers panics, the others get the value, also those for which Publish waits. Then the
// panic continues, and the next operation works.
func TestPanickingHandlerTakesNothingFromOthers(t *testing.T) {
	handler := coir.OnUndelivered(func(int) { panic("handler") })
	panics := func(fn func() error) (p any) {
		defer func() { p = recover() }()
		if err := fn(); err != nil {
			t.Error(err)
		}
		return nil
	}
	t.Run("Broadcast", func(t *testing.T) {
		b := pubsub.NewBroadcast[int]()
		waited := b.Subscribe(1)
		for range 2 {
			b.Subscribe(1, coir.WithOverflow(coir.OverflowDropOldest), handler)
		}
		last := b.Subscribe(4)
		err := coir.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
			n.Go("publisher", func(ctx context.Context) error {
				defer b.Close()
				for i := range 3 {
					if p := panics(func() error { return b.Publish(ctx, i) }); (p != nil) != (i > 0) {
						t.Errorf("Publish of %d: panic %v", i, p)
					}
				}
				return nil
			})
			for _, sub := range []*pubsub.Subscription[int]{waited, last} {
				n.Go("subscriber", func(ctx context.Context) error {
					var got []int
					for v := range sub.All(ctx) {
						got = append(got, v)
					}
					if !slices.Equal(got, []int{0, 1, 2}) {
						t.Errorf("got %v", got)
					}
					return nil
				})
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("Latest", func(t *testing.T) {
		l := pubsub.NewLatest(0)
		bad := l.Watch(handler)
		l.Watch(handler)
		last := l.Watch()
		if p := panics(func() error { return l.Set(1) }); p == nil {
			t.Error("Set: no panic")
		}
		for _, w := range []*pubsub.Subscription[int]{bad, last} {
			if v, err := w.TryRecv(); v != 1 || err != nil {
				t.Errorf("got %d, %v", v, err)
			}
		}
		bad.Close()
		if p := panics(func() error { return l.Set(2) }); p == nil || l.Get() != 2 {
			t.Errorf("the next Set: panic %v, value %d", p, l.Get())
		}
	})
}

// Goroutines and fibers use a Broadcast and a Latest, in a bubble and outside.
func TestMixedCallers(t *testing.T) {
	work := func(t *testing.T) {
		b, l := pubsub.NewBroadcast[int](), pubsub.NewLatest(0)
		const values = 200
		var all sync.WaitGroup
		var sum atomic.Int64
		receive := func(ctx context.Context, sub *pubsub.Subscription[int]) error {
			for v, err := range sub.All(ctx) {
				if err != nil {
					return err
				}
				sum.Add(int64(v))
			}
			return nil
		}
		watch := func(ctx context.Context, sub *pubsub.Subscription[int]) error {
			last := -1
			for v, err := range sub.All(ctx) {
				if err != nil || v <= last {
					return fmt.Errorf("%d after %d: %w", v, last, err)
				}
				last = v
			}
			if last != values {
				return fmt.Errorf("the last is %d", last)
			}
			return nil
		}
		err := coir.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
			for i := range 3 {
				sub, watcher := b.Subscribe(i), l.Watch()
				n.Go("subscriber", func(ctx context.Context) error { return receive(ctx, sub) })
				n.Go("watcher", func(ctx context.Context) error { return watch(ctx, watcher) })
				sub2, watcher2 := b.Subscribe(i), l.Watch()
				all.Go(func() { _ = receive(context.Background(), sub2) })
				all.Go(func() {
					if err := watch(context.Background(), watcher2); err != nil {
						t.Error(err)
					}
				})
			}
			n.Go("publisher", func(ctx context.Context) error {
				defer b.Close()
				defer l.Close()
				for i := range values {
					if err := errors.Join(b.Publish(ctx, 1), l.Set(i+1)); err != nil {
						return err
					}
				}
				return nil
			})
			return nil
		})
		all.Wait()
		if err != nil || sum.Load() != 6*values {
			t.Errorf("received %d of %d, %v", sum.Load(), 6*values, err)
		}
	}
	t.Run("outside", work)
	t.Run("bubble", func(t *testing.T) { synctest.Test(t, work) })
}

// In a bubble, a Publish that waits for a subscriber ends with its context.
func TestPublishInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := pubsub.NewBroadcast[int](coir.WithName("prices"))
		b.Subscribe(0)
		began := time.Now()
		err := coir.Run(t.Context(), func(ctx context.Context, _ *coir.Nursery) error {
			ctx, cancel := coir.WithTimeout(ctx, time.Second)
			defer cancel()
			return b.Publish(ctx, 1)
		})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// A subscriber that has left is collected, even if a publisher has waited for it.
func TestSubscriberThatLeftIsCollected(t *testing.T) {
	b := pubsub.NewBroadcast[int]()
	gone := make(chan struct{})
	func() {
		sub := b.Subscribe(0)
		runtime.AddCleanup(sub, func(struct{}) { close(gone) }, struct{}{})
		err := coir.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
			n.Go("publisher", func(ctx context.Context) error { return b.Publish(ctx, 1) })
			n.Go("leaver", func(ctx context.Context) error {
				_, err := sub.Recv(ctx)
				sub.Close()
				return err
			})
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}()
	for range 1000 {
		runtime.GC()
		select {
		case <-gone:
			return
		default:
			runtime.Gosched()
		}
	}
	t.Error("it is still there")
}

// Publishing a value does not allocate.
func TestNoAllocations(t *testing.T) {
	b, l := pubsub.NewBroadcast[int](), pubsub.NewLatest(0)
	sub, watcher := b.Subscribe(4), l.Watch()
	err := coir.Run(t.Context(), func(ctx context.Context, _ *coir.Nursery) error {
		n := testing.AllocsPerRun(1000, func() {
			_ = b.Publish(ctx, 1)
			_, _ = sub.Recv(ctx)
			_ = l.Set(1)
			_ = l.Get()
			_, _ = watcher.TryRecv()
		})
		if n != 0 {
			t.Errorf("%v allocations", n)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Close reports whether this call ended what it closes.
func TestCloseReportsWhetherItTookEffect(t *testing.T) {
	b, l := pubsub.NewBroadcast[int](), pubsub.NewLatest(1)
	left, stayed := b.Subscribe(1), b.Subscribe(1)
	if !left.Close() || left.Close() {
		t.Error("of a subscription")
	}
	if !b.Close() || b.Close() {
		t.Error("of a Broadcast")
	}
	if stayed.Close() {
		t.Error("of a subscription, after the publisher's")
	}
	if !l.Close() || l.Close() {
		t.Error("of a Latest")
	}
}
