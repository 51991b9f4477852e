//go:build corpus

package mixed

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/coir-go/coir"
)

// There is one worker, and there can be no other. Two fibers get their jobs from goroutines. One fiber waits on a
// native channel for the other, and holds the only worker while it waits: if its job comes first, the other fiber never
// runs.

// handOver is a signal from one fiber to the other.
type handOver struct{ wait, done func(context.Context) }

func native() handOver {
	c := make(chan bool)
	return handOver{func(context.Context) { <-c }, func(context.Context) { close(c) }}
}

func ofCoir() handOver {
	c := coir.NewChan[bool](0)
	return handOver{func(ctx context.Context) { _, _ = c.Recv(ctx) }, func(context.Context) { _ = c.Close() }}
}

func onOneWorker(t *testing.T, h handOver) {
	var wg sync.WaitGroup
	run(t, func(ctx context.Context, n *coir.Nursery) error {
		for _, do := range []func(context.Context){h.done, h.wait} {
			jobs := coir.NewChan[int](1)
			n.Go("job", func(ctx context.Context) error {
				_, err := jobs.Recv(ctx)
				do(ctx)
				return err
			})
			wg.Go(func() { _ = jobs.Send(context.Background(), 1) })
		}
		return nil
	}, coir.WithWorkers(1), coir.WithMaxWorkers(1))
	wg.Wait()
}

// Expect: deadlock
func TestBugOneWorker(t *testing.T) { onOneWorker(t, native()) }

func TestFixedOneWorker(t *testing.T) { onOneWorker(t, ofCoir()) }

// If a second worker can be added, this is not a bug: the monitor finds the worker that is held, and replaces it.
func TestFixedByTheMonitor(t *testing.T) {
	run(t, func(ctx context.Context, n *coir.Nursery) error {
		c := make(chan bool)
		n.Go("close", func(context.Context) error { close(c); return nil })
		n.Go("wait", func(context.Context) error { <-c; return nil })
		return nil
	}, coir.WithWorkers(1))
}

// A goroutine asks a fiber, and leaves if it is stopped before the answer has arrived. The fiber sends its answer to a
// channel from which no goroutine receives any more.

type question struct{ answer *coir.Chan[int] }

func ask(t *testing.T, capacity int) {
	run(t, func(ctx context.Context, n *coir.Nursery) error {
		questions := coir.NewChan[question](0)
		n.Go("service", func(ctx context.Context) error {
			q, err := questions.Recv(ctx)
			if err != nil {
				return nil // it left before it asked
			}
			return q.answer.Send(ctx, 42)
		})
		asking, leave := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		wg.Go(leave)
		wg.Go(func() {
			q := question{coir.NewChan[int](capacity)}
			if questions.Send(asking, q) == nil {
				_, _ = q.answer.Recv(asking)
			}
			_ = questions.Close()
		})
		_, err := coir.Blocking(ctx, func() (any, error) { wg.Wait(); return nil, nil })
		return err
	})
}

// Expect: deadlock
func TestBugGuestLeaves(t *testing.T) { ask(t, 0) }

func TestFixedGuestLeaves(t *testing.T) { ask(t, 1) }

// A fiber sends the same question to two goroutines and takes the first answer. The other goroutine is left behind.

func firstOf(t *testing.T, ctxOf func(context.Context) context.Context, capacity int) {
	run(t, func(ctx context.Context, n *coir.Nursery) error {
		answers := coir.NewChan[int](capacity)
		for i := range 2 {
			go func() { _ = answers.Send(ctxOf(ctx), i) }()
		}
		_, err := answers.Recv(ctx)
		return err
	})
}

// Expect: leak
func TestBugFirstOfTwo(t *testing.T) {
	firstOf(t, func(context.Context) context.Context { return context.Background() }, 0)
}

func TestFixedFirstOfTwo(t *testing.T) {
	firstOf(t, func(ctx context.Context) context.Context { return ctx }, 0)
}

func TestFixedFirstOfTwoByABuffer(t *testing.T) {
	firstOf(t, func(context.Context) context.Context { return context.Background() }, 2)
}

// A fiber closes a native channel when its nursery is cancelled. A goroutine that was about to send panics.

func stream(t *testing.T, closes bool) {
	out := make(chan int, 1)
	stopped := make(chan bool)
	var wg sync.WaitGroup
	run(t, func(ctx context.Context, n *coir.Nursery) error {
		wg.Go(func() {
			select {
			case <-stopped:
			default:
				out <- 1
			}
		})
		n.Go("stop", func(ctx context.Context) error {
			close(stopped)
			if closes {
				close(out)
			}
			return nil
		})
		return nil
	})
	wg.Wait()
}

// Expect: panic
func TestBugStream(t *testing.T) { stream(t, true) }

func TestFixedStream(t *testing.T) { stream(t, false) }

// A goroutine waits for a fiber with a WaitGroup. The fiber calls Add, perhaps after the goroutine has called Wait.

func uploads(t *testing.T, early bool) {
	run(t, func(ctx context.Context, n *coir.Nursery) error {
		var wg sync.WaitGroup
		var files atomic.Int32
		start := coir.NewChan[bool](0)
		if early {
			wg.Add(1)
		}
		n.Go("upload", func(ctx context.Context) error {
			if !early {
				wg.Add(1)
			}
			defer wg.Done()
			_, _ = start.Recv(ctx)
			files.Add(1)
			return nil
		})
		sum := coir.NewChan[int32](1)
		go func() {
			wg.Wait()
			_ = sum.Send(context.Background(), files.Load())
		}()
		_ = start.Close()
		if got, _ := sum.Recv(ctx); got != 1 {
			t.Errorf("%d files, want 1", got)
		}
		return nil
	}, coir.WithWorkers(2))
}

// Expect: fail
func TestBugUploads(t *testing.T) { uploads(t, false) }

func TestFixedUploads(t *testing.T) { uploads(t, true) }

// A fiber works until it is told to stop. A goroutine gives it two jobs, and then tells it to stop. The select may take
// the stop although a job is waiting.

func drain(t *testing.T, sel func(context.Context, ...coir.Case) (int, error)) {
	run(t, func(ctx context.Context, n *coir.Nursery) error {
		jobs, stop := coir.NewChan[int](2), coir.NewChan[bool](1)
		go func() {
			for i := range 2 {
				_ = jobs.Send(context.Background(), i)
			}
			_ = stop.Send(context.Background(), true)
		}()
		done := 0
		for {
			var job int
			var end bool
			i, err := sel(ctx, jobs.RecvCase(&job), stop.RecvCase(&end))
			if err != nil {
				return err
			}
			if i == 1 {
				break
			}
			done++
		}
		if done != 2 {
			t.Errorf("%d jobs done, want 2", done)
		}
		return nil
	})
}

// Expect: fail
func TestBugDrain(t *testing.T) { drain(t, coir.Select) }

func TestFixedDrain(t *testing.T) { drain(t, coir.SelectPriority) }

// Two fibers of one worker yield to each other until a goroutine allows them to end.
func TestFixedPolling(t *testing.T) {
	run(t, func(ctx context.Context, n *coir.Nursery) error {
		var end atomic.Bool
		for i := range 2 {
			n.Go("poll", func(ctx context.Context) error {
				for !end.Load() {
					if err := coir.Yield(ctx); err != nil {
						return err
					}
				}
				return nil
			}, coir.WithIndex(i))
		}
		go end.Store(true)
		return nil
	}, coir.WithWorkers(1))
}
