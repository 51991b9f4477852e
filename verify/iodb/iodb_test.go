//go:build unix

package iodb

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver
)

type store struct {
	db    *sql.DB
	conns *locks.Semaphore
}

func open(dsn string, conns int) (*store, error) {
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(conns)
	return &store{db, locks.NewSemaphore(conns, coir.WithName("connections"))}, nil
}

func (s *store) total(ctx context.Context, customer int) (int, error) {
	if err := s.conns.Acquire(ctx, 1); err != nil {
		return 0, err
	}
	defer s.conns.Release(1)
	return coir.Blocking(ctx, func() (total int, err error) {
		row := s.db.QueryRowContext(ctx, "select coalesce(sum(amount), 0) from orders where customer = $1", customer)
		err = row.Scan(&total)
		return total, err
	})
}

func (s *store) totals(ctx context.Context, customers []int) ([]int, error) {
	return coir.Map(ctx, 100, slices.Values(customers), s.total)
}

func (s *store) load(ctx context.Context, orders *coir.Chan[order]) error {
	return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
		for i := range s.conns.Cap() {
			n.Go("load", func(ctx context.Context) error {
				for o, err := range orders.All(ctx) {
					if err != nil {
						return err
					}
					if _, err := s.db.ExecContext(ctx, "insert into orders values ($1, $2)", o.customer, o.amount); err != nil {
						return err
					}
				}
				return nil
			}, coir.WithGoroutine(), coir.WithIndex(i))
		}
		return nil
	})
}

type order struct{ customer, amount int }

func (s *store) slow(ctx context.Context) error {
	ctx, cancel := coir.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	_, err := s.db.ExecContext(ctx, "select pg_sleep(3600)")
	return err // is context.DeadlineExceeded
}

func (s *store) audit(ctx context.Context, check func(context.Context) error) error {
	return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
		n.Go("report", func(ctx context.Context) error {
			_, err := s.db.ExecContext(ctx, "select pg_sleep(3600)")
			return err // is context.Canceled if check fails
		}, coir.WithGoroutine())
		n.Go("check", check, coir.WithGoroutine())
		return nil
	})
}

// TestPostgreSQL runs the code of the guide against a real server.
func TestPostgreSQL(t *testing.T) {
	dsn := postgres(t)
	s, err := open(dsn, 4)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.db.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := s.db.ExecContext(t.Context(), "create table orders (customer int, amount int)"); err != nil {
		t.Fatal(err)
	}
	t.Run("load and totals", func(t *testing.T) { loadAndTotals(t, s) })
	t.Run("a deadline ends a query", func(t *testing.T) {
		if err := s.slow(t.Context()); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		s.awaitSleepers(t.Context(), t, 0)
	})
	t.Run("a cancelled scope ends a query", func(t *testing.T) {
		err := s.audit(t.Context(), func(ctx context.Context) error {
			s.awaitSleepers(ctx, t, 1)
			return errForged
		})
		if !errors.Is(err, errForged) || errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		s.awaitSleepers(t.Context(), t, 0)
	})
}

var errForged = errors.New("forged")

func loadAndTotals(t *testing.T, s *store) {
	customers := make([]int, 200)
	err := coir.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
		orders := coir.NewChan[order](16, coir.WithName("orders"))
		n.Go("source", func(ctx context.Context) error {
			defer orders.Close()
			for i := range customers {
				customers[i] = i
				for _, amount := range []int{i, 1} {
					if err := orders.Send(ctx, order{i, amount}); err != nil {
						return err
					}
				}
			}
			return nil
		})
		n.Go("load", func(ctx context.Context) error { return s.load(ctx, orders) })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	totals, err := s.totals(t.Context(), customers)
	if err != nil || len(totals) != len(customers) {
		t.Fatalf("%d totals, %v", len(totals), err)
	}
	for i, total := range totals {
		if total != i+1 {
			t.Errorf("customer %d has %d", i, total)
		}
	}
	if stats := s.db.Stats(); stats.WaitCount != 0 {
		t.Errorf("%d calls waited in database/sql for a connection", stats.WaitCount)
	}
}

// awaitSleepers waits until the server runs want queries that sleep.
func (s *store) awaitSleepers(ctx context.Context, t *testing.T, want int) {
	t.Helper()
	const query = "select count(*) from pg_stat_activity where state = 'active' and query = 'select pg_sleep(3600)'"
	for n := -1; n != want; {
		if err := s.db.QueryRowContext(ctx, query).Scan(&n); err != nil {
			t.Error(err)
			return
		}
	}
}
