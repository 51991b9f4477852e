// Package waits waits in fibers, outside of coir and by coir.
package waits

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
	"github.com/coir-go/coir/supervise"
)

func wrong(ctx context.Context, in <-chan int) error {
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		time.Sleep(time.Second) // want `time.Sleep holds the worker of the fiber that is started at waits.go:17: use coir.Sleep\(ctx, d\), or call it in coir.Blocking`
		n.Go("child", func(ctx context.Context) error {
			<-ctx.Done()            // want `the wait for a context holds the worker of the fiber that is started at waits.go:19: use coir.WaitCancel\(ctx\)`
			<-time.After(time.Hour) // want `the wait for a time .*: use coir.Sleep`
			for range in {          // want `the loop over a native channel .*: use a coir.Chan and All, or coir.FromChan`
			}
			return nil
		}, coir.WithIndex(1))
		coir.Start(n, "task", task)
		return nil
	})
}

func task(ctx context.Context) (int, error) { return helper(ctx, make(chan int)), nil }

func helper(ctx context.Context, c chan int) int {
	select { // want `the native select holds the worker of the fiber that is started at waits.go:26: use coir.Select`
	case v := <-c:
		return v
	case <-ctx.Done():
		time.Sleep(1) // want `time.Sleep`
	}
	return 0
}

type group struct {
	wg   sync.WaitGroup
	cond *sync.Cond
	done chan struct{}
	one  chan error
}

func newGroup() *group { return &group{done: make(chan struct{}), one: make(chan error, 1)} }

func (g *group) wait(context.Context) error {
	g.wg.Wait()          // want `g.wg.Wait holds .*: use children of a nursery in place of goroutines`
	g.cond.Wait()        // want `g.cond.Wait holds .*: use a coir.Cond`
	g.done <- struct{}{} // want `the send on a native channel .*: use a coir.Chan`
	g.one <- nil
	return <-g.one // want `the receive from a native channel`
}

func methods(g *group) *supervise.Supervisor {
	return supervise.New([]supervise.Child{{Name: "g", Run: g.wait}})
}

func many(ctx context.Context, items []int) error {
	if _, err := coir.Race(ctx, task, func(context.Context) (int, error) {
		defer func() { time.Sleep(1) }() // want `time.Sleep`
		return 0, nil
	}); err != nil {
		return err
	}
	return coir.ForEach(ctx, 8, slices.Values(items), func(context.Context, int) error {
		time.Sleep(1) // want `time.Sleep`
		return nil
	})
}

func inATest(t *testing.T) {
	sim.Test(t, func(ctx context.Context, _ *sim.Sim) {
		time.Sleep(1) // want `time.Sleep`
	})
}

func right(ctx context.Context, g *group, mu *sync.Mutex, opts []coir.FiberOption) error {
	time.Sleep(1)
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		mu.Lock()
		defer mu.Unlock()
		if err := coir.Sleep(ctx, time.Second); err != nil {
			return err
		}
		_, err := coir.Blocking(ctx, func() (int, error) { time.Sleep(1); return 0, nil })
		n.Go("blocks", func(ctx context.Context) error { <-ctx.Done(); return nil }, coir.WithGoroutine())
		n.Go("may block", func(ctx context.Context) error { <-ctx.Done(); return nil }, opts...)
		go func() { time.Sleep(1) }()
		select {
		case <-g.one:
		default:
		}
		later := func() { time.Sleep(1) }
		g.keep(later)
		return err
	})
}

func (g *group) keep(func()) {}

func notStarted(context.Context) { time.Sleep(1) }
