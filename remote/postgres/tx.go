package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
)

// RecvTx receives a value of c, a durable channel on a [Transport], and calls effect with it and a transaction in which
// the value has been removed. When effect has returned nil, RecvTx commits. So the changes that effect makes through tx
// happen exactly once, whatever fails. If the transaction does not commit, the value is still there, and is delivered
// again; if it commits, the value is gone. There is nothing to acknowledge, and no need to store the ID of the value.
//
// While the transaction is open, no other receiver gets the value, even if this process is stopped for longer than a
// lease. Set idle_in_transaction_session_timeout on the server, so that a process that hangs does not hold a value
// forever. If this process ends, the server rolls back.
//
// effect must not end the transaction. Its item contains the value, but cannot settle it: Ack, Fail and Reject return
// [remote.ErrSettled]. To make the value a dead letter, effect returns an error that matches [remote.ErrPoison].
//
// Calls of the server block. So start a receiver that spends most of its time in effect with coir.WithGoroutine, or use
// tx inside coir.Blocking.
//
// If effect fails, RecvTx rolls back and returns the error of effect unchanged, and the value is delivered again, after
// a delay that grows with its tries. All other errors are of type [*remote.TxError]. One that matches
// [remote.ErrUnknown] means that the answer to the commit is missing: then either the effect has happened and the value
// is gone, or neither. RecvTx skips a value that another receiver has removed after the lease of this one had ended.
func RecvTx[T any](ctx context.Context, c *remote.Chan[T],
	effect func(ctx context.Context, tx pgx.Tx, it *remote.Item[T]) error,
) error {
	for {
		gone, committed, called, failed := false, false, false, false
		err := c.RecvTx(ctx, func(ctx context.Context, it *remote.Item[T]) (err error) {
			d, ok := it.Delivery().(*delivery)
			if !ok {
				return fmt.Errorf("postgres: RecvTx of %s, which is not on a transport of this package: use Chan.RecvTx",
					c.Name())
			}
			only := &remote.Item[T]{Value: it.Value, ID: it.ID, Tries: it.Tries} // the transaction settles it
			gone, err = d.settle(ctx, func(tx pgx.Tx) error {
				err := effect(ctx, tx, only)
				called, failed = true, err != nil
				return err
			})
			committed = err == nil && !gone
			return err
		})
		switch {
		case gone: // receive the next value
		case committed:
			return nil // even if the value was given back meanwhile because ctx ended
		case failed || isTxError(err):
			return err
		default:
			return &remote.TxError{Called: called, Err: err}
		}
	}
}

// isTxError reports whether err is of remote.RecvTx.
func isTxError(err error) bool {
	var own *remote.TxError
	return errors.As(err, &own)
}

// settle removes the message in a transaction with an effect. It reports whether the message was gone already.
func (d *delivery) settle(ctx context.Context, effect func(tx pgx.Tx) error) (gone bool, err error) {
	what := "receive from " + d.q.name
	tx, err := coir.Blocking(ctx, func() (pgx.Tx, error) { return d.lock(ctx) })
	if err != nil {
		return false, notCommitted(what, err)
	}
	if tx == nil {
		d.state.Store(isRemoved)
		return true, nil
	}
	d.state.Store(isBound)
	defer func() { // does nothing after a commit
		_, _ = coir.Blocking(ctx, func() (struct{}, error) { return struct{}{}, rollBack(tx) })
	}()
	if err := effect(tx); err != nil {
		d.state.CompareAndSwap(isBound, isLeased)
		return false, err
	}
	_, err = coir.Blocking(ctx, func() (struct{}, error) { return struct{}{}, tx.Commit(ctx) })
	if err != nil {
		return false, outcome(what, err)
	}
	d.state.Store(isRemoved)
	return false, nil
}

// lock begins a transaction that removes the message. It returns nil if the message is gone.
func (d *delivery) lock(ctx context.Context) (pgx.Tx, error) {
	t := d.q.t
	tx, err := t.pool.Begin(ctx)
	if err != nil {
		return nil, err
	}
	tag, err := tx.Exec(ctx, t.sql("delete from coir.message where queue = $1 and seq = $2"), d.q.id, d.seq)
	if err == nil && tag.RowsAffected() > 0 {
		return tx, nil
	}
	_ = rollBack(tx) // err says more
	return nil, err
}

// rollBack rolls back the transaction, even if its context has ended.
func rollBack(tx pgx.Tx) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return tx.Rollback(ctx)
}

// notCommitted returns the error of a statement before the commit, which has no effect.
func notCommitted(what string, err error) error {
	return fmt.Errorf("postgres: %s: %w: %w", what, remote.ErrUnavailable, err)
}
