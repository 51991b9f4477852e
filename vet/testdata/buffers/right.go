package buffers

import (
	"context"
	"errors"
	"io"
	"log"
	"os"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/buf"
)

func reads(ctx context.Context, pool *buf.Pool, blocks *buf.Chan, from io.Reader) error {
	defer blocks.Close()
	for {
		b, err := pool.Get(ctx)
		if err != nil {
			return err
		}
		b, err = b.Fill(from.Read)
		if err == nil {
			err = blocks.Send(ctx, b)
		}
		if err != nil {
			b.Release()
			return err
		}
	}
}

func releasesOnFailure(ctx context.Context, out *buf.Chan, b buf.Buf) error {
	if err := out.Send(ctx, b); err != nil {
		b.Release()
		return err
	}
	log.Print(b.Len(), b.Cap(), b)
	return nil
}

func tells(ctx context.Context, out *buf.Chan, b buf.Buf) {
	sent := true
	if err := out.Send(ctx, b); err != nil {
		log.Print(err)
		sent = false
	}
	if !sent {
		b.Release()
	}
}

func looksTwice(ctx context.Context, out *buf.Chan, b buf.Buf) error {
	err := out.Send(ctx, b)
	if err != nil {
		log.Print(err)
	}
	if err != nil {
		b.Release()
	}
	return err
}

func asksWhatItIs(ctx context.Context, out *buf.Chan, b buf.Buf) {
	if err := out.Send(ctx, b); errors.Is(err, coir.ErrClosed) {
		b.Release()
	}
}

func wantsAFailure(t *testing.T, closed *buf.Chan, a, b, c buf.Buf) {
	if err := closed.Send(t.Context(), a); !errors.Is(err, coir.ErrClosed) {
		t.Errorf("%v", err)
	}
	a.Release()
	if err := closed.Send(t.Context(), b); err == nil {
		t.Error("sent")
	}
	b.Release()
	err := closed.Send(t.Context(), c)
	if err == nil {
		t.Fatal("sent")
	}
	c.Release()
}

func triesAgain(ctx context.Context, out *buf.Chan, b buf.Buf) error {
	for range 3 {
		err := out.TrySend(b)
		if err == nil {
			return nil
		}
		if err := coir.Sleep(ctx, 1); err != nil {
			break
		}
	}
	b.Release()
	return io.ErrShortWrite
}

func onSomePath(b buf.Buf, early bool) {
	if early {
		b.Release()
	}
	if !early {
		b.Release()
	}
}

func takesAnother(p *buf.Pool, n int) {
	b, err := p.TryGet()
	for range n {
		if err != nil {
			return
		}
		b.Release()
		b, err = p.TryGet()
	}
	if err == nil {
		b.Release()
	}
}

func takesAnotherThatIsUsedInALiteral(p *buf.Pool, n int, later func(func())) {
	var b buf.Buf
	for range n {
		b, _ = p.TryGet()
		later(func() { b.Release() })
		b.Release()
		b, _ = p.TryGet()
		later(func() { b.Bytes() })
	}
}

func swaps(p *buf.Pool, later func(func())) {
	var last buf.Buf
	for i := range 10 {
		b, err := p.TryGet()
		if err != nil {
			return
		}
		if i > 0 {
			last.Release()
		}
		last = b
		later(func() { _ = last.Len() })
	}
}

func shares(ctx context.Context, b buf.Buf, outs []*buf.Chan) {
	for _, out := range outs {
		s := b.Share()
		if err := out.Send(ctx, s); err != nil {
			s.Release()
		}
	}
	b.Release()
}

func deferredUnlessSent(ctx context.Context, out *buf.Chan, b buf.Buf) error {
	sent := false
	defer func() {
		if !sent {
			b.Release()
		}
	}()
	err := out.Send(ctx, b)
	sent = err == nil
	return err
}

func exits(b buf.Buf, bad bool) {
	if bad {
		b.Release()
		os.Exit(1)
	}
	b.Release()
}

func handsOverInASelect(ctx context.Context, out *buf.Chan, quit *coir.Event, b buf.Buf) error {
	return buf.HandOver(b, func(b buf.Buf) error {
		i, err := coir.Select(ctx, out.SendCase(b), quit.DoneCase())
		if err == nil && i != 0 {
			err = io.EOF
		}
		return err
	})
}

func copies(b buf.Buf) string {
	defer b.Release()
	return string(b.Bytes())
}

func writes(b buf.Buf, p []byte) {
	if _, err := b.Write(p); err != nil {
		log.Print(err)
	}
	b.Release()
}

func grows(b buf.Buf, parts [][]byte) (buf.Buf, error) {
	for _, p := range parts {
		next, err := b.Append(p)
		if err != nil {
			b.Release()
			return buf.Buf{}, err
		}
		b = next
	}
	return b, nil
}
