package sim

import (
	"context"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
)

// full is a program in which a fiber holds a lock and waits to send to a full channel, and the receivers of that
// channel wait for the lock. If elsewhere is set, one of them waits for an event instead.
func full(elsewhere bool) program {
	return func(ctx context.Context, _ *Sim) {
		jobs, mu := coir.NewChan[int](2, coir.WithName("jobs")), locks.NewMutex(coir.WithName("mu"))
		never := coir.NewEvent(coir.WithName("never"))
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			for i := range 3 {
				n.Go("worker", func(ctx context.Context) error {
					_, err := jobs.Recv(ctx)
					if err != nil {
						return err
					}
					if elsewhere && i == 1 {
						return never.Wait(ctx)
					}
					return mu.Lock(ctx)
				}, coir.WithIndex(i))
			}
			_ = mu.Lock(ctx)
			for i := range 6 {
				_ = jobs.Send(ctx, i)
			}
			mu.Unlock()
		})
	}
}

// A lock that is held while sending to a full channel, whose receivers need the lock, is a cycle. The report names the
// channel, the lock, and each line.
func TestCycleThroughTheReceiversOfAChannel(t *testing.T) {
	f := found(t, KindDeadlock, full(false))
	says(t, f, "main waits to send to jobs (capacity 2, full), at sim/cycle_test.go:32 (",
		"worker[0..2] wait to lock mu, held by main since step ", " (at sim/cycle_test.go:30), at sim/cycle_test.go:27 (",
		"  cycle:\n    main waits to send to jobs (capacity 2, full), from which only worker[0..2] of the remaining fibers "+
			"received\n    worker[0..2] wait for main\n")
	if c := newReport(f).chart().Cycle; len(c) != 2 {
		t.Errorf("the cycle of the page is %v", c)
	}
	// One receiver does not wait for the lock, so it could have helped.
	saysNot(t, found(t, KindDeadlock, full(true)), "cycle:")
}

// The report shows that an operation on a lock or a semaphore waited, and one that continues after it has its own line.
func TestLocksSayThatTheyWaited(t *testing.T) {
	f := found(t, KindError, func(ctx context.Context, s *Sim) {
		mu, slots := locks.NewMutex(coir.WithName("mu")), locks.NewSemaphore(1, coir.WithName("slots"))
		nursery(ctx, func(ctx context.Context, n *coir.Nursery) {
			n.Go("other", func(ctx context.Context) error {
				_ = mu.Lock(ctx)
				_ = slots.Acquire(ctx, 1)
				return nil
			})
			_, _ = mu.Lock(ctx), slots.Acquire(ctx, 1)
			_ = coir.Sleep(ctx, 1)
			mu.Unlock()
			_ = coir.Sleep(ctx, 1)
			slots.Release(1)
		})
		s.Errorf("end")
	}, WithStrategy(func(uint64) Strategy { return RoundRobin() }), WithSchedules(1))
	says(t, f, "| lock mu  ", "| lock mu: waits  ", "| acquire slots |", "| acquire slots: waits ")
}

// The place of a fiber that continues after its operation is that of the operation, not where another fiber stopped.
func TestAFiberGoesOnWhereItStopped(t *testing.T) {
	f := found(t, KindError, readThenWrite)
	r := newReport(f)
	last := map[int32]site{}
	seen := false
	for s := range r.trace {
		e := &r.trace[s]
		if e.op.Kind == opGoOn {
			seen = true
			if is, was := r.siteOf(s), last[e.fiber]; is.line != was.line {
				t.Errorf("step %d goes on%s, and was%s", s+1, is.at(), was.at())
			}
		}
		last[e.fiber] = r.siteOf(s)
	}
	if !seen {
		t.Errorf("no fiber goes on:\n%v", f)
	}
}
