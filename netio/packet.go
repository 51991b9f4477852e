//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package netio

import (
	"context"
	"net"
	"os"
	"runtime"
	"syscall"
)

// PacketConn is a UDP socket or a Unix datagram socket, as a [net.PacketConn]. [ListenPacket], [Dialer] and [NewConn]
// make them. A PacketConn that was made by a Dialer is also a [net.Conn]: Read and Write use its peer.
type PacketConn struct {
	Conn
	six bool // addresses are IPv6 addresses, even of peers that have an IPv4 address
}

func newPacketConn(fd int, local, remote net.Addr) *PacketConn {
	c := &PacketConn{}
	c.Conn = Conn{d: newDescriptor(fd, nameOf(local, remote), readVerb), kind: packets, local: local, remote: remote}
	own, _ := syscall.Getsockname(fd)
	_, c.six = own.(*syscall.SockaddrInet6)
	closeWith(c, c.d)
	return c
}

// ReadFrom reads a packet into p, and returns the address of its sender. A fiber that has to wait parks.
func (c *PacketConn) ReadFrom(p []byte) (int, net.Addr, error) {
	return c.ReadFromContext(context.Background(), p)
}

// ReadFromContext is like ReadFrom, but returns ctx's error when ctx ends.
func (c *PacketConn) ReadFromContext(ctx context.Context, p []byte) (int, net.Addr, error) {
	var n int
	var from syscall.Sockaddr
	err := c.d.try(ctx, &c.d.r, func(fd int) (err error) {
		n, from, err = syscall.Recvfrom(fd, p, 0)
		return err
	})
	runtime.KeepAlive(c)
	if err != nil {
		return 0, nil, c.failed("read", named("recvfrom", err))
	}
	return n, toAddr(c.network(), from), nil
}

// WriteTo sends p as a packet to an address, which must be of a type of package net. A fiber that has to wait parks.
func (c *PacketConn) WriteTo(p []byte, to net.Addr) (int, error) {
	return c.WriteToContext(context.Background(), p, to)
}

// WriteToContext is like WriteTo, but returns ctx's error when ctx ends.
func (c *PacketConn) WriteToContext(ctx context.Context, p []byte, to net.Addr) (int, error) {
	sa, err := fromAddr(to, c.network(), c.six)
	if c.remote != nil && err == nil {
		err = net.ErrWriteToConnected
	}
	if err == nil {
		err = named("sendto", c.d.try(ctx, &c.d.w, func(fd int) error { return syscall.Sendto(fd, p, 0, sa) }))
	}
	runtime.KeepAlive(c)
	if err != nil {
		return 0, &net.OpError{Op: "write", Net: c.network(), Source: c.local, Addr: to, Err: err}
	}
	return len(p), nil
}

// named adds the name of the system call to its error.
func named(call string, err error) error {
	if _, ok := err.(syscall.Errno); ok {
		return os.NewSyscallError(call, err)
	}
	return err
}
