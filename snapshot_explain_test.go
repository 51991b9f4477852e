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

// A fiber holds a lock and waits for a value of a pool, and the fibers that have the values wait for the lock.
//
// Spec: OB-15 (the wait-for graph names cycles)
func TestADeadlockOverAPoolIsExplained(t *testing.T) {
	rt := coir.NewRuntime()
	cache := locks.NewMutex(coir.WithName("cache"))
	conns := coir.NewPool(2, func(context.Context) (int, error) { return 1, nil }, nil, coir.WithName("conns"))
	end := inBackground(rt, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("refresh", func(ctx context.Context) error {
			if err := cache.Lock(ctx); err != nil {
				return err
			}
			defer cache.Unlock()
			for i := range 2 {
				n.Go("query", func(ctx context.Context) error {
					if _, err := conns.Get(ctx); err != nil {
						return err
					}
					return cache.Lock(ctx)
				}, coir.WithIndex(i))
			}
			for !strings.Contains(conns.String(), "2 of 2 lent") {
				if err := coir.Yield(ctx); err != nil {
					return err
				}
			}
			_, err := conns.Get(ctx)
			return err
		})
		return nil
	})
	defer func() { _ = end() }()
	earlier := snapshotWhen(t, rt, "they wait", waiting("refresh", "query[0]", "query[1]"))
	later := rt.Snapshot(snapshot.Options{})
	for i := range later.Fibers { // as if all had waited for long
		later.Fibers[i].Since = later.Taken.Add(-time.Minute)
	}
	told := snapshot.Explain(earlier, later)
	const want = "refresh waits for a value of conns (2 of 2 lent), lent to 2 fibers, all of them stuck, of which " +
		"query[0] waits to lock cache, held by refresh: likely a deadlock, for 1m; "
	if len(told) != 1 || told[0].Certain || told[0].Kind != snapshot.ProblemDeadlock ||
		!strings.HasPrefix(told[0].Text, want) {
		t.Errorf("told %+v, want\n%s", told, want)
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

// A call in Blocking is no problem, however long it lasts. The same call outside of Blocking is one.
func TestADeclaredCallIsNoProblem(t *testing.T) {
	rt := coir.NewRuntime(coir.WithWorkers(2))
	answer := make(chan int)
	end := inBackground(rt, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("serve", func(ctx context.Context) error {
			_, err := coir.Blocking(ctx, func() (int, error) { return <-answer, nil })
			return err
		})
		n.Go("native", func(context.Context) error { <-answer; return nil })
		return nil
	})
	blocks := func(f *snapshot.Fiber) bool { return f != nil && f.State == snapshot.StateBlocking }
	earlier := snapshotWhen(t, rt, "both block", func(s *snapshot.Snapshot) bool {
		return blocks(fiberIn(s, "serve")) && blocks(fiberIn(s, "native"))
	})
	time.Sleep(150 * time.Millisecond) // without this time Explain says nothing of calls
	later := rt.Snapshot(snapshot.Options{})
	told := snapshot.Explain(earlier, later)
	native := fiberIn(later, "native").ID
	if len(told) != 1 || len(told[0].Fibers) != 1 || told[0].Fibers[0] != native {
		t.Errorf("told %+v", told)
	}
	close(answer)
	_ = end()
}
