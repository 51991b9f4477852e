package coir_test

// Ordered queues: tasks run concurrently, and their results come out in the order in which the tasks were given,
// whatever order they end in and however they end. No task is left behind, and no result is lost.

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// Spec: CH-51 (fiber handles arrive in the order sent)
func TestOrderedKeepsTheOrder(t *testing.T) {
	for _, capacity := range []int{0, 1, 7, coir.Unbounded} {
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
					}, coir.WithIndex(i)); err != nil {
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

// Tasks end in the opposite order: the first delays the others at the exit, and only there.
//
// Spec: CH-51 (fiber handles arrive in the order sent)
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

// The queue holds as many tasks as its capacity. One more has started and waits to be queued.
//
// Spec: CH-51 (fiber handles arrive in the order sent)
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
				t.Errorf("Recv returned %d, %v, want %d, nil", v, err, received)
			}
		}
	})
}

// Go waits for a task that cannot be queued: when Go returns an error, its task has ended.
//
// Spec: CH-59 (a task that cannot be queued is joined)
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
			o := coir.NewOrdered[int](0, coir.WithName("results"))
			gate := coir.NewChan[int](0)
			if how.closed {
				o.Close()
				gate.Close()
			}
			cancels, out := make(chan context.CancelCauseFunc, 1), make(chan outcome, 1)
			var begun, ended atomic.Bool
			c.do(func(ctx context.Context) {
				ctx, cancel := coir.WithCancelCause(ctx)
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

// A fiber that queues tasks of its own nursery gives up its place while the queue is full: the end of a task makes
// room, and the task may need that place.
//
// Spec: CH-51 (fiber handles arrive in the order sent)
// Spec: NU-15 (a child that waits for children gives its place up)
func TestOrderedGivesThePlaceUp(t *testing.T) {
	rt := on(t, coir.WithWorkers(2))
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

// A Recv that is cancelled, before there is a task or while the task runs, takes nothing: the next Recv gets the
// result.
//
// Spec: CH-51 (fiber handles arrive in the order sent)
// Spec: CH-24 (a cancelled wait tells the cause)
func TestOrderedRecvIsCancelled(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		o := coir.NewOrdered[int](2)
		cancelled := func(what string) {
			t.Helper()
			cancels, out := make(chan context.CancelCauseFunc, 1), make(chan outcome, 1)
			c.do(func(ctx context.Context) {
				ctx, cancel := coir.WithCancelCause(ctx)
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

// Many fibers receive: each result comes out once, and each receiver gets its results in order.
//
// Spec: CH-51 (fiber handles arrive in the order sent)
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

// A panic in a task is its result, and is also treated like that of any fiber. Goexit ends only that task.
//
// Spec: CH-51 (fiber handles arrive in the order sent)
// Spec: FB-24 (a panic is recovered in its fiber)
// Spec: FB-25 (Goexit ends one fiber alone)
func TestOrderedTaskThatDoesNotReturn(t *testing.T) {
	rt := on(t)
	o := coir.NewOrdered[int](8)
	pe := panicOf(t, func() error {
		return rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
			_ = o.Go(ctx, n, "exits", func(context.Context) (int, error) { runtime.Goexit(); return 1, nil })
			_ = o.Go(ctx, n, "returns", func(context.Context) (int, error) { return 2, nil })
			if v, err := o.Recv(ctx); v != 0 || !errors.Is(err, coir.ErrGoexit) {
				t.Errorf("Recv returned %d, %v, want 0, ErrGoexit", v, err)
			}
			if v, err := o.Recv(ctx); v != 2 || err != nil {
				t.Errorf("Recv returned %d, %v, want 2, nil", v, err)
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
		t.Errorf("Recv returned %d, %v, want 0 and the panic %v", v, err, pe)
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

// A queue that is closed admits the tasks whose Go waits for room: each Go returns nil, though there is no receiver,
// and the results come out after those that were queued, in the order of the calls.
//
// Spec: CH-62 (an ordered queue loses no result)
func TestOrderedCloseQueuesThoseWhoWait(t *testing.T) {
	for _, capacity := range []int{0, 1, 3} {
		const waiting = 40 // more than are woken at a time
		rt := on(t, coir.WithWorkers(2))
		if err := rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
			none := coir.OnUndelivered(func(r coir.Result[int]) { t.Errorf("lost: %+v", r) })
			o := coir.NewOrdered[int](capacity, none)
			give := func(ctx context.Context, i int) error {
				return o.Go(ctx, n, "task", func(context.Context) (int, error) { return i, nil })
			}
			for i := range capacity {
				if err := give(ctx, i); err != nil {
					t.Error(err)
				}
			}
			var callers []*coir.Fiber
			for i := range waiting {
				f := n.Go("caller", func(ctx context.Context) error { return give(ctx, capacity+i) })
				yieldUntil(ctx, t, "Go waits for room", func() bool { return f.State() == coir.StateWaiting })
				callers = append(callers, f)
			}
			if !o.Close() || o.Close() {
				t.Error("Close reports something else than whether this call has closed it")
			}
			for i, f := range callers {
				if err := f.Wait(ctx); err != nil {
					t.Errorf("Go %d, which waited for room: %v", i, err)
				}
			}
			if err := give(ctx, -1); !errors.Is(err, coir.ErrClosed) {
				t.Errorf("Go on a closed queue: %v", err)
			}
			if o.Len() != capacity+waiting {
				t.Errorf("%d are queued", o.Len())
			}
			next := 0
			for v, err := range o.All(ctx) {
				if v != next || err != nil {
					t.Errorf("%d, %v; want %d", v, err, next)
				}
				next++
			}
			if next != capacity+waiting {
				t.Errorf("%d results", next)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
	}
}

// A receiver that has enough ends the queue, by Close or Abort: Go returns an error, and everything ends.
//
// Spec: CH-62 (an ordered queue loses no result)
func TestOrderedReceiverLeavesEarly(t *testing.T) {
	for _, abort := range []bool{true, false} {
		rt := on(t, coir.WithWorkers(2))
		var lost atomic.Int64
		o := coir.NewOrdered[int](1, coir.OnUndelivered(func(coir.Result[int]) { lost.Add(1) }))
		var given error
		ran := goes(func() {
			if err := rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
				n.Go("producer", func(ctx context.Context) error {
					for i := 0; given == nil; i++ {
						given = o.Go(ctx, n, "task", func(context.Context) (int, error) { return i, nil })
					}
					return nil
				})
				for range o.All(ctx) {
					break
				}
				for o.Len() == 0 { // until another one is queued
					if err := coir.Yield(ctx); err != nil {
						return err
					}
				}
				if abort {
					o.Abort(errA)
				} else {
					o.Close()
				}
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
		within(t, time.Minute, "Run returns", ran)
		if !errors.Is(given, coir.ErrClosed) {
			t.Errorf("the producer is told %v", given)
		}
		// Close may come after Go has started a task and before it is queued: that task is refused.
		if n := lost.Load(); abort && n == 0 || !abort && n > 1 {
			t.Errorf("aborted %v, and %d results were handed over", abort, n)
		}
		o.Abort(nil)
		if o.Len() != 0 || lost.Load() == 0 {
			t.Errorf("%d are left, %d were handed over", o.Len(), lost.Load())
		}
	}
}

// Abort ends every wait immediately, with its cause, though the tasks run on: a Recv that waits for a task, one that
// waits for its turn, a Go that waits for room. When the tasks return, their results are handed over.
//
// Spec: CH-62 (an ordered queue loses no result)
func TestOrderedAbort(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		const tasks = 6
		var mu sync.Mutex
		lost := map[int]error{}
		o := coir.NewOrdered[int](tasks-2, coir.WithName("results"), coir.OnUndelivered(func(r coir.Result[int]) {
			mu.Lock()
			defer mu.Unlock()
			if _, twice := lost[r.Value]; twice {
				t.Errorf("result %d is handed over twice", r.Value)
			}
			lost[r.Value] = r.Err
		}))
		gate := coir.NewChan[int](0)
		out := make(chan error, 2*tasks)
		give := func(ctx context.Context, i int) error {
			return o.Go(ctx, c.n, "task", func(ctx context.Context) (int, error) {
				_, _ = gate.Recv(ctx)
				if i%2 == 1 {
					return i, errB
				}
				return i, nil
			})
		}
		for i := range tasks - 2 {
			c.did(func(ctx context.Context) {
				if err := give(ctx, i); err != nil {
					t.Error(err)
				}
			})
		}
		for range 2 { // the first makes room for one
			c.do(func(ctx context.Context) { _, err := o.Recv(ctx); out <- err })
		}
		eventually(t, "one is at the exit", func() bool { return o.Len() == tasks-3 })
		for i := tasks - 2; i < tasks; i++ {
			c.do(func(ctx context.Context) {
				err := give(ctx, i)
				if i < tasks-1 { // the task was queued
					return
				}
				out <- err
			})
			waitFor(t, gate, 0, i+1)
		}
		eventually(t, "the queue is full", func() bool { return o.Len() == tasks-2 })
		if !o.Abort(errA) || o.Abort(nil) || o.Close() {
			t.Error("Abort reports something else than whether this call has closed it")
		}
		c.did(func(ctx context.Context) {
			out <- give(ctx, -1)
			_, err := o.Recv(ctx)
			out <- err
			for v, err := range o.All(ctx) {
				if v != 0 || !errors.Is(err, errA) {
					t.Errorf("received %d, %v", v, err)
				}
			}
		})
		for range 5 {
			select {
			case err := <-out:
				named := strings.Contains(fmt.Sprint(err), "results")
				if !errors.Is(err, coir.ErrClosed) || !errors.Is(err, errA) || !named {
					t.Error(err)
				}
			case <-time.After(patience):
				t.Fatalf("somebody still waits\n%s", stacks())
			}
		}
		if len(lost) != 0 || o.Len() != 0 {
			t.Errorf("handed over while the tasks run: %v; %d are queued", lost, o.Len())
		}
		gate.Close()
		c.wait()
		eventually(t, "every result is handed over", func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(lost) == tasks
		})
		for i, err := range lost {
			if (err != nil) != (i%2 == 1) || err != nil && !errors.Is(err, errB) {
				t.Errorf("result %d comes with %v", i, err)
			}
		}
	})
}

// A result that cannot be queued because the context has ended is handed over too, before Go returns.
//
// Spec: CH-59 (a task that cannot be queued is joined)
// Spec: CH-62 (an ordered queue loses no result)
func TestOrderedHandsOverWhatIsNotQueued(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		var lost []coir.Result[int]
		o := coir.NewOrdered[int](0, coir.OnUndelivered(func(r coir.Result[int]) { lost = append(lost, r) }))
		c.did(func(ctx context.Context) {
			ctx, cancel := coir.WithCancelCause(ctx)
			defer cancel(nil)
			if err := o.Go(ctx, c.n, "task", func(context.Context) (int, error) {
				cancel(errA)
				return 5, errB
			}); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			if len(lost) != 1 || lost[0] != (coir.Result[int]{Value: 5, Err: errB}) {
				t.Errorf("handed over: %+v", lost)
			}
		})
	})
}

// Fibers give tasks, receive with short time limits, close and abort at any moment: each started task comes out once,
// or is handed over once.
//
// Spec: CH-62 (an ordered queue loses no result)
// Spec: CH-40 (no value is lost silently)
func TestOrderedLosesNothing(t *testing.T) {
	crews(t, func(t *testing.T, c *crew) {
		for range sized(20, 100, 3_000) {
			const givers, each = 3, 20
			var seen [givers * each]struct{ began, out, lost atomic.Int32 }
			lose := coir.OnUndelivered(func(r coir.Result[int]) { seen[r.Value].lost.Add(1) })
			o := coir.NewOrdered[int](rand.IntN(4), lose)
			for g := range givers {
				c.do(func(ctx context.Context) {
					for i := g * each; i < (g+1)*each; i++ {
						sub, cancel := ctx, context.CancelFunc(func() {})
						if g == 0 {
							sub, cancel = coir.WithTimeout(ctx, 20*time.Microsecond)
						}
						err := o.Go(sub, c.n, "task", func(ctx context.Context) (int, error) {
							seen[i].began.Add(1)
							if i%3 == 0 {
								_ = coir.Yield(ctx)
							}
							return i, nil
						})
						cancel()
						if errors.Is(err, coir.ErrClosed) {
							return
						}
					}
				})
			}
			for r := range 3 {
				c.do(func(ctx context.Context) {
					for {
						sub, cancel := ctx, context.CancelFunc(func() {})
						if r == 0 {
							sub, cancel = coir.WithTimeout(ctx, 20*time.Microsecond)
						}
						v, err := o.Recv(sub)
						cancel()
						if errors.Is(err, coir.ErrClosed) {
							return
						}
						if err == nil {
							seen[v].out.Add(1)
						}
					}
				})
			}
			pause, both := rand.IntN(200), rand.IntN(2) == 0
			c.do(func(ctx context.Context) {
				for range pause {
					_ = coir.Yield(ctx)
				}
				if both {
					o.Close()
					_ = coir.Yield(ctx)
				}
				o.Abort(errA)
			})
			c.wait()
			eventually(t, "each task that has begun came out or was handed over", func() bool {
				for i := range seen {
					if s := &seen[i]; s.began.Load() != s.out.Load()+s.lost.Load() {
						return false
					}
				}
				return true
			})
			if t.Failed() {
				return
			}
		}
	})
}

// A handler that panics when the queue is aborted is still called with the other results, first with the one that a
// receiver left at the exit.
//
// Spec: CH-62 (an ordered queue loses no result)
// Spec: CH-40 (no value is lost silently)
func TestOrderedHandlerThatPanics(t *testing.T) {
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		const tasks = 4
		var lost []int
		o := coir.NewOrdered[int](tasks, coir.OnUndelivered(func(r coir.Result[int]) {
			lost = append(lost, r.Value)
			panic(r.Value)
		}))
		gate := coir.NewChan[int](0)
		var ended atomic.Int64
		for i := range tasks {
			if err := o.Go(ctx, n, "task", func(ctx context.Context) (int, error) {
				_, _ = gate.Recv(ctx)
				ended.Add(1)
				return i, nil
			}); err != nil {
				return err
			}
		}
		short, cancel := coir.WithCancelCause(ctx)
		n.Go("cancels", func(context.Context) error { cancel(nil); return nil })
		if _, err := o.Recv(short); !errors.Is(err, context.Canceled) || o.Len() != tasks-1 {
			t.Errorf("%v, and %d are queued", err, o.Len())
		}
		gate.Close()
		yieldUntil(ctx, t, "the tasks end", func() bool { return ended.Load() == tasks })
		func() {
			defer func() {
				if r := recover(); r != 0 {
					t.Errorf("Abort panics with %v", r)
				}
			}()
			o.Abort(nil)
		}()
		if !slices.Equal(lost, []int{0, 1, 2, 3}) {
			t.Errorf("handed over: %v", lost)
		}
		return nil
	}, nil)
}

func TestOrderedWrongHandler(t *testing.T) {
	defer func() {
		if text := fmt.Sprint(recover()); !strings.Contains(text, "needs a func(coir.Result[int])") {
			t.Error(text)
		}
	}()
	coir.NewOrdered[int](1, coir.OnUndelivered(func(int) {}))
}

// If its context ends while Go waits for room, Go returns when its task has ended, even if the queue is closed
// meanwhile; the error texts name the queue.
func TestOrderedGoWaitsForItsTaskThoughTheQueueIsClosed(t *testing.T) {
	err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		o := coir.NewOrdered[int](0, coir.WithName("jobs"))
		short, cancel := coir.WithCancelCause(ctx)
		release := coir.NewChan[int](0)
		ended := false
		giver := n.Go("giver", func(context.Context) error {
			err := o.Go(short, n, "task", func(ctx context.Context) (int, error) {
				_, err := release.Recv(ctx)
				ended = true
				return 1, err
			})
			if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "jobs") || !ended {
				t.Errorf("Go returned %v, the task has ended: %v", err, ended)
			}
			return nil
		})
		for release.Stats().Recv.Waiting == 0 {
			if err := coir.Yield(ctx); err != nil {
				return err
			}
		}
		cancel(nil)
		o.Close()
		if err := release.Send(ctx, 1); err != nil {
			return err
		}
		if _, err := o.Recv(short); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "receive from jobs") {
			t.Errorf("Recv in a context that has ended: %v", err)
		}
		return giver.Wait(ctx)
	})
	if err != nil {
		t.Error(err)
	}
}
