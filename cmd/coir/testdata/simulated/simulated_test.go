// Package simulated has tests that explore schedules by themselves, with package sim.
package simulated

import (
	"context"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
)

func handOver(ctx context.Context, s *sim.Sim) {
	c := coir.NewChan[int](0)
	err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("send", func(ctx context.Context) error { return c.Send(ctx, 1) })
		_, err := c.Recv(ctx)
		return err
	})
	if err != nil {
		s.Fatalf("%v", err)
	}
}

func TestPasses(t *testing.T) { sim.Test(t, handOver, sim.WithSchedules(123)) }

func TestFails(t *testing.T) {
	sim.Test(t, handOver, sim.WithSchedules(1))
	t.Run("sub", func(t *testing.T) {
		sim.Test(t, func(_ context.Context, s *sim.Sim) { s.Fatalf("it fails") })
	})
}

// A wait outside of coir fails, as under go test.
func TestSleeps(t *testing.T) {
	sim.Test(t, func(ctx context.Context, _ *sim.Sim) {
		time.Sleep(time.Microsecond)
		_ = coir.Yield(ctx)
	})
}

func TestExplores(t *testing.T) {
	if r := sim.Explore(handOver, sim.WithSchedules(45)); r.Failure != nil || r.Schedules != 45 {
		t.Error(r.Schedules, r.Failure)
	}
}

// Only this one is explored by coir test.
func TestPlain(*testing.T) {
	c := make(chan int)
	go func() { c <- 1 }()
	<-c
}
