//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/postgres"
)

// An error of the effect comes back as it is. All other errors are TxErrors: of a commit without an answer, and of a
// receive.
func TestRecvTxTellsErrorsApart(t *testing.T) {
	dsn, pool := effects(t)
	operator := connect(t, dsn)
	tr := transport(t, pool)
	exec(t, pool, "create function hold() returns trigger language plpgsql as "+
		"'begin perform pg_sleep(60); return null; end'")
	exec(t, pool, "create table slow (value int)")
	exec(t, pool, "create constraint trigger hold after insert on slow deferrable initially deferred "+
		"for each row execute function hold()")
	err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		c, err := durable[int](ctx, n, tr, "q", 10)
		if err != nil {
			return err
		}
		for i := range 4 {
			if err := c.Send(ctx, i); err != nil {
				return err
			}
		}
		for _, mine := range []error{errors.New("failed"), remote.ErrUnknown, coir.ErrClosed} {
			err := postgres.RecvTx(ctx, c, func(context.Context, pgx.Tx, *remote.Item[int]) error { return mine })
			if err != mine { //nolint:errorlint // it is the same error
				t.Errorf("the effect returned %v, and RecvTx %v", mine, err)
			}
		}
		short, cancel := coir.WithCancel(ctx)
		n.Go("end the context during the commit", func(context.Context) error {
			for number(t, operator, "select count(*) from pg_stat_activity where wait_event = 'PgSleep'") == 0 {
				runtime.Gosched()
			}
			cancel()
			return nil
		}, coir.WithGoroutine())
		err = postgres.RecvTx(short, c, func(ctx context.Context, tx pgx.Tx, _ *remote.Item[int]) error {
			_, err := tx.Exec(ctx, "insert into slow values (1)")
			return err
		})
		var own *remote.TxError
		if !errors.As(err, &own) || !own.Called || !errors.Is(err, remote.ErrUnknown) {
			t.Errorf("a commit without an answer: %v", err)
		}
		exec(t, operator, "select pg_terminate_backend(pid) from pg_stat_activity where wait_event = 'PgSleep'")
		c.Leave()
		err = postgres.RecvTx(ctx, c, book)
		if own = nil; !errors.As(err, &own) || own.Called || !errors.Is(err, coir.ErrClosed) {
			t.Errorf("an end that was left: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
