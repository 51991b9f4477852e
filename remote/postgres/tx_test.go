//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/memory"
	"github.com/coir-go/coir/remote/postgres"
)

// effects makes a database with the tables of a transport and one for the effects of book. It returns how to connect to
// it, and a pool of connections.
func effects(t testing.TB) (dsn string, pool *pgxpool.Pool) {
	t.Helper()
	dsn = database(t)
	pool = prepared(t, dsn)
	exec(t, pool, "create table effect (value int)")
	return dsn, pool
}

// book is the effect of the tests: it writes the value.
func book(ctx context.Context, tx pgx.Tx, it *remote.Item[int]) error {
	_, err := tx.Exec(ctx, "insert into effect (value) values ($1)", it.Value)
	return err
}

// The effect and the removal commit together, and there is nothing to acknowledge. An effect that fails leaves nothing
// behind, and its value is delivered again.
func TestRecvTx(t *testing.T) {
	_, pool := effects(t)
	tr := transport(t, pool)
	failed := errors.New("failed")
	err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		c, err := durable[int](ctx, n, tr, "q", 4)
		if err != nil {
			return err
		}
		defer c.Leave()
		if err := c.Send(ctx, 7); err != nil {
			return err
		}
		err = postgres.RecvTx(ctx, c, func(ctx context.Context, tx pgx.Tx, it *remote.Item[int]) error {
			return errors.Join(book(ctx, tx, it), failed)
		})
		if !errors.Is(err, failed) {
			t.Errorf("an effect that fails: %v", err)
		}
		if n := number(t, pool, "select count(*) from effect"); n != 0 {
			t.Errorf("an effect that has failed has left %d rows", n)
		}
		tries := 0
		err = postgres.RecvTx(ctx, c, func(ctx context.Context, tx pgx.Tx, it *remote.Item[int]) error {
			tries = it.Tries
			return book(ctx, tx, it)
		})
		if err != nil {
			return err
		}
		if tries != 2 {
			t.Errorf("delivered %d times", tries)
		}
		if st := c.Stats(); st.Acked != 1 {
			t.Errorf("the counters say %+v", st)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := number(t, pool, "select count(*) from effect where value = 7"); n != 1 {
		t.Errorf("the value has %d effects", n)
	}
	if n := number(t, pool, "select count(*) from coir.message"); n != 0 {
		t.Errorf("%d messages are left", n)
	}
}

// While a transaction holds a value, no other receiver gets the value, even after several leases. If the server ends
// the transaction, the value is delivered again, and the effect is undone.
func TestRecvTxHoldsLongerThanALease(t *testing.T) {
	dsn, pool := effects(t)
	const lease = 200 * time.Millisecond
	a, b := transport(t, pool, postgres.WithLease(lease)), transport(t, connect(t, dsn), postgres.WithLease(lease))
	err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		ca, err := durable[int](ctx, n, a, "q", 4)
		if err != nil {
			return err
		}
		defer ca.Leave()
		cb, err := durable[int](ctx, n, b, "q", 4)
		if err != nil {
			return err
		}
		defer cb.Leave()
		if err := ca.Send(ctx, 1); err != nil {
			return err
		}
		err = postgres.RecvTx(ctx, ca, func(ctx context.Context, tx pgx.Tx, it *remote.Item[int]) error {
			var pid int
			err := errors.Join(book(ctx, tx, it), tx.QueryRow(ctx, "select pg_backend_pid()").Scan(&pid))
			if err != nil {
				return err
			}
			short, cancel := coir.WithTimeout(ctx, 4*lease)
			defer cancel()
			if it, err := cb.Recv(short); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("another receiver has got %v: %v", it, err)
			}
			exec(t, pool, "select pg_terminate_backend($1)", pid)
			return nil
		})
		if err == nil {
			t.Error("the transaction has committed although the server has ended it")
		}
		return postgres.RecvTx(ctx, cb, book)
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := number(t, pool, "select count(*) from effect"); n != 1 {
		t.Errorf("the value has %d effects", n)
	}
}

// The leases of receivers in two processes end while they work. Each value has one effect.
func TestRecvTxOneEffect(t *testing.T) {
	dsn, pool := effects(t)
	const values = 60
	lease := postgres.WithLease(time.Millisecond)
	err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		var ends []*remote.Chan[int]
		for _, tr := range []remote.Transport{transport(t, pool, lease), transport(t, connect(t, dsn), lease)} {
			c, err := durable[int](ctx, n, tr, "q", values, remote.WithTries(1_000_000))
			if err != nil {
				return err
			}
			ends = append(ends, c)
		}
		for v := range values {
			if err := ends[v%2].Send(ctx, v); err != nil {
				return err
			}
		}
		if err := ends[0].Close(ctx); err != nil {
			return err
		}
		return coir.Run(ctx, func(_ context.Context, in *coir.Nursery) error {
			for _, c := range ends {
				in.Go("receiver", func(ctx context.Context) error {
					defer c.Leave()
					for {
						if err := postgres.RecvTx(ctx, c, book); errors.Is(err, coir.ErrClosed) {
							return nil
						} else if err != nil {
							return err
						}
					}
				}, coir.WithGoroutine())
			}
			return nil
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := number(t, pool, "select count(*) from effect"); n != values {
		t.Errorf("%d effects of %d values", n, values)
	}
	if n := number(t, pool, "select count(distinct value) from effect"); n != values {
		t.Errorf("%d values had an effect, of %d", n, values)
	}
}

// The item of an effect cannot settle its value: an effect that tries to, and returns the error, is rolled back, and
// the value is delivered again. If the effect returns ErrPoison, the value becomes a dead letter at once.
func TestRecvTxItemsCannotSettle(t *testing.T) {
	_, pool := effects(t)
	tr := transport(t, pool)
	err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		c, err := durable[int](ctx, n, tr, "q", 4)
		if err != nil {
			return err
		}
		defer c.Leave()
		if err := c.Send(ctx, 7); err != nil {
			return err
		}
		for _, settle := range []func(context.Context, *remote.Item[int]) error{
			func(ctx context.Context, it *remote.Item[int]) error { return it.Ack(ctx) },
			func(ctx context.Context, it *remote.Item[int]) error { return it.Reject(ctx, "wrong") },
			func(ctx context.Context, it *remote.Item[int]) error { return it.Fail(ctx, errors.New("wrong")) },
		} {
			err := postgres.RecvTx(ctx, c, func(ctx context.Context, tx pgx.Tx, it *remote.Item[int]) error {
				it.Nak(0)
				it.Hold(ctx)
				return errors.Join(book(ctx, tx, it), settle(ctx, it))
			})
			if !errors.Is(err, remote.ErrSettled) {
				t.Errorf("the effect settles: %v", err)
			}
		}
		err = postgres.RecvTx(ctx, c, func(ctx context.Context, tx pgx.Tx, it *remote.Item[int]) error {
			return errors.Join(book(ctx, tx, it), fmt.Errorf("%d is odd: %w", it.Value, remote.ErrPoison))
		})
		if !errors.Is(err, remote.ErrPoison) {
			t.Errorf("the effect rejects: %v", err)
		}
		dead, err := durable[remote.DeadLetter](ctx, n, tr, remote.DeadName("q"), remote.DeadCapacity)
		if err != nil {
			return err
		}
		defer dead.Leave()
		it, err := dead.Recv(ctx)
		if err != nil {
			return err
		}
		if it.Value.Reason != "7 is odd: remote: the value cannot be processed" || string(it.Value.Data) != "7" {
			t.Errorf("the dead letter is %+v; want 7, with the reason of ErrPoison", it.Value)
		}
		if n := number(t, pool, "select count(*) from effect"); n != 0 {
			t.Errorf("effects that were rolled back have left %d rows", n)
		}
		if err := it.Ack(ctx); err != nil {
			return err
		}
		if n := number(t, pool, "select count(*) from coir.message"); n != 0 {
			t.Errorf("%d messages are left", n)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A channel of another transport is refused.
func TestRecvTxOfAnotherTransport(t *testing.T) {
	err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		c, err := durable[int](ctx, n, memory.New().Node("a"), "q", 1)
		if err != nil {
			return err
		}
		defer c.Leave()
		if err := c.Send(ctx, 1); err != nil {
			return err
		}
		err = postgres.RecvTx(ctx, c, book)
		if err == nil || !strings.Contains(err.Error(), "is not on a transport of this package") {
			t.Errorf("got %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
