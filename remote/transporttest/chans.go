package transporttest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
)

// open opens a durable channel, on any transport.
func open[T any](
	ctx context.Context, n *coir.Nursery, t remote.Transport, name string, capacity int,
) (*remote.Chan[T], error) {
	return remote.Durable[T](ctx, n, t, name, capacity, remote.WithMeaning(remote.MeaningStored))
}

// With two senders and two receivers, every value has its effect once.
func chanExchange(ctx context.Context, e *Env) error {
	const senders, values = 4, 50
	var mu sync.Mutex
	effects, marks := map[int]int{}, map[remote.ID]bool{}
	err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		for _, t := range []remote.Transport{e.A, e.B} {
			c, err := open[int](ctx, n, t, e.Name, 8)
			if err != nil {
				return err
			}
			for range 2 {
				n.Go("receiver", func(ctx context.Context) error {
					for {
						err := c.RecvTx(ctx, func(_ context.Context, it *remote.Item[int]) error {
							mu.Lock()
							defer mu.Unlock()
							if !marks[it.ID] {
								marks[it.ID] = true
								effects[it.Value]++
							}
							return nil
						})
						switch {
						case errors.Is(err, coir.ErrClosed):
							c.Leave()
							return nil
						case err != nil:
							return err
						}
					}
				})
			}
		}
		var ends []*remote.Chan[int]
		err := coir.Run(ctx, func(_ context.Context, in *coir.Nursery) error {
			for i := range senders {
				c, err := open[int](ctx, n, []remote.Transport{e.A, e.B}[i%2], e.Name, 8)
				if err != nil {
					return err
				}
				ends = append(ends, c)
				in.Go("sender", func(ctx context.Context) error {
					for v := range values {
						if err := c.Send(ctx, i*values+v); err != nil {
							return err
						}
					}
					return nil
				}, coir.WithIndex(i))
			}
			return nil
		})
		if err != nil {
			return err
		}
		err = ends[0].Close(ctx)
		for _, c := range ends {
			c.Leave()
		}
		return err
	})
	if err != nil {
		return err
	}
	for v := range senders * values {
		if effects[v] != 1 {
			return fmt.Errorf("value %d has %d effects", v, effects[v])
		}
	}
	return nil
}

// Values wait for the first receiver of their channel, while other channels are received from. One channel has waited
// for a receiver, and one is empty when its receiver begins.
func chanWaits(ctx context.Context, e *Env) error {
	const channels, values = 3, 4
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		var from, to [channels]*remote.Chan[int]
		for i := range channels {
			name := e.Name + strconv.Itoa(i)
			var err error
			if from[i], err = open[int](ctx, n, e.A, name, values); err != nil {
				return err
			}
			defer from[i].Leave()
			if to[i], err = open[int](ctx, n, e.B, name, values); err != nil {
				return err
			}
			defer to[i].Leave()
		}
		for v := range values { // meanwhile the last channel is empty
			for _, c := range from[:channels-1] {
				if err := c.Send(ctx, v); err != nil {
					return err
				}
			}
		}
		for i, c := range to {
			for v := range values {
				if i == channels-1 {
					if err := from[i].Send(ctx, v); err != nil {
						return err
					}
				}
				it, err := c.Recv(ctx)
				if err == nil {
					err = first(differs("a value", it.Value, v), it.Ack(ctx))
				}
				if err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// A channel without a receiver stops its senders at its capacity, and each removal lets one sender continue.
func chanBound(ctx context.Context, e *Env) error {
	const capacity, more = 5, 4
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		c, err := open[int](ctx, n, e.A, e.Name, capacity)
		if err != nil {
			return err
		}
		defer c.Leave()
		sent := coir.NewChan[int](coir.Unbounded)
		for i := range capacity + more {
			n.Go("sender", func(ctx context.Context) error {
				if err := c.Send(ctx, i); err != nil {
					return err
				}
				return sent.Send(ctx, i)
			}, coir.WithIndex(i))
		}
		for range capacity {
			if _, err := sent.Recv(ctx); err != nil {
				return err
			}
		}
		if v, err := sent.RecvTimeout(ctx, 100*time.Millisecond); !errors.Is(err, coir.ErrTimeout) {
			return fmt.Errorf("value %d was sent to a full channel (%v)", v, err)
		}
		r, err := open[int](ctx, n, e.B, e.Name, capacity)
		if err != nil {
			return err
		}
		defer r.Leave()
		for range more {
			it, err := r.Recv(ctx)
			if err == nil {
				err = it.Ack(ctx)
			}
			if err != nil {
				return err
			}
			if _, err := sent.Recv(ctx); err != nil {
				return err
			}
			if sent.Len() > 0 {
				return errors.New("a removal has let two senders go on")
			}
		}
		for range capacity {
			it, err := r.Recv(ctx)
			if err == nil {
				err = it.Ack(ctx)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Close closes a channel for all its ends, after its values are received. Leave gives up one end.
func chanClose(ctx context.Context, e *Env) error {
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		a, err := open[string](ctx, n, e.A, e.Name, 3)
		if err != nil {
			return err
		}
		defer a.Leave()
		b, err := open[string](ctx, n, e.B, e.Name, 3)
		if err != nil {
			return err
		}
		defer b.Leave()
		if err := first(a.Send(ctx, "last"), a.Close(ctx), a.Close(ctx),
			isNot("send after Close", a.Send(ctx, "late"), coir.ErrClosed)); err != nil {
			return err
		}
		it, err := b.Recv(ctx)
		if err != nil {
			return err
		}
		if err := first(differs("value", it.Value, "last"), it.Ack(ctx),
			isNot("second Ack", it.Ack(ctx), remote.ErrSettled)); err != nil {
			return err
		}
		for _, c := range []*remote.Chan[string]{a, b} {
			_, err := c.Recv(ctx)
			if err := isNot("receive after Close", err, coir.ErrClosed); err != nil {
				return err
			}
		}
		b.Leave()
		_, err = b.Recv(ctx)
		return isNot("receive after Leave", err, coir.ErrClosed)
	})
}

// A value that is rejected, and a value that cannot be decoded, become dead letters, and are no longer in the channel.
func chanDead(ctx context.Context, e *Env) error {
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		a, err := open[any](ctx, n, e.A, e.Name, 3)
		if err != nil {
			return err
		}
		defer a.Leave()
		b, err := open[int](ctx, n, e.B, e.Name, 3)
		if err != nil {
			return err
		}
		defer b.Leave()
		if err := first(a.Send(ctx, "poison"), a.Send(ctx, 1), a.Close(ctx)); err != nil {
			return err
		}
		for it, err := range b.All(ctx) {
			if err := first(err, it.Reject(ctx, "unwanted")); err != nil {
				return err
			}
		}
		dead, err := open[remote.DeadLetter](ctx, n, e.A, remote.DeadName(e.Name), remote.DeadCapacity)
		if err != nil {
			return err
		}
		defer dead.Leave()
		for _, want := range []string{`"poison"`, "1"} {
			it, err := dead.Recv(ctx)
			if err != nil {
				return err
			}
			if err := first(differs("dead letter", string(it.Value.Data), want), differs("tries", it.Value.Tries, 1),
				differs("without a reason", it.Value.Reason == "", false), it.Ack(ctx)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Dead letters are listed again and again, and stay. One of them is removed, and the others are revived: their values,
// also one that could not be decoded, are received again.
func chanRevive(ctx context.Context, e *Env) error {
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		a, err := open[any](ctx, n, e.A, e.Name, 3)
		if err != nil {
			return err
		}
		defer a.Leave()
		if err := first(a.Send(ctx, "poison"), a.Send(ctx, 1), a.Send(ctx, 2)); err != nil {
			return err
		}
		bury := func(ctx context.Context) error {
			b, err := open[int](ctx, n, e.B, e.Name, 3)
			if err != nil {
				return err
			}
			defer b.Leave()
			for range 2 {
				it, err := b.Recv(ctx)
				if err != nil {
					return err
				}
				if err := it.Reject(ctx, "unwanted"); err != nil {
					return err
				}
			}
			return nil
		}
		if err := bury(ctx); err != nil {
			return err
		}
		for range 2 {
			if err := listDead(ctx, a, func(*remote.Item[remote.DeadLetter]) error { return nil }); err != nil {
				return err
			}
		}
		err = listDead(ctx, a, func(it *remote.Item[remote.DeadLetter]) error {
			if string(it.Value.Data) == "1" {
				return it.Ack(ctx)
			}
			return a.Revive(ctx, it)
		})
		if err != nil {
			return err
		}
		for it, err := range a.AllDead(ctx) {
			if err == nil {
				err = fmt.Errorf("%s is still a dead letter", it.Value.Data)
			}
			return err
		}
		for _, want := range []any{"poison", 2.0} {
			it, err := a.Recv(ctx)
			if err != nil {
				return err
			}
			if err := first(differs("revived", it.Value, want), differs("tries", it.Tries, 1), it.Ack(ctx)); err != nil {
				return err
			}
		}
		return nil
	})
}

// listDead checks the three dead letters, and calls f with each.
func listDead(ctx context.Context, c *remote.Chan[any], f func(it *remote.Item[remote.DeadLetter]) error) error {
	seen := map[string]int{}
	for it, err := range c.AllDead(ctx) {
		if err != nil {
			return err
		}
		seen[string(it.Value.Data)]++
		if err := first(differs("without a reason", it.Value.Reason == "", false), f(it)); err != nil {
			return err
		}
	}
	for _, want := range []string{`"poison"`, "1", "2"} {
		if err := differs("the times that "+want+" was listed", seen[want], 1); err != nil {
			return err
		}
	}
	return differs("kinds of dead letters", len(seen), 3)
}

// A receive is a case of a select.
func chanSelect(ctx context.Context, e *Env) error {
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		c, err := open[int](ctx, n, e.A, e.Name, 3)
		if err != nil {
			return err
		}
		defer c.Leave()
		local := coir.NewChan[int](1)
		var v int
		var it *remote.Item[int]
		got := 0
		if err := first(c.Send(ctx, 1), local.Send(ctx, 2)); err != nil {
			return err
		}
		for range 2 {
			i, err := coir.Select(ctx, local.RecvCase(&v), c.RecvCase(&it))
			if err != nil {
				return err
			}
			if got |= 1 << i; i == 1 {
				it.Hold(ctx)
				if err := it.Ack(ctx); err != nil {
					return err
				}
			}
		}
		return first(differs("chosen cases", got, 3), differs("value", it.Value, 1))
	})
}

// A volatile channel has back pressure, and keeps the order of each sender.
func volatile(ctx context.Context, e *Env) error {
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		a, err := remote.Volatile[int](ctx, n, e.A, e.Name, 4)
		if err != nil {
			return err
		}
		defer a.Leave()
		b, err := remote.Volatile[int](ctx, n, e.B, e.Name, 4)
		if err != nil {
			return err
		}
		defer b.Leave()
		sent := n.Go("sender", func(ctx context.Context) error {
			for v := range 20 {
				if err := a.Send(ctx, v); err != nil {
					return err
				}
			}
			return nil
		})
		for want := range 20 {
			it, err := b.Recv(ctx)
			if err != nil {
				return err
			}
			if err := first(differs("value", it.Value, want), it.Ack(ctx)); err != nil {
				return err
			}
		}
		return sent.Wait(ctx)
	})
}
