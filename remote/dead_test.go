package remote_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/memory"
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
