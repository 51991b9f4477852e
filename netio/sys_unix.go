//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package netio

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"syscall"
)

// takeOver returns another number for the file of c. Go's poller does not know that number; otherwise each event would
// wake Go's poller too. The file is already non-blocking.
func takeOver(c syscall.Conn) (fd int, err error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, err
	}
	failed := raw.Control(func(s uintptr) {
		syscall.ForkLock.RLock()
		defer syscall.ForkLock.RUnlock()
		if fd, err = syscall.Dup(int(s)); err == nil {
			syscall.CloseOnExec(fd)
		}
	})
	if failed != nil {
		return 0, failed
	}
	return fd, os.NewSyscallError("dup", err)
}

func cannot(c any) error {
	return fmt.Errorf("netio: cannot take over a %T: it is not a TCP, UDP or Unix socket", c)
}

// closedFile returns err as package os would return it.
func closedFile(err error) error {
	if err == net.ErrClosed {
		return os.ErrClosed
	}
	return err
}

// toAddr returns sa as an address of package net, or nil.
func toAddr(network string, sa syscall.Sockaddr) net.Addr {
	var ip net.IP
	var port int
	var zone string
	switch sa := sa.(type) {
	case *syscall.SockaddrInet4:
		ip, port = append(ip, sa.Addr[:]...), sa.Port
	case *syscall.SockaddrInet6:
		ip, port = append(ip, sa.Addr[:]...), sa.Port
		if sa.ZoneId != 0 {
			zone = zoneName(int(sa.ZoneId))
		}
	case *syscall.SockaddrUnix:
		return &net.UnixAddr{Name: sa.Name, Net: network}
	default:
		if network[:4] == "unix" {
			return &net.UnixAddr{Net: network}
		}
		return nil
	}
	if kindOf(network) == packets {
		return &net.UDPAddr{IP: ip, Port: port, Zone: zone}
	}
	return &net.TCPAddr{IP: ip, Port: port, Zone: zone}
}

// zoneName asks the system each time. Only link-local addresses have a zone.
func zoneName(index int) string {
	if i, err := net.InterfaceByIndex(index); err == nil {
		return i.Name
	}
	return strconv.Itoa(index)
}

func zoneIndex(name string) uint32 {
	if name == "" {
		return 0
	}
	if i, err := net.InterfaceByName(name); err == nil {
		return uint32(i.Index)
	}
	n, _ := strconv.ParseUint(name, 10, 32)
	return uint32(n)
}

// fromAddr returns the address of a packet's receiver for a socket of the network. The socket uses IPv6 addresses if
// six is true.
func fromAddr(a net.Addr, network string, six bool) (syscall.Sockaddr, error) {
	switch a := a.(type) {
	case *net.UDPAddr:
		if a == nil || network[:3] != "udp" {
			break
		}
		ip, ok := netip.AddrFromSlice(a.IP)
		ip = ip.Unmap()
		switch {
		case ok:
		case len(a.IP) > 0 && six:
			return nil, &net.AddrError{Err: "non-IPv6 address", Addr: a.IP.String()}
		case len(a.IP) > 0:
			return nil, &net.AddrError{Err: "non-IPv4 address", Addr: a.IP.String()}
		case six: // no IP means this host
			ip = netip.IPv6Unspecified()
		default:
			ip = netip.IPv4Unspecified()
		}
		if six {
			return &syscall.SockaddrInet6{Addr: ip.As16(), Port: a.Port, ZoneId: zoneIndex(a.Zone)}, nil
		}
		if ip.Is4() {
			return &syscall.SockaddrInet4{Addr: ip.As4(), Port: a.Port}, nil
		}
		return nil, &net.AddrError{Err: "non-IPv4 address", Addr: a.IP.String()}
	case *net.UnixAddr:
		if a == nil || a.Net != network {
			break
		}
		return &syscall.SockaddrUnix{Name: a.Name}, nil
	case nil:
		return nil, errors.New("missing address")
	}
	return nil, syscall.EINVAL
}
