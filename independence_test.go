package coir_test

// Nurseries own fibers, but not channels. The end of a nursery is not the end of a channel, nor the other way round.

import (
	"context"
	"errors"
	"testing"

	"github.com/coir-go/coir"
)

// TestCancelClosesNoChannel: cancelling a nursery ends the waits of its fibers, on any kind of channel. The channel
// stays open for others: its values are still there, and new ones can be sent and received.
func TestCancelClosesNoChannel(t *testing.T) {
	// Spec: NU-16 (cancelling a nursery closes no channel)
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			rt := on(t, coir.WithWorkers(1))
			full, empty := coir.NewChan[int](k.capacity), coir.NewChan[int](k.capacity)
			held := 0
			for held < 10 && full.TrySend(held+1) == nil {
				held++
			}
			err := rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
				receiver := n.Go("receiver", func(ctx context.Context) error {
					_, err := empty.Recv(ctx)
					return err
				})
				for receiver.State() != coir.StateWaiting {
					if err := coir.Yield(ctx); err != nil {
						return err
					}
				}
				n.Cancel(errStop)
				if err := receiver.Wait(context.WithoutCancel(ctx)); errors.Is(err, coir.ErrClosed) {
					t.Errorf("the receiver was told that the channel is closed: %v", err)
				}
				return nil
			})
			if errors.Is(err, coir.ErrClosed) {
				t.Errorf("Run returned %v", err)
			}
			stillOpen(t, rt, "empty", empty)
			for range held {
				if _, err := full.TryRecv(); err != nil {
					if k.capacity == coir.Conflated {
						break // it held only the newest
					}
					t.Errorf("what the channel held is gone: %v", err)
				}
			}
			stillOpen(t, rt, "full", full)
		})
	}
}

// stillOpen passes a value through an empty channel between two fibers, and fails if the channel reports that it is
// closed.
func stillOpen(t *testing.T, rt *coir.Runtime, name string, c *coir.Chan[int]) {
	t.Helper()
	err := rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("sender", func(ctx context.Context) error { return c.Send(ctx, 42) })
		v, err := c.Recv(ctx)
		if err == nil && v != 42 {
			t.Errorf("%s: received %d, want 42", name, v)
		}
		return err
	})
	if err != nil {
		t.Errorf("%s: %v", name, err)
	}
}

// TestCloseCancelsNoNursery: closing or aborting a channel ends the operations on it, and no fiber or nursery is
// cancelled.
func TestCloseCancelsNoNursery(t *testing.T) {
	// Spec: NU-16 (cancelling a nursery closes no channel)
	for _, end := range []struct {
		name string
		do   func(*coir.Chan[int])
	}{
		{"close", func(c *coir.Chan[int]) { c.Close() }},
		{"abort", func(c *coir.Chan[int]) { c.Abort(errStop) }},
	} {
		t.Run(end.name, func(t *testing.T) {
			onOne(t, func(ctx context.Context, n *coir.Nursery) error {
				c, other := coir.NewChan[int](0), coir.NewChan[int](0)
				waits := n.Go("waits", func(ctx context.Context) error {
					if _, err := c.Recv(ctx); !errors.Is(err, coir.ErrClosed) {
						t.Errorf("received with %v", err)
					}
					_, err := other.Recv(ctx) // it is not cancelled, and continues
					return err
				})
				for waits.State() != coir.StateWaiting {
					if err := coir.Yield(ctx); err != nil {
						return err
					}
				}
				end.do(c)
				if err := other.Send(ctx, 1); err != nil {
					return err
				}
				if err := waits.Wait(ctx); err != nil {
					return err
				}
				return ctx.Err()
			}, nil)
		})
	}
}

// TestChannelOutlivesItsNursery: a channel that a fiber made can be used after its nursery, and its runtime, have
// ended: values sent in the nursery are received outside, and the channel serves fibers of another runtime and
// goroutines.
func TestChannelOutlivesItsNursery(t *testing.T) {
	// Spec: NU-17 (a channel outlives its nursery)
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			var c *coir.Chan[int]
			sent := 0
			first := coir.NewRuntime(coir.WithWorkers(1))
			err := first.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
				return n.Go("maker", func(context.Context) error {
					c = coir.NewChan[int](k.capacity)
					for sent < 3 && c.TrySend(sent+1) == nil {
						sent++
					}
					return nil
				}).Wait(ctx)
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := first.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if k.capacity == coir.Conflated {
				if v, err := c.TryRecv(); v != sent || err != nil {
					t.Errorf("received %d, %v; the newest was %d", v, err, sent)
				}
			} else {
				for want := 1; want <= sent; want++ {
					if v, err := c.TryRecv(); v != want || err != nil {
						t.Errorf("received %d, %v; want %d", v, err, want)
					}
				}
			}
			stillOpen(t, on(t, coir.WithWorkers(1)), "another runtime", c)
			result := make(chan error, 1)
			go func() { result <- c.Send(context.Background(), 7) }()
			if v, err := c.Recv(context.Background()); v != 7 || err != nil {
				t.Errorf("two goroutines: received %d, %v", v, err)
			}
			if err := <-result; err != nil {
				t.Error(err)
			}
		})
	}
}
