package nats_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/nats"
)

// Processes with different settings.

// lines are log lines.
type lines struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// logged makes the default logger write to the result, until the end of the test.
func logged(t *testing.T) *lines {
	l, before := new(lines), slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(l, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	return l
}

// pull stores a message in the queue, and receives it.
func pull(t *testing.T, tr *nats.Transport, queue string, seq uint64) error {
	t.Helper()
	if err := tr.Open(t.Context(), queue, 2); err != nil {
		return err
	}
	if err := tr.Publish(t.Context(), queue, remote.Msg{ID: remote.ID{Sender: 1, Seq: seq}}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ds, err := tr.Pull(ctx, queue, 1)
	if err == nil {
		err = ds[0].Ack(ctx)
	}
	return err
}

// The longest lease of a group counts. A warning names both, and the command that shortens it.
func TestDifferentLeases(t *testing.T) {
	out := logged(t)
	conn := connect(t, single(t, false))
	for i, lease := range []time.Duration{20 * time.Second, 50 * time.Second, 30 * time.Second} {
		tr := transport(t, conn, nats.WithReplicas(1), nats.WithLease(lease))
		if err := pull(t, tr, "q", uint64(i)); err != nil {
			t.Fatal(err)
		}
		tr.Close()
	}
	for _, want := range []string{
		"group=default stream=coir-2 consumer=default lease=50s before=20s",
		"group=default stream=coir-2 consumer=default lease=30s consumerLease=50s " +
			`shorten="nats consumer edit coir-2 default --wait 30s"`,
	} {
		if text := out.String(); strings.Count(text, want) != 1 || !strings.Contains(text, "level=WARN") {
			t.Errorf("no %q in the log:\n%s", want, text)
		}
	}
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	c, err := js.Consumer(t.Context(), "coir-2", "default")
	if err != nil {
		t.Fatal(err)
	}
	config := c.CachedInfo().Config
	if config.AckWait != 50*time.Second {
		t.Errorf("the consumer has the lease %v", config.AckWait)
	}
	config.AckWait = 30 * time.Second // what the command does
	if _, err := js.UpdateConsumer(t.Context(), "coir-2", config); err != nil {
		t.Fatal(err)
	}
	before := strings.Count(out.String(), "\n")
	if err := pull(t, transport(t, conn, nats.WithReplicas(1), nats.WithLease(30*time.Second)), "q", 9); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Count(text, "\n") != before {
		t.Errorf("the leases are equal, and there is a warning:\n%s", text)
	}
}

// A stream with a shorter window is refused. One with a longer window, or with another time for the results of
// promises, is used, and a warning names both values.
func TestDifferentWindows(t *testing.T) {
	out := logged(t)
	conn := connect(t, single(t, false))
	for i, c := range []struct {
		window time.Duration
		want   string
	}{
		{2 * time.Minute, ""},
		{time.Minute, ""},
		{3 * time.Minute, "the window of coir-2 is 2m0s, and that of this process is 3m0s"},
	} {
		err := pull(t, transport(t, conn, nats.WithReplicas(1), nats.WithWindow(c.window)), "q", uint64(i))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("the window %v: %v", c.window, err)
		}
	}
	for _, keep := range []time.Duration{0, time.Hour} {
		tr := transport(t, conn, nats.WithReplicas(1), nats.WithKeep(keep))
		if _, err := tr.Put(t.Context(), "key", []byte("value")); err != nil {
			t.Error(err)
		}
	}
	for _, want := range []string{
		"setting=window stream=coir-2 has=2m0s process=1m0s", "setting=keep stream=coir-put has=0s process=1h0m0s",
	} {
		if text := out.String(); strings.Count(text, want) != 1 || !strings.Contains(text, "level=WARN") {
			t.Errorf("no %q in the log:\n%s", want, text)
		}
	}
}

// A process of another group cannot receive from the queue, and gets an error that names both groups.
func TestDifferentGroups(t *testing.T) {
	conn := connect(t, single(t, false))
	one := transport(t, conn, nats.WithReplicas(1), nats.WithGroup("one"))
	two := transport(t, conn, nats.WithReplicas(1), nats.WithGroup("two"))
	if err := pull(t, one, "q", 1); err != nil {
		t.Fatal(err)
	}
	err := pull(t, two, "q", 2)
	if err == nil || !strings.Contains(err.Error(), "the group of this process is two, and the group one receives") {
		t.Errorf("%v", err)
	}
	if err := pull(t, two, "another", 3); err != nil {
		t.Errorf("a queue of its own: %v", err)
	}
}

// The error of too many consumers says how many there are, and what to do.
func TestTooManyConsumers(t *testing.T) {
	conn := connect(t, single(t, false))
	js, err := jetstream.New(conn)
	if err != nil {
		t.Fatal(err)
	}
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{ // as the package makes it, with a limit
		Name: "coir-2", Subjects: []string{"coir.q.2.*"}, Retention: jetstream.WorkQueuePolicy,
		Discard: jetstream.DiscardNew, DiscardNewPerSubject: true, MaxMsgsPerSubject: 2, Duplicates: 2 * time.Minute,
		MaxConsumers: 3,
	})
	if err != nil {
		t.Fatal(err)
	}
	tr := transport(t, conn, nats.WithReplicas(1))
	for i := range 4 {
		err := pull(t, tr, fmt.Sprint("q", i), uint64(i))
		switch {
		case i < 3 && err != nil:
			t.Fatal(err)
		case i == 3 && (err == nil ||
			!strings.Contains(err.Error(), "the stream coir-2 has as many consumers as NATS permits: the group default has 3, for 3 queues")):
			t.Errorf("%v", err)
		}
	}
}
