package remote_test

// The code of docs/guide/remote.md. It is compiled and not run: the last function needs a database.

import (
	"context"
	"database/sql"
	"errors"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
)

// Order is the value of the guide's channel.
type Order struct{ ID int }

func sendAnOrder(ctx context.Context, transport remote.Transport) error {
	err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		orders, err := remote.Durable[Order](ctx, n, transport, "orders", 64)
		if err != nil {
			return err
		}
		defer orders.Leave()
		return orders.Send(ctx, Order{ID: 7}) // nil: it is stored
	})
	return err
}

func sendKnowing(ctx context.Context, orders *remote.Chan[Order], o Order) {
	switch err := orders.Send(ctx, o); {
	case err == nil: // stored
	case errors.Is(err, remote.ErrUnknown): // it may be stored: do not send it again under another identity
	default: // not stored
	}
}

func receiveOnce(ctx context.Context, orders *remote.Chan[Order], db *sql.DB,
	book func(context.Context, *sql.Tx, Order) error) error {
	err := orders.RecvTx(ctx, func(ctx context.Context, it *remote.Item[Order]) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		done, err := tx.ExecContext(ctx, "insert into marks (id) values ($1) on conflict do nothing", it.ID.String())
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return err // it came before
		}
		if err := book(ctx, tx, it.Value); err != nil {
			return err // it comes again
		}
		return tx.Commit()
	})
	return err
}

var _ = []any{sendAnOrder, sendKnowing, receiveOnce}
