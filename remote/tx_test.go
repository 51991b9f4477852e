package remote_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/memory"
)

// forgetful is a transport whose deliveries cannot be acknowledged.
type forgetful struct{ remote.Transport }

func (f forgetful) Pull(ctx context.Context, queue string, credit int) ([]remote.Delivery, error) {
	ds, err := f.Transport.Pull(ctx, queue, credit)
	for i, d := range ds {
		ds[i] = unacknowledged{d}
	}
	return ds, err
}

type unacknowledged struct{ remote.Delivery }

func (unacknowledged) Ack(context.Context) error { return remote.ErrUnknown }

// An error of the function comes back as it is, even if it matches an error of RecvTx. All other errors are TxErrors.
func TestRecvTxTellsErrorsApart(t *testing.T) {
	failed := errors.New("the database is away")
	err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		b := memory.New()
		c, err := remote.Durable[int](ctx, n, b.Node("a"), "orders", 20)
		if err != nil {
			return err
		}
		for i := range 10 {
			if err := c.Send(ctx, i); err != nil {
				return err
			}
		}
		for _, mine := range []error{
			failed, fmt.Errorf("send on: %w", remote.ErrUnknown), remote.ErrSettled, coir.ErrClosed, context.Canceled,
		} {
			err := c.RecvTx(ctx, func(context.Context, *remote.Item[int]) error { return mine })
			if err != mine { //nolint:errorlint // it is the same error
				t.Errorf("the function returned %v, and RecvTx %v", mine, err)
			}
		}
		err = c.RecvTx(ctx, func(_ context.Context, it *remote.Item[int]) error {
			it.Nak(0)
			return nil
		})
		var own *remote.TxError
		if !errors.As(err, &own) || !own.Called || !errors.Is(err, remote.ErrSettled) {
			t.Errorf("a value that the function has settled: %v", err)
		}
		if err := c.RecvTx(ctx, func(context.Context, *remote.Item[int]) error { return nil }); err != nil {
			t.Error(err)
		}
		c.Leave()
		err = c.RecvTx(ctx, func(context.Context, *remote.Item[int]) error { return failed })
		if own = nil; !errors.As(err, &own) || own.Called || !errors.Is(err, coir.ErrClosed) || own.Error() != err.Error() {
			t.Errorf("an end that was left: %v", err)
		}

		u, err := remote.Durable[int](ctx, n, forgetful{b.Node("b")}, "others", 2)
		if err != nil {
			return err
		}
		defer u.Leave()
		if err := u.Send(ctx, 1); err != nil {
			return err
		}
		ended, cancel := coir.WithCancel(ctx)
		err = u.RecvTx(ended, func(context.Context, *remote.Item[int]) error {
			cancel()
			return nil
		})
		if own = nil; !errors.As(err, &own) || !own.Called || !errors.Is(err, remote.ErrUnknown) {
			t.Errorf("a removal whose outcome is not known: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
