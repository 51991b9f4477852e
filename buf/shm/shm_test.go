package shm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/buf"
)

// Buffers arrive in order, with their contents, and are returned: the test sends more than there are.
//
// Spec: BU-01 (a buffer has one owner)
// Spec: BU-08 (hand-overs are counted)
func TestBuffersArriveAndComeBack(t *testing.T) {
	ways(t, func(t *testing.T, opts ...Option) {
		callers(t, func(ctx context.Context, t *testing.T) {
			const n, count = 1000, 4
			s, r := link(t, count, opts...)
			err := coir.Run(ctx, func(ctx context.Context, nur *coir.Nursery) error {
				nur.Go("sender", func(ctx context.Context) error {
					defer s.Close()
					for i := range n {
						if err := s.Send(ctx, with(ctx, t, s, fmt.Sprint(i))); err != nil {
							return err
						}
					}
					return nil
				})
				i := 0
				for b, err := range r.All(ctx) {
					if err != nil {
						return err
					}
					if got := string(b.Bytes()); got != fmt.Sprint(i) {
						t.Errorf("received %q as number %d", got, i)
					}
					b.Release()
					i++
				}
				if i != n {
					t.Errorf("received %d, want %d", i, n)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			ss, rs := s.Stats(), r.Stats()
			if ss.Passed+ss.Copied != n || rs.Passed+rs.Copied != n || ss.Name != "frames" || ss.Cap != count || rs.Size != 64 {
				t.Errorf("stats\n%+v\n%+v", ss, rs)
			}
			if rs.Lent != 0 {
				t.Errorf("%d are lent after all were released", rs.Lent)
			}
		})
	})
}

// If a part of a buffer is sent, that part arrives.
func TestPartOfABuffer(t *testing.T) {
	ways(t, func(t *testing.T, opts ...Option) {
		s, r := link(t, 2, opts...)
		ctx := t.Context()
		if err := s.Send(ctx, with(ctx, t, s, "a long text").Slice(2, 6)); err != nil {
			t.Fatal(err)
		}
		if got := textOf(ctx, t, r); got != "long" {
			t.Errorf("received %q, want %q", got, "long")
		}
		if err := s.Send(ctx, with(ctx, t, s, "").Slice(0, 0)); err != nil {
			t.Fatal(err)
		}
		if got := textOf(ctx, t, r); got != "" {
			t.Errorf("received %q, want nothing", got)
		}
	})
}

// A buffer of another pool, or a shared buffer that both owners send, is copied. A buffer that is too long stays with
// its sender.
//
// Spec: BU-02 (a failed send keeps its buffer)
func TestOtherBuffersAreCopied(t *testing.T) {
	ways(t, func(t *testing.T, opts ...Option) {
		ctx := t.Context()
		s, r := link(t, 2, opts...)
		region, pool, err := newPool("others", 100, 1)
		if err != nil {
			t.Fatal(err)
		}
		b, err := pool.TryGet()
		if err != nil {
			t.Fatal(err)
		}
		b = b.Slice(0, 65)
		if err := s.Send(ctx, b); err == nil || !strings.Contains(err.Error(), "65 bytes") {
			t.Errorf("a send of 65 bytes: %v", err)
		}
		copy(b.Bytes(), "other")
		if err := s.Send(ctx, b.Slice(0, 5)); err != nil {
			t.Fatal(err)
		}
		if got := textOf(ctx, t, r); got != "other" {
			t.Errorf("received %q", got)
		}
		until(t, "the other buffer is released", func() bool { return pool.Len() == 1 })
		if err := region.Close(); err != nil {
			t.Error(err)
		}
		own := with(ctx, t, s, "twice")
		again := own.Share()
		for _, b := range []buf.Buf{own, again} {
			if err := s.Send(ctx, b); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if got := textOf(ctx, t, r); got != "twice" {
				t.Errorf("received %q", got)
			}
		}
		if st := s.Stats(); st.Copied == 0 {
			t.Errorf("%+v, want copies", st)
		}
	})
}

// Waits end when they are cancelled or their time limit passes, and the link still works.
//
// Spec: BU-02 (a failed send keeps its buffer)
func TestWaitsEnd(t *testing.T) {
	ways(t, func(t *testing.T, opts ...Option) {
		callers(t, func(ctx context.Context, t *testing.T) {
			s, r := link(t, 1, opts...)
			if _, err := r.TryRecv(); !errors.Is(err, coir.ErrWouldBlock) {
				t.Errorf("TryRecv: %v", err)
			}
			if _, err := r.RecvTimeout(ctx, time.Millisecond); !errors.Is(err, coir.ErrTimeout) {
				t.Errorf("RecvTimeout: %v", err)
			}
			b := with(ctx, t, s, "text")
			if _, err := s.TryGet(); !errors.Is(err, coir.ErrWouldBlock) {
				t.Errorf("TryGet: %v", err)
			}
			if _, err := s.GetTimeout(ctx, time.Millisecond); !errors.Is(err, coir.ErrTimeout) {
				t.Errorf("GetTimeout: %v", err)
			}
			err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				inner, cancel := coir.WithCancel(ctx)
				failed := coir.NewChan[error](2)
				n.Go("receive", func(ctx context.Context) error {
					_, err := r.Recv(inner)
					return failed.Send(ctx, err)
				})
				n.Go("get", func(ctx context.Context) error {
					_, err := s.Get(inner)
					return failed.Send(ctx, err)
				})
				cancel()
				for range 2 {
					if err, _ := failed.Recv(ctx); !errors.Is(err, context.Canceled) {
						t.Errorf("%v, want a cancel", err)
					}
				}
				if err := s.Send(inner, b); !errors.Is(err, context.Canceled) || string(b.Bytes()) != "text" {
					t.Errorf("Send: %v", err)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
			if err := s.TrySend(b); err != nil {
				t.Error(err)
			}
			if got := textOf(ctx, t, r); got != "text" {
				t.Errorf("received %q", got)
			}
			if b, err = s.GetTimeout(ctx, 10*time.Second); err != nil {
				t.Fatal(err)
			}
			if err := s.SendTimeout(ctx, b, 10*time.Second); err != nil {
				t.Error(err)
			}
		})
	})
}

// When the sender closes the link, the receiver receives what was sent, and then the end.
func TestCloseOfTheSender(t *testing.T) {
	ways(t, func(t *testing.T, opts ...Option) {
		ctx := t.Context()
		s, r := link(t, 4, opts...)
		for _, text := range []string{"one", "two"} {
			if err := s.Send(ctx, with(ctx, t, s, text)); err != nil {
				t.Fatal(err)
			}
		}
		kept := with(ctx, t, s, "kept")
		if !s.Close() || s.Close() {
			t.Error("not the first Close ended the link")
		}
		_, err := s.Get(ctx)
		if !errors.Is(err, coir.ErrClosed) || errors.Is(err, ErrGone) {
			t.Errorf("Get: %v", err)
		}
		if err := s.Send(ctx, kept); !errors.Is(err, coir.ErrClosed) {
			t.Errorf("Send: %v", err)
		}
		if string(kept.Bytes()) != "kept" {
			t.Error("the buffer that was not sent has changed")
		}
		kept.Release()
		if one, two := textOf(ctx, t, r), textOf(ctx, t, r); one != "one" || two != "two" {
			t.Errorf("received %q and %q", one, two)
		}
		for range 2 {
			_, err = r.Recv(ctx)
			if !errors.Is(err, coir.ErrClosed) || errors.Is(err, ErrGone) {
				t.Errorf("Recv: %v", err)
			}
		}
		contains(t, err, "shm: receive from frames: ")
	})
}

// When the receiver closes the link, operations of the sender end, including waiting ones. A received buffer stays
// valid.
func TestCloseOfTheReceiver(t *testing.T) {
	ways(t, func(t *testing.T, opts ...Option) {
		callers(t, func(ctx context.Context, t *testing.T) {
			s, r := link(t, 1, opts...)
			if err := s.Send(ctx, with(ctx, t, s, "text")); err != nil {
				t.Fatal(err)
			}
			b, err := r.Recv(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if !r.Close() || r.Close() {
				t.Error("not the first Close ended the link")
			}
			for err == nil { // with a stream, the buffer here may become free before the end is noticed
				var x buf.Buf
				if x, err = s.Get(ctx); err == nil {
					x.Release()
				}
			}
			if !errors.Is(err, coir.ErrClosed) || errors.Is(err, ErrGone) {
				t.Errorf("Get: %v", err)
			}
			contains(t, err, "shm: get a buffer of frames: ")
			if string(b.Bytes()) != "text" {
				t.Errorf("the buffer is %q after Close", b.Bytes())
			}
			b.Release()
			if _, err := r.Recv(ctx); !errors.Is(err, coir.ErrClosed) {
				t.Errorf("Recv: %v", err)
			}
		})
	})
}

// If the connection breaks before Close, the receiver receives what was sent, and then ErrGone.
func TestBrokenConnection(t *testing.T) {
	ways(t, func(t *testing.T, opts ...Option) {
		ctx := t.Context()
		s, r := link(t, 2, opts...)
		if err := s.Send(ctx, with(ctx, t, s, "text")); err != nil {
			t.Fatal(err)
		}
		if st, ok := s.link.(*streamSender); ok {
			until(t, "the frame is written", func() bool { return st.copied.Load() == 1 })
		}
		cut(s)
		if got := textOf(ctx, t, r); got != "text" {
			t.Errorf("received %q", got)
		}
		_, err := r.Recv(ctx)
		if !errors.Is(err, coir.ErrClosed) || !errors.Is(err, ErrGone) {
			t.Errorf("Recv: %v", err)
		}
		for err = nil; err == nil; {
			var x buf.Buf
			if x, err = s.Get(ctx); err == nil {
				x.Release()
			}
		}
		if !errors.Is(err, coir.ErrClosed) || !errors.Is(err, ErrGone) {
			t.Errorf("Get: %v", err)
		}
	})
}

// A constructor fails when its context ends, and its error has the reason.
//
// Spec: BU-07 (missing descriptor support is ErrUnsupported)
func TestConstructorsFail(t *testing.T) {
	ways(t, func(t *testing.T, opts ...Option) {
		ctx, cancel := coir.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		a, b := conns(t)
		defer b.Close()
		if _, err := NewReceiver(ctx, a, opts...); !errors.Is(err, coir.ErrTimeout) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("NewReceiver: %v", err)
		}
		a, c := conns(t)
		defer c.Close()
		if _, err := NewSender(ctx, a, 64, 1, opts...); !errors.Is(err, coir.ErrTimeout) && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("NewSender: %v", err)
		}
		a, b = conns(t)
		go func() { _, _ = b.Write([]byte(strings.Repeat("no link ", 10))); _ = b.Close() }()
		if _, err := NewReceiver(t.Context(), a, opts...); !errors.Is(err, ErrProtocol) {
			t.Errorf("NewReceiver: %v", err)
		}
	})
	a, b := net.Pipe()
	defer b.Close()
	if _, err := NewSender(t.Context(), a, 64, 1, WithShared()); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("NewSender: %v", err)
	}
}

// The errors of the package begin with its name, once.
func TestErrorsNameThePackageOnce(t *testing.T) {
	broken := fmt.Errorf("%w: a buffer of 5 bytes", ErrProtocol)
	for _, err := range []error{ErrGone, ErrProtocol, broken, &ended{"send on", "frames", ErrGone},
		&ended{"receive from", "", broken}, &ended{"send on", "frames", nil}, &unopened{"NewSender", broken}} {
		if text := err.Error(); !strings.HasPrefix(text, "shm: ") || strings.Count(text, "shm: ") != 1 {
			t.Errorf("%q does not begin with the name of the package, once", text)
		}
	}
	for _, err := range []error{&ended{"receive from", "", broken}, &unopened{"NewSender", broken}} {
		if !errors.Is(err, ErrProtocol) {
			t.Errorf("%v is not ErrProtocol", err)
		}
	}
}
