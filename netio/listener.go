//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package netio

import (
	"context"
	"net"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
)

// Listener listens for connections of TCP or of a Unix socket, as a [net.Listener]. [Listen] and [NewListener] make
// them.
type Listener struct {
	d       *descriptor
	sim     *simListener // used instead of d in a simulation
	network string
	addr    net.Addr
	keep    net.KeepAliveConfig // set on accepted connections
	unlink  atomic.Pointer[string]
}

// NewListener takes over a listener of package net: it returns a listener for fibers, and closes l, but not its socket.
// It accepts listeners of TCP and of Unix sockets. If it returns an error, l is unchanged.
//
// Closing the result does not remove the name of a Unix socket, because package net does not say whether l would have
// removed it. If you want it removed, remove it before Close.
func NewListener(l net.Listener) (*Listener, error) {
	return newListener(l, new(net.ListenConfig), false)
}

// newListener implements NewListener for a listener made with lc. If made is true, Close removes the name of a Unix
// socket.
func newListener(l net.Listener, lc *net.ListenConfig, made bool) (*Listener, error) {
	switch l.(type) {
	case *net.TCPListener, *net.UnixListener:
	default:
		return nil, cannot(l)
	}
	fd, err := takeOver(l.(syscall.Conn))
	if err != nil {
		return nil, err
	}
	n := &Listener{
		d: newDescriptor(fd, l.Addr().String(), acceptVerb), network: l.Addr().Network(), addr: l.Addr(),
		keep: keepAlive(lc),
	}
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false)
		if path := u.Addr().String(); made && path != "" && path[0] != '@' {
			n.unlink.Store(&path)
		}
	}
	if err := l.Close(); err != nil {
		_ = syscall.Close(fd)
		return nil, err
	}
	closeWith(n, n.d)
	return n, nil
}

// listenerOf returns a Listener for a simulated listener.
func listenerOf(l *simListener) *Listener {
	return &Listener{sim: l, network: l.addr.Network(), addr: l.addr.Addr}
}

// Accept waits for the next connection and returns it, a [*Conn]. A fiber that has to wait parks.
func (l *Listener) Accept() (net.Conn, error) {
	c, err := l.AcceptContext(context.Background())
	if err != nil {
		return nil, err // not a nil *Conn
	}
	return c, nil
}

// AcceptContext is like Accept, but returns a *Conn, and ctx's error when ctx ends.
func (l *Listener) AcceptContext(ctx context.Context) (*Conn, error) {
	if l.sim != nil {
		c, err := l.sim.accept(ctx)
		if err != nil {
			return nil, l.failed("accept", err)
		}
		return connOf(c), nil
	}
	var fd int
	var peer syscall.Sockaddr
	err := l.d.try(ctx, &l.d.r, func(s int) (err error) {
		fd, peer, err = accept(s)
		if err == syscall.ECONNABORTED { // the connection was aborted while it was queued
			return syscall.EINTR
		}
		return err
	})
	runtime.KeepAlive(l)
	if err != nil {
		return nil, l.failed("accept", named("accept", err))
	}
	local := l.addr
	if own, err := syscall.Getsockname(fd); err == nil && l.network == "tcp" {
		local = toAddr(l.network, own)
		if local.String() == l.addr.String() {
			local = l.addr // many connections share this value
		}
	}
	if l.network == "tcp" {
		setOptions(fd, l.keep)
	}
	return newConn(fd, l.network, local, toAddr(l.network, peer)), nil
}

// Close closes the listener. Callers that wait in Accept get an error that matches [net.ErrClosed]. Close removes the
// name of a Unix socket if [Listen] created the listener, but not if [NewListener] took it over.
func (l *Listener) Close() error {
	if l.sim != nil {
		return l.failed("close", l.sim.close())
	}
	if err := l.d.checkOpen(); err == nil {
		if path := l.unlink.Swap(nil); path != nil {
			_ = syscall.Unlink(*path)
		}
	}
	return l.failed("close", l.d.close())
}

// Addr returns the listener's address.
func (l *Listener) Addr() net.Addr { return l.addr }

// SetDeadline sets the deadline of Accept. After the deadline Accept returns an error that matches
// [os.ErrDeadlineExceeded]. The zero time means no deadline.
func (l *Listener) SetDeadline(t time.Time) error {
	if l.sim != nil {
		return l.failed("set", l.sim.setDeadline(t))
	}
	return l.failed("set", l.d.setDeadlines(t))
}

// SyscallConn returns the listener for system calls: see [Conn.SyscallConn].
func (l *Listener) SyscallConn() (syscall.RawConn, error) {
	if l.sim != nil {
		return nil, l.failed("raw", l.sim.raw())
	}
	if err := l.d.checkOpen(); err != nil {
		return nil, l.failed("raw", err)
	}
	return &rawConn{l.d, l, l.failed}, nil
}

// failed returns err as an error of package net, or nil if err is nil.
func (l *Listener) failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return &net.OpError{Op: op, Net: l.network, Addr: l.addr, Err: err}
}

// setOptions sets the options that package net sets on an accepted connection. Like package net, it ignores errors.
func setOptions(fd int, keep net.KeepAliveConfig) {
	_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
	if keep.Enable {
		setKeepAlive(fd, keep)
	}
}

// keepAlive returns the keep-alive configuration of a net.ListenConfig.
func keepAlive(lc *net.ListenConfig) net.KeepAliveConfig {
	if lc.KeepAliveConfig.Enable || lc.KeepAlive < 0 {
		return lc.KeepAliveConfig
	}
	return net.KeepAliveConfig{Enable: true, Idle: lc.KeepAlive}
}

// seconds returns a time of a net.KeepAliveConfig in full seconds. It replaces 0 by the default of package net. It
// returns false for a negative time, which leaves the system's default.
func seconds(d time.Duration) (int, bool) {
	if d == 0 {
		d = 15 * time.Second
	}
	return int((d + time.Second - 1) / time.Second), d > 0
}
