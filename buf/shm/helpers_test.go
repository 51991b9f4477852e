package shm

import (
	"context"
	"errors"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/buf"
)

// conns returns two ends of a connection: a Unix socket if the system supports it.
func conns(t testing.TB) (a, b net.Conn) {
	t.Helper()
	dir, err := os.MkdirTemp("", "shm") // the path of a socket must be short
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	l, err := net.Listen("unix", dir+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial("unix", dir+"/s"); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// link returns both ends of a link in this process, with buffers of 64 bytes.
func link(t testing.TB, count int, opts ...Option) (*Sender, *Receiver) {
	t.Helper()
	a, b := conns(t)
	var s *Sender
	var failed error
	done := make(chan struct{})
	go func() {
		defer close(done)
		s, failed = NewSender(context.Background(), a, 64, count, opts...)
	}()
	r, err := NewReceiver(context.Background(), b, opts...)
	<-done
	if err := errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(); r.Close() })
	return s, r
}

// ways runs f with the options of each way in which bytes can be passed.
func ways(t *testing.T, f func(t *testing.T, opts ...Option)) {
	name := WithName("frames")
	if runtime.GOOS == "linux" {
		t.Run("shared", func(t *testing.T) { f(t, name, WithShared()) })
		t.Run("copied", func(t *testing.T) { f(t, name, WithCopy()) })
	}
	t.Run("streamed", func(t *testing.T) { f(t, name, func(o *settings) { o.onlyStreamed = true }) })
}

// callers runs f in a fiber and in a goroutine.
func callers(t *testing.T, f func(ctx context.Context, t *testing.T)) {
	t.Run("fiber", func(t *testing.T) {
		err := coir.Run(t.Context(), func(ctx context.Context, _ *coir.Nursery) error { f(ctx, t); return nil })
		if err != nil {
			t.Error(err)
		}
	})
	t.Run("goroutine", func(t *testing.T) { f(t.Context(), t) })
}

// with returns a buffer of the sender with contents.
func with(ctx context.Context, t testing.TB, s *Sender, text string) buf.Buf {
	t.Helper()
	b, err := s.Get(ctx)
	if err == nil {
		b, err = b.Append([]byte(text))
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// textOf returns the contents of the next buffer, which it releases.
func textOf(ctx context.Context, t testing.TB, r *Receiver) string {
	t.Helper()
	b, err := r.Recv(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Release()
	return string(b.Bytes())
}

// until waits until f returns true, for conditions that have no signal.
func until(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !f(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatal("still not: " + what)
		}
	}
}

// contains fails the test if the text of err lacks one of the parts.
func contains(t testing.TB, err error, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if err == nil || !strings.Contains(err.Error(), p) {
			t.Errorf("error %q, want one with %q", err, p)
		}
	}
}
