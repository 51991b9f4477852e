//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd)

package netio

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/coir-go/coir"
)

// On systems with neither epoll nor kqueue, the connections are those of package net. A fiber that has to wait does so
// in coir.Blocking, so that another worker takes over. Features that need a descriptor are missing.

// Conn is a connection, as a [net.Conn].
type Conn struct {
	net.Conn
	sim *simNetConn // the same connection, in a simulation
}

// NewConn returns c for fibers.
func NewConn(c net.Conn) (net.Conn, error) {
	if p, ok := c.(net.PacketConn); ok {
		return &PacketConn{Conn{Conn: c}, p}, nil
	}
	return &Conn{Conn: c}, nil
}

// Read implements [net.Conn]. Other fibers run meanwhile.
func (c *Conn) Read(p []byte) (int, error) {
	if c.sim != nil {
		return c.sim.Read(p)
	}
	return coir.Blocking(context.Background(), func() (int, error) { return c.Conn.Read(p) })
}

// ReadContext is like Read, but returns ctx's error when ctx ends. It uses the read deadline for that, and clears it.
func (c *Conn) ReadContext(ctx context.Context, p []byte) (int, error) {
	if c.sim != nil {
		return c.sim.readContext(ctx, p)
	}
	return under(ctx, c.SetReadDeadline, func() (int, error) { return c.Read(p) })
}

// Write implements [net.Conn]. Other fibers run meanwhile.
func (c *Conn) Write(p []byte) (int, error) {
	if c.sim != nil {
		return c.sim.Write(p)
	}
	return coir.Blocking(context.Background(), func() (int, error) { return c.Conn.Write(p) })
}

// WriteContext is like Write, but returns ctx's error when ctx ends. It uses the write deadline for that, and clears
// it.
func (c *Conn) WriteContext(ctx context.Context, p []byte) (int, error) {
	if c.sim != nil {
		return c.sim.writeContext(ctx, p)
	}
	return under(ctx, c.SetWriteDeadline, func() (int, error) { return c.Write(p) })
}

// WriteBuffers writes the pieces of v, and removes from v what it has written. On Linux one system call writes many
// pieces. Use it instead of [net.Buffers.WriteTo], which calls Write for each piece on this connection. If ctx ends,
// WriteBuffers returns ctx's error, and the connection can still be used.
func (c *Conn) WriteBuffers(ctx context.Context, v *net.Buffers) (int64, error) {
	return writeEach(v, func(p []byte) (int, error) { return c.WriteContext(ctx, p) })
}

// OnReadable is not supported here: it returns [errors.ErrUnsupported], except in a simulation.
func (c *Conn) OnReadable(f func()) error {
	if c.sim != nil {
		return c.sim.failed("read", c.sim.c.onReadable(f))
	}
	return errors.ErrUnsupported
}

// CloseRead shuts down the reading side.
func (c *Conn) CloseRead() error {
	if x, ok := c.Conn.(interface{ CloseRead() error }); ok {
		return x.CloseRead()
	}
	return errors.ErrUnsupported
}

// CloseWrite shuts down the writing side: the peer reads the data written so far, and then io.EOF.
func (c *Conn) CloseWrite() error {
	if x, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return x.CloseWrite()
	}
	return errors.ErrUnsupported
}

// PacketConn is a socket for packets, as a [net.PacketConn].
type PacketConn struct {
	Conn
	p net.PacketConn
}

// ReadFrom reads a packet into p, and returns the address of its sender.
func (c *PacketConn) ReadFrom(p []byte) (int, net.Addr, error) {
	var from net.Addr
	n, err := coir.Blocking(context.Background(), func() (n int, err error) {
		n, from, err = c.p.ReadFrom(p)
		return n, err
	})
	return n, from, err
}

// ReadFromContext is like ReadFrom, but returns ctx's error when ctx ends. See [Conn.ReadContext].
func (c *PacketConn) ReadFromContext(ctx context.Context, p []byte) (int, net.Addr, error) {
	var from net.Addr
	n, err := under(ctx, c.SetReadDeadline, func() (n int, err error) {
		n, from, err = c.ReadFrom(p)
		return n, err
	})
	return n, from, err
}

// WriteTo sends p as a packet.
func (c *PacketConn) WriteTo(p []byte, to net.Addr) (int, error) {
	return coir.Blocking(context.Background(), func() (int, error) { return c.p.WriteTo(p, to) })
}

// WriteToContext is like WriteTo, but returns ctx's error when ctx ends. See [Conn.WriteContext].
func (c *PacketConn) WriteToContext(ctx context.Context, p []byte, to net.Addr) (int, error) {
	return under(ctx, c.SetWriteDeadline, func() (int, error) { return c.WriteTo(p, to) })
}

// Listener listens for connections, as a [net.Listener].
type Listener struct {
	net.Listener
	sim *simNetListener // the same listener, in a simulation
}

// NewListener returns l for fibers.
func NewListener(l net.Listener) (*Listener, error) { return newListener(l, nil, false) }

func newListener(l net.Listener, _ *net.ListenConfig, _ bool) (*Listener, error) {
	return &Listener{Listener: l}, nil
}

// Accept waits for the next connection and returns it. Other fibers run meanwhile.
func (l *Listener) Accept() (net.Conn, error) {
	if l.sim != nil {
		return l.sim.Accept()
	}
	c, err := l.accept()
	if err != nil {
		return nil, err // not a nil *Conn
	}
	return c, nil
}

func (l *Listener) accept() (*Conn, error) {
	c, err := coir.Blocking(context.Background(), l.Listener.Accept)
	if err != nil {
		return nil, err
	}
	return &Conn{Conn: c}, nil
}

// AcceptContext is like Accept, but returns a *Conn, and ctx's error when ctx ends. It uses the listener's deadline for
// that, and clears it.
func (l *Listener) AcceptContext(ctx context.Context) (*Conn, error) {
	if l.sim != nil {
		return l.sim.acceptContext(ctx)
	}
	return under(ctx, l.SetDeadline, l.accept)
}

// SetDeadline sets the time after which Accept fails. The zero time means no deadline.
func (l *Listener) SetDeadline(t time.Time) error {
	if x, ok := l.Listener.(interface{ SetDeadline(time.Time) error }); ok {
		return x.SetDeadline(t)
	}
	return errors.ErrUnsupported
}

// under calls f. When ctx ends, it ends f with a deadline.
func under[T any](ctx context.Context, set func(time.Time) error, f func() (T, error)) (T, error) {
	if err := coir.Ended(ctx); err != nil {
		var none T
		return none, err
	}
	cut := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = set(time.Unix(1, 0))
		close(cut)
	})
	v, err := f()
	if !stop() {
		<-cut
		_ = set(time.Time{})
		if err != nil {
			err = coir.Ended(ctx)
		}
	}
	return v, err
}

// connOf returns a Conn for one end of a simulated connection.
func connOf(c *simConn) *Conn {
	x := &simNetConn{c}
	return &Conn{x, x}
}

// simNetConn is one end of a simulated connection as a net.Conn.
type simNetConn struct{ c *simConn }

func (s *simNetConn) Read(p []byte) (int, error) { return s.readContext(context.Background(), p) }

func (s *simNetConn) readContext(ctx context.Context, p []byte) (int, error) {
	n, err := s.c.read(ctx, p)
	return n, s.failed("read", err)
}

func (s *simNetConn) Write(p []byte) (int, error) { return s.writeContext(context.Background(), p) }

func (s *simNetConn) writeContext(ctx context.Context, p []byte) (int, error) {
	n, err := s.c.write(ctx, p)
	return n, s.failed("write", err)
}

func (s *simNetConn) Close() error         { return s.failed("close", s.c.close()) }
func (s *simNetConn) CloseRead() error     { return s.failed("close", s.c.shutdown(false)) }
func (s *simNetConn) CloseWrite() error    { return s.failed("close", s.c.shutdown(true)) }
func (s *simNetConn) LocalAddr() net.Addr  { return s.c.local.Addr }
func (s *simNetConn) RemoteAddr() net.Addr { return s.c.remote.Addr }

func (s *simNetConn) SetDeadline(t time.Time) error {
	return s.failed("set", s.c.setDeadlines(t, true, true))
}

func (s *simNetConn) SetReadDeadline(t time.Time) error {
	return s.failed("set", s.c.setDeadlines(t, true, false))
}

func (s *simNetConn) SetWriteDeadline(t time.Time) error {
	return s.failed("set", s.c.setDeadlines(t, false, true))
}

func (s *simNetConn) failed(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: s.c.local.Network(), Source: s.c.local.Addr, Addr: s.c.remote.Addr, Err: err}
}

// listenerOf returns a Listener for a simulated listener.
func listenerOf(l *simListener) *Listener {
	x := &simNetListener{l}
	return &Listener{x, x}
}

// simNetListener is a simulated listener as a net.Listener.
type simNetListener struct{ l *simListener }

func (s *simNetListener) Accept() (net.Conn, error) {
	c, err := s.acceptContext(context.Background())
	if err != nil {
		return nil, err // not a nil *Conn
	}
	return c, nil
}

func (s *simNetListener) acceptContext(ctx context.Context) (*Conn, error) {
	c, err := s.l.accept(ctx)
	if err != nil {
		return nil, s.failed("accept", err)
	}
	return connOf(c), nil
}

func (s *simNetListener) Close() error   { return s.failed("close", s.l.close()) }
func (s *simNetListener) Addr() net.Addr { return s.l.addr.Addr }

func (s *simNetListener) SetDeadline(t time.Time) error { return s.failed("set", s.l.setDeadline(t)) }

func (s *simNetListener) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return &net.OpError{Op: op, Net: s.l.addr.Network(), Addr: s.l.addr.Addr, Err: err}
}
