//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
)

// Ready says that the server is away, or which table is missing, until all is well again.
func TestReady(t *testing.T) {
	s := own(t)
	pool := prepared(t, s.DSN)
	tr := transport(t, pool)
	err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		c, err := durable[int](ctx, n, tr, "orders", 4)
		if err != nil {
			return err
		}
		defer c.Leave()
		if err := remote.Ready(ctx, tr, c); err != nil {
			t.Errorf("all is well: %v", err)
		}
		if err := c.Send(ctx, 7); err != nil {
			return err
		}
		if n, err := tr.Len(ctx, "orders"); n != 1 || err != nil {
			t.Errorf("the queue has %d messages, %v", n, err)
		}
		err = s.Without(func() {
			err := remote.Ready(ctx, tr, c)
			if !errors.Is(err, remote.ErrUnavailable) && !errors.Is(err, remote.ErrUnknown) ||
				!strings.Contains(err.Error(), "channel orders: ") ||
				!strings.Contains(err.Error(), "postgres: look at the tables: ") {
				t.Errorf("without the server: %v", err)
			}
		})
		if err != nil {
			return err
		}
		for err = remote.Ready(ctx, tr, c); err != nil && coir.Ended(ctx) == nil; err = remote.Ready(ctx, tr, c) {
			runtime.Gosched() // the pool still has connections that are lost
		}
		if err != nil {
			t.Errorf("with the server: %v", err)
		}
		exec(t, pool, "alter table coir.kept rename to gone")
		if err := remote.Ready(ctx, tr); err == nil || !strings.Contains(err.Error(), "the tables coir.kept are missing") {
			t.Errorf("without a table: %v", err)
		}
		exec(t, pool, "alter table coir.gone rename to kept")
		exec(t, pool, "alter table coir.message rename to gone")
		if err := remote.Ready(ctx, c); err == nil || !strings.Contains(err.Error(), "channel orders: ") ||
			!strings.Contains(err.Error(), "the tables are not there") {
			t.Errorf("without the table of messages: %v", err)
		}
		exec(t, pool, "alter table coir.gone rename to message")
		exec(t, pool, "delete from coir.queue where name = 'orders'")
		if err := c.Send(ctx, 8); err == nil || !strings.Contains(err.Error(), "the queue is not in the tables any more") {
			t.Errorf("without its row: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	tr.Close()
	if err := remote.Ready(t.Context(), tr); !errors.Is(err, coir.ErrClosed) {
		t.Errorf("a transport that was closed: %v", err)
	}
}
