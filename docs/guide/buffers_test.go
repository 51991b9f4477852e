package guide_test

// The code of buffers.md.

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/buf"
	"github.com/coir-go/coir/buf/shm"
)

// Plain slices.

func copySlices(ctx context.Context, to io.Writer, from io.Reader) error {
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		blocks := coir.NewChan[[]byte](4, coir.WithName("blocks"))
		n.Go("reader", func(ctx context.Context) error {
			defer blocks.Close()
			for {
				b := make([]byte, 64<<10)
				k, end := from.Read(b)
				if k > 0 { // also when end is io.EOF
					if err := blocks.Send(ctx, b[:k]); err != nil {
						return err
					}
				}
				if end == io.EOF {
					return nil
				}
				if end != nil {
					return end
				}
			}
		})
		for b, err := range blocks.All(ctx) {
			if err == nil {
				_, err = to.Write(b)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// The same with buffers of a pool.

func copyBuffers(ctx context.Context, to io.Writer, from io.Reader, pool *buf.Pool) error {
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		blocks := buf.NewChan(4, coir.WithName("blocks"))
		defer blocks.Abort(nil) // what it still holds goes back to the pool
		n.Go("reader", func(ctx context.Context) error {
			defer blocks.Close()
			for {
				b, err := pool.Get(ctx) // waits while all are in use
				if err != nil {
					return err
				}
				b, end := b.Fill(from.Read)
				if b.Len() == 0 {
					b.Release()
				} else if err := blocks.Send(ctx, b); err != nil { // b has bytes, also when end is io.EOF
					b.Release() // it was not sent, so it is still ours
					return err
				}
				// b is ours no longer
				if end == io.EOF {
					return nil
				}
				if end != nil {
					return end
				}
			}
		})
		for b, err := range blocks.All(ctx) {
			if err != nil {
				return err
			}
			_, err = b.WriteTo(to)
			b.Release()
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// A buffer inside of another value.

type frame struct {
	seq  int
	body buf.Buf
}

func sendFrame(ctx context.Context, out *coir.Chan[frame], f frame) error {
	return buf.HandOver(f.body, func(b buf.Buf) error {
		f.body = b
		return out.Send(ctx, f)
	})
}

func newFrames(t *testing.T) *buf.Pool {
	region, err := buf.NewRegion(8*64<<10, buf.WithChecks()) // in a test, say where it goes wrong
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := region.Close(); err != nil {
			t.Error(err) // lists the buffers that were not released
		}
	})
	frames, err := buf.NewPool(region, 64<<10, 8, coir.WithName("frames"))
	if err != nil {
		t.Fatal(err)
	}
	return frames
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

var errBroken = errors.New("broken")

func TestCopies(t *testing.T) {
	text := strings.Repeat("0123456789", 100_000)
	source := func() io.Reader { return iotest.DataErrReader(strings.NewReader(text)) } // the last bytes with io.EOF
	var a, b bytes.Buffer
	if err := copySlices(t.Context(), &a, source()); err != nil || a.String() != text {
		t.Errorf("%d bytes, %v", a.Len(), err)
	}
	pool := newFrames(t)
	if err := copyBuffers(t.Context(), &b, source(), pool); err != nil || b.String() != text {
		t.Errorf("%d bytes, %v", b.Len(), err)
	}
	if err := copyBuffers(t.Context(), brokenWriter{}, source(), pool); !errors.Is(err, errBroken) {
		t.Errorf("%v", err)
	}
}

func TestSendFrame(t *testing.T) {
	pool := newFrames(t)
	out := coir.NewChan[frame](1)
	b, err := pool.Get(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := sendFrame(t.Context(), out, frame{1, b}); err != nil {
		t.Fatal(err)
	}
	f, err := out.Recv(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out.Abort(nil)
	if err := sendFrame(t.Context(), out, f); !errors.Is(err, coir.ErrClosed) {
		t.Errorf("%v", err)
	}
	f.body.Release() // it was not sent
}

// Two ends of a connection, which may be in two processes.

func sendBlocks(ctx context.Context, conn net.Conn, from io.Reader) error {
	out, err := shm.NewSender(ctx, conn, 64<<10, 32, shm.WithName("blocks")) // 32 buffers of 64 KiB
	if err != nil {
		return err
	}
	defer out.Close() // what was sent is still received
	for {
		b, err := out.Get(ctx) // waits while the receiver has all of them
		if err != nil {
			return err
		}
		b, end := b.Fill(from.Read)
		if b.Len() == 0 {
			b.Release()
		} else if err := out.Send(ctx, b); err != nil { // b has bytes, also when end is io.EOF
			b.Release() // it was not sent, so it is still ours
			return err
		}
		// b is ours no longer
		if end == io.EOF {
			return nil
		}
		if end != nil {
			return end
		}
	}
}

func recvBlocks(ctx context.Context, conn net.Conn, to io.Writer) error {
	in, err := shm.NewReceiver(ctx, conn, shm.WithName("blocks"))
	if err != nil {
		return err
	}
	defer in.Close()
	for b, err := range in.All(ctx) {
		if err != nil {
			return err // errors.Is(err, shm.ErrGone): the sender's process has ended without Close
		}
		_, err = b.WriteTo(to)
		b.Release() // from here it is the sender's again
		if err != nil {
			return err
		}
	}
	return nil
}

func TestBlocksToAnotherProcess(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") // of a Unix socket, memory would be shared
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	text := strings.Repeat("some text ", 100_000)
	var to bytes.Buffer
	err = coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("sender", func(ctx context.Context) error {
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				return err
			}
			return sendBlocks(ctx, c, iotest.DataErrReader(strings.NewReader(text)))
		})
		c, err := l.Accept()
		if err != nil {
			return err
		}
		return recvBlocks(ctx, c, &to)
	})
	if err != nil || to.String() != text {
		t.Errorf("%v, %d bytes arrived, want %d", err, to.Len(), len(text))
	}
}
