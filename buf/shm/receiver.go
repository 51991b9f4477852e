package shm

import (
	"context"
	"errors"
	"iter"
	"net"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/buf"
)

// Receiver is the receiving end of a link.
type Receiver struct {
	name        string
	size, count int
	link        receiving
}

// receiving is a way to receive from the other side.
type receiving interface {
	recv(ctx context.Context, try bool) (buf.Buf, error)
	close() bool
	stats(*Stats)
}

// NewReceiver creates the receiving end of a link, and waits until [NewSender] has created the other end. The link
// takes over conn, and NewReceiver closes conn if it fails. If ctx ends, NewReceiver returns its error. The link does
// not end with ctx.
func NewReceiver(ctx context.Context, conn net.Conn, opts ...Option) (*Receiver, error) {
	if err := opening(ctx, "NewReceiver", conn); err != nil {
		return nil, err
	}
	o := settingsOf(opts)
	r := &Receiver{name: o.name}
	if err := accept(ctx, r, conn, o); err != nil {
		_ = conn.Close()
		return nil, &unopened{"NewReceiver", err}
	}
	return r, nil
}

// Recv receives the next buffer, which the caller then owns but must not write to. When it is released, it returns to
// the sender. Recv waits while there is no buffer. When the sender has closed the link and everything has been
// received, Recv returns an error that matches [coir.ErrClosed]; if the sender's process has ended without Close, the
// error also matches [ErrGone].
func (r *Receiver) Recv(ctx context.Context) (buf.Buf, error) {
	if err := coir.Ended(ctx); err != nil {
		return buf.Buf{}, err
	}
	return r.link.recv(ctx, false)
}

// RecvTimeout is like Recv, but waits for at most d and then returns [coir.ErrTimeout].
func (r *Receiver) RecvTimeout(ctx context.Context, d time.Duration) (buf.Buf, error) {
	ctx, cancel := coir.WithTimeout(ctx, d)
	defer cancel()
	return r.Recv(ctx)
}

// TryRecv is like Recv, but never waits. If it would have to wait, it returns [coir.ErrWouldBlock].
func (r *Receiver) TryRecv() (buf.Buf, error) { return r.link.recv(context.Background(), true) }

// All returns an iterator over the received buffers, each of which the loop owns. It ends when the sender has closed
// the link. If it ends for another reason, the last pair has the error and no buffer.
func (r *Receiver) All(ctx context.Context) iter.Seq2[buf.Buf, error] {
	return func(yield func(buf.Buf, error) bool) {
		for {
			b, err := r.Recv(ctx)
			var end *ended
			if errors.As(err, &end) && end.cause == nil {
				return
			}
			if !yield(b, err) || err != nil {
				return
			}
		}
	}
}

// Close ends the link. Waiting and later operations return an error that matches [coir.ErrClosed], and so do those of
// the sender. Buffers that were sent but not received are dropped. Received buffers stay valid until they are released;
// then the memory is freed. Close reports whether this call ended the link.
//
// Close is not needed after the receiver has returned an error that matches [coir.ErrClosed].
func (r *Receiver) Close() bool { return r.link.close() }

// Cap returns the number of buffers.
func (r *Receiver) Cap() int { return r.count }

// Size returns the number of bytes of a buffer.
func (r *Receiver) Size() int { return r.size }

// Stats returns the counters of this end.
func (r *Receiver) Stats() Stats {
	// Spec: BU-08 (hand-overs are counted)
	st := Stats{Name: r.name, Size: r.size, Cap: r.count}
	r.link.stats(&st)
	return st
}
