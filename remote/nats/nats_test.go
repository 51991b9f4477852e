package nats_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/nats"
	"github.com/coir-go/coir/remote/transporttest"
)

// each returns the transports of two processes for each case, with a different prefix each time.
func each(a, b *client.Conn, opts ...nats.Option) func(t testing.TB) (_, _ remote.Transport) {
	n := 0
	return func(t testing.TB) (_, _ remote.Transport) {
		n++
		opts := append(opts, nats.WithPrefix("case"+strconv.Itoa(n)))
		return transport(t, a, opts...), transport(t, b, opts...)
	}
}

func TestTransport(t *testing.T) {
	s := single(t, false)
	transporttest.Run(t, each(connect(t, s), connect(t, s), nats.WithReplicas(1), nats.WithLease(time.Second)))
}

func TestTransportCluster(t *testing.T) {
	all := cluster(t, [3]bool{true, true, true})
	a, b := connect(t, all...), connect(t, all[2])
	if m := transport(t, a).Info().Meaning; m != remote.MeaningDurable {
		t.Errorf("the cluster syncs, and its streams are %v", m)
	}
	transporttest.Run(t, each(a, b, nats.WithLease(2*time.Second)))
}

// The transport reads the meaning of a stored message from the servers.
func TestMeaning(t *testing.T) {
	if m := transport(t, connect(t, single(t, false)), nats.WithReplicas(1)).Info().Meaning; m != remote.MeaningStored {
		t.Errorf("a server that does not sync: %v", m)
	}
	s := single(t, true)
	if m := transport(t, connect(t, s), nats.WithReplicas(1)).Info().Meaning; m != remote.MeaningStoredSynced {
		t.Errorf("a server that syncs: %v", m)
	}
	tr := transport(t, connect(t, s), nats.WithReplicas(1), nats.WithSyncSubject("nobody.answers"))
	if m := tr.Info().Meaning; m != remote.MeaningStored {
		t.Errorf("a server that cannot be asked: %v", m)
	}
}

// If one server of three does not sync, a durable channel is refused, unless WithMeaning accepts less.
func TestDurableIsRefused(t *testing.T) {
	all := cluster(t, [3]bool{true, false, true})
	tr := transport(t, connect(t, all...))
	err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		if _, err := remote.Durable[int](ctx, n, tr, "orders", 4); err == nil {
			t.Error("a channel is durable although a server does not sync")
		}
		c, err := remote.Durable[int](ctx, n, tr, "orders", 4, remote.WithMeaning(remote.MeaningStored))
		if err != nil {
			return err
		}
		defer c.Leave()
		if m := c.Stats().Meaning; m != remote.MeaningStored {
			t.Errorf("the channel says %v", m)
		}
		return c.Send(ctx, 1)
	})
	if err != nil {
		t.Error(err)
	}
}
