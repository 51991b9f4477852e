package shm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/buf"
)

// Sender is the sending end of a link. It lends buffers, and sends them.
type Sender struct {
	name        string
	size, count int
	pool        *buf.Pool
	link        sending
}

// sending is a way to send to the other side.
type sending interface {
	// send passes b on. If it returns nil, the link owns b. It waits unless try is true.
	send(ctx context.Context, b buf.Buf, try bool) error
	// reclaim returns buffers that the other side has given back to the pool.
	reclaim()
	// lookAgain calls found for a short while, if a buffer may soon be returned, and reports whether found returned
	// true.
	lookAgain(ctx context.Context, found func() bool) bool
	// await announces that the caller waits for a buffer to be returned. After the wait, the caller calls done.
	await() (done func())
	// ended returns the error of an operation on a link that has ended, or nil.
	ended(op string) error
	close() bool
	stats(*Stats)
}

// NewSender creates the sending end of a link, with count buffers of size bytes each, and waits until the other process
// calls [NewReceiver]. The link takes over conn, and NewSender closes conn if it fails. The size is at most 1 GiB, and
// the count at most 1,048,576. If ctx ends, NewSender returns its error. The link does not end with ctx.
func NewSender(ctx context.Context, conn net.Conn, size, count int, opts ...Option) (*Sender, error) {
	if !fits(size, count) {
		panic(fmt.Sprintf("shm: NewSender with %d buffers of %d bytes: there are from 1 to %d, of 1 byte to 1 GiB",
			count, size, maxCount))
	}
	if err := opening(ctx, "NewSender", conn); err != nil {
		return nil, err
	}
	o := settingsOf(opts)
	s := &Sender{name: o.name, size: size, count: count}
	if err := offer(ctx, s, conn, o); err != nil {
		_ = conn.Close()
		return nil, &unopened{"NewSender", err}
	}
	return s, nil
}

// Get returns an empty buffer, which the caller owns. It waits while all buffers are in use, here or by the receiver.
// It returns an error that matches [coir.ErrClosed] if the link has ended, and the error of ctx if ctx is done.
func (s *Sender) Get(ctx context.Context) (buf.Buf, error) {
	if err := coir.Ended(ctx); err != nil {
		return buf.Buf{}, err
	}
	return s.get(ctx, false)
}

// GetTimeout is like Get, but waits for at most d and then returns [coir.ErrTimeout].
func (s *Sender) GetTimeout(ctx context.Context, d time.Duration) (buf.Buf, error) {
	ctx, cancel := coir.WithTimeout(ctx, d)
	defer cancel()
	return s.Get(ctx)
}

// TryGet is like Get, but never waits: if all buffers are in use it returns [coir.ErrWouldBlock].
func (s *Sender) TryGet() (buf.Buf, error) { return s.get(context.Background(), true) }

func (s *Sender) get(ctx context.Context, try bool) (buf.Buf, error) {
	// Spec: BU-09 (a pool makes, resets and lends buffers)
	b, err := s.pool.TryGet()
	if err == nil {
		return b, nil
	}
	return obtain(ctx, s.link, try, "get a buffer of", s.pool.TryGet, s.pool.Get)
}

// obtain returns something that the other side has returned: from take if there is some, and otherwise from wait, which
// waits for it.
func obtain[T any](ctx context.Context, l sending, try bool, op string,
	take func() (T, error), wait func(context.Context) (T, error)) (v T, err error) {
	found := func() bool {
		l.reclaim()
		v, err = take()
		return !errors.Is(err, coir.ErrWouldBlock)
	}
	if !found() && !try && !l.lookAgain(ctx, found) {
		done := l.await()
		v, err = wait(ctx)
		done()
	}
	if errors.Is(err, coir.ErrClosed) {
		if cause := l.ended(op); cause != nil {
			err = cause
		}
	}
	return v, err
}

// Send sends b. If it returns an error, the caller still owns b. Send does not wait for a buffer that came from Get,
// because there is room for all of them. It copies any other buffer, if that is not too long, to a buffer of the link,
// for which it may have to wait, and releases the original. With [WithCopy] it copies all buffers.
func (s *Sender) Send(ctx context.Context, b buf.Buf) error {
	// Spec: BU-01 (a buffer has one owner)
	// Spec: BU-02 (a failed send keeps its buffer)
	if err := coir.Ended(ctx); err != nil {
		return err
	}
	return s.send(ctx, b, false)
}

// SendTimeout is like Send, but waits for at most d and then returns [coir.ErrTimeout].
func (s *Sender) SendTimeout(ctx context.Context, b buf.Buf, d time.Duration) error {
	ctx, cancel := coir.WithTimeout(ctx, d)
	defer cancel()
	return s.Send(ctx, b)
}

// TrySend is like Send, but never waits. If it would have to wait, it returns [coir.ErrWouldBlock].
func (s *Sender) TrySend(b buf.Buf) error { return s.send(context.Background(), b, true) }

func (s *Sender) send(ctx context.Context, b buf.Buf, try bool) error {
	if b.Len() > s.size {
		return fmt.Errorf("shm: send on %s: a buffer of %d bytes is longer than those of the link, of %d",
			cmp.Or(s.name, "a link"), b.Len(), s.size)
	}
	return buf.HandOver(b, func(b buf.Buf) error { return s.link.send(ctx, b, try) })
}

// Close ends the link. The receiver still receives the buffers that were sent, and then finds the link closed. Waiting
// and later operations of this end return an error that matches [coir.ErrClosed]. Buffers that were not sent stay valid
// until they are released; then the memory is freed. Close reports whether this call ended the link.
func (s *Sender) Close() bool { return s.link.close() }

// Cap returns the number of buffers.
func (s *Sender) Cap() int { return s.count }

// Size returns the number of bytes of a buffer.
func (s *Sender) Size() int { return s.size }

// Stats returns the counters of this end.
func (s *Sender) Stats() Stats {
	// Spec: BU-08 (hand-overs are counted)
	st := Stats{Name: s.name, Size: s.size, Cap: s.count}
	s.link.reclaim()
	s.link.stats(&st)
	st.Lent = s.pool.Stats().Lent
	return st
}

// newPool creates a pool in a new region.
func newPool(name string, size, count int, opts ...buf.Option) (*buf.Region, *buf.Pool, error) {
	r, err := buf.NewRegion(count*stride(size), append(opts, buf.WithName(name))...)
	if err != nil {
		return nil, nil, err
	}
	p, err := buf.NewPool(r, size, count, coir.WithName(name))
	if err != nil {
		return nil, nil, errors.Join(err, r.Close())
	}
	return r, p, nil
}
