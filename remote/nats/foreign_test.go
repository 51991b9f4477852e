package nats_test

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/nats"
)

// Messages that another program has put into the stream of a queue have no ID of package remote. Each of them is a
// separate value.
func TestForeignMessages(t *testing.T) {
	s := single(t, false)
	nc := connect(t, s)
	tr := transport(t, nc, nats.WithReplicas(1))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		c, err := remote.Durable[int](ctx, n, tr, "orders", 10, remote.WithMeaning(remote.MeaningStored))
		if err != nil {
			return err
		}
		defer c.Leave()
		for i := range 3 {
			if _, err := nc.Request("coir.q.10.orders", strconv.AppendInt(nil, int64(i), 10), 10*time.Second); err != nil {
				return err
			}
		}
		return receive(ctx, c, 3)
	})
	if err != nil {
		t.Error(err)
	}
}
