//go:build unix

package syscall

import (
	"internal/coir"
	"unsafe"
)

// This file is for the names of sockets: addresses with ports, and names of the local domain.

// coirAddr is the name of a socket: an address and a port, or a name of the local domain.
type coirAddr struct {
	ip   [16]byte // IPv4 addresses are mapped to IPv6
	port int
	name string
	dev  uint64 // dev and ino identify the file with that name, if there is one
	ino  uint64
}

var (
	coirMapped    = [12]byte{10: 0xff, 11: 0xff}
	coirLoopback4 = [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}
	coirLoopback6 = [16]byte{15: 1}
)

//go:norace
func (a *coirAddr) is4() bool { return [12]byte(a.ip[:12]) == coirMapped }

//go:norace
func (a *coirAddr) any() bool {
	return a.ip == [16]byte{} || a.is4() && [4]byte(a.ip[12:]) == [4]byte{}
}

//go:norace
func (a *coirAddr) loopback() bool { return a.ip == coirLoopback6 || a.is4() && a.ip[12] == 127 }

//go:norace
func coirFrom(sa Sockaddr) (a coirAddr) {
	switch sa := sa.(type) {
	case *SockaddrInet4:
		coirMap4(&a.ip, &sa.Addr)
		a.port = sa.Port
	case *SockaddrInet6:
		a.ip, a.port = sa.Addr, sa.Port
	case *SockaddrUnix:
		a.name = sa.Name
	}
	return a
}

//go:norace
func coirMap4(to *[16]byte, from *[4]byte) {
	*to = [16]byte{10: 0xff, 11: 0xff, 12: from[0], 13: from[1], 14: from[2], 15: from[3]}
}

//go:norace
func (s *coirSocket) sockaddr(a *coirAddr) Sockaddr {
	switch s.domain {
	case AF_INET:
		return &SockaddrInet4{Port: a.port, Addr: [4]byte(a.ip[12:])}
	case AF_INET6:
		return &SockaddrInet6{Port: a.port, Addr: a.ip}
	}
	if a.name == "" {
		return &SockaddrUnix{Name: "@"} // as anyToSockaddr returns it
	}
	return &SockaddrUnix{Name: a.name}
}

//go:norace
func (s *coirSocket) getsockname() (Sockaddr, error) { return s.sockaddr(&s.local), nil }

//go:norace
func (s *coirSocket) getpeername() (Sockaddr, error) {
	if !s.connected {
		return nil, ENOTCONN
	}
	return s.sockaddr(&s.peer), nil
}

// find returns the socket with the name a that listens or receives packets, or nil if there is none.
//
//go:norace
func (s *coirSocket) find(a *coirAddr) (found *coirSocket) {
	for o := coirNet.bound; o != nil; o = o.link {
		switch {
		case o.domain == AF_UNIX || s.domain == AF_UNIX:
			if o.domain == s.domain && o.same(a) {
				return o
			}
		case o.typ != s.typ || o.local.port != a.port || o.typ == SOCK_STREAM && !o.listening:
		case o.local.ip == a.ip:
			return o
		case o.local.any() && (o.domain == AF_INET6 && (!a.is4() || !o.only6) || o.domain == AF_INET && a.is4()):
			found = o
		}
	}
	return found
}

// same reports whether a, a name of the local domain, is the name of the socket.
//
//go:norace
func (s *coirSocket) same(a *coirAddr) bool {
	if a.ino != 0 || s.local.ino != 0 {
		return a.ino == s.local.ino && a.dev == s.local.dev
	}
	return a.name == s.local.name
}

// file sets dev and ino to those of the file with the name a of the local domain.
//
//go:norace
func (a *coirAddr) file() error {
	if a.name == "" || a.name[0] == '@' {
		return nil
	}
	var st Stat_t
	if err := Stat(a.name, &st); err != nil {
		return err
	}
	a.dev, a.ino = uint64(st.Dev), uint64(st.Ino)
	return nil
}

//go:norace
func coirUsed(port int) bool { return coirNet.used[port/64]&(1<<(port%64)) != 0 }

// bind gives the socket a name.
//
//go:norace
func (s *coirSocket) bind(sa Sockaddr) error {
	if _, _, err := sa.sockaddr(); err != nil {
		return err
	}
	a := coirFrom(sa)
	coirPoint(coir.OpListen, unsafe.Pointer(&coirNet.obj))
	if s.domain == AF_UNIX {
		return s.bindLocal(&a, sa)
	}
	if s.bound {
		return EINVAL
	}
	if known := coirUsed(a.port); !a.any() && (!a.is4() || !a.loopback()) || a.port > 0 && (a.port < 1024 || !known) {
		// Ask the kernel whether the address exists, whether the process may use the port, and whether it is in use by
		// another program or by a server that was started before the test.
		if err := s.tryKernel(sa, bind); err != nil && !(err == EADDRINUSE && known && a.loopback()) {
			return err
		}
		if !a.any() && !a.loopback() {
			coirOnKernel("it uses an address that is not loopback")
		}
	}
	if a.port == 0 {
		a.port = coirFreePort()
	}
	for o := coirNet.bound; o != nil; o = o.link {
		if s.clashes(o, &a) && (o.listening || o.typ != SOCK_STREAM || !s.reuse || !o.reuse) &&
			!(s.reusePort && o.reusePort) && !(o.typ != SOCK_STREAM && s.reuse && o.reuse) {
			return EADDRINUSE
		}
	}
	s.name(&a)
	return nil
}

// clashes reports whether s cannot have the address a because of the socket o.
//
//go:norace
func (s *coirSocket) clashes(o *coirSocket, a *coirAddr) bool {
	if o.domain == AF_UNIX || o == s || o.typ != s.typ || o.local.port != a.port {
		return false
	}
	if o.local.ip == a.ip {
		return true
	}
	return o.includes(&o.local, a) || s.includes(a, &o.local)
}

// includes reports whether a, an address of the socket, stands for several addresses, and b is one of them.
//
//go:norace
func (s *coirSocket) includes(a, b *coirAddr) bool {
	return a.any() && (s.domain == AF_INET && b.is4() || s.domain == AF_INET6 && !(s.only6 && b.is4()))
}

// name gives the socket the name a, and adds it to coirNet.bound.
//
//go:norace
func (s *coirSocket) name(a *coirAddr) {
	if s.domain != AF_UNIX {
		coirNet.used[a.port/64] |= 1 << (a.port % 64)
	}
	if coirForked == coirNet.run {
		coirOnKernel("it starts a process")
	}
	s.local, s.bound, coirNet.named = *a, true, true
	s.link, coirNet.bound = coirNet.bound, s
}

//go:norace
func coirFreePort() int {
	n := &coirNet
	for range 1 << 16 {
		port := n.port
		if n.port++; n.port == 1<<16 {
			n.port = 1024
		}
		if !coirUsed(port) {
			return port
		}
	}
	coirOnKernel("too many ports")
	return 0
}

// tryKernel makes a call on a new socket of the kernel.
//
//go:norace
func (s *coirSocket) tryKernel(sa Sockaddr, call func(int, unsafe.Pointer, _Socklen) error) error {
	ptr, n, err := sa.sockaddr()
	if err != nil {
		return err
	}
	fd, err := socket(s.domain, s.typ|coirCloexec, s.proto)
	if err != nil {
		return err
	}
	second := Timeval{Sec: 1}
	SetsockoptTimeval(fd, SOL_SOCKET, SO_SNDTIMEO, &second) // also limits connect
	if s.only6 {
		SetsockoptInt(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1)
	}
	SetsockoptInt(fd, SOL_SOCKET, SO_REUSEADDR, 1)
	if s.reusePort {
		SetsockoptInt(fd, SOL_SOCKET, coirReusePort, 1)
	}
	err = call(fd, ptr, n)
	Close(fd)
	return err
}

// checkPort gives the schedule up if another program receives packets at the port of a.
//
//go:norace
func (s *coirSocket) checkPort(a *coirAddr) {
	if coirUsed(a.port) {
		return
	}
	const digits = "0123456789ABCDEF"
	p := a.port
	want := [6]byte{':', digits[p>>12], digits[p>>8&15], digits[p>>4&15], digits[p&15], ' '}
	for _, name := range [...]string{"/proc/net/udp", "/proc/net/udp6"} {
		fd, err := Open(name, O_RDONLY|O_CLOEXEC, 0)
		if err != nil {
			continue
		}
		var buf [4096]byte
		kept := 0
		for {
			n, err := read(fd, buf[kept:])
			if n <= 0 || err != nil {
				break
			}
			n += kept
			for i := 0; i+len(want) <= n; i++ {
				if [6]byte(buf[i:]) == want {
					Close(fd)
					coirOnKernel("it sends to a port of another program")
				}
			}
			kept = coirCopy(buf[:], buf[max(0, n-len(want)+1):n])
		}
		Close(fd)
	}
	coirNet.used[p/64] |= 1 << (p % 64)
}

// bindLocal gives the socket a name of the local domain. The kernel makes the file for the name.
//
//go:norace
func (s *coirSocket) bindLocal(a *coirAddr, sa Sockaddr) error {
	switch {
	case s.bound:
		return EINVAL
	case a.name == "":
		coirOnKernel("it lets the kernel choose the name of a unix socket")
	}
	if a.name[0] == '@' {
		for o := coirNet.bound; o != nil; o = o.link {
			if o.domain == AF_UNIX && o.local.name == a.name {
				return EADDRINUSE
			}
		}
	} else {
		if err := s.tryKernel(sa, bind); err != nil {
			return err
		}
		if err := a.file(); err != nil {
			return err
		}
	}
	s.name(a)
	return nil
}

// autobind chooses a name for the socket if it has none, so that peers can answer it.
//
//go:norace
func (s *coirSocket) autobind(to *coirAddr) {
	if s.bound || s.domain == AF_UNIX {
		return
	}
	a := coirAddr{port: coirFreePort()}
	switch {
	case to == nil && s.domain == AF_INET:
		coirMap4(&a.ip, &[4]byte{})
	case to != nil:
		a.ip = coirSource(to)
	}
	s.name(&a)
}

// coirSource returns the address from which packets to the address to are sent.
//
//go:norace
func coirSource(to *coirAddr) [16]byte {
	if to.is4() {
		return coirLoopback4
	}
	return coirLoopback6
}
