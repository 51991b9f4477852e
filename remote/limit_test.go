package remote_test

import (
	"context"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/memory"
	"github.com/coir-go/coir/sim"
)

// Children of a nursery with a limit send on a volatile channel. The channel's sending fiber starts although the
// children occupy all places.
func TestSimSendsUnderALimit(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		b := memory.New()
		const sends = 3
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			to, err := remote.Volatile[int](ctx, n, b.Node("receiver"), orders, sends)
			if err != nil {
				return err
			}
			n.Go("receiver", func(ctx context.Context) error {
				defer to.Leave()
				for range sends {
					if _, err := to.Recv(ctx); err != nil {
						return err
					}
				}
				return nil
			})
			return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				n.Limit(1 + s.Intn(2))
				from, err := remote.Volatile[int](ctx, n, b.Node("sender"), orders, sends)
				if err != nil {
					return err
				}
				for i := range sends {
					n.Go("sender", func(ctx context.Context) error { return from.Send(ctx, i) }, coir.WithIndex(i))
				}
				return nil
			})
		})
		if err != nil {
			s.Errorf("%v", err)
		}
	}, sim.WithSchedules(200))
}

// A child of a nursery with a limit receives a value, and holds it for longer than a lease. The value is not delivered
// again.
func TestSimAReceiveUnderALimit(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		b := memory.New()
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Limit(1 + s.Intn(2))
			c, err := remote.Durable[int](ctx, n, b.Node("only"), orders, 1)
			if err != nil {
				return err
			}
			if err := c.Send(ctx, 1); err != nil {
				return err
			}
			n.Go("receiver", func(ctx context.Context) error {
				defer c.Leave()
				it, err := c.Recv(ctx)
				if err != nil {
					return err
				}
				if err := coir.Sleep(ctx, 10*time.Minute); err != nil {
					return err
				}
				if n := c.Stats().Duplicates; n > 0 {
					s.Errorf("the value has come %d times again", n)
				}
				return it.Ack(ctx)
			})
			return nil
		})
		if err != nil {
			s.Errorf("%v", err)
		}
	}, sim.WithSchedules(200))
}
