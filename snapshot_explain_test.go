package coir_test

// Explanations of running programs: a deadlock is found, and none is reported if there is none.

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/snapshot"
)

// explain takes two snapshots of rt.
func explain(rt *coir.Runtime) []snapshot.Explanation {
	earlier := rt.Snapshot(snapshot.Options{})
	return snapshot.Explain(earlier, rt.Snapshot(snapshot.Options{}))
}

// Two locks that are taken in both orders, among 10,000 fibers that wait for other things.
//
// Spec: OB-15 (the wait-for graph names cycles)
func TestADeadlockAmongManyFibersIsExplained(t *testing.T) {
	rt := coir.NewRuntime()
	a, b := locks.NewMutex(coir.WithName("a")), locks.NewMutex(coir.WithName("b"))
	both := locks.NewBarrier(2)
	transfer := func(first, second *locks.Mutex) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			if err := first.Lock(ctx); err != nil {
				return err
			}
			defer first.Unlock()
			if _, _, err := both.Wait(ctx); err != nil {
				return err
			}
			if err := second.Lock(ctx); err != nil {
				return err
			}
			second.Unlock()
			return nil
		}
	}
	jobs := coir.NewChan[int](0, coir.WithName("jobs"))
	end := inBackground(rt, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("transfer", transfer(a, b), coir.WithIndex(0))
		n.Go("transfer", transfer(b, a), coir.WithIndex(1))
		for i := range 10_000 {
			n.Go("worker", func(ctx context.Context) error { _, err := jobs.Recv(ctx); return err }, coir.WithIndex(i))
		}
		return nil
	})
	defer func() { _ = end() }()
	snapshotWhen(t, rt, "they wait", waiting("transfer[0]", "transfer[1]", "worker[9999]"))
	begin := time.Now()
	told := explain(rt)
	took := time.Since(begin)
	const want = "transfer[0] waits to lock b, held by transfer[1], which waits to lock a, held by transfer[0]: a deadlock"
	if len(told) == 0 || !told[0].Certain || told[0].Kind != snapshot.ProblemDeadlock ||
		!strings.HasPrefix(told[0].Text, want) {
		t.Fatalf("told %+v", told)
	}
	if t.Logf("%v for two snapshots and an explanation", took); took > time.Second && !testing.Short() {
		t.Errorf("it took %v", took)
	}
}

// Locks that are always taken in the same order, as fast as possible.
func TestOrderedLocksAreNeverExplainedAsADeadlock(t *testing.T) {
	looks := 2000
	if testing.Short() {
		looks = 200
	}
	rt := coir.NewRuntime()
	var ms [3]*locks.Mutex
	for i := range ms {
		ms[i] = locks.NewMutex()
	}
	var stop atomic.Bool
	end := inBackground(rt, func(ctx context.Context, n *coir.Nursery) error {
		for range 8 {
			n.Go("worker", func(ctx context.Context) error {
				for i := 0; !stop.Load(); i++ {
					first, second := ms[i%2], ms[i%2+1]
					if err := first.Lock(ctx); err != nil {
						return err
					}
					_ = coir.Yield(ctx)
					if err := second.Lock(ctx); err != nil {
						return err
					}
					_ = coir.Yield(ctx)
					second.Unlock()
					first.Unlock()
				}
				return nil
			})
		}
		return nil
	})
	for range looks {
		for _, e := range explain(rt) {
			if e.Certain {
				t.Fatal(e.Text)
			}
		}
	}
	stop.Store(true)
	_ = end()
}
