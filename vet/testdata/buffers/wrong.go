// Package buffers uses buffers wrongly, and rightly.
package buffers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/buf"
)

func twice(b buf.Buf) {
	b.Release()
	b.Release() // want `Release of b, which was released at line 16`
}

func everyUse(b, c buf.Buf, out *buf.Chan, which int) {
	b.Release()
	switch which {
	case 0:
		_ = b.Slice(0, 1) // want `Slice of b, which was released`
	case 1:
		_, _ = b.Append(nil)
	case 2:
		_ = out.TrySend(b)
	}
	c.Release()
	_ = buf.HandOver(c, func(buf.Buf) error { return nil }) // want `HandOver of c, which was released`
}

func aPart(b buf.Buf) byte {
	head := b.Slice(0, 2)
	rest, err := b.Fill(bytes.NewReader(nil).Read)
	if err != nil {
		head.Release()
	} else {
		rest.Release()
	}
	return b.Bytes()[0] // want `Bytes of b, which was released at line 38`
}

func appended(b buf.Buf) {
	c, err := b.Append([]byte("more"))
	c.Release()
	if err != nil {
		b.Release() // want `Release of b, which was released`
	}
}

func inALoop(ctx context.Context, p *buf.Pool) {
	for {
		b, err := p.Get(ctx)
		if err != nil {
			return
		}
		b.Release()
		b.Release() // want `Release of b, which was released`
	}
}

func alsoIfSent(ctx context.Context, out *buf.Chan, b buf.Buf) {
	if err := out.Send(ctx, b); err != nil {
		log.Print(err)
	}
	b.Release() // want `Release of b, which was sent at line 65 if Send returned nil; otherwise the sender still has it`
}

func thenReturned(ctx context.Context, out *buf.Chan, b buf.Buf) error {
	err := out.Send(ctx, b)
	b.Release() // want `Release of b, which was sent at line 72 if Send returned nil`
	return err
}

func deferred(ctx context.Context, out *buf.Chan, b buf.Buf) error {
	defer b.Release() // want `deferred Release of b, which was sent at line 79 if Send returned nil`
	return out.Send(ctx, b)
}

func deferredOnOnePath(ctx context.Context, out *buf.Chan, b buf.Buf) error {
	defer b.Release() // want `deferred Release of b, which was sent at line 84`
	if err := out.Send(ctx, b); err != nil {
		return err
	}
	return nil
}

func onTheWrongSide(ctx context.Context, out *buf.Chan, b buf.Buf) error {
	err := out.Send(ctx, b)
	if nil == err {
		b.Release() // want `Release of b, which was sent at line 91`
	}
	return err
}

func notChecked(out *buf.Chan, b buf.Buf) {
	_ = out.TrySend(b)
	b.Bytes()[0] = 1 // want `Bytes of b, which may have been sent at line 99, where the error of TrySend is ignored`
}

func onAllPaths(ctx context.Context, out *buf.Chan, b buf.Buf, send bool) error {
	if send {
		if err := out.Send(ctx, b); err != nil {
			return err
		}
	} else {
		b.Release()
	}
	_, err := b.WriteTo(log.Writer()) // want `WriteTo of b, which was sent at line 105`
	return err
}

func keptSlice(b buf.Buf) {
	kept := b.Bytes()
	b.Release()
	fmt.Println(len(kept), kept[1:]) // want `use of a slice that Bytes of b returned: the buffer was released at line 117`
}

func returnedSlice(b buf.Buf) []byte {
	defer b.Release()
	return b.Bytes() // want `use of a slice that Bytes of b returned: the buffer is released before by the deferred Release at line 122`
}

func inALiteral(b buf.Buf, later func(func())) {
	b.Release()
	later(func() {
		b.Release() // want `Release of b, which was released at line 127`
	})
}

func throughAPointer(b buf.Buf) {
	b.Release()
	_, _ = b.Write([]byte("more")) // want `Write of b, which was released`
}

func selects(ctx context.Context, p *buf.Pool, out *buf.Chan) error {
	b, err := p.Get(ctx)
	if err != nil {
		return err
	}
	_, err = coir.Select(ctx, out.SendCase(b)) // want `SendCase of b outside of HandOver`
	return err
}

func inAField(out *buf.Chan, f struct{ body buf.Buf }) {
	body := f.body
	_ = buf.HandOver(body, func(b buf.Buf) error { return errors.ErrUnsupported })
	body.Release() // want `Release of body, which may have been handed over at line 149, where the error of HandOver is ignored`
}

func inARange(ctx context.Context, in *buf.Chan) {
	for b, err := range in.All(ctx) {
		if err != nil {
			return
		}
		b.Release()
		if b.Len() > 0 { // Len does not need the buffer
			log.Print(b.Bytes()) // want `Bytes of b, which was released`
		}
	}
}
