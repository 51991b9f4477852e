// The test of command orders. It needs no server.
package main

import (
	"context"
	"errors"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/memory"
	"github.com/coir-go/coir/sim"
)

// A sender and a receiver with a broker in memory. The network loses, delays and repeats messages, and is cut; the
// broker restarts; the receiver crashes, and is started again. Each order that was stored is received, some of them
// twice. If one were lost, the test would fail with a deadlock.
func TestOrders(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		broker := memory.New(memory.WithCalmStart()) // no faults before the first order
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			received := coir.NewChan[string](coir.Unbounded, coir.WithName("received"))
			n.Go("receiver", func(ctx context.Context) error {
				return broker.Run(ctx, "receiver", func(ctx context.Context, node *memory.Node) error {
					return receive(ctx, node, func(o Order) {
						if node.Alive() { // a process that has crashed does nothing more
							_ = received.TrySend(o.Item)
						}
					})
				})
			})
			missing := make(map[string]bool)
			err := send(ctx, broker.Node("sender"), []string{"tea", "milk"}, func(o Order) { missing[o.Item] = true })
			if err != nil && !errors.Is(err, remote.ErrUnknown) { // unknown: the network was cut for a minute
				return err
			}
			for len(missing) > 0 {
				item, err := received.Recv(ctx)
				if err != nil {
					return err
				}
				delete(missing, item)
			}
			n.Cancel(nil) // ends the receiver
			return nil
		})
		if err != nil && !errors.Is(err, context.Canceled) { // as main does
			s.Errorf("%v", err)
		}
	}, sim.WithFaults(memory.Faults()...))
}
