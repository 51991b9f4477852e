//go:build unix

package syscall

import (
	"internal/coir"
	"internal/race"
	"unsafe"
)

// This file is for streams: listening and connecting, reading and writing, and the ends of a connection.

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
