package coir_test

// Ordered queues: tasks run beside each other, and their results come out in the order in which the tasks were given, whatever
// order they end in and however they end. No task is left behind, no result is lost.

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// Spec: CH-51
func TestOrderedKeepsTheOrder(t *testing.T) {
	for _, capacity := range []int{0, 1, 7, coir.Unlimited} {
		crews(t, func(t *testing.T, c *crew) {
			tasks := sized(100, 500, 20_000)
			o := coir.NewOrdered[int](capacity)
			c.do(func(ctx context.Context) {
				for i := range tasks {
					yields := rand.IntN(20)
					if err := o.Go(ctx, c.n, "task", func(ctx context.Context) (int, error) {
						for range yields {
							_ = coir.Yield(ctx)
						}
						if i%10 == 3 {
							return i, errA
						}
						return i, nil
					}, coir.Index(i)); err != nil {
						t.Error(err)
					}
				}
				if !o.Close() || o.Close() {
					t.Error("Close reports something else than whether this call has closed it")
				}
			})
			next := 0
			c.did(func(ctx context.Context) {
				for v, err := range o.All(ctx) {
					if v != next || (err != nil) != (v%10 == 3) || err != nil && !errors.Is(err, errA) {
						t.Errorf("result %d: %d, %v", next, v, err)
					}
					next++
				}
				if v, err := o.Recv(ctx); v != 0 || !errors.Is(err, coir.ErrClosed) {
					t.Errorf("after the last: %d, %v", v, err)
				}
			})
			if next != tasks || o.Len() != 0 {
				t.Errorf("%d results of %d tasks, %d are left", next, tasks, o.Len())
			}
		})
	}
}

// Tasks end in the opposite order: the first holds the others up at the exit, and only there.
//
// Spec: CH-51
func TestOrderedHeadHoldsTheOthersUp(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		const tasks = 20
		o := coir.NewOrdered[int](tasks)
		gates := make([]*coir.Chan[int], tasks)
		var ended atomic.Int64
		for i := range gates {
			gates[i] = coir.NewChan[int](0)
			c.did(func(ctx context.Context) {
				if err := o.Go(ctx, c.n, "task", func(ctx context.Context) (int, error) {
					defer ended.Add(1)
					_, err := gates[i].Recv(ctx)
					if errors.Is(err, coir.ErrClosed) {
						err = nil
					}
					return i, err
				}); err != nil {
					t.Error(err)
				}
			})
		}
		if o.Len() != tasks {
			t.Errorf("%d are queued", o.Len())
		}
		out := make(chan outcome, tasks)
		c.do(func(ctx context.Context) {
			for range tasks {
				v, err := o.Recv(ctx)
				out <- outcome{v, err}
			}
		})
		for i := tasks - 1; i > 0; i-- {
			gates[i].Close()
			eventually(t, "a task behind the first ends", func() bool { return ended.Load() == int64(tasks-i) })
		}
		if len(out) != 0 {
			t.Errorf("a result has come out before the first: %+v", <-out)
		}
		gates[0].Close()
		for i := range tasks {
			if got := c.outcome(out); got != (outcome{i, nil}) {
				t.Fatalf("result %d: %+v", i, got)
			}
		}
	})
}

// The queue holds as many tasks as it has room for. One more has begun and waits to be queued.
//
// Spec: CH-51
func TestOrderedIsBounded(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		const room = 3
		o := coir.NewOrdered[int](room)
		var begun, queued atomic.Int64
		c.do(func(ctx context.Context) {
			for i := range 10 {
				if err := o.Go(ctx, c.n, "task", func(context.Context) (int, error) {
					begun.Add(1)
					return i, nil
				}); err != nil {
					t.Error(err)
				}
				queued.Add(1)
			}
			o.Close()
		})
		for received := range int64(10) {
			want := min(received+room+1, 10)
			eventually(t, "there is one task more than there is room for", func() bool { return begun.Load() == want })
			if q := queued.Load(); q > received+room {
				t.Errorf("%d received, %d queued", received, q)
			}
			if v, err := o.Recv(c.ctx); int64(v) != received || err != nil {
				t.Errorf("%d, %v", v, err)
			}
		}
	})
}

// A task that cannot be queued is waited for: when Go returns an error, what it began has ended.
//
// Spec: CH-51, CH-59
func TestOrderedLeavesNoTaskBehind(t *testing.T) {
	type variant struct {
		name   string
		closed bool // before Go
		over   bool // before Go
		cancel bool // while it waits for room
		want   error
	}
	crews(t, func(t *testing.T, c *crew) {
		for _, how := range []variant{
			{name: "closed before", closed: true, want: coir.ErrClosed},
			{name: "over before", over: true, want: cancelFor{errA}},
			{name: "cancelled while it waits", cancel: true, want: cancelFor{errA}},
			{name: "queued"},
		} {
			o := coir.NewOrdered[int](0, coir.Name("results"))
			gate := coir.NewChan[int](0)
			if how.closed {
				o.Close()
				gate.Close()
			}
			cancels, out := make(chan context.CancelCauseFunc, 1), make(chan outcome, 1)
			var begun, ended atomic.Bool
			c.do(func(ctx context.Context) {
				ctx, cancel := coir.WithCancel(ctx)
				defer cancel(nil)
				if how.over {
					cancel(errA)
					gate.Close()
				}
				cancels <- cancel
				err := o.Go(ctx, c.n, "task", func(ctx context.Context) (int, error) {
					begun.Store(true)
					_, _ = gate.Recv(ctx)
					ended.Store(true)
					return 5, errB
				})
				out <- outcome{0, err}
			})
			cancel := <-cancels
			if how.cancel || how.want == nil {
				waitFor(t, gate, 0, 1)
			}
			switch {
			case how.cancel:
				cancel(errA)
				gate.Close()
			case how.want == nil:
				gate.Close()
				if v, err := o.Recv(c.ctx); v != 5 || !errors.Is(err, errB) {
					t.Errorf("%s: %d, %v", how.name, v, err)
				}
			}
			if got := c.outcome(out); !isWanted(got.err, how.want) || begun.Load() != ended.Load() {
				t.Errorf("%s: %v; the task began: %v, and ended: %v", how.name, got.err, begun.Load(), ended.Load())
			}
			if o.Len() != 0 {
				t.Errorf("%s: %d are queued", how.name, o.Len())
			}
		}
	})
}

// Whoever queues tasks of its own nursery gives its place up while the queue is full: what makes room is the end of a task, which may
// need that place.
//
// Spec: CH-51, NU-15
func TestOrderedGivesThePlaceUp(t *testing.T) {
	rt := on(t, coir.Workers(2))
	o := coir.NewOrdered[int](0)
	ran := goes(func() {
		if err := rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
			n.Limit(1)
			n.Go("producer", func(ctx context.Context) error {
				defer o.Close()
				for i := range 10 {
					if err := o.Go(ctx, n, "task", func(context.Context) (int, error) { return i, nil }); err != nil {
						return err
					}
				}
				return nil
			})
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
	next := 0
	received := goes(func() {
		for v, err := range o.All(context.Background()) {
			if v != next || err != nil {
				t.Errorf("%d, %v; want %d", v, err, next)
			}
			next++
		}
	})
	within(t, time.Minute, "every result is received", received)
	<-ran
	if next != 10 {
		t.Errorf("%d results", next)
	}
}

// A Recv that is cancelled, before there is a task or while the task runs, takes nothing: the result is there for the next.
//
// Spec: CH-51, CH-24
func TestOrderedRecvIsCancelled(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		o := coir.NewOrdered[int](2)
		cancelled := func(what string) {
			t.Helper()
			cancels, out := make(chan context.CancelCauseFunc, 1), make(chan outcome, 1)
			c.do(func(ctx context.Context) {
				ctx, cancel := coir.WithCancel(ctx)
				defer cancel(nil)
				cancels <- cancel
				v, err := o.Recv(ctx)
				out <- outcome{v, err}
			})
			cancel := <-cancels
			for range rand.IntN(20) {
				runtime.Gosched()
			}
			cancel(errA)
			if o := c.outcome(out); o.index != 0 || !isCancelFor(o.err, errA) {
				t.Errorf("%s: %+v", what, o)
			}
		}
		cancelled("nothing is queued")
		gate := coir.NewChan[int](0)
		for i := range 2 {
			if err := o.Go(c.ctx, c.n, "task", func(ctx context.Context) (int, error) {
				_, _ = gate.Recv(ctx)
				return i + 1, nil
			}); err != nil {
				t.Fatal(err)
			}
		}
		for range 20 {
			cancelled("the task runs")
		}
		gate.Close()
		for i := range 2 {
			if v, err := o.Recv(c.ctx); v != i+1 || err != nil {
				t.Errorf("%d, %v; want %d", v, err, i+1)
			}
		}
	})
}

// Many receive: each result comes out once, and whoever receives sees what it gets in order.
//
// Spec: CH-51
func TestOrderedHasManyReceivers(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		tasks := sized(200, 1_000, 50_000)
		o := coir.NewOrdered[int](8)
		seen := make([]atomic.Int32, tasks)
		for me := range 4 {
			c.do(func(ctx context.Context) {
				last := -1
				for {
					sub, cancel := ctx, context.CancelFunc(func() {})
					if me == 0 { // one has no patience
						sub, cancel = coir.WithTimeout(ctx, 20*time.Microsecond)
					}
					v, err := o.Recv(sub)
					cancel()
					switch {
					case errors.Is(err, coir.ErrClosed):
						return
					case errors.Is(err, coir.ErrTimeout):
						continue
					case err != nil || v <= last:
						t.Errorf("%d after %d, %v", v, last, err)
						return
					}
					last = v
					seen[v].Add(1)
				}
			})
		}
		c.do(func(ctx context.Context) {
			defer o.Close()
			for i := range tasks {
				if err := o.Go(ctx, c.n, "task", func(ctx context.Context) (int, error) {
					if i%3 == 0 {
						_ = coir.Yield(ctx)
					}
					return i, nil
				}); err != nil {
					t.Error(err)
				}
			}
		})
		c.wait()
		for i := range seen {
			if n := seen[i].Load(); n != 1 {
				t.Fatalf("result %d came out %d times", i, n)
			}
		}
	})
}

// A panic in a task is its result, and goes the way of every fiber's panic too. Goexit ends that task alone.
//
// Spec: CH-51, FB-24, FB-25
func TestOrderedTaskThatDoesNotReturn(t *testing.T) {
	rt := on(t)
	o := coir.NewOrdered[int](8)
	pe := panicOf(t, func() error {
		return rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
			_ = o.Go(ctx, n, "exits", func(context.Context) (int, error) { runtime.Goexit(); return 1, nil })
			_ = o.Go(ctx, n, "returns", func(context.Context) (int, error) { return 2, nil })
			if v, err := o.Recv(ctx); v != 0 || !errors.Is(err, coir.ErrGoexit) {
				t.Errorf("%d, %v", v, err)
			}
			if v, err := o.Recv(ctx); v != 2 || err != nil {
				t.Errorf("%d, %v", v, err)
			}
			_ = o.Go(ctx, n, "panics", func(context.Context) (int, error) { panic(errA) })
			return nil
		})
	})
	if pe == nil || !errors.Is(pe, errA) {
		t.Errorf("Run panics with %v", pe)
	}
	var got *coir.PanicError
	if v, err := o.Recv(context.Background()); v != 0 || !errors.As(err, &got) || got != pe {
		t.Errorf("%d, %v", v, err)
	}
}

func TestOrderedCapacity(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a queue that keeps the newest task alone was made")
		}
	}()
	coir.NewOrdered[int](coir.Conflated)
}
