package remote_test

// The code of docs/guide/remote.md that is not part of a program. It is compiled and not run.

import (
	"context"
	"database/sql"
	"errors"
	"log"
	"net/http"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/ticket"
)

// Order is the value of the guide's channel.
type Order struct{ ID int }

func sendKnowing(ctx context.Context, orders *remote.Chan[Order], o Order) {
	switch err := orders.Send(ctx, o); {
	case err == nil: // stored
	case errors.Is(err, remote.ErrUnknown): // it may be stored
	case errors.Is(err, remote.ErrFull): // not stored: there was no room before ctx ended
	case errors.Is(err, remote.ErrUnavailable): // not stored: the broker could not be reached
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
		defer func() { _ = tx.Rollback() }() // after Commit it does nothing
		done, err := tx.ExecContext(ctx, "insert into marks (id) values ($1) on conflict do nothing", it.ID.String())
		if err != nil {
			return err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return err // it was delivered before
		}
		if err := book(ctx, tx, it.Value); err != nil {
			return err // it will be delivered again
		}
		return tx.Commit()
	})
	return err
}

func receiveAndTell(ctx context.Context, orders *remote.Chan[Order],
	book func(context.Context, *remote.Item[Order]) error) error {
	err := orders.RecvTx(ctx, book)
	var own *remote.TxError
	switch {
	case err == nil: // the value is removed
	case !errors.As(err, &own): // book has failed
		log.Print(err)
	case own.Called: // book has succeeded, and the value may be delivered again
	default: // nothing was received
		return err
	}
	return nil
}

func reviveMended(ctx context.Context, orders *remote.Chan[Order], mended func(remote.DeadLetter) bool) error {
	for it, err := range orders.AllDead(ctx) {
		if err != nil {
			return err
		}
		log.Printf("%v: %s", it.Value.ID, it.Value.Reason)
		if mended(it.Value) {
			if err := orders.Revive(ctx, it); err != nil { // sends the value again, and removes the dead letter
				return err
			}
		}
	}
	return nil
}

func serveReady(transport remote.Transport, orders *remote.Chan[Order]) {
	http.HandleFunc("/ready", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), 2*time.Second)
		defer cancel()
		if err := remote.Ready(ctx, transport, orders); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
}

// Receipt is the answer of the guide's provider.
type Receipt struct{ Number int }

type biller interface {
	Charge(ctx context.Context, order Order, token string) error
}

func payFor(ctx context.Context, n *coir.Nursery, transport remote.Transport, keys *ticket.Keys, provider biller,
	order Order) (Receipt, error) {
	payments, err := ticket.New[Receipt](ctx, n, transport, "payments/webhook", keys)
	if err != nil {
		return Receipt{}, err
	}
	t, err := payments.Open(ctx, 15*time.Minute)
	if err != nil {
		return Receipt{}, err
	}
	defer t.Cancel()
	err = provider.Charge(ctx, order, t.Token(ticket.RightResolve).Reveal())
	if err != nil {
		return Receipt{}, err
	}
	receipt, err := t.Wait(ctx)
	return receipt, err
}

func calledBack(ctx context.Context, payments *ticket.Desk[Receipt], r *http.Request, receipt Receipt) error {
	token, err := ticket.ParseToken(r.Header.Get("Token"))
	if err != nil {
		return err
	}
	outcome, err := payments.Resolve(ctx, token, r.Header.Get("Event-Id"), receipt)
	switch {
	case outcome == ticket.OutcomeStored: // 202: the owner cannot be reached now
	case err == nil: // 200: done, or a duplicate
	case errors.Is(err, remote.ErrUnknown), errors.Is(err, remote.ErrFull): // 503: call again, with the same event
	case errors.Is(err, ticket.ErrToken): // 403
	case errors.Is(err, ticket.ErrEnded), errors.Is(err, ticket.ErrExpired): // 410
	}
	return err
}

func promised(ctx context.Context, transport remote.Transport, receipt Receipt) (bool, error) {
	paid, err := remote.NewPromise[Receipt](transport, "order 4711")
	if err != nil {
		return false, err
	}
	won, err := paid.Resolve(ctx, receipt) // in any process
	return won, err
}

func waited(ctx context.Context, paid *remote.Promise[Receipt]) (Receipt, error) {
	receipt, err := paid.Wait(ctx) // in any process, also one that starts later
	return receipt, err
}

func peeked(ctx context.Context, paid *remote.Promise[Receipt]) (Receipt, bool, error) {
	receipt, done, err := paid.Peek(ctx) // done is false if there is no result yet
	return receipt, done, err
}

var _ = []any{
	sendKnowing, receiveOnce, receiveAndTell, reviveMended, serveReady, payFor, calledBack, promised, waited, peeked,
}
