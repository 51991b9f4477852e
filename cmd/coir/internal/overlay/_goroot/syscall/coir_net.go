//go:build unix

package syscall

import (
	"internal/coir"
	"internal/race"
	"unsafe"
)

// This file replaces the kernel for the sockets of a schedule that `coir test` explores. Sockets on loopback addresses
// and sockets of the local domain are in memory. Package net is unchanged. In package internal/poll, closing and
// locking a descriptor are points, and what only the kernel can do, such as splice, is left out or makes the test run
// on the kernel's network. Their calls of package syscall end in this file, and their waits end in the runtime's
// poller, which coir controls; see coir_net.go of package runtime. So the same code as for real sockets makes
// addresses, deadlines and errors, from the same error numbers.
//
// A descriptor in memory is a number that the kernel does not use, and a process never uses it twice. Only the
// goroutine that has the turn uses the data in this file, so there are no locks. The race detector must not see the
// accesses, so the functions are go:norace, and do not use append, copy or maps, which report their accesses to the
// race detector themselves. Explicit calls of package race report the order that operations on a socket establish.
//
// If a test needs something that is not possible in memory (to copy a descriptor or pass it on, an address that is not
// loopback, a server outside of the test), it is run again on the kernel's network; see coirOnKernel. Options of
// sockets, and system calls of other modules, are in coir_trap.go.

//go:linkname coirPoint
//go:noescape
func coirPoint(op uint8, p unsafe.Pointer)

// coirPointBefore is a point that replaces the point of the following operation.
//
//go:linkname coirPointBefore
//go:noescape
func coirPointBefore(op uint8, p unsafe.Pointer)

// coirMoved records how many bytes the last operation moved, and at which end.
//
//go:linkname coirMoved
func coirMoved(n int, second bool)

// coirRun returns the number of the schedule that the caller belongs to. It is 0 outside of a schedule, and if the test
// runs on the kernel's network.
//
//go:linkname coirRun
func coirRun() uint32

// coirForeign reports whether the calling goroutine does not belong to the running schedule.
//
//go:linkname coirForeign
func coirForeign() bool

// coirNetReady wakes the goroutine that waits for a descriptor, to read from it ('r') or to write to it ('w').
//
//go:linkname coirNetReady
func coirNetReady(fd int, mode int32)

// coirOnKernel gives the schedule up, because the test must run on the kernel's network; why is the reason. It does not
// return.
//
//go:linkname coirOnKernel
func coirOnKernel(why string)

//go:linkname coirMove runtime.memmove
//go:noescape
func coirMove(to, from unsafe.Pointer, n uintptr)

// coirCopy is like copy, but does not report its accesses to the race detector.
//
//go:norace
func coirCopy(to, from []byte) int {
	n := min(len(to), len(from))
	if n > 0 {
		coirMove(unsafe.Pointer(&to[0]), unsafe.Pointer(&from[0]), uintptr(n))
	}
	return n
}

// Numbers from coirFirstFD up to coirLastFD are descriptors in memory. Package runtime defines the same numbers.
const coirFirstFD, coirLastFD = 1 << 24, 1 << 30

const (
	coirFirstPort  = 33000      // the first port that is chosen for a socket
	coirTCPRoom    = 2560 << 10 // the bytes that a TCP connection holds in each direction
	coirUnixRoom   = 208 << 10  // the same in the local domain, and for packets
	coirPipeRoom   = 64 << 10   // the same for a pipe
	coirPipeAtomic = 4096       // the largest write to a pipe that is not split
	coirSendAhead  = 512 << 10  // the bytes that are sent to a closed connection before its reset arrives
	coirMaxPacket4 = 65507
	coirMaxPacket6 = 65527
)

// coirNet is the network of the running schedule. Each schedule begins with a new network, so that its ports are the
// same in every process.
var coirNet struct {
	run   uint32
	base  int // the first descriptor of the schedule
	next  int // the next descriptor; it grows over all schedules
	files []*coirSocket
	bound *coirSocket // a list of the sockets that have a name
	named bool        // a socket has, or had, a name
	port  int
	used  *[1 << 16 / 64]uint64 // the ports that were ever used in the schedule
	obj   uint64                // the object of points that concern the network as a whole
}

// coirAddr is the name of a socket: an address and a port, or a name of the local domain.
type coirAddr struct {
	ip   [16]byte // IPv4 addresses are mapped to IPv6
	port int
	name string
	dev  uint64 // dev and ino identify the file with that name, if there is one
	ino  uint64
}

// coirSocket is a socket in memory.
type coirSocket struct {
	fd, domain, typ, proto int
	twin                   int // see coirTwins

	obj   *uint64 // the object of the socket's points; the two ends of a connection share one
	local coirAddr
	peer  coirAddr
	link  *coirSocket // in coirNet.bound

	bound, listening, connected  bool
	reuse, reusePort, only6      bool
	closed, noRead, noWrite, rst bool
	linger0                      bool
	pipe                         bool                      // it is an end of a pipe; see CoirPipe
	second                       bool                      // it was accepted, or is the reading end of a pipe
	hangs                        bool                      // nothing arrives any more; see meets
	err                          Errno                     // an error that the next operation returns, once
	options                      [len(coirKept)]coirOption // the values of the options in coirKept

	in, out *coirDirection // the two directions of a stream

	queue, last *coirSocket // the connections that wait for a listener to accept them
	after       *coirSocket // the next in that queue
	sync        uint64      // for the race detector: connects and packets release it, accepts and receives acquire it

	packets, lastPacket *coirPacket // the packets to receive
	npackets, bytes     int         // the number of packets, and of their bytes
	unread              int         // the bytes of packets that it sent in the local domain and that are not yet received
	blocked             bool        // it waits for unread to become smaller
	full                bool        // senders wait until it receives packets
	waitsFor            *coirSocket // the socket with too many packets that it waits for
	to                  *coirSocket // the socket that it is connected to, for packets of the local domain
}

// coirOption is the value of an option. Its size is 0 if the option was not set.
type coirOption struct {
	size  int32
	value [2]int32
}

// coirDirection is one direction of a connection: a ring of bytes.
type coirDirection struct {
	buf      []byte
	start, n int
	room     int
	fin      bool // nothing more will be written
	blocked  bool // the writer waits for room
	from, to *coirSocket
	sync     uint64 // for the race detector
}

type coirPacket struct {
	next *coirPacket
	data []byte
	by   *coirSocket // the sender
	from coirAddr
}

// coirSocketOf returns the socket of a descriptor, or nil if the descriptor is the kernel's.
//
//go:norace
func coirSocketOf(fd int) *coirSocket {
	if !coir.On || fd < coirFirstFD {
		return nil
	}
	if coirForeign() && coirHas(fd) {
		coirOnKernel("it lets a goroutine from before the test use a socket")
	}
	return coirFind(fd)
}

// coirFind is like coirSocketOf, but may be called by a goroutine outside of the schedule: a finalizer, which runs on a
// goroutine of the runtime, may call Close.
//
//go:norace
func coirFind(fd int) *coirSocket {
	if !coir.On || fd < coirFirstFD || coirRun() != coirNet.run || !coirHas(fd) {
		return nil
	}
	return coirNet.files[fd-coirNet.base]
}

// coirHas reports whether a descriptor belongs to the last schedule that had a network.
//
//go:norace
func coirHas(fd int) bool { return coirNet.run != 0 && fd >= coirNet.base && fd < coirNet.next }

// coirOpen assigns a new descriptor to a socket.
//
//go:norace
func coirOpen(s *coirSocket) {
	n := &coirNet
	i := n.next - n.base
	if i == len(n.files) {
		files := make([]*coirSocket, max(16, 2*i))
		for k, f := range n.files {
			files[k] = f
		}
		n.files = files
	}
	n.files[i] = s
	s.fd = n.next
	n.next++
}

// coirMakeSocket makes a socket in memory. ok is false if the kernel must make it.
//
//go:norace
func coirMakeSocket(domain, typ, proto int) (fd int, err error, ok bool) {
	run := coirRun()
	base := typ & 0xf
	switch {
	case !coirMemory || run == 0 || typ&coirNonblock == 0:
		return 0, nil, false
	case domain != AF_INET && domain != AF_INET6 && domain != AF_UNIX:
		return 0, nil, false
	case base != SOCK_STREAM && base != SOCK_DGRAM && (base != SOCK_SEQPACKET || domain != AF_UNIX):
		return 0, nil, false
	}
	twin, err := coirTwin(domain, base, proto)
	if err != nil {
		return -1, err, true
	}
	n := &coirNet
	if n.run != run {
		n.run, n.base = run, max(n.next, coirFirstFD)
		n.next, n.bound, n.named, n.port = n.base, nil, false, coirFirstPort
		for i := range n.files {
			n.files[i] = nil
		}
		n.used = new([1 << 16 / 64]uint64)
	}
	if n.next >= coirLastFD || n.next-n.base >= coirMaxFiles {
		coirOnKernel("too many sockets")
	}
	s := &coirSocket{domain: domain, typ: base, proto: proto, twin: twin, obj: new(uint64)}
	coirOpen(s)
	return s.fd, nil, true
}

// coirMaxFiles is the most sockets that a schedule may make.
const coirMaxFiles = 1 << 16

// coirTwins contains one socket of the kernel for each kind of socket. They show which kinds of sockets the kernel has,
// and which values of options it accepts.
var coirTwins [32]struct {
	domain, typ, proto, fd int
	err                    error
}

//go:norace
func coirTwin(domain, typ, proto int) (int, error) {
	for i := range coirTwins {
		t := &coirTwins[i]
		if t.domain == 0 {
			t.domain, t.typ, t.proto = domain, typ, proto
			t.fd, t.err = socket(domain, typ|coirCloexec, proto)
		}
		if t.domain == domain && t.typ == typ && t.proto == proto {
			return t.fd, t.err
		}
	}
	return -1, EPROTONOSUPPORT
}

// point is the point before an operation on the socket or the pipe.
//
//go:norace
func (s *coirSocket) point(op uint8) { coirPoint(s.named(op), unsafe.Pointer(s.obj)) }

// named returns the code of an operation on s, because operations on pipes have their own codes.
//
//go:norace
func (s *coirSocket) named(op uint8) uint8 {
	if s.pipe {
		return op + coir.OpPipeRead - coir.OpNetRead
	}
	return op
}

// Addresses.

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

//go:norace
func (s *coirSocket) listen() error {
	coirPoint(coir.OpListen, unsafe.Pointer(&coirNet.obj))
	switch {
	case s.typ == SOCK_DGRAM:
		return EOPNOTSUPP
	case s.connected:
		return EINVAL
	case !s.bound && s.domain == AF_UNIX:
		return EINVAL
	}
	s.autobind(nil)
	for o := coirNet.bound; o != nil; o = o.link {
		if o.listening && s.domain != AF_UNIX && s.clashes(o, &s.local) && !(s.reusePort && o.reusePort) {
			return EADDRINUSE
		}
	}
	s.listening = true
	return nil
}

// connect connects s to the socket with the name sa.
//
//go:norace
func (s *coirSocket) connect(sa Sockaddr) error {
	if _, _, err := sa.sockaddr(); err != nil {
		return err
	}
	a := coirFrom(sa)
	switch {
	case s.listening:
		return EINVAL
	case s.connected && s.typ != SOCK_DGRAM:
		return EISCONN
	case s.domain == AF_UNIX:
		if err := a.file(); err != nil {
			return err
		}
	case a.any():
		a.ip = coirSource(&a)
	case !a.loopback():
		coirOnKernel("it uses an address that is not loopback")
	}
	to := s.find(&a)
	if to != nil {
		to.point(coir.OpDial)
		to = s.find(&a)
	} else {
		coirPoint(coir.OpDial, unsafe.Pointer(&coirNet.obj))
		to = s.find(&a)
	}
	switch {
	case to != nil && to.typ != s.typ:
		return EPROTOTYPE
	case s.typ == SOCK_DGRAM && s.domain != AF_UNIX:
		if to == nil {
			s.checkPort(&a)
		}
		if !s.bound {
			s.autobind(&a)
		} else if s.local.any() {
			s.local.ip = coirSource(&a)
		}
	case to == nil || !to.listening && s.typ != SOCK_DGRAM:
		if to == nil && (s.domain == AF_UNIX || !coirUsed(a.port)) {
			if err := s.tryKernel(sa, connect); err != ECONNREFUSED {
				coirOnKernel("it connects to another program, or to a server that was there before the test")
			}
		}
		return ECONNREFUSED
	}
	if s.typ == SOCK_DGRAM {
		if s.domain == AF_UNIX {
			if to.to != nil && to.to != s {
				return EPERM
			}
			s.to, a = to, to.local // the peer is known by its own name
		}
		s.connected, s.peer = true, a
		return nil
	}
	if to.refuses() {
		return ECONNREFUSED
	}
	s.autobind(&a)
	s.pair(to, &a)
	return nil
}

// pair connects s to the listener to, which has the name a. The new other end waits in the listener's queue.
//
//go:norace
func (s *coirSocket) pair(to *coirSocket, a *coirAddr) {
	p := &coirSocket{
		domain: to.domain, typ: s.typ, proto: to.proto, twin: to.twin, obj: s.obj, local: *a, peer: s.local,
		connected: true, second: true,
	}
	if s.domain != AF_UNIX {
		p.reuse, p.reusePort, p.only6, p.linger0 = to.reuse, to.reusePort, to.only6, to.linger0
		for i := range coirKept {
			if !coirKept[i].own {
				p.options[i] = to.options[i]
			}
		}
	}
	if to.proto != s.proto { // the two ends have only the default protocol in common
		p.proto = 0
		p.twin, _ = coirTwin(p.domain, p.typ, 0)
	}
	if s.domain == AF_UNIX {
		p.local = to.local
	}
	s.connected, s.peer = true, p.local
	if s.typ == SOCK_STREAM {
		s.pipes(p)
	} else {
		s.to, p.to = p, s
	}
	if to.last == nil {
		to.queue = p
	} else {
		to.last.after = p
	}
	to.last = p
	if race.Enabled {
		race.ReleaseMerge(unsafe.Pointer(&to.sync))
	}
	coirNetReady(to.fd, 'r')
}

// pipes connects the streams s and p.
//
//go:norace
func (s *coirSocket) pipes(p *coirSocket) {
	room := coirTCPRoom
	switch {
	case s.pipe:
		room = coirPipeRoom
	case s.domain == AF_UNIX:
		room = coirUnixRoom
	}
	s.out = &coirDirection{from: s, to: p, room: room}
	s.in = &coirDirection{from: p, to: s, room: room}
	p.in, p.out = s.out, s.in
}

//go:norace
func (s *coirSocket) accept() (fd int, sa Sockaddr, err error) {
	s.point(coir.OpAccept)
	switch {
	case !s.listening:
		return -1, nil, EINVAL
	case s.queue == nil:
		return -1, nil, EAGAIN
	}
	p := s.queue
	if s.queue, p.after = p.after, nil; s.queue == nil {
		s.last = nil
	}
	if race.Enabled {
		race.Acquire(unsafe.Pointer(&s.sync))
	}
	coirOpen(p)
	return p.fd, p.sockaddr(&p.peer), nil
}

// read reads from a stream, or a packet.
//
//go:norace
func (s *coirSocket) read(p []byte, flags int) (n int, err error) {
	if s.typ != SOCK_STREAM {
		n, _, _, err = s.receive(p, flags)
		return n, err
	}
	s.point(coir.OpNetRead)
	if s.in != nil && s.in.n > 0 {
		p = p[:s.meets(min(len(p), s.in.n))]
	}
	n, err = s.readStream(p, flags)
	coirMoved(max(n, 0), s.second)
	if race.Enabled && err == nil {
		race.Acquire(unsafe.Pointer(&s.in.sync))
		if n > 0 {
			race.WriteRange(unsafe.Pointer(&p[0]), n)
		}
	}
	return n, err
}

//go:norace
func (s *coirSocket) readStream(p []byte, flags int) (n int, err error) {
	in := s.in
	switch {
	case s.pipe && s.noRead:
		return -1, EBADF
	case !s.connected:
		return -1, ENOTCONN
	case s.hangs:
		return -1, EAGAIN
	case in.n > 0:
		start, have := in.start, in.n
		for n < len(p) && in.n > 0 {
			k := coirCopy(p[n:], in.buf[in.start:min(in.start+in.n, len(in.buf))])
			n += k
			in.n -= k
			if in.start += k; in.start == len(in.buf) {
				in.start = 0
			}
		}
		if flags&MSG_PEEK != 0 {
			in.start, in.n = start, have
			return n, nil
		}
		if in.blocked && n > 0 {
			in.blocked = false
			coirNetReady(in.from.fd, 'w')
		}
		return n, nil
	case s.err != 0 && (!in.fin || s.domain == AF_UNIX):
		err, s.err = s.err, 0
		return -1, err
	case in.fin || s.noRead || s.rst:
		return 0, nil
	}
	return -1, EAGAIN
}

// write writes to a stream, or a packet.
//
//go:norace
func (s *coirSocket) write(p []byte) (n int, err error) {
	if s.typ != SOCK_STREAM {
		return s.send(p, nil)
	}
	s.point(coir.OpNetWrite)
	p = p[:s.meets(len(p))]
	if race.Enabled && s.out != nil {
		race.ReleaseMerge(unsafe.Pointer(&s.out.sync))
	}
	n, err = s.writeStream(p)
	coirMoved(max(n, 0), s.second)
	if race.Enabled && n > 0 {
		race.ReadRange(unsafe.Pointer(&p[0]), n)
	}
	return n, err
}

//go:norace
func (s *coirSocket) writeStream(p []byte) (n int, err error) {
	out := s.out
	switch {
	case s.pipe && s.noWrite:
		return -1, EBADF
	case s.pipe && len(p) == 0:
		return 0, nil
	case s.pipe && !out.to.closed && len(p) <= coirPipeAtomic && out.room-out.n < len(p): // all of it or nothing yet
		out.blocked = true
		return -1, EAGAIN
	case !s.connected:
		if s.domain == AF_UNIX {
			return -1, ENOTCONN
		}
		return -1, EPIPE
	case s.err != 0 && s.domain != AF_UNIX:
		err, s.err = s.err, 0
		return -1, err
	case s.noWrite || s.rst || s.domain == AF_UNIX && (out.to.closed || out.to.noRead):
		return -1, EPIPE
	case len(p) > 0 && (out.to.closed || s.domain != AF_UNIX && out.to.noRead && out.to.noWrite):
		s.rst, s.err = true, EPIPE // the other end answers with a reset
		s.wake()
		out.to.rst, out.to.err = true, ECONNRESET
		out.to.wake()
		return min(len(p), coirSendAhead), nil
	}
	for n < len(p) && out.n < out.room {
		if out.n == len(out.buf) {
			out.grow(len(p) - n)
		}
		end := out.start + out.n
		if end >= len(out.buf) {
			end -= len(out.buf)
		}
		to := len(out.buf)
		if end < out.start {
			to = out.start
		}
		k := coirCopy(out.buf[end:to], p[n:])
		n += k
		out.n += k
	}
	if n > 0 {
		coirNetReady(out.to.fd, 'r')
	}
	if n == 0 && len(p) > 0 {
		out.blocked = true
		return -1, EAGAIN
	}
	return n, nil
}

// grow makes room in the buffer for more bytes, but not for more than c.room.
//
//go:norace
func (c *coirDirection) grow(more int) {
	size := min(max(2*len(c.buf), c.n+more, 512), c.room)
	buf := make([]byte, size)
	k := coirCopy(buf, c.buf[c.start:min(c.start+c.n, len(c.buf))])
	coirCopy(buf[k:], c.buf[:c.n-k])
	c.buf, c.start = buf, 0
}

// wake wakes all goroutines that wait for the socket.
//
//go:norace
func (s *coirSocket) wake() {
	if s.fd != 0 && !s.closed {
		coirNetReady(s.fd, 'r')
		coirNetReady(s.fd, 'w')
	}
}

// close closes the socket. Its point was earlier; see CoirCloses.
//
//go:norace
func (s *coirSocket) close() error {
	coirNet.files[s.fd-coirNet.base] = nil
	s.hangUp()
	for at := &coirNet.bound; *at != nil; at = &(*at).link {
		if *at == s {
			*at = s.link
			break
		}
	}
	for p := s.queue; p != nil; p = p.after { // connections that were not accepted
		p.linger0 = true
		p.hangUp()
	}
	s.drop()
	s.wakeSenders()
	return nil
}

// hangUp marks s as closed, and notifies the other end.
//
//go:norace
func (s *coirSocket) hangUp() {
	s.closed = true
	if p := s.to; p != nil && s.typ == SOCK_SEQPACKET {
		if s.bytes > 0 || s.linger0 {
			p.err = ECONNRESET
		}
		p.noWrite, p.noRead = true, true
		p.wake()
	}
	if s.typ == SOCK_DGRAM {
		s.to = nil
	}
	if s.in == nil {
		return
	}
	p := s.in.from
	if p.closed || s.rst && s.domain != AF_UNIX {
		return
	}
	if race.Enabled {
		race.ReleaseMerge(unsafe.Pointer(&s.out.sync))
	}
	switch {
	case (s.linger0 || s.in.n > 0) && s.out.fin && s.domain != AF_UNIX: // the reset comes after the end of the stream
		p.err, p.rst = EPIPE, true
	case s.linger0 || s.in.n > 0:
		p.err, p.rst = ECONNRESET, true
	default:
		s.out.fin = true
	}
	p.wake()
}

//go:norace
func (s *coirSocket) shutdown(how int) error {
	s.point(coir.OpNetClose)
	if s.domain == AF_UNIX && s.typ != SOCK_STREAM {
		s.shutdownPackets(how != SHUT_WR, how != SHUT_RD)
		return nil
	}
	if !s.connected || s.in == nil || s.domain != AF_UNIX && (s.rst || s.in.fin && s.noWrite) {
		return ENOTCONN
	}
	if how == SHUT_WR || how == SHUT_RDWR {
		if race.Enabled {
			race.ReleaseMerge(unsafe.Pointer(&s.out.sync))
		}
		s.noWrite, s.out.fin = true, true
	}
	if how == SHUT_RD || how == SHUT_RDWR {
		s.noRead = true
	}
	s.wake()
	s.out.to.wake()
	return nil
}

// shutdownPackets ends one or both directions of a socket for packets. The socket need not be connected. A
// SOCK_SEQPACKET is connected at both ends, so shutdownPackets also ends the directions of the other end.
//
//go:norace
func (s *coirSocket) shutdownPackets(read, write bool) {
	s.noRead, s.noWrite = s.noRead || read, s.noWrite || write
	s.wake()
	if p := s.to; p != nil && s.typ == SOCK_SEQPACKET {
		p.noRead, p.noWrite = p.noRead || write, p.noWrite || read
		p.wake()
	}
}

// receive copies the first packet to p. It returns the number of bytes copied, and the packet, which is nil if there is
// none. flags is MSG_TRUNC if p was too short.
//
//go:norace
func (s *coirSocket) receive(p []byte, how int) (n int, packet *coirPacket, flags int, err error) {
	s.point(coir.OpNetRead)
	switch k := s.packets; {
	case s.typ == SOCK_SEQPACKET && !s.connected:
		return -1, nil, 0, ENOTCONN
	case s.err != 0:
		err, s.err = s.err, 0
		return -1, nil, 0, err
	case k != nil:
		n = coirCopy(p, k.data)
		if n < len(k.data) {
			flags = MSG_TRUNC
		}
		if race.Enabled {
			race.Acquire(unsafe.Pointer(&s.sync))
			if n > 0 {
				race.WriteRange(unsafe.Pointer(&p[0]), n)
			}
		}
		if how&MSG_PEEK == 0 {
			s.remove()
			s.wakeSenders()
		}
		return n, k, flags, nil
	case s.noRead && s.typ == SOCK_SEQPACKET:
		return 0, nil, 0, nil
	}
	return -1, nil, 0, EAGAIN
}

// remove removes the first packet. It wakes the packet's sender if the sender waits until its packets are received.
//
//go:norace
func (s *coirSocket) remove() {
	k := s.packets
	if s.packets = k.next; s.packets == nil {
		s.lastPacket = nil
	}
	s.npackets--
	s.bytes -= len(k.data)
	if s.domain == AF_UNIX {
		k.by.unread -= len(k.data)
	}
	if k.by.blocked && !k.by.closed {
		k.by.blocked = false
		coirNetReady(k.by.fd, 'w')
	}
}

// drop removes all packets.
//
//go:norace
func (s *coirSocket) drop() {
	for s.packets != nil {
		s.remove()
	}
}

// wakeSenders wakes the senders that wait because the socket had too many packets.
//
//go:norace
func (s *coirSocket) wakeSenders() {
	if !s.full {
		return
	}
	s.full = false
	for i := range coirNet.next - coirNet.base {
		if o := coirNet.files[i]; o != nil && o.waitsFor == s {
			o.waitsFor = nil
			coirNetReady(o.fd, 'w')
		}
	}
}

// send sends a packet to the address sa, or if sa is nil, to the socket's peer.
//
//go:norace
func (s *coirSocket) send(p []byte, sa Sockaddr) (int, error) {
	if s.domain == AF_UNIX {
		return s.sendLocal(p, sa)
	}
	a := s.peer
	if sa != nil {
		a = coirFrom(sa)
	}
	if a.any() {
		a.ip = coirSource(&a)
	}
	if d := s.find(&a); d != nil {
		d.point(coir.OpNetWrite)
	} else {
		s.point(coir.OpNetWrite)
	}
	largest := coirMaxPacket6
	if a.is4() {
		largest = coirMaxPacket4
	}
	switch {
	case s.domain == AF_INET6 && a.is4() && (s.only6 || s.bound && !s.local.is4() && !s.local.any()):
		return -1, ENETUNREACH
	case s.domain == AF_INET && len(p) > 0xffff:
		return -1, EMSGSIZE
	case sa == nil && !s.connected:
		return -1, EDESTADDRREQ
	case len(p) > largest:
		return -1, EMSGSIZE
	case s.err != 0:
		err := s.err
		s.err = 0
		return -1, err
	case !a.loopback():
		coirOnKernel("it uses an address that is not loopback")
	}
	s.autobind(nil)
	d := s.find(&a)
	if d == nil {
		s.checkPort(&a)
		if s.connected {
			s.err = ECONNREFUSED // the next operation returns it
			s.wake()
		}
		return len(p), nil
	}
	from := s.local
	if from.any() {
		from.ip = coirSource(&a)
	}
	switch {
	case d.connected && (d.peer.ip != from.ip || d.peer.port != from.port): // d receives only from its peer
	case d.bytes+len(p) > coirUnixRoom: // lost
	default:
		s.deliver(d, p, &from)
	}
	return len(p), nil
}

// sendLocal is send in the local domain. The order of the errors is the kernel's.
//
//go:norace
func (s *coirSocket) sendLocal(p []byte, sa Sockaddr) (int, error) {
	d := s.to
	var a coirAddr
	var noFile error
	if sa != nil {
		a = coirFrom(sa)
		noFile = a.file()
		d = s.find(&a)
	}
	if d != nil {
		d.point(coir.OpNetWrite)
	} else {
		s.point(coir.OpNetWrite)
	}
	if sa != nil {
		d = s.find(&a)
	}
	switch {
	case s.err != 0: // only a SOCK_SEQPACKET has it
		err := s.err
		s.err = 0
		return -1, err
	case len(p) > coirUnixRoom-32:
		return -1, EMSGSIZE
	case s.noWrite:
		return -1, EPIPE
	case s.unread >= coirUnixRoom:
		s.blocked = true
		return -1, EAGAIN
	case sa == nil && !s.connected:
		return -1, ENOTCONN
	case noFile != nil:
		return -1, noFile
	case d == nil:
		return -1, ECONNREFUSED
	case d.typ != s.typ:
		return -1, EPROTOTYPE
	case s.typ == SOCK_DGRAM && d.to != nil && d.to != s:
		return -1, EPERM
	case d.closed && s.typ == SOCK_DGRAM: // the connection ends, and packets not yet received are lost
		s.to, s.connected = nil, false
		s.drop()
		return -1, ECONNREFUSED
	case d.closed || d.noRead:
		return -1, EPIPE
	case d != s && d.to != s && d.npackets > coirMaxPackets():
		d.full, s.waitsFor = true, d
		return -1, EAGAIN
	}
	s.unread += len(p)
	s.deliver(d, p, &s.local)
	return len(p), nil
}

// deliver puts a packet into the queue of the socket d.
//
//go:norace
func (s *coirSocket) deliver(d *coirSocket, p []byte, from *coirAddr) {
	if race.Enabled {
		race.ReleaseMerge(unsafe.Pointer(&d.sync))
		if len(p) > 0 {
			race.ReadRange(unsafe.Pointer(&p[0]), len(p))
		}
	}
	k := &coirPacket{data: make([]byte, len(p)), by: s, from: *from}
	coirCopy(k.data, p)
	d.npackets++
	d.bytes += len(p)
	if d.lastPacket == nil {
		d.packets = k
	} else {
		d.lastPacket.next = k
	}
	d.lastPacket = k
	coirNetReady(d.fd, 'r')
}

var coirQueue int // the value of coirMaxPackets; 0: not known yet

// coirMaxPackets returns the number of packets in a socket of the local domain beyond which senders that the socket is
// not connected to must wait.
//
//go:norace
func coirMaxPackets() int {
	if coirQueue != 0 {
		return coirQueue
	}
	coirQueue = 10
	if fd, err := Open("/proc/sys/net/unix/max_dgram_qlen", O_RDONLY|O_CLOEXEC, 0); err == nil {
		var buf [16]byte
		n, _ := read(fd, buf[:])
		Close(fd)
		v := 0
		for i := 0; i < n && buf[i] >= '0' && buf[i] <= '9'; i++ {
			v = 10*v + int(buf[i]-'0')
		}
		if v > 0 {
			coirQueue = v
		}
	}
	return coirQueue
}

// The variants of receiving and sending.

// recvfrom receives. It also returns the address of the sender, if the sender has one and the socket is not of TCP.
// Recvmsg uses recvfrom too, because a socket in memory has no control messages.
//
//go:norace
func (s *coirSocket) recvfrom(p []byte, how int) (n, flags int, from Sockaddr, err error) {
	var a *coirAddr
	if s.typ == SOCK_STREAM {
		n, err = s.read(p, how)
		if s.domain == AF_UNIX && err == nil && (n > 0 || s.in.n > 0) { // there were bytes to read
			a = &s.in.from.local
		}
	} else {
		var k *coirPacket
		if n, k, flags, err = s.receive(p, how); k != nil {
			a = &k.from
		}
	}
	if a != nil && (s.domain != AF_UNIX || a.name != "") {
		from = s.sockaddr(a)
	}
	return n, flags, from, err
}

// recvfromInet is like recvfrom, but stores the port and the address of the sender in port and addr.
//
//go:norace
func (s *coirSocket) recvfromInet(p []byte, how int, port *int, addr []byte) (n, flags int, err error) {
	if s.typ == SOCK_STREAM {
		n, err = s.read(p, how)
		return n, 0, err
	}
	n, k, flags, err := s.receive(p, how)
	if k != nil {
		*port = k.from.port
		coirCopy(addr, k.from.ip[16-len(addr):])
	}
	return n, flags, err
}

// sendmsg sends to an address. oob may contain descriptors, which only the kernel can pass on.
//
//go:norace
func (s *coirSocket) sendmsg(p, oob []byte, to Sockaddr) (int, error) {
	if s.domain == AF_UNIX && len(oob) > 0 {
		coirOnKernel("it sends more than bytes over a unix socket")
	}
	return s.sendto(p, to)
}

//go:norace
func (s *coirSocket) sendto(p []byte, to Sockaddr) (int, error) {
	if s.typ != SOCK_DGRAM || to == nil {
		return s.write(p)
	}
	return s.send(p, to)
}

// CoirBegins is the point before an operation of package internal/poll, which may have to wait for another operation
// first.
//
//go:norace
func CoirBegins(fd int, read bool) {
	s := coirSocketOf(fd)
	if s == nil {
		return
	}
	op := uint8(coir.OpNetWrite)
	switch {
	case s.listening:
		op = coir.OpAccept
	case read:
		op = coir.OpNetRead
	}
	coirPointBefore(s.named(op), unsafe.Pointer(s.obj))
}

// CoirCloses is the point before a descriptor is closed.
//
//go:norace
func CoirCloses(fd int) {
	if s := coirSocketOf(fd); s != nil {
		s.point(coir.OpNetClose)
	}
}

// CoirCopies is called before a descriptor is copied, or used outside of package os. Only the kernel can do that.
//
//go:norace
func CoirCopies(fd int) {
	if s := coirSocketOf(fd); s != nil && s.pipe {
		coirOnKernel("it uses the descriptor of a pipe")
	} else if s != nil {
		coirOnKernel("it copies the descriptor of a socket")
	}
}

// CoirPipe makes a pipe in memory, which is a stream of the local domain with one direction. ok is false if the kernel
// must make it.
//
//go:norace
func CoirPipe() (r, w int, ok bool) {
	const typ = SOCK_STREAM | coirNonblock
	if r, _, ok = coirMakeSocket(AF_UNIX, typ, 0); !ok {
		return 0, 0, false
	}
	w, _, _ = coirMakeSocket(AF_UNIX, typ, 0)
	from, to := coirFind(w), coirFind(r)
	to.obj = from.obj
	from.pipe, from.connected, from.noRead = true, true, true
	to.pipe, to.second, to.connected, to.noWrite = true, true, true, true
	from.pipes(to)
	return r, w, true
}

// CoirSignal delivers a signal that a schedule sends to its own process. Package os/signal sets it; it is nil in a
// program without that package. It returns false if the program has not asked to be notified of the signal.
var CoirSignal func(sig int) bool

// CoirRun returns the number of the schedule that the caller belongs to, or 0.
//
//go:norace
func CoirRun() uint32 { return coirRun() }

// CoirKill delivers a signal in memory if possible, and reports whether it did.
//
//go:norace
func CoirKill(pid int, sig Signal) bool {
	return coir.On && pid == Getpid() && CoirSignal != nil && coirRun() != 0 && CoirSignal(int(sig))
}

// coirForked is the last schedule that started a process.
var coirForked uint32

// coirForks is called before a process is started. That process may connect to a socket in memory that has a name or
// gets one later, or use the port of such a socket.
//
//go:norace
func coirForks() {
	if !coir.On || coirRun() == 0 {
		return
	}
	if coirForked = coirRun(); coirNet.run == coirForked && coirNet.named {
		coirOnKernel("it starts a process")
	}
}

// CoirInMemory reports whether a descriptor belongs to a socket or a pipe in memory.
//
//go:norace
func CoirInMemory(fd int) bool { return coirSocketOf(fd) != nil }

// CoirWritev writes to a socket in memory. ok is false if the descriptor is the kernel's.
//
//go:norace
func CoirWritev(fd int, iovecs []Iovec) (n uintptr, err error, ok bool) {
	s := coirSocketOf(fd)
	if s == nil {
		return 0, nil, false
	}
	size := 0
	for i := range iovecs {
		size += int(iovecs[i].Len)
	}
	all := make([]byte, 0, size) // so that it is one operation with one point
	for i := range iovecs {
		part := unsafe.Slice(iovecs[i].Base, int(iovecs[i].Len))
		at := len(all)
		all = all[:at+len(part)]
		coirCopy(all[at:], part)
		if race.Enabled && len(part) > 0 {
			race.ReadRange(unsafe.Pointer(iovecs[i].Base), len(part))
		}
	}
	k, err := s.write(all)
	return uintptr(k), err, true
}
