package nats_test

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/nats"
)

// dialer dials, and can be told to hang.
type dialer struct {
	mu   sync.Mutex
	held chan struct{} // while it is not nil and not closed, Dial hangs
	last net.Conn
}

func (d *dialer) Dial(network, address string) (net.Conn, error) {
	d.mu.Lock()
	held := d.held
	d.mu.Unlock()
	if held != nil {
		<-held
	}
	c, err := net.Dial(network, address)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = c
	return c, err
}

// lose ends the connection. The next dials hang until the returned function is called.
func (d *dialer) lose() (release func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	held := make(chan struct{})
	d.held = held
	_ = d.last.Close()
	return sync.OnceFunc(func() {
		d.mu.Lock()
		d.held = nil
		d.mu.Unlock()
		close(held)
	})
}

// While nats.go dials, it holds its lock. No fiber waits for that: the operations of a channel end with their contexts,
// and no fiber blocks its worker. When the dial ends, values pass again.
func TestADialHangs(t *testing.T) {
	d := new(dialer)
	nc, err := client.Connect(single(t, false).ClientURL(),
		append(nats.Options(), client.UserInfo("app", "app"), client.SetCustomDialer(d))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	tr := transport(t, nc, nats.WithReplicas(1))
	rt := coir.NewRuntime(coir.OnStall(2*time.Second, func(s coir.Stall) {
		t.Errorf("the fiber %v blocks its worker:\n%s", s.Fiber, s.Stack)
	}))
	defer func() { _ = rt.Close(context.Background()) }()
	err = rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		var ends [3]*remote.Chan[int] // the first one receives, the second one begins to, the third one is left
		for i, name := range []string{"orders", "later", "left"} {
			c, err := remote.Durable[int](ctx, n, tr, name, 4, remote.WithMeaning(remote.MeaningStored))
			if err != nil {
				return err
			}
			defer c.Leave()
			if err := c.Send(ctx, 1); err != nil {
				return err
			}
			ends[i] = c
		}
		got := coir.NewChan[int](coir.Unbounded)
		n.Go("receiver", func(ctx context.Context) error {
			for it, err := range ends[0].All(ctx) {
				if err != nil {
					return err
				}
				if err := it.Ack(ctx); err != nil {
					return err
				}
				_ = got.TrySend(it.Value)
			}
			return nil
		})
		if _, err := got.Recv(ctx); err != nil {
			return err
		}
		it, err := ends[2].Recv(ctx)
		if err != nil {
			return err
		}
		release := d.lose()
		defer release()
		for lost := error(nil); lost == nil && coir.Yield(ctx) == nil; _, lost = tr.Lost() {
		}
		short := func(f func(ctx context.Context) error) {
			ctx, cancel := coir.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			if f(ctx) == nil {
				t.Error("an operation succeeds without a connection")
			}
		}
		it.Nak(0)
		ends[2].Leave()
		// The intake waits for a heartbeat of the server for a little more than two seconds, and then asks again.
		for began := time.Now(); time.Since(began) < 6*time.Second && coir.Ended(ctx) == nil; {
			short(func(ctx context.Context) error { return ends[0].Send(ctx, 2) })
			short(func(ctx context.Context) error { return ends[1].RecvTx(ctx, nil) })
			short(func(ctx context.Context) error { return remote.Ready(ctx, tr, ends[0]) })
		}
		release()
		if err := ends[0].Send(ctx, 3); err != nil {
			return err
		}
		for v := 0; v != 3; {
			if v, err = got.Recv(ctx); err != nil {
				return err
			}
		}
		if it, err = ends[1].Recv(ctx); err != nil {
			return err
		}
		err = it.Ack(ctx)
		n.Cancel(nil)
		return err
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
