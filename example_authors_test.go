package coir_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
	"github.com/coir-go/coir/snapshot"
)

// every is a Schedule with one turn in each period. A caller that comes late for a turn gets it immediately.
type every struct {
	period, next time.Duration
	turn         int
}

// The Timer calls Due and Take under its lock, which the race detector does not see.

//go:norace
func (e *every) Due(int, time.Duration) time.Duration { return e.next }

//go:norace
func (e *every) Take(_ int, now time.Duration) int {
	e.next = now + e.period
	e.turn++
	return e.turn
}

func (e *every) Words(int) string { return "for a turn of" }

func ExampleTimer() {
	turns := coir.NewTimer(&every{period: time.Millisecond}, coir.WithName("turns"))
	for range 3 {
		n, err := turns.Wait(context.Background(), 1)
		fmt.Println(n, err)
	}
	// Output:
	// 1 <nil>
	// 2 <nil>
	// 3 <nil>
}

// A type with a fast path checks the context first, so that it fails like an operation of this package.
func ExampleEnded() {
	ctx, cancel := coir.WithCancelCause(context.Background())
	fmt.Println(coir.Ended(ctx))
	cancel(errors.New("the user has left"))
	fmt.Println(coir.Ended(ctx))
	// Output:
	// <nil>
	// coir: cancelled: the user has left
}

func ExampleJitter() {
	ctx := context.Background()
	backoff := 100 * time.Millisecond
	wait := backoff + coir.Jitter(ctx, backoff)
	fmt.Println(wait >= backoff, wait < 2*backoff)
	// Output: true true
}

// The fibers share a variable that coir does not know about. With a Point between its load and its store, sim finds the
// order in which both fibers become the owner.
func ExamplePoint() {
	failure := sim.Explore(func(ctx context.Context, s *sim.Sim) {
		var owner, claims atomic.Int32
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			for me := range int32(2) {
				n.Go("claim", func(ctx context.Context) error {
					if owner.Load() == 0 {
						coir.Point(ctx)
						owner.Store(me + 1)
						claims.Add(1)
					}
					return nil
				})
			}
			return nil
		})
		if claims.Load() > 1 {
			s.Errorf("%d owners", claims.Load())
		}
	}).Failure
	fmt.Println(failure != nil && failure.Kind == sim.KindError)
	// Output: true
}

// A type that is built on a Cond can describe what a fiber waits for: a deadlock is reported as a wait for a seat, not
// for a signal. Snapshots can show the type even while no fiber waits.
func ExampleList() {
	coir.ListObjects(true)
	defer coir.ListObjects(false)

	t := &table{free: 2}
	t.cond.Init(coir.WithName("window table"))
	t.cond.Describe(&coir.Verb{Name: "sit", Waits: "for a seat at", Ends: "leave", Of: "table"})
	coir.List(t, func(t *table, o *snapshot.Object) {
		t.cond.Lock()
		defer t.cond.Unlock()
		o.Kind, o.Name, o.Len = "table", "window table", t.free
	})

	for _, o := range coir.Default().Snapshot(snapshot.Options{}).Objects {
		if o.Kind == "table" {
			fmt.Printf("%s: %d free\n", o.Name, o.Len)
		}
	}
	runtime.KeepAlive(t)
	// Output: window table: 2 free
}

// table has seats that fibers wait for.
type table struct {
	cond coir.Cond
	free int
}
