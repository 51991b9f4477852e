package memory_test

import (
	"context"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/internal/simtest"
	"github.com/coir-go/coir/remote/memory"
	"github.com/coir-go/coir/remote/transporttest"
	"github.com/coir-go/coir/sim"
)

func TestTransport(t *testing.T) {
	transporttest.Run(t, func(testing.TB) (a, b remote.Transport) {
		broker := memory.New(memory.WithLease(time.Second))
		return broker.Node("a"), broker.Node("b")
	})
}

// No wait outlasts its context, at a node that is cut off.
func TestSilentBroker(t *testing.T) {
	transporttest.RunSilent(t, func(testing.TB) (_ remote.Transport, silence func()) {
		node := memory.New().Node("a")
		return node, node.Silence
	})
}

// The same cases in schedules of a simulation, without faults.
func TestSimTransport(t *testing.T) {
	for _, c := range transporttest.Cases() {
		t.Run(c.Name, func(t *testing.T) {
			n := 100
			if c.Name == "ChanExchange" {
				n = 5 // the case has thousands of steps
			}
			sim.Test(t, func(ctx context.Context, s *sim.Sim) {
				broker := memory.New()
				err := c.Run(ctx, &transporttest.Env{A: broker.Node("a"), B: broker.Node("b"), Name: "queue"})
				if err != nil {
					s.Errorf("%v", err)
				}
			}, sim.WithSchedules(n), sim.WithSteps(1_000_000))
		})
	}
}

// With WithCalmStart, the first opening has no faults, and the node crashes after it. Sends, and later openings, have
// faults.
func TestCalmStart(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		b := memory.New(memory.WithCalmStart())
		runs := 0
		err := b.Run(ctx, "sender", func(ctx context.Context, node *memory.Node) error {
			runs++
			return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				began := s.Now()
				c, err := remote.Durable[int](ctx, n, node, "orders", 4)
				failed := err != nil || s.Now() != began || !node.Alive()
				if runs == 1 && failed {
					s.Errorf("the first opening takes %v, and returns %v", s.Now()-began, err)
				}
				s.Sometimes(failed, "a later opening has a fault")
				if err != nil {
					return err
				}
				defer c.Leave()
				short, cancel := coir.WithTimeout(ctx, time.Second)
				defer cancel()
				s.Sometimes(c.Send(short, 1) != nil, "a send fails")
				return nil
			})
		})
		if err != nil {
			s.Errorf("%v", err)
		}
		s.Sometimes(runs > 1, "the node crashes")
	}, simtest.Schedules(5000), sim.WithFaults("remote lose", "remote duplicate", "remote delay", "remote refuse",
		"remote partition", "remote crash", "remote restart"))
}

// After Heal, a send needs no time, whatever has happened before.
func TestHeal(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		b := memory.New()
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			node := b.Node("sender")
			c, err := remote.Durable[int](ctx, n, node, "orders", 4)
			if err != nil {
				return err
			}
			short, cancel := coir.WithTimeout(ctx, time.Second)
			s.Sometimes(c.Send(short, 1) != nil, "a send fails")
			cancel()
			b.Heal()
			short, cancel = coir.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			if err := c.Send(short, 2); err != nil {
				s.Errorf("after the faults: %v", err)
			}
			return nil
		})
		if err != nil {
			s.Errorf("%v", err)
		}
	}, sim.WithFaults("remote lose", "remote delay", "remote refuse", "remote partition"), simtest.Schedules(5000))
}
