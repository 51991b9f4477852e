package postgres_test

// The code of docs/guide/remote.md. It is compiled and not run.

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/postgres"
)

// Order is the value of the guide's channel.
type Order struct{ From, Sum int }

func bookOrder(ctx context.Context, orders *remote.Chan[Order]) error {
	err := postgres.RecvTx(ctx, orders, func(ctx context.Context, tx pgx.Tx, it *remote.Item[Order]) error {
		_, err := tx.Exec(ctx, "update account set balance = balance - $1 where id = $2", it.Value.Sum, it.Value.From)
		return err
	})
	return err
}

var _ = bookOrder
