//go:build unix

package syscall

import (
	"internal/coir"
	"internal/race"
	"unsafe"
)

// This file is for packets, and for the calls that receive or send both packets and streams.

type coirPacket struct {
	next *coirPacket
	data []byte
	by   *coirSocket // the sender
	from coirAddr
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
