package coir_test

import (
	"context"
	"runtime"
	"testing"

	"github.com/coir-go/coir"
)

// A runtime whose number of workers was not set follows GOMAXPROCS up and down while it runs, and after it has
// rested. One whose number was set does not.
//
// Spec: SC-01
func TestWorkersFollowGOMAXPROCS(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	follows, fixed := on(t), on(t, coir.Workers(2))
	// busy runs fibers that yield, on rt, until f returns.
	busy := func(rt *coir.Runtime, f func()) {
		t.Helper()
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() {
			ended <- rt.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				for range 16 {
					n.Go("busy", func(ctx context.Context) error {
						for coir.Yield(ctx) == nil {
							for range 1000 { // long enough that it pays to wake a worker
								runtime.KeepAlive(n)
							}
						}
						return nil
					})
				}
				return nil
			})
		}()
		f()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	active := func(rt *coir.Runtime, want int) {
		t.Helper()
		eventually(t, "the number of active workers", func() bool { return rt.Stats().Active == want })
	}
	busy(follows, func() {
		active(follows, 2)
		for _, n := range []int{4, 1, 3} {
			runtime.GOMAXPROCS(n)
			active(follows, n)
		}
	})
	runtime.GOMAXPROCS(1) // while nothing runs
	busy(follows, func() { active(follows, 1) })
	runtime.GOMAXPROCS(4)
	busy(follows, func() { active(follows, 4) })
	busy(fixed, func() {
		active(fixed, 2)
		busy(follows, func() { active(follows, 4) }) // at least one tick of its own goes by meanwhile
		active(fixed, 2)
	})
}
