//go:build unix

package guide_test

import (
	"context"
	"errors"
	"os"
	"regexp"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/postgres"
	"github.com/coir-go/coir/remote/postgres/internal/server"
)

func connect(ctx context.Context) (remote.Transport, func(), error) {
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL"))
	if err != nil {
		return nil, nil, err
	}
	_, err = pool.Exec(ctx, postgres.SQL("coir")) // creates the schema with its tables, unless they exist
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	transport, err := postgres.New(ctx, pool)
	if err != nil {
		pool.Close()
		return nil, nil, err
	}
	return transport, func() { transport.Close(); pool.Close() }, nil
}

// start starts a server, which ends with the test.
func start(t *testing.T) *server.Server {
	t.Helper()
	s, err := server.Start()
	if errors.Is(err, server.ErrNotInstalled) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// A process connects and sends, ends, and the next one receives.
func TestConnect(t *testing.T) {
	s := start(t)
	t.Setenv("DATABASE_URL", s.DSN)
	process := func(f func(ctx context.Context, orders *remote.Chan[string]) error) {
		t.Helper()
		transport, disconnect, err := connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer disconnect()
		err = coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
			orders, err := remote.Durable[string](ctx, n, transport, "orders", 64, remote.WithMeaning(remote.MeaningStored))
			if err != nil {
				return err
			}
			defer orders.Leave()
			return f(ctx, orders)
		})
		if err != nil {
			t.Error(err)
		}
	}
	process(func(ctx context.Context, orders *remote.Chan[string]) error { return orders.Send(ctx, "tea") })
	process(func(ctx context.Context, orders *remote.Chan[string]) error {
		return orders.RecvTx(ctx, func(_ context.Context, it *remote.Item[string]) error {
			if it.Value != "tea" {
				t.Errorf("received %q", it.Value)
			}
			return nil
		})
	})
}

// The statements of the guide fit the tables.
func TestStatements(t *testing.T) {
	guide, err := os.ReadFile("../../../../docs/guide/remote.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllSubmatch(guide, -1)
	if len(blocks) != 2 {
		t.Fatalf("the guide has %d statements; want 2", len(blocks))
	}
	s := start(t)
	pool, err := pgxpool.New(t.Context(), s.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(t.Context(), postgres.SQL("coir")); err != nil {
		t.Fatal(err)
	}
	for _, block := range blocks {
		if _, err := pool.Exec(t.Context(), string(block[1])); err != nil {
			t.Errorf("%s: %v", block[1], err)
		}
	}
}
