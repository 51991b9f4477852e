package guide_test

// The code of buffers.md.

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/buf"
)

// Plain slices.

func copySlices(ctx context.Context, to io.Writer, from io.Reader) error {
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		blocks := coir.NewChan[[]byte](4, coir.WithName("blocks"))
		n.Go("reader", func(ctx context.Context) error {
			defer blocks.Close()
			for {
				b := make([]byte, 64<<10)
				k, err := from.Read(b)
				if err == io.EOF {
					return nil
				}
				if err == nil {
					err = blocks.Send(ctx, b[:k])
				}
				if err != nil {
					return err
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
				b, err = b.Fill(from.Read)
				if err == nil {
					err = blocks.Send(ctx, b)
				}
				if err != nil {
					b.Release() // it was not sent, so it is still ours
					if err == io.EOF {
						err = nil
					}
					return err
				}
				// here b is the receiver's
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
	var a, b bytes.Buffer
	if err := copySlices(t.Context(), &a, strings.NewReader(text)); err != nil || a.String() != text {
		t.Errorf("%d bytes, %v", a.Len(), err)
	}
	pool := newFrames(t)
	if err := copyBuffers(t.Context(), &b, strings.NewReader(text), pool); err != nil || b.String() != text {
		t.Errorf("%d bytes, %v", b.Len(), err)
	}
	if err := copyBuffers(t.Context(), brokenWriter{}, strings.NewReader(text), pool); !errors.Is(err, errBroken) {
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
