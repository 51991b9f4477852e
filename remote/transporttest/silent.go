package transporttest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/ticket"
)

// RunSilent checks that no wait for a silent broker outlasts its context, and that the errors say what the operation
// waited for. open returns a transport, and a function that makes its broker silent until the test ends.
func RunSilent(t *testing.T, open func(t testing.TB) (tr remote.Transport, silence func())) {
	tr, silence := open(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error { return silent(ctx, n, tr, silence) })
	if err != nil {
		t.Error(err)
	}
}

const (
	patience = 100 * time.Millisecond // of the contexts
	soon     = time.Second            // within which an operation returns after its context has ended
)

func silent(ctx context.Context, n *coir.Nursery, tr remote.Transport, silence func()) error {
	const name = "silent"
	if err := first(openQueue(ctx, tr, name, 2), publish(ctx, tr, name, 1)); err != nil {
		return err
	}
	d, err := pull(ctx, tr, name)
	if err != nil {
		return err
	}
	if _, err := get(ctx, tr, name); err != nil { // NATS first makes a stream for it
		return err
	}
	promise, err := remote.NewPromise[int](tr, name, remote.WithMeaning(remote.MeaningStored))
	if err != nil {
		return err
	}
	keys, err := ticket.NewKeys(1, make([]byte, 32))
	if err != nil {
		return err
	}
	silence()
	short, cancel := coir.WithTimeout(ctx, patience)
	defer cancel()
	end := coir.Now(ctx) + patience
	ops := silentOps(n, tr, name, d, promise, keys)
	errs := make([]error, len(ops))
	err = coir.Run(ctx, func(ctx context.Context, in *coir.Nursery) error {
		for i, op := range ops {
			in.Go(op.what, func(context.Context) error {
				err := op.do(short)
				late := coir.Now(ctx) - end
				switch {
				case late > soon:
					errs[i] = fmt.Errorf("%s returned %v after the end of its context: %w", op.what, late, err)
				case err == nil && op.serves:
				case !errors.Is(err, context.DeadlineExceeded):
					errs[i] = fmt.Errorf("%s: %v, not the error of its context", op.what, err)
				case !strings.Contains(err.Error(), name) && !strings.Contains(err.Error(), d.Msg().ID.String()):
					errs[i] = fmt.Errorf("%s does not say what it has waited for: %w", op.what, err)
				}
				return nil
			})
		}
		return nil
	})
	return errors.Join(append(errs, err)...)
}

// silentOp is an operation that waits for the broker.
type silentOp struct {
	what   string
	serves bool // and waits for nothing else: a transport in memory need not wait
	do     func(ctx context.Context) error
}

// silentOps returns all operations. d is a value of the queue of that name, whose sender has a promise of that name.
func silentOps(n *coir.Nursery, tr remote.Transport, name string, d remote.Delivery, promise *remote.Promise[int],
	keys *ticket.Keys,
) []silentOp {
	return []silentOp{
		{"Open", false, func(ctx context.Context) error { return tr.Open(ctx, name, 2) }},
		{"Publish", false, func(ctx context.Context) error {
			return tr.Publish(ctx, name, remote.Msg{ID: remote.ID{Sender: 1, Seq: 2}})
		}},
		{"Pull", false, func(ctx context.Context) error { _, err := tr.Pull(ctx, name, 1); return err }},
		{"Ack", false, d.Ack},
		{"End", false, func(ctx context.Context) error { return tr.End(ctx, name) }},
		{"Request", false, func(ctx context.Context) error { _, err := tr.Request(ctx, name, nil); return err }},
		{"Serve", true, func(ctx context.Context) error {
			s, err := tr.Serve(ctx, name, func([]byte) []byte { return nil })
			if err == nil {
				err = s.Close()
			} else if errors.Is(err, remote.ErrUnknown) {
				err = fmt.Errorf("it is not known whether Serve has failed: %w", err)
			}
			return err
		}},
		{"Put", false, func(ctx context.Context) error { _, err := tr.Put(ctx, name, []byte("x")); return err }},
		{"Get", false, func(ctx context.Context) error { _, err := tr.Get(ctx, name); return err }},
		{"Durable", false, func(ctx context.Context) error {
			c, err := open[int](ctx, n, tr, name, 2)
			if err == nil {
				c.Leave()
			}
			return err
		}},
		{"Volatile", true, func(ctx context.Context) error {
			c, err := remote.Volatile[int](ctx, n, tr, name, 2)
			if err == nil {
				c.Leave()
			}
			return err
		}},
		{"Promise.Wait", false, func(ctx context.Context) error { _, err := promise.Wait(ctx); return err }},
		{"Promise.Peek", false, func(ctx context.Context) error { _, _, err := promise.Peek(ctx); return err }},
		{"Promise.Resolve", false, func(ctx context.Context) error { _, err := promise.Resolve(ctx, 1); return err }},
		{"ticket.New", false, func(ctx context.Context) error {
			desk, err := ticket.New[int](ctx, n, tr, name, keys)
			if err == nil {
				desk.Close()
			}
			return err
		}},
	}
}
