//go:build unix

package nats_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	client "github.com/nats-io/nats.go"

	"github.com/coir-go/coir/remote"
)

// Every process notices when a server restarts without sync, even if it is connected to another server. Publish fails
// until the setting is as before.
func TestAPeerChanges(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	b := startBrokers(t, "node-1")
	nc := b.dialed(ctx, "node-1")
	tr, err := newTransport(ctx, nc)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	if err := poll(ctx, func(ctx context.Context) error { return tr.Open(ctx, "orders", 10) }); err != nil {
		t.Fatal(err)
	}
	other := (b.index(nc.ConnectedServerName()) + 1) % len(b.names)
	for i, syncs := range []string{"2m", "always"} {
		b.configure(other, syncs)
		b.procs[other].kill()
		<-b.start(other)
		err := poll(ctx, func(ctx context.Context) error {
			err := tr.Publish(ctx, "orders", remote.Msg{ID: remote.ID{Sender: 1, Seq: uint64(i)}})
			weak := err != nil && strings.Contains(err.Error(), "is now only stored")
			if weak == (syncs == "2m") {
				return nil
			}
			return fmt.Errorf("with sync_interval %s: %w", syncs, err)
		})
		if err != nil {
			t.Error(err)
		}
	}
	if n := nc.Stats().Reconnects; n > 0 {
		t.Errorf("the connection was lost %d times: the test shows less than it should", n)
	}
}

// A process can read its own inbox and tickets, and the messages that ends of channels send each other. It can read
// nothing else, and cannot delete anything.
func TestPermissions(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	b := startBrokers(t, "node-1", "node-2", "stranger")
	refused := make(chan error, 100)
	nc := b.dialed(ctx, "node-1", client.ErrorHandler(func(_ *client.Conn, _ *client.Subscription, err error) {
		refused <- err
	}))
	tr, err := newTransport(ctx, nc)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.Close()
	tickets, err := tr.Serve(ctx, "ticket.1.a", func(data []byte) []byte { return append(data, '!') })
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tickets.Close() }()
	other, err := newTransport(ctx, b.dialed(ctx, "node-2"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	err = poll(ctx, func(ctx context.Context) error {
		out, err := other.Request(ctx, "ticket.1.a", []byte("hello"))
		if err == nil && string(out) != "hello!" {
			err = fmt.Errorf("the answer is %q", out)
		}
		return err
	})
	if err != nil {
		t.Errorf("a ticket of another process cannot be completed: %v", err)
	}
	read := func(subject string) error {
		_, err := nc.SubscribeSync(subject)
		return err
	}
	write := func(subject string) error { return nc.Publish(subject, nil) }
	for _, attempt := range []struct {
		do      func(subject string) error
		subject string
	}{
		{read, ">"}, {read, "coir.>"}, {read, "coir.r.>"}, {read, "coir.*.ticket.*"},
		{read, "coir.r.ticket.2.a"}, {read, "coir.t.ticket.2.a"}, {read, "coir.r.ticket.2.>"}, {read, "coir.*.ticket.*.*"},
		{read, "_INBOX.>"}, {read, "_INBOX_node-2.>"}, {read, "_INBOX_node-2.x"}, {read, "coir.q.10.orders"},
		{read, "$JS.>"}, {read, "$SYS.>"},
		{write, "_INBOX_node-2.x"}, {write, "$SYS.REQ.SERVER.PING"}, {write, "$JS.API.STREAM.DELETE.coir-queues"},
		{write, "$JS.API.STREAM.PURGE.coir-queues"}, {write, "$JS.API.STREAM.UPDATE.coir-queues"},
		{write, "$JS.API.STREAM.MSG.DELETE.coir-queues"}, {write, "$JS.API.STREAM.MSG.GET.coir-10"},
		{write, "$JS.API.CONSUMER.DELETE.coir-10.default"}, {write, "$JS.API.STREAM.SNAPSHOT.coir-10"},
	} {
		if err := attempt.do(attempt.subject); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-refused:
			if !errors.Is(err, client.ErrPermissionViolation) || !strings.Contains(err.Error(), attempt.subject) {
				t.Errorf("%s: %v", attempt.subject, err)
			}
		case <-ctx.Done():
			t.Fatalf("%s is not refused", attempt.subject)
		}
	}
	b.strangers(t)
}

// strangers checks that a process is refused if it has no certificate, a certificate of another authority, or a
// certificate without a user.
func (b *brokers) strangers(t *testing.T) {
	foreign := t.TempDir()
	writeCertificates(t, foreign, "node-1")
	roots := client.RootCAs(filepath.Join(b.dir, "ca.pem"))
	certificate := func(dir, user string) client.Option {
		return client.ClientCert(filepath.Join(dir, user+".pem"), filepath.Join(dir, user+".key"))
	}
	for what, opts := range map[string][]client.Option{
		"no TLS":                           nil,
		"no certificate":                   {roots},
		"a certificate of another":         {roots, certificate(foreign, "node-1")},
		"a certificate that has no user":   {roots, certificate(b.dir, "stranger")},
		"a server that it cannot identify": {certificate(b.dir, "node-1")},
	} {
		nc, err := client.Connect(b.url(), slices.Concat(opts, []client.Option{client.MaxReconnects(0)})...)
		if err == nil {
			nc.Close()
			t.Errorf("%s: it is connected", what)
		}
	}
	routes, err := tls.Dial("tcp", b.listen[3], &tls.Config{InsecureSkipVerify: true})
	if err == nil {
		defer func() { _ = routes.Close() }()
		_ = routes.SetDeadline(time.Now().Add(10 * time.Second))
		_, err = routes.Read(make([]byte, 1)) // TLS 1.3 refuses the client's certificate when it is read
	}
	if err == nil {
		t.Error("a server that has no certificate joins the cluster")
	}
}
