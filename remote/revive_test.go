package remote_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/internal/simtest"
	"github.com/coir-go/coir/remote/memory"
	"github.com/coir-go/coir/sim"
)

// rejected sends values to a channel, and makes them dead letters.
func rejected(ctx context.Context, c *remote.Chan[int], values ...int) error {
	for _, v := range values {
		if err := c.Send(ctx, v); err != nil {
			return err
		}
		it, err := c.Recv(ctx)
		if err != nil {
			return err
		}
		if err := it.Reject(ctx, "unwanted"); err != nil {
			return err
		}
	}
	return nil
}

// listed returns the encoded values of the dead letters.
func listed(ctx context.Context, c *remote.Chan[int]) (values []string, err error) {
	for it, err := range c.AllDead(ctx) {
		if err != nil {
			return values, err
		}
		values = append(values, string(it.Value.Data))
	}
	return values, nil
}

// inBubble runs f with virtual time, with a channel of capacity 1, and its broker.
func inBubble(t *testing.T, f func(ctx context.Context, n *coir.Nursery, b *memory.Broker, c *remote.Chan[int]) error,
	opts ...remote.Option) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
			b := memory.New()
			c, err := remote.Durable[int](ctx, n, b.Node("a"), orders, 1, opts...)
			if err != nil {
				return err
			}
			defer c.Leave()
			return f(ctx, n, b, c)
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// Listing the dead letters again and again, which delivers them, does not make them dead letters of dead letters.
func TestDeadLettersMayBeListedOften(t *testing.T) {
	inBubble(t, func(ctx context.Context, _ *coir.Nursery, _ *memory.Broker, c *remote.Chan[int]) error {
		if err := rejected(ctx, c, 1, 2); err != nil {
			return err
		}
		for i := range 120 {
			if values, err := listed(ctx, c); err != nil || len(values) != 2 {
				t.Errorf("list %d: %v, %v", i, values, err)
				return err
			}
		}
		return nil
	})
}

// A loop that ends early gives back the dead letters that it has not settled.
func TestALoopOverDeadLettersMayEndEarly(t *testing.T) {
	inBubble(t, func(ctx context.Context, _ *coir.Nursery, _ *memory.Broker, c *remote.Chan[int]) error {
		if err := rejected(ctx, c, 1, 2, 3); err != nil {
			return err
		}
		for it, err := range c.AllDead(ctx) {
			if err != nil {
				return err
			}
			if err := it.Ack(ctx); err != nil {
				return err
			}
			break
		}
		began := coir.Now(ctx)
		values, err := listed(ctx, c)
		if took := coir.Now(ctx) - began; len(values) != 2 || took > 2*time.Second {
			t.Errorf("after %v: %v, %v", took, values, err)
		}
		return err
	})
}

// If another receiver holds a dead letter, the loop has the others, and says that one is missing.
func TestADeadLetterThatAnotherHoldsIsMissing(t *testing.T) {
	inBubble(t, func(ctx context.Context, _ *coir.Nursery, b *memory.Broker, c *remote.Chan[int]) error {
		if err := rejected(ctx, c, 1, 2, 3); err != nil {
			return err
		}
		held, err := b.Node("b").Pull(ctx, remote.DeadName(orders), 1)
		if err != nil {
			return err
		}
		values, err := listed(ctx, c)
		if len(values) != 2 || !errors.Is(err, coir.ErrTimeout) || !contains(err, "1 did not come") {
			t.Errorf("while another receiver holds one: %v, %v", values, err)
		}
		held[0].Nak(0)
		if values, err = listed(ctx, c); len(values) != 3 {
			t.Errorf("afterwards: %v, %v", values, err)
		}
		return err
	})
}

// A value is not dropped by the overflow policy when it is revived, and stays a dead letter.
func TestARevivedValueIsNotDropped(t *testing.T) {
	for over, want := range map[coir.OverflowPolicy]error{
		coir.OverflowDropNewest: remote.ErrFull, coir.OverflowFail: remote.ErrFull, coir.OverflowWait: coir.ErrTimeout,
	} {
		inBubble(t, func(ctx context.Context, _ *coir.Nursery, _ *memory.Broker, c *remote.Chan[int]) error {
			if err := rejected(ctx, c, 1); err != nil {
				return err
			}
			if err := c.Send(ctx, 2); err != nil { // the channel is full
				return err
			}
			for it, err := range c.AllDead(ctx) {
				if err != nil {
					return err
				}
				short, cancel := coir.WithTimeout(ctx, time.Second)
				if err := c.Revive(short, it); !errors.Is(err, want) {
					t.Errorf("%v: Revive on a full channel: %v", over, err)
				}
				cancel()
			}
			values, err := listed(ctx, c)
			if len(values) != 1 || c.Stats().Dropped != 0 {
				t.Errorf("%v: dead letters %v, %d dropped", over, values, c.Stats().Dropped)
			}
			return err
		}, remote.WithOverflow(over))
	}
}

// What cannot be revived is not sent, and the errors say why.
func TestReviveRefuses(t *testing.T) {
	inBubble(t, func(ctx context.Context, n *coir.Nursery, b *memory.Broker, c *remote.Chan[int]) error {
		other, err := remote.Durable[int](ctx, n, b.Node("a"), "other", 1)
		if err != nil {
			return err
		}
		defer other.Leave()
		loose, err := remote.Volatile[int](ctx, n, b.Node("a"), "loose", 1)
		if err != nil {
			return err
		}
		defer loose.Leave()
		if err := rejected(ctx, c, 1); err != nil {
			return err
		}
		for it, err := range c.AllDead(ctx) {
			if err != nil {
				return err
			}
			if err := other.Revive(ctx, it); !contains(err, "it comes from orders.dead, ") {
				t.Errorf("on another channel: %v", err)
			}
			if err := it.Ack(ctx); err != nil {
				return err
			}
			if err := c.Revive(ctx, it); !errors.Is(err, remote.ErrSettled) {
				t.Errorf("a dead letter that was removed: %v", err)
			}
		}
		if err := c.Revive(ctx, new(remote.Item[remote.DeadLetter])); !errors.Is(err, remote.ErrSettled) {
			t.Errorf("a dead letter that was not received: %v", err)
		}
		if _, err := listed(ctx, loose); !contains(err, "a volatile channel has none") {
			t.Errorf("a volatile channel: %v", err)
		}
		other.Leave()
		if _, err := listed(ctx, other); !errors.Is(err, coir.ErrClosed) {
			t.Errorf("an end that was left: %v", err)
		}
		if b.Len(orders)+b.Len("other") > 0 {
			t.Error("a value was sent")
		}
		return nil
	})
}

// A revived value has its effect once, whatever the network and the broker do, and is no longer a dead letter.
func TestSimARevivedValueHasItsEffectOnce(t *testing.T) {
	const values = 2
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		b, l := memory.New(memory.WithCalmStart(), memory.WithFaults(20)), newLedger()
		var mended atomic.Bool
		again := 0
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("receiver", func(ctx context.Context) error {
				return process(ctx, b, "receiver", values, func(ctx context.Context, _ *memory.Node, c *remote.Chan[int]) error {
					for {
						err := c.RecvTx(ctx, func(_ context.Context, it *remote.Item[int]) error {
							if !mended.Load() {
								return remote.ErrPoison
							}
							l.commit(it.ID, it.Value)
							return nil
						})
						if errors.Is(err, coir.ErrClosed) || coir.Ended(ctx) != nil {
							return nil
						}
					}
				})
			})
			node := b.Node("operator")
			c, err := remote.Durable[int](ctx, n, node, orders, values)
			if err != nil {
				return err
			}
			defer c.Leave()
			for v := range values {
				if err := c.Send(ctx, v); err != nil {
					return err
				}
			}
			for b.Len(remote.DeadName(orders)) < values || b.Len(orders) > 0 {
				if err := coir.Sleep(ctx, time.Second); err != nil {
					return err
				}
			}
			mended.Store(true)
			for ; ; again++ {
				if err := reviveAll(ctx, c); err == nil {
					return c.Close(ctx)
				}
				if err := coir.Sleep(ctx, time.Second); err != nil {
					return err
				}
			}
		})
		if errors.Is(err, remote.ErrUnknown) { // the broker was away for long when a value was sent
			return
		}
		for v := range values {
			if l.effects[v] != 1 {
				s.Errorf("%d effects of a value", l.effects[v])
			}
		}
		if n := b.Len(remote.DeadName(orders)); err != nil || n > 0 {
			s.Errorf("%d dead letters, %v", n, err)
		}
		s.Sometimes(again > 0, "it takes several loops")
	}, simtest.Schedules(2000), sim.WithFaults("remote lose", "remote duplicate", "remote delay", "remote refuse",
		"remote partition", "remote restart"))
}

// reviveAll revives all dead letters. It gives up after a short time, in which a request may be lost.
func reviveAll(ctx context.Context, c *remote.Chan[int]) error {
	for it, err := range c.AllDead(ctx) {
		if err == nil {
			short, cancel := coir.WithTimeout(ctx, 100*time.Millisecond)
			err = c.Revive(short, it)
			cancel()
		}
		if err != nil {
			return err
		}
	}
	return nil
}
