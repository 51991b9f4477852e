package shm

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/buf"
)

// Where memory cannot be shared, the bytes of buffers go through a connection. At each end a goroutine moves them
// between the connection and a channel. The other side is trusted as little as with shared memory.
//
// The sender writes frames: the length in 4 bytes, and the bytes. When it is closed, it writes the value closing
// instead of a length. When the receiver is closed, it writes one byte.

const closing = 1<<32 - 1

// streamEnd holds the fields of both ends.
type streamEnd struct {
	name   string
	conn   net.Conn
	region *buf.Region
	pool   *buf.Pool
	queue  *buf.Chan
	copied atomic.Uint64
	cause  atomic.Pointer[error] // why the link has ended; only the first cause is kept
}

func newStreamEnd(name string, conn net.Conn, size, count int) (*streamEnd, error) {
	region, pool, err := newPool(name, size, count)
	if err != nil {
		return nil, err
	}
	return &streamEnd{name: name, conn: conn, region: region, pool: pool,
		queue: buf.NewChan(count, coir.WithName(name))}, nil
}

// end records why the link has ended. It reports whether this is the first cause.
func (e *streamEnd) end(cause error) bool { return e.cause.CompareAndSwap(nil, &cause) }

func (e *streamEnd) ended(op string) error {
	if cause := e.cause.Load(); cause != nil {
		return &ended{op, e.name, *cause}
	}
	return nil
}

func (e *streamEnd) stats(s *Stats) { s.Copied = e.copied.Load() }

// streamSender is the sending end.
type streamSender struct {
	*streamEnd
	idle chan struct{} // closed when everything has been written, or cannot be
}

func newStreamSender(s *Sender, conn net.Conn) error {
	e, err := newStreamEnd(s.name, conn, s.size, s.count)
	if err != nil {
		return err
	}
	l := &streamSender{e, make(chan struct{})}
	s.link, s.pool = l, e.pool
	go l.write()
	go l.watch()
	return nil
}

// write writes sent buffers until the queue is closed.
func (l *streamSender) write() {
	defer close(l.idle)
	for b, err := range l.queue.All(context.Background()) {
		if err != nil {
			return // aborted
		}
		err = writeFrame(l.conn, b.Bytes())
		b.Release()
		if err != nil {
			l.fail(ErrGone)
			return
		}
		l.copied.Add(1)
	}
	_, _ = l.conn.Write(binary.LittleEndian.AppendUint32(nil, closing))
}

func writeFrame(w io.Writer, p []byte) error {
	head := binary.LittleEndian.AppendUint32(nil, uint32(len(p)))
	_, err := (&net.Buffers{head, p}).WriteTo(w)
	return err
}

// watch waits for the end of the receiver.
func (l *streamSender) watch() {
	var b [1]byte
	if n, _ := io.ReadFull(l.conn, b[:]); n == 1 {
		l.fail(nil)
	} else {
		l.fail(ErrGone)
	}
	<-l.idle
	_ = l.conn.Close()
	_ = l.region.Close() // the program releases its buffers later
}

// fail ends the link at once, because the other side has ended.
func (l *streamSender) fail(cause error) {
	if l.end(cause) {
		_ = l.conn.SetWriteDeadline(time.Unix(1, 0))
	}
	l.queue.Abort(nil)
	l.pool.Close()
}

func (l *streamSender) send(ctx context.Context, b buf.Buf, try bool) (err error) {
	if try {
		err = l.queue.TrySend(b)
	} else {
		err = l.queue.Send(ctx, b)
	}
	if errors.Is(err, coir.ErrClosed) {
		if cause := l.ended("send on"); cause != nil {
			err = cause
		}
	}
	return err
}

func (l *streamSender) reclaim() {}

func (l *streamSender) lookAgain(context.Context, func() bool) bool { return false }

func (l *streamSender) await() func() { return func() {} }

func (l *streamSender) close() bool {
	first := l.end(nil)
	if first {
		l.queue.Close()
		l.pool.Close()
		go func() { // the receiver reads the end after everything else
			<-l.idle
			if c, ok := l.conn.(interface{ CloseWrite() error }); ok {
				_ = c.CloseWrite()
			} else {
				_ = l.conn.Close()
			}
		}()
	}
	return first
}

// streamReceiver is the receiving end.
type streamReceiver struct {
	*streamEnd
	size int
}

func newStreamReceiver(r *Receiver, conn net.Conn) error {
	e, err := newStreamEnd(r.name, conn, r.size, r.count)
	if err != nil {
		return err
	}
	l := &streamReceiver{e, r.size}
	r.link = l
	go l.read()
	return nil
}

// read reads frames until the end.
func (l *streamReceiver) read() {
	l.end(l.frames())
	l.queue.Close() // the receiver still receives what has been read
	_ = l.conn.Close()
	l.pool.Close()
	_ = l.region.Close() // the program releases its buffers later
}

// frames reads frames until the connection ends, or until the sender closes the link, for which it returns nil.
func (l *streamReceiver) frames() error {
	var head [4]byte
	for {
		if _, err := io.ReadFull(l.conn, head[:]); err != nil {
			return ErrGone
		}
		n := binary.LittleEndian.Uint32(head[:])
		if n == closing {
			return nil
		}
		if n > uint32(l.size) {
			return fmt.Errorf("%w: a buffer of %d bytes", ErrProtocol, n)
		}
		b, err := l.pool.Get(context.Background())
		if err != nil {
			return err // this side has closed the link
		}
		b = b.Slice(0, int(n))
		_, err = io.ReadFull(l.conn, b.Bytes())
		if err == nil {
			l.copied.Add(1)
			err = l.queue.Send(context.Background(), b)
		}
		if err != nil {
			b.Release()
			return ErrGone // if this side has closed the link, that was recorded first
		}
	}
}

func (l *streamReceiver) recv(ctx context.Context, try bool) (b buf.Buf, err error) {
	if try {
		b, err = l.queue.TryRecv()
	} else {
		b, err = l.queue.Recv(ctx)
	}
	if errors.Is(err, coir.ErrClosed) {
		if cause := l.ended("receive from"); cause != nil {
			err = cause
		}
	}
	return b, err
}

func (l *streamReceiver) close() bool {
	first := l.end(nil)
	if first {
		_ = l.conn.SetWriteDeadline(time.Now().Add(time.Second))
		_, _ = l.conn.Write([]byte{1})
	}
	l.queue.Abort(nil)
	l.pool.Close()
	_ = l.conn.Close()
	return first
}

func (l *streamReceiver) stats(s *Stats) {
	l.streamEnd.stats(s)
	s.Lent = l.pool.Stats().Lent
}

// offerStream makes s a sender that uses the connection.
func offerStream(ctx context.Context, s *Sender, conn net.Conn) error {
	_, err := within(ctx, conn, func() (hello, error) {
		if _, err := conn.Write(hello{streamed, s.size, s.count}.encode()); err != nil {
			return hello{}, err
		}
		return readHello(conn)
	})
	if err != nil {
		return err
	}
	return newStreamSender(s, conn)
}

// acceptStream makes r a receiver that uses the connection.
func acceptStream(ctx context.Context, r *Receiver, conn net.Conn) error {
	h, err := within(ctx, conn, func() (hello, error) {
		h, err := readHello(conn)
		if err == nil {
			_, err = conn.Write(hello{streamed, h.size, h.count}.encode())
		}
		return h, err
	})
	if err != nil {
		return err
	}
	r.size, r.count = h.size, h.count
	return newStreamReceiver(r, conn)
}

func readHello(conn net.Conn) (hello, error) {
	b := make([]byte, helloLen)
	if _, err := io.ReadFull(conn, b); err != nil {
		return hello{}, err
	}
	return decodeHello(b)
}

// within calls f, which uses the connection. When ctx ends, it ends f.
func within[T any](ctx context.Context, conn net.Conn, f func() (T, error)) (T, error) {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	v, err := coir.Blocking(ctx, f)
	if !stop() {
		return v, cmp.Or(coir.Ended(ctx), err)
	}
	return v, err
}
