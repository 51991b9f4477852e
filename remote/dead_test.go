package remote_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/internal/simtest"
	"github.com/coir-go/coir/remote/memory"
	"github.com/coir-go/coir/sim"
	"github.com/coir-go/coir/snapshot"
)

// Dead letters are logged with their channel, ID and reason: ten at once, then one every ten seconds, which says how
// many were not logged.
func TestDeadLettersAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		logger := slog.New(slog.NewJSONHandler(&out, nil))
		err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
			node := memory.New().Node("a")
			texts, err := remote.Durable[string](ctx, n, node, "orders", 64)
			if err != nil {
				return err
			}
			numbers, err := remote.Durable[int](ctx, n, node, "orders", 64, remote.WithLogger(logger))
			if err != nil {
				return err
			}
			n.Go("receiver", func(ctx context.Context) error {
				for {
					err := numbers.RecvTx(ctx, func(_ context.Context, it *remote.Item[int]) error {
						return errors.Join(remote.ErrPoison, errors.New("no such customer"))
					})
					var own *remote.TxError
					if errors.As(err, &own) {
						return err
					}
				}
			})
			if err := numbers.Send(ctx, 1); err != nil {
				return err
			}
			for i := range 30 {
				if i == 1 || i == 20 {
					if err := coir.Sleep(ctx, 10*time.Second); err != nil {
						return err
					}
				}
				if err := texts.Send(ctx, "not a number"); err != nil {
					return err
				}
			}
			if err := coir.Sleep(ctx, time.Second); err != nil {
				return err
			}
			n.Cancel(nil)
			return nil
		})
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		type line struct {
			Level, Msg, Channel, ID, Reason string
			Tries, NotLogged                int
		}
		var lines []line
		for text := range bytes.Lines(out.Bytes()) {
			var l line
			if err := json.Unmarshal(text, &l); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, l)
		}
		if len(lines) != 12 {
			t.Fatalf("%d lines:\n%s", len(lines), out.String())
		}
		reasons := map[string]int{}
		for i, l := range lines {
			var id remote.ID
			reasons[l.Reason]++
			if l.Level != "WARN" || l.Msg != "remote: a value became a dead letter" || l.Channel != "orders" ||
				id.UnmarshalText([]byte(l.ID)) != nil || l.Tries != 1 || l.NotLogged != map[int]int{11: 10}[i] {
				t.Errorf("line %d: %+v", i, l)
			}
		}
		if reasons["the codec cannot decode the value: json: cannot unmarshal string into Go value of type int"] != 11 ||
			reasons["remote: the value cannot be processed\nno such customer"] != 1 {
			t.Errorf("the reasons: %v", reasons)
		}
	})
}

// fillDead stores as many dead letters of a channel as there is room for.
func fillDead(ctx context.Context, node *memory.Node) error {
	for i := range uint64(remote.DeadCapacity) {
		id := remote.ID{Sender: 1 << 63, Seq: i} // not one of a value that the test sends
		data, err := json.Marshal(remote.DeadLetter{ID: id, Reason: "unwanted", Tries: 1, Data: []byte("1")})
		if err == nil {
			err = node.Publish(ctx, remote.DeadName(orders), remote.Msg{ID: id, Data: data})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// While the dead letters are full, receivers get values again that have failed too often, after growing delays, and
// their success removes them. The first of these values is logged at once.
func TestSimValuesMaySucceedWhileTheDeadLettersAreFull(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		var out bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&out, nil))
		b := memory.New()
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			node := b.Node("a")
			c, err := remote.Durable[int](ctx, n, node, orders, 2, remote.WithTries(1), remote.WithLogger(logger))
			if err != nil {
				return err
			}
			defer c.Leave()
			if err := fillDead(ctx, node); err != nil {
				return err
			}
			for v := range 2 {
				if err := c.Send(ctx, v); err != nil {
					return err
				}
			}
			for done := 0; done < 2; {
				failed := errors.New("not yet")
				err := c.RecvTx(ctx, func(_ context.Context, it *remote.Item[int]) error {
					if it.Tries == 2 && !strings.Contains(out.String(), "no room for a dead letter") {
						s.Errorf("after the first failure, the log is %q", out.String())
					}
					if it.Tries <= 7 { // more than five times the tries
						return failed
					}
					done++
					return nil
				})
				if err != nil && !errors.Is(err, failed) {
					return err
				}
			}
			if took := s.Now(); took < 63*time.Second || took > 4*time.Minute {
				s.Errorf("it took %v, but the seven delays of a value are 0.5, 1, 2, 4, 8, 16 and 32 seconds", took)
			}
			return nil
		})
		if err != nil || b.Len(orders) > 0 || b.Len(remote.DeadName(orders)) != remote.DeadCapacity {
			s.Errorf("%v: %d values, %d dead letters", err, b.Len(orders), b.Len(remote.DeadName(orders)))
		}
		if warnings := strings.Count(out.String(), "no room for a dead letter"); warnings < 10 || warnings > 17 { // of 20 attempts
			s.Errorf("%d warnings:\n%s", warnings, out.String())
		}
	}, simtest.Schedules(20), sim.WithSteps(200_000))
}

// If a channel and its dead letters are full, Revive waits. When dead letters are removed, values of the channel become
// dead letters, and there is room for a revived one.
func TestSimReviveNeedsRoom(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		b := memory.New()
		revived := false
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			node := b.Node("a")
			c, err := remote.Durable[int](ctx, n, node, orders, 1)
			if err != nil {
				return err
			}
			if err := fillDead(ctx, node); err != nil {
				return err
			}
			if err := c.Send(ctx, 13); err != nil {
				return err
			}
			n.Go("receiver", func(ctx context.Context) error {
				defer c.Leave()
				for !revived {
					err := c.RecvTx(ctx, func(_ context.Context, it *remote.Item[int]) error {
						if it.Value == 13 {
							return remote.ErrPoison
						}
						revived = true
						return nil
					})
					if err != nil && !errors.Is(err, remote.ErrPoison) {
						return err
					}
				}
				return nil
			})
			first := true
			for it, err := range c.AllDead(ctx) {
				if err != nil {
					return err
				}
				if !first {
					return c.Revive(ctx, it)
				}
				first = false
				short, cancel := coir.WithTimeout(ctx, 10*time.Second)
				err = c.Revive(short, it)
				cancel()
				if !errors.Is(err, remote.ErrFull) {
					s.Errorf("Revive without room: %v", err)
				}
				if err := it.Ack(ctx); err != nil {
					return err
				}
			}
			return errors.New("there was one dead letter")
		})
		if err != nil || !revived || b.Len(orders) > 0 || b.Len(remote.DeadName(orders)) != remote.DeadCapacity-1 {
			s.Errorf("%v: revived %v, %d values, %d dead letters", err, revived, b.Len(orders),
				b.Len(remote.DeadName(orders)))
		}
	}, simtest.Schedules(20), sim.WithSteps(200_000))
}

// That the dead letters are full is the trouble of their channel, until one can be stored, or the broker says that
// there is room.
func TestFullDeadLettersAreTrouble(t *testing.T) {
	for _, next := range []error{nil, remote.ErrPoison} {
		b := memory.New()
		effect := make(chan error, 1)
		opened := make(chan *remote.Chan[int], 1)
		rt, end := running(t, func(ctx context.Context, n *coir.Nursery) error {
			node := b.Node("a")
			c, err := remote.Durable[int](ctx, n, node, orders, 1, remote.WithLogger(slog.New(slog.DiscardHandler)))
			if err != nil {
				return err
			}
			if err := fillDead(ctx, node); err != nil {
				return err
			}
			if err := c.Send(ctx, 1); err != nil {
				return err
			}
			n.Go("receiver", func(ctx context.Context) error {
				outcome := remote.ErrPoison
				for {
					err := c.RecvTx(ctx, func(context.Context, *remote.Item[int]) error {
						select {
						case outcome = <-effect:
						default:
						}
						return outcome
					})
					if err != nil && !errors.Is(err, remote.ErrPoison) {
						return err
					}
				}
			})
			opened <- c
			return nil
		})
		const want = "the dead letters of orders are full (1000 of 1000): list them with AllDead, and remove or revive some"
		shown(t, rt, "in trouble", func(s *snapshot.Snapshot) bool {
			o := object(s, orders)
			return o.Trouble == want && !o.TroubleSince.IsZero()
		})
		effect <- next
		c := <-opened
		if err := remote.Ready(t.Context(), c); err != nil {
			t.Errorf("Ready while the dead letters are full: %v", err)
		}
		for it, err := range c.AllDead(t.Context()) {
			if err == nil {
				err = it.Ack(t.Context())
			}
			if err != nil {
				t.Error(err)
			}
			break
		}
		shown(t, rt, "well", func(s *snapshot.Snapshot) bool { return object(s, orders).Trouble == "" })
		end()
	}
}
