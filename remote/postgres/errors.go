package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coir-go/coir/remote"
)

// outcome returns the error of a statement, with what is known about its effect. A statement that was not sent, or that
// the server has refused, has had no effect. Otherwise the answer is missing, and the outcome is not known.
func outcome(what string, err error) error {
	var refused *pgconn.PgError
	var connect *pgconn.ConnectError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused) && refused.Code == "42P01", errors.As(err, &refused) && refused.Code == "3F000":
		return fmt.Errorf("postgres: %s: the tables are not there: run the statements of postgres.SQL: %w", what, err)
	case errors.As(err, &refused) && refused.Code == "P0002":
		return fmt.Errorf("postgres: %s: the queue is not in the tables any more: somebody has deleted it, or made the "+
			"tables again: restart the process, which opens it again: %w", what, err)
	case errors.As(err, &refused) && !canPass(refused.Code):
		return fmt.Errorf("postgres: %s: %w", what, err)
	case errors.Is(err, pgx.ErrTxCommitRollback):
		return fmt.Errorf("postgres: %s: a statement of the effect has failed, and the effect did not return its error: %w",
			what, err)
	case errors.Is(err, pgx.ErrTxClosed):
		return fmt.Errorf("postgres: %s: the effect has ended the transaction, which it must not do: %w: %w",
			what, remote.ErrUnknown, err)
	case errors.As(err, &refused) && refused.Code != completionUnknown,
		errors.As(err, &connect), pgconn.SafeToRetry(err):
		return fmt.Errorf("postgres: %s: %w: %w", what, remote.ErrUnavailable, err)
	}
	return fmt.Errorf("postgres: %s: %w: %w", what, remote.ErrUnknown, err)
}

// unsent is the error of a statement for which there was no connection. The methods of a pool return the error of a
// context, which does not say whether the statement was sent.
type unsent struct{ error }

func (e unsent) Unwrap() error { return e.error }

// SafeToRetry makes [pgconn.SafeToRetry] return true.
func (unsent) SafeToRetry() bool { return true }

// acquire takes a connection from the pool.
func (t *Transport) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	c, err := t.pool.Acquire(ctx)
	if err != nil {
		return nil, unsent{err}
	}
	return c, nil
}

// exec runs a statement.
func (t *Transport) exec(ctx context.Context, sql string, args ...any) error {
	c, err := t.acquire(ctx)
	if err != nil {
		return err
	}
	defer c.Release()
	_, err = c.Exec(ctx, t.sql(sql), args...)
	return err
}

// scan runs a statement, and reads the row that it returns.
func (t *Transport) scan(ctx context.Context, sql string, args []any, to ...any) error {
	c, err := t.acquire(ctx)
	if err != nil {
		return err
	}
	defer c.Release()
	return c.QueryRow(ctx, t.sql(sql), args...).Scan(to...)
}

const completionUnknown = "40003"

// canPass reports whether the next attempt may succeed after an error of the server with this code. It may succeed
// after errors of the connection (08), of a transaction that was rolled back because of others (40), of resources (53),
// a lock (55), an operator (57) or the system (58), and after the error of a server that has become a standby (25006).
func canPass(code string) bool {
	switch code[:min(2, len(code))] {
	case "08", "40", "53", "55", "57", "58":
		return true
	}
	return code == "25006"
}
