//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package netio

import (
	"context"
	"io"
	"net"
	"os"
	"runtime"
	"syscall"
	"time"
)

// Conn is a connection of TCP or of a Unix socket, as a [net.Conn]. [Dialer], [Listener.Accept] and [NewConn] make
// them. Any number of fibers and goroutines may use a Conn at the same time: reads run one after another, and so do
// writes.
type Conn struct {
	d             *descriptor
	sim           *simConn // used instead of d in a simulation
	kind          kind
	local, remote net.Addr
}

// newConn returns a connection that owns fd. As in package net, a connection that is dropped without Close is closed by
// the garbage collector.
func newConn(fd int, network string, local, remote net.Addr) *Conn {
	c := &Conn{}
	c.init(fd, network, local, remote)
	return c
}

func (c *Conn) init(fd int, network string, local, remote net.Addr) {
	*c = Conn{d: newDescriptor(fd, nameOf(local, remote), readVerb), kind: kindOf(network), local: local, remote: remote}
	closeWith(c, c.d)
}

// connOf returns a Conn for one end of a simulated connection.
func connOf(c *simConn) *Conn { return &Conn{sim: c, local: c.local.Addr, remote: c.remote.Addr} }

// network returns the name of the network, for errors.
func (c *Conn) network() string { return c.local.Network() }

// closeWith closes d when owner is garbage. The poller refers to d, not to its owner. An operation in progress keeps
// the owner alive, and a callback must do the same.
func closeWith[T any](owner *T, d *descriptor) {
	runtime.AddCleanup(owner, func(d *descriptor) { _ = d.close() }, d)
}

func kindOf(network string) kind {
	switch network {
	case "tcp", "tcp4", "tcp6":
		return tcp
	case "udp", "udp4", "udp6", "unixgram":
		return packets
	}
	return stream
}

// NewConn takes over a connection of package net: it returns a connection for fibers, and closes c, but not its socket.
// It accepts connections of TCP, UDP and Unix sockets. For a socket that can receive from any peer, the result is a
// [PacketConn].
//
// If NewConn returns an error, c is unchanged.
func NewConn(c net.Conn) (net.Conn, error) {
	if len(networkOf(c)) == 0 {
		return nil, cannot(c)
	}
	fd, err := takeOver(c.(syscall.Conn))
	if err != nil {
		return nil, err
	}
	network, local, remote := c.LocalAddr().Network(), c.LocalAddr(), c.RemoteAddr()
	if err := c.Close(); err != nil {
		_ = syscall.Close(fd)
		return nil, err
	}
	if kindOf(network) == packets {
		return newPacketConn(fd, local, remote), nil
	}
	return newConn(fd, network, local, remote), nil
}

// Read implements [net.Conn]. A fiber that has to wait parks.
func (c *Conn) Read(p []byte) (int, error) { return c.ReadContext(context.Background(), p) }

// ReadContext is like Read, but returns ctx's error when ctx ends. In that case nothing has been read, and the
// connection can still be used.
func (c *Conn) ReadContext(ctx context.Context, p []byte) (int, error) {
	if c.sim != nil {
		n, err := c.sim.read(ctx, p)
		return n, c.failed("read", err)
	}
	n, err := c.d.read(ctx, p, c.kind)
	runtime.KeepAlive(c)
	return n, c.failed("read", err)
}

// Write implements [net.Conn]. A fiber that has to wait parks.
func (c *Conn) Write(p []byte) (int, error) { return c.WriteContext(context.Background(), p) }

// WriteContext is like Write, but returns ctx's error when ctx ends. In that case it also returns how many bytes were
// written, and the connection can still be used.
func (c *Conn) WriteContext(ctx context.Context, p []byte) (int, error) {
	if c.sim != nil {
		n, err := c.sim.write(ctx, p)
		return n, c.failed("write", err)
	}
	n, err := c.d.write(ctx, p, c.kind)
	runtime.KeepAlive(c)
	return n, c.failed("write", err)
}

// WriteBuffers writes the pieces of v, and removes from v what it has written. On Linux one system call writes many
// pieces. Use it instead of [net.Buffers.WriteTo], which calls Write for each piece on this connection. If ctx ends,
// WriteBuffers returns ctx's error, and the connection can still be used.
func (c *Conn) WriteBuffers(ctx context.Context, v *net.Buffers) (int64, error) {
	if c.sim != nil {
		n, err := writeEach(v, func(p []byte) (int, error) { return c.sim.write(ctx, p) })
		return n, c.failed("write", err)
	}
	if c.kind == packets { // each piece is a packet
		return writeEach(v, func(p []byte) (int, error) { return c.WriteContext(ctx, p) })
	}
	n, err := c.d.writev(ctx, v)
	runtime.KeepAlive(c)
	return n, c.failed("write", err)
}

// OnReadable arranges for f to be called once, when a Read would not have to wait: because data has arrived, the peer
// has closed its end, the deadline has passed, or the connection has been closed. OnReadable itself returns
// immediately. So an idle connection needs no fiber: f starts one, in a nursery that is still open.
//
// f is called by the fiber that wakes all waiting fibers, or by the fiber that closes the connection or sets a
// deadline. It must be short and must not wait. A Read after f may still have to wait, because another fiber may have
// read the data. If f panics in the fiber that wakes others, or when a deadline passes, the program ends, as with a
// panic in any goroutine. If f panics in Close or in a call that sets a deadline, that call completes its work and then
// panics.
//
// OnReadable returns an error, and does not call f, if the connection has been closed, if its deadline has passed, or
// if the function of an earlier call has not been called yet. It panics if f is nil.
func (c *Conn) OnReadable(f func()) error {
	if f == nil {
		panic("netio: Conn.OnReadable with a nil function: there is nothing to call")
	}
	if c.sim != nil {
		return c.failed("read", c.sim.onReadable(f))
	}
	err := c.d.onReadable(func() {
		f()
		runtime.KeepAlive(c)
	})
	return c.failed("read", err)
}

// Close closes the connection. Waiting operations return an error that matches [net.ErrClosed].
func (c *Conn) Close() error {
	if c.sim != nil {
		return c.failed("close", c.sim.close())
	}
	return c.failed("close", c.d.close())
}

// CloseRead shuts down the reading side.
func (c *Conn) CloseRead() error { return c.shutdown(syscall.SHUT_RD) }

// CloseWrite shuts down the writing side: the peer reads the data written so far, and then io.EOF.
func (c *Conn) CloseWrite() error { return c.shutdown(syscall.SHUT_WR) }

func (c *Conn) shutdown(how int) error {
	if c.sim != nil {
		return c.failed("close", c.sim.shutdown(how == syscall.SHUT_WR))
	}
	err := c.d.control(func(fd int) error { return os.NewSyscallError("shutdown", syscall.Shutdown(fd, how)) })
	runtime.KeepAlive(c)
	return c.failed("close", err)
}

// LocalAddr returns the address of this end.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the address of the peer.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets the deadlines of reads and of writes. The zero time means no deadline.
func (c *Conn) SetDeadline(t time.Time) error {
	if c.sim != nil {
		return c.set(c.sim.setDeadlines(t, true, true))
	}
	return c.set(c.d.setDeadlines(t))
}

// SetReadDeadline sets the deadline of reads, including reads that are waiting. After the deadline they return an error
// that matches [os.ErrDeadlineExceeded]. The zero time means no deadline.
func (c *Conn) SetReadDeadline(t time.Time) error {
	if c.sim != nil {
		return c.set(c.sim.setDeadlines(t, true, false))
	}
	return c.set(c.d.setDeadline(&c.d.r, t))
}

// SetWriteDeadline sets the deadline of writes: see SetReadDeadline.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	if c.sim != nil {
		return c.set(c.sim.setDeadlines(t, false, true))
	}
	return c.set(c.d.setDeadline(&c.d.w, t))
}

func (c *Conn) set(err error) error {
	runtime.KeepAlive(c)
	if err == nil {
		return nil
	}
	return &net.OpError{Op: "set", Net: c.network(), Addr: c.local, Err: err}
}

// SyscallConn returns the connection for system calls, such as to set options of its socket. The functions given to its
// methods must not close the descriptor, or change whether it blocks. As in package net, Read and Write call their
// function immediately, and wait only if it returns false.
//
// For a simulated connection it returns an error.
func (c *Conn) SyscallConn() (syscall.RawConn, error) {
	if c.sim != nil {
		return nil, c.failed("raw", c.sim.raw())
	}
	if err := c.d.checkOpen(); err != nil {
		return nil, c.failed("raw", err)
	}
	return &rawConn{c.d, c, c.failed}, nil
}

// failed returns err as an error of package net. It returns nil and io.EOF unchanged.
func (c *Conn) failed(op string, err error) error {
	if err == nil || err == io.EOF {
		return err
	}
	return &net.OpError{Op: op, Net: c.network(), Source: c.local, Addr: c.remote, Err: err}
}

// rawConn is a descriptor for system calls.
type rawConn struct {
	d      *descriptor
	owner  any // keeps d open
	failed func(op string, err error) error
}

func (c *rawConn) Control(f func(fd uintptr)) error {
	err := c.d.control(func(fd int) error { f(uintptr(fd)); return nil })
	return c.failed("raw-control", err)
}

func (c *rawConn) Read(f func(fd uintptr) bool) error { return c.try("raw-read", &c.d.r, f) }

func (c *rawConn) Write(f func(fd uintptr) bool) error { return c.try("raw-write", &c.d.w, f) }

func (c *rawConn) try(op string, s *side, f func(fd uintptr) bool) error {
	err := c.d.try(context.Background(), s, func(fd int) error {
		if f(uintptr(fd)) {
			return nil
		}
		return syscall.EAGAIN
	})
	return c.failed(op, err)
}
