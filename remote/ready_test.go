package remote_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/memory"
	"github.com/coir-go/coir/remote/ticket"
)

// Ready names each part that cannot be used, and says why.
func TestReady(t *testing.T) {
	keys, err := ticket.NewKeys(1, []byte("the key of Monday, with 32 bytes"))
	if err != nil {
		t.Fatal(err)
	}
	err = coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		var down atomic.Bool
		b := memory.New()
		tr := leaky{b.Node("a"), &down}
		c, err := remote.Durable[int](ctx, n, tr, "orders", 2)
		if err != nil {
			return err
		}
		v, err := remote.Volatile[int](ctx, n, tr, "ticks", 2)
		if err != nil {
			return err
		}
		defer v.Leave()
		d, err := ticket.New[int](ctx, n, tr, "payments", keys)
		if err != nil {
			return err
		}
		defer d.Close()
		p, err := remote.NewPromise[int](tr, "payment 1")
		if err != nil {
			return err
		}
		parts := []remote.Part{tr, c, v, d, p}
		if err := remote.Ready(ctx, parts...); err != nil {
			t.Errorf("all is well: %v", err)
		}
		if err := remote.Ready(context.Background(), parts...); err != nil { // with a goroutine's context
			t.Errorf("all is well: %v", err)
		}
		down.Store(true)
		err = remote.Ready(ctx, parts...)
		for _, want := range []string{
			"connection refused", "channel orders: ", "channel ticks: ", "desk payments: ", "promise payment 1: ",
		} {
			if !errors.Is(err, remote.ErrUnavailable) || !strings.Contains(err.Error(), want) {
				t.Errorf("while the broker is away: %v, without %s", err, want)
			}
		}
		down.Store(false)
		if err := remote.Ready(ctx, parts...); err != nil {
			t.Errorf("the broker is back: %v", err)
		}
		c.Leave()
		err = remote.Ready(ctx, parts...)
		if !errors.Is(err, coir.ErrClosed) || !strings.Contains(err.Error(), "channel orders: ") {
			t.Errorf("an end that was left: %v", err)
		}
		crashed := b.Node("b")
		crashed.Crash()
		err = remote.Ready(ctx, crashed)
		if !errors.Is(err, memory.ErrCrashed) || !strings.Contains(err.Error(), "node b: ") {
			t.Errorf("a node that has crashed: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// silent is a transport that gives no answers.
type silent struct{ remote.Transport }

func (silent) Ready(ctx context.Context) error { return coir.WaitCancel(ctx) }

// Ready returns when its context ends.
func TestReadyEnds(t *testing.T) {
	ctx, cancel := coir.WithTimeout(t.Context(), 1)
	defer cancel()
	if err := remote.Ready(ctx, silent{memory.New().Node("a")}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}
