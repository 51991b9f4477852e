package nats_test

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/nats"
	"github.com/coir-go/coir/snapshot"
)

// ready waits until the server accepts connections.
func ready(t testing.TB, s *server.Server) *server.Server {
	t.Helper()
	if !s.ReadyForConnections(time.Minute) {
		t.Fatal("the server does not start")
	}
	return s
}

// While the server is stopped, Ready and snapshots say so, and name who waits. When it is back, all is well.
func TestTheServerIsAway(t *testing.T) {
	dir := t.TempDir()
	s := ready(t, startIn(t, dir, "127.0.0.1:-1", "single", false, ""))
	tr := transport(t, connect(t, s), nats.WithReplicas(1))
	rt := coir.NewRuntime()
	defer func() { _ = rt.Close(context.Background()) }()
	err := rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		c, err := remote.Durable[int](ctx, n, tr, "orders", 4, remote.WithMeaning(remote.MeaningStored))
		if err != nil {
			return err
		}
		defer c.Leave()
		if err := c.Send(ctx, 1); err != nil {
			return err
		}
		if n, err := tr.Len(ctx, "orders"); n != 1 || err != nil {
			t.Errorf("the queue has %d messages, %v", n, err)
		}
		if err := remote.Ready(ctx, tr, c); err != nil {
			t.Errorf("all is well: %v", err)
		}
		at := s.Addr().String()
		_, err = coir.Blocking(ctx, func() (struct{}, error) {
			s.Shutdown()
			s.WaitForShutdown()
			return struct{}{}, nil
		})
		if err != nil {
			return err
		}
		sender := n.Go("sender", func(ctx context.Context) error { return c.Send(ctx, 2) })
		look := func(what string, ok func(o snapshot.Object) bool) {
			for began := time.Now(); ; runtime.Gosched() {
				s := rt.Snapshot(snapshot.Options{})
				i := slices.IndexFunc(s.Objects, func(o snapshot.Object) bool { return o.Kind == "remote channel" })
				if i >= 0 && ok(s.Objects[i]) {
					return
				}
				if time.Since(began) > time.Minute {
					t.Errorf("not %s: %+v", what, s.Objects)
					return
				}
				if coir.Yield(ctx) != nil {
					return
				}
			}
		}
		look("away", func(o snapshot.Object) bool {
			return o.Name == "orders" && o.Senders == 1 && o.TroubleCertain && time.Since(o.TroubleSince) < time.Minute &&
				strings.HasPrefix(o.Trouble, "the connection to NATS is lost: ")
		})
		err = remote.Ready(ctx, tr, c)
		if !errors.Is(err, remote.ErrUnavailable) || !strings.Contains(err.Error(), "channel orders: ") {
			t.Errorf("while the server is stopped: %v", err)
		}
		_, err = coir.Blocking(ctx, func() (*server.Server, error) {
			return ready(t, startIn(t, dir, at, "single", false, "")), nil
		})
		if err != nil {
			return err
		}
		if err := sender.Wait(ctx); err != nil {
			return err
		}
		for err = remote.Ready(ctx, tr, c); err != nil && coir.Ended(ctx) == nil; err = remote.Ready(ctx, tr, c) {
			if coir.Yield(ctx) != nil {
				break
			}
		}
		if err != nil {
			t.Errorf("the server is back: %v", err)
		}
		n.Go("receiver", func(ctx context.Context) error { // it waits for a third value
			for {
				it, err := c.Recv(ctx)
				if err != nil {
					return err
				}
				if err := it.Ack(ctx); err != nil {
					return err
				}
			}
		})
		look("well", func(o snapshot.Object) bool {
			return o.Receivers == 1 && o.Trouble == "" && !o.TroubleCertain && o.Received == 2 && o.Note == "durable, 0 of 4 in the broker"
		})
		n.Cancel(nil)
		return nil
	})
	if err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// A stream that is deleted while a process runs is not made again by the process: its operations say what is wrong. A
// process that starts makes it, and then values pass again.
func TestAStreamIsDeleted(t *testing.T) {
	out := logged(t)
	conn := connect(t, single(t, false))
	tr := transport(t, conn, nats.WithReplicas(1))
	if err := pull(t, tr, "orders", 1); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Put(t.Context(), "key", []byte("value")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"coir-2", "coir-put"} {
		if _, err := conn.Request("$JS.API.STREAM.DELETE."+name, nil, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	tr.CheckAgain()
	errPublish := tr.Publish(t.Context(), "orders", remote.Msg{ID: remote.ID{Sender: 2}})
	_, errPull := tr.Pull(t.Context(), "orders", 1)
	_, errPut := tr.Put(t.Context(), "another", []byte("value"))
	for name, errs := range map[string][]error{"coir-2": {errPublish, errPull}, "coir-put": {errPut}} {
		want := "the stream " + name + " does not exist any more"
		for _, err := range errs {
			if !errors.Is(err, remote.ErrUnavailable) || !strings.Contains(err.Error(), want) {
				t.Errorf("%v", err)
			}
		}
		if text := out.String(); strings.Count(text, want) != 1 {
			t.Errorf("no %q in the log:\n%s", want, text)
		}
	}
	again := transport(t, conn, nats.WithReplicas(1))
	if err := pull(t, again, "orders", 3); err != nil {
		t.Fatal(err)
	}
	if _, err := again.Put(t.Context(), "key", []byte("another value")); err != nil {
		t.Fatal(err)
	}
	again.Close()
	tr.CheckAgain()
	if err := pull(t, tr, "orders", 4); err != nil {
		t.Error(err)
	}
	if stored, err := tr.Put(t.Context(), "key", []byte("value")); string(stored) != "another value" || err != nil {
		t.Errorf("%q, %v", stored, err)
	}
}

// Ready names a stream that is gone.
func TestReadyNamesTheStream(t *testing.T) {
	conn := connect(t, single(t, false))
	tr := transport(t, conn, nats.WithReplicas(1))
	if err := tr.Open(t.Context(), "orders", 7); err != nil {
		t.Fatal(err)
	}
	if err := remote.Ready(t.Context(), tr); err != nil {
		t.Error(err)
	}
	if _, err := conn.Request("$JS.API.STREAM.DELETE.coir-7", nil, time.Minute); err != nil {
		t.Fatal(err)
	}
	if err := remote.Ready(t.Context(), tr); err == nil || !strings.Contains(err.Error(), "the stream coir-7 does not exist any more") ||
		strings.Contains(err.Error(), "coir-queues") {
		t.Errorf("without a stream: %v", err)
	}
	tr.Close()
	if err := remote.Ready(t.Context(), tr); !errors.Is(err, coir.ErrClosed) {
		t.Errorf("a transport that was closed: %v", err)
	}
}
