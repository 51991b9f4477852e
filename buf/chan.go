package buf

import (
	"context"
	"iter"
	"time"

	"github.com/coir-go/coir"
)

// Chan is a channel of buffers: a [coir.Chan] whose sends hand the buffer over. After a successful send the sender's
// Buf is stale, even if the buffer has not been received yet. After a failed send the sender still has the buffer. If
// the channel accepts a buffer but will not deliver it, because it was dropped or the channel was aborted, the buffer
// returns to its pool, or goes to [coir.OnUndelivered].
type Chan struct{ c *coir.Chan[Buf] }

// NewChan makes a channel of buffers. The capacity and the options are those of [coir.NewChan].
func NewChan(capacity int, opts ...coir.ChanOption) *Chan {
	// Spec: BU-10 (undelivered buffers go back)
	back := coir.OnUndelivered(func(b Buf) {
		b.in.pool.aborted.Add(1)
		b.Release()
	})
	return &Chan{coir.NewChan[Buf](capacity, append([]coir.ChanOption{back}, opts...)...)}
}

// Send sends b, and waits like [coir.Chan.Send]. If it returns an error, the caller still owns b.
func (c *Chan) Send(ctx context.Context, b Buf) error {
	// Spec: BU-01 (a buffer has one owner)
	// Spec: BU-02 (a failed send keeps its buffer)
	return HandOver(b, func(b Buf) error { return c.c.Send(ctx, b) })
}

// SendTimeout is like Send, but waits for at most d and then returns [coir.ErrTimeout].
func (c *Chan) SendTimeout(ctx context.Context, b Buf, d time.Duration) error {
	return HandOver(b, func(b Buf) error { return c.c.SendTimeout(ctx, b, d) })
}

// TrySend is like Send, but never waits. If it would have to wait, it returns [coir.ErrWouldBlock].
func (c *Chan) TrySend(b Buf) error {
	return HandOver(b, func(b Buf) error { return c.c.TrySend(b) })
}

// SendCase returns a case that sends b. Use it in a function that you pass to [HandOver], so that HandOver knows
// whether the case was chosen:
//
//	err := buf.HandOver(b, func(b buf.Buf) error {
//		i, err := coir.Select(ctx, out.SendCase(b), quit.DoneCase())
//		if err == nil && i != 0 {
//			err = errQuit // b was not sent
//		}
//		return err
//	})
//
// Elsewhere a select would copy the Buf, and b would have two owners. In a checked region SendCase then panics.
func (c *Chan) SendCase(b Buf) coir.Case {
	if !b.valid() {
		b.misused("SendCase", stale)
	}
	if l := b.in.life; l != nil && !l.passing.Load() {
		panic(b.in.pool.misuse("SendCase at " + here() + " of a buffer of " + b.in.pool.title() + ", " + l.story() +
			", outside of HandOver: it would have two owners"))
	}
	return c.c.SendCase(b)
}

// Recv receives the next buffer, which the caller then owns. It waits like [coir.Chan.Recv].
func (c *Chan) Recv(ctx context.Context) (Buf, error) { return c.c.Recv(ctx) }

// RecvTimeout is like Recv, but waits for at most d and then returns [coir.ErrTimeout].
func (c *Chan) RecvTimeout(ctx context.Context, d time.Duration) (Buf, error) {
	return c.c.RecvTimeout(ctx, d)
}

// TryRecv is like Recv, but never waits. If it would have to wait, it returns [coir.ErrWouldBlock].
func (c *Chan) TryRecv() (Buf, error) { return c.c.TryRecv() }

// RecvCase returns a case that receives a buffer into *b.
func (c *Chan) RecvCase(b *Buf) coir.Case {
	if b == nil {
		panic("buf: RecvCase(nil): the buffer that it receives would be lost")
	}
	return c.c.RecvCase(b)
}

// All returns an iterator over the received buffers, each of which the loop owns: see [coir.Chan.All].
func (c *Chan) All(ctx context.Context) iter.Seq2[Buf, error] { return c.c.All(ctx) }

// Close closes the channel: see [coir.Chan.Close].
func (c *Chan) Close() bool { return c.c.Close() }

// Abort closes the channel immediately: see [coir.Chan.Abort]. The buffers that it holds return to their pools, or go
// to [coir.OnUndelivered].
func (c *Chan) Abort(cause error) bool { return c.c.Abort(cause) }

// Len returns the number of buffers that the channel holds.
func (c *Chan) Len() int { return c.c.Len() }

// Cap returns the number of buffers that the channel can hold.
func (c *Chan) Cap() int { return c.c.Cap() }

// Stats returns the channel's counters. SentBytes counts descriptors.
func (c *Chan) Stats() coir.ChanStats { return c.c.Stats() }

// String returns a short description of the channel.
func (c *Chan) String() string { return c.c.String() }
