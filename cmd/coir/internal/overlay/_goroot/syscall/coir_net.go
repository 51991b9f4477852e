//go:build unix

package syscall

import (
	"internal/coir"
	"unsafe"
)

// The files coir_net*.go replace the kernel for the sockets of a schedule that `coir test` explores. Sockets on
// loopback addresses and sockets of the local domain are in memory. Package net is unchanged. In package internal/poll,
// closing and locking a descriptor are points, and what only the kernel can do, such as splice, is left out or makes
// the test run on the kernel's network. Their calls of package syscall end in these files, and their waits end in the
// runtime's poller, which coir controls; see coir_net.go of package runtime. So the same code as for real sockets makes
// addresses, deadlines and errors, from the same error numbers.
//
// A descriptor in memory is a number that the kernel does not use, and a process never uses it twice. Only the
// goroutine that has the turn uses the data of these files, so there are no locks. The race detector must not see the
// accesses, so the functions are go:norace, and do not use append, copy or maps, which report their accesses to the
// race detector themselves. Explicit calls of package race report the order that operations on a socket establish.
//
// If a test needs something that is not possible in memory (to copy a descriptor or pass it on, an address that is not
// loopback, a server outside of the test), it is run again on the kernel's network; see coirOnKernel. Options of
// sockets, and system calls of other modules, are in coir_trap.go.
//
//	coir_net.go         sockets: what is common to all kinds
//	coir_net_addr.go    their names
//	coir_net_stream.go  connections, and their bytes
//	coir_net_packet.go  packets
//	coir_net_hooks.go   what other packages call, and pipes

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
