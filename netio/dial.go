package netio

import (
	"context"
	"net"

	"github.com/coir-go/coir"
)

// Dialer connects to addresses, and has the same fields as a [net.Dialer]. Its connections are for fibers.
//
// Package net resolves names and makes the connections: a fiber that dials calls it in [coir.Blocking].
type Dialer net.Dialer

// Dial connects to an address. See [net.Dial] for the networks and addresses. For networks other than TCP, UDP and Unix
// sockets it returns a connection of package net.
func (d *Dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address)
}

// DialContext is like Dial, but ends when ctx ends. The end of ctx does not affect an established connection. As in
// package net, the error is [context.DeadlineExceeded] if a time limit of ctx or of the Dialer has passed, and
// [context.Canceled] if ctx was cancelled.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	if n, err := networkFor(ctx, "dial", network); err != nil {
		return nil, err
	} else if n != nil {
		return n.dial(ctx, (*net.Dialer)(d), network, address)
	}
	c, err := coir.Blocking(ctx, func() (net.Conn, error) {
		return (*net.Dialer)(d).DialContext(ctx, network, address)
	})
	if err != nil {
		return nil, err
	}
	return take(c)
}

// take takes over c if possible. Otherwise it returns c.
func take(c net.Conn) (net.Conn, error) {
	if networkOf(c) == "" {
		return c, nil
	}
	n, err := NewConn(c)
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return n, nil
}

// networkOf returns the network of c, a connection of package net: "tcp", "udp" or "unix", or "" for any other.
func networkOf(c any) string {
	switch c.(type) {
	case *net.TCPConn:
		return "tcp"
	case *net.UDPConn:
		return "udp"
	case *net.UnixConn:
		return "unix"
	}
	return ""
}

// Dial calls [Dialer.Dial] of a zero Dialer.
func Dial(network, address string) (net.Conn, error) { return new(Dialer).Dial(network, address) }

// Listen listens on an address, like [net.Listen]. The accepted connections are for fibers.
func Listen(network, address string) (net.Listener, error) {
	return new(ListenConfig).Listen(context.Background(), network, address)
}

// ListenPacket listens for packets on an address, like [net.ListenPacket]. For networks other than UDP and Unix sockets
// it returns a socket of package net.
func ListenPacket(network, address string) (net.PacketConn, error) {
	return new(ListenConfig).ListenPacket(context.Background(), network, address)
}

// ListenConfig has options for listening, and has the same fields as a [net.ListenConfig].
type ListenConfig net.ListenConfig

// Listen is like the function [Listen], with the options of lc. ctx applies to the resolution of names.
func (lc *ListenConfig) Listen(ctx context.Context, network, address string) (net.Listener, error) {
	if n, err := networkFor(ctx, "listen", network); err != nil {
		return nil, err
	} else if n != nil {
		return n.listen(network, address)
	}
	l, err := coir.Blocking(ctx, func() (net.Listener, error) {
		return (*net.ListenConfig)(lc).Listen(ctx, network, address)
	})
	if err != nil {
		return nil, err
	}
	n, err := newListener(l, (*net.ListenConfig)(lc), true)
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	return n, nil
}

// ListenPacket is like the function [ListenPacket], with the options of lc.
func (lc *ListenConfig) ListenPacket(ctx context.Context, network, address string) (net.PacketConn, error) {
	if n, err := networkFor(ctx, "listen", network); err != nil {
		return nil, err
	} else if n != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Err: notSimulated(network)}
	}
	c, err := coir.Blocking(ctx, func() (net.PacketConn, error) {
		return (*net.ListenConfig)(lc).ListenPacket(ctx, network, address)
	})
	if err != nil {
		return nil, err
	}
	u, ok := c.(net.Conn)
	if !ok || networkOf(c) == "" {
		return c, nil
	}
	n, err := take(u)
	if err != nil {
		return nil, err
	}
	return n.(net.PacketConn), nil
}
