package nats_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/nats"
)

// syncs answers the question whether a server syncs, as the test decides.
type syncs struct {
	says  atomic.Value // "true", "false", or "" for no answer
	asked chan struct{}
}

const syncSubject = "test.sync"

// newSyncs first answers that the server called single syncs.
func newSyncs(t testing.TB, nc *client.Conn) *syncs {
	t.Helper()
	s := &syncs{asked: make(chan struct{}, 100)}
	s.says.Store("true")
	_, err := nc.Subscribe(syncSubject, func(m *client.Msg) {
		if says := s.says.Load().(string); says != "" {
			_ = m.Respond([]byte(`{"server":{"name":"single"},"data":{"config":{"sync_always":` + says + `}}}`))
		}
		s.asked <- struct{}{}
	})
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// syncing returns the transport of a server whose answer the test decides. At first, the answer is that it syncs.
func syncing(t testing.TB) (*nats.Transport, *syncs) {
	t.Helper()
	server := single(t, false)
	s := newSyncs(t, connect(t, server))
	tr := transport(t, connect(t, server), nats.WithReplicas(1), nats.WithSyncSubject(syncSubject))
	if m := tr.Info().Meaning; m != remote.MeaningStoredSynced {
		t.Fatalf("a server that says that it syncs: %v", m)
	}
	return tr, s
}

// put publishes a message.
func put(ctx context.Context, tr *nats.Transport, queue string, seq uint64) error {
	return tr.Publish(ctx, queue, remote.Msg{ID: remote.ID{Sender: 1, Seq: seq}, Data: []byte(strconv.FormatUint(seq, 10))})
}

// If a server does not answer, its last promise stays valid.
func TestSilenceIsNotKnown(t *testing.T) {
	tr, s := syncing(t)
	if err := tr.Open(t.Context(), "orders", 10); err != nil {
		t.Fatal(err)
	}
	s.says.Store("")
	tr.CheckAgain()
	if err := put(t.Context(), tr, "orders", 1); err != nil {
		t.Errorf("after silence: %v", err)
	}
	if err := tr.Open(t.Context(), "others", 11); !errors.Is(err, remote.ErrUnavailable) {
		t.Errorf("a stream whose meaning cannot be read: %v", err)
	}
	s.says.Store("false")
	tr.CheckAgain()
	if err := put(t.Context(), tr, "orders", 2); err == nil {
		t.Error("it is stored by a server that does not sync")
	}
}

// Close does not wait for servers that do not answer.
func TestCloseEndsAnInspection(t *testing.T) {
	tr, s := syncing(t)
	if err := tr.Open(t.Context(), "orders", 10); err != nil {
		t.Fatal(err)
	}
	for len(s.asked) > 0 {
		<-s.asked
	}
	s.says.Store("")
	tr.CheckSoon()
	<-s.asked
	tr.Close()
	if n := len(s.asked); n > 0 {
		t.Errorf("it has asked %d times after the first, which nobody answers: Close has waited for that", n)
	}
}

// While a server does not sync, sends and receives wait. They continue when it syncs again.
func TestAWeaknessPasses(t *testing.T) {
	tr, s := syncing(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		c, err := remote.Durable[int](ctx, n, tr, "orders", 10, remote.WithMeaning(remote.MeaningStoredSynced))
		if err != nil {
			return err
		}
		defer c.Leave()
		s.says.Store("false")
		tr.CheckAgain()
		received := n.Go("receive", func(ctx context.Context) error {
			for it, err := range c.All(ctx) {
				if err == nil && it.Value != 1 {
					err = fmt.Errorf("received %v", it.Value)
				}
				if err != nil {
					return err
				}
				return it.Ack(ctx)
			}
			return errors.New("the channel has ended")
		})
		short, cancel := coir.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		err = c.Send(short, 0)
		if !errors.Is(err, remote.ErrUnavailable) || !strings.Contains(err.Error(), "is now only stored") {
			t.Errorf("send while it is weaker: %v", err)
		}
		if received.State() == coir.StateEnded {
			return nil // with its error
		}
		sent := n.Go("send", func(ctx context.Context) error { return c.Send(ctx, 1) })
		s.says.Store("true")
		tr.CheckAgain()
		return errors.Join(sent.Wait(ctx), received.Wait(ctx))
	})
	if err != nil {
		t.Error(err)
	}
}
