package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestProbe writes what each operation returns in each state of a socket to the file that PROBE names: go test writes what
// the kernel does, and coir test what its sockets in memory do. The two must be the same.
func TestProbe(t *testing.T) {
	var p probe
	for _, network := range []string{"tcp4", "tcp6", "unix", "unixpacket"} {
		p.streams(t, network)
	}
	p.addresses(t)
	p.packets(t)
	p.local(t)
	p.names(t)
	p.options(t)
	p.values(t)
	if name := os.Getenv("PROBE"); name != "" {
		if err := os.WriteFile(name, []byte(strings.Join(p.lines, "\n")+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

type probe struct{ lines []string }

func (p *probe) add(what string, n int, err error) {
	text := "nil"
	if err != nil {
		text = err.Error()
		for _, target := range []error{
			io.EOF, net.ErrClosed, os.ErrDeadlineExceeded, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNREFUSED,
			syscall.EADDRINUSE, syscall.ENOTCONN, syscall.EINVAL, syscall.EMSGSIZE, context.Canceled, os.ErrNotExist,
		} {
			if errors.Is(err, target) {
				text += " is " + target.Error()
			}
		}
		var ne net.Error
		text += fmt.Sprint(" timeout ", errors.As(err, &ne) && ne.Timeout())
	}
	p.lines = append(p.lines, fmt.Sprintf("%s: %d %s", what, n, numbers(text)))
}

// numbers replaces ports and the names of files, which differ.
func numbers(text string) string {
	words := strings.Fields(text)
	for i, w := range words {
		w = strings.TrimSuffix(w, ":")
		for _, part := range strings.Split(w, "->") {
			if host, port, err := net.SplitHostPort(part); err == nil && port != "1" && port != "9" {
				words[i] = strings.ReplaceAll(words[i], part, host+":port")
			} else if strings.Contains(part, "/coirprobe") {
				words[i] = strings.ReplaceAll(words[i], part, "file")
			}
		}
	}
	return strings.Join(words, " ")
}

type conn interface {
	net.Conn
	CloseRead() error
	CloseWrite() error
}

// pair returns a listener, and both ends of a connection to it.
func pair(t *testing.T, network string) (l net.Listener, a, b conn) {
	t.Helper()
	address := map[string]string{"tcp4": "127.0.0.1:0", "tcp6": "[::1]:0"}[network]
	if address == "" {
		address = filepath.Join(dir(t), "s")
	}
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	x, err := net.Dial(network, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	y, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { x.Close(); y.Close(); l.Close() })
	return l, x.(conn), y.(conn)
}

func dir(t *testing.T) string {
	d, err := os.MkdirTemp("", "coirprobe")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(d) })
	return d
}

// streams has each state of a connection, and each operation in it.
func (p *probe) streams(t *testing.T, network string) {
	data := []byte("hello")
	states := []struct {
		name string
		set  func(a, b conn)
	}{
		{"open", func(a, b conn) {}},
		{"data waits", func(a, b conn) { b.Write(data) }},
		{"other end closed", func(a, b conn) { b.Close() }},
		{"other end wrote and closed", func(a, b conn) { b.Write(data); b.Close() }},
		{"other end closed with unread data", func(a, b conn) { a.Write(data); b.Close() }},
		{"other end wrote and closed with unread data", func(a, b conn) { a.Write(data); b.Write(data); b.Close() }},
		{"other end half closed", func(a, b conn) { b.CloseWrite() }},
		{"other end does not read", func(a, b conn) { b.CloseRead() }},
		{"other end shut down", func(a, b conn) { b.CloseRead(); b.CloseWrite() }},
		{"other end shut down, data waits", func(a, b conn) {
			a.Write(data)
			b.Write(data)
			b.CloseRead()
			b.CloseWrite()
		}},
		{"shut down", func(a, b conn) { a.CloseRead(); a.CloseWrite() }},
		{"shut down, other end wrote", func(a, b conn) { a.CloseRead(); a.CloseWrite(); b.Write(data) }},
		{"other end closed, wrote nothing", func(a, b conn) { b.Close(); a.Write(nil) }},
		{"half closed", func(a, b conn) { a.CloseWrite() }},
		{"does not read", func(a, b conn) { a.CloseRead() }},
		{"does not read, data waits", func(a, b conn) { b.Write(data); a.CloseRead() }},
		{"closed", func(a, b conn) { a.Close() }},
		{"both closed", func(a, b conn) { b.Close(); a.Close() }},
		{"reset", func(a, b conn) {
			if c, ok := b.(*net.TCPConn); ok {
				c.SetLinger(0)
			}
			b.Close()
		}},
		{"deadline", func(a, b conn) { a.SetDeadline(time.Now().Add(-time.Second)) }},
		{"deadline, data waits", func(a, b conn) { b.Write(data); a.SetDeadline(time.Now().Add(-time.Second)) }},
		{"deadline taken back", func(a, b conn) {
			a.SetDeadline(time.Now().Add(-time.Second))
			a.SetDeadline(time.Now().Add(20 * time.Millisecond))
			b.Write(data)
		}},
	}
	buf := make([]byte, 100)
	ops := []struct {
		name string
		do   func(what string, a, b conn)
	}{
		{"read", func(what string, a, b conn) {
			for _, time := range []string{"first", "second", "third"} {
				n, err := a.Read(buf)
				p.add(what+" "+time, n, err)
			}
		}},
		{"write", func(what string, a, b conn) {
			for _, time := range []string{"first", "second", "third"} {
				n, err := a.Write(data)
				p.add(what+" "+time, n, err)
			}
			n, err := a.Read(buf)
			p.add(what+" then read", n, err)
		}},
		{"nothing", func(what string, a, b conn) {
			n, err := a.Read(nil)
			p.add(what+" read", n, err)
			n, err = a.Write(nil)
			p.add(what+" write", n, err)
		}},
		{"close", func(what string, a, b conn) {
			p.add(what+" write", 0, a.CloseWrite())
			p.add(what+" read", 0, a.CloseRead())
			p.add(what+" first", 0, a.Close())
			p.add(what+" second", 0, a.Close())
			n, err := b.Read(buf)
			p.add(what+" then other end reads", n, err)
			n, err = b.Write(data)
			p.add(what+" then other end writes", n, err)
		}},
		{"set", func(what string, a, b conn) {
			p.add(what+" deadline", 0, a.SetDeadline(time.Now().Add(time.Hour)))
			if c, ok := a.(*net.TCPConn); ok {
				p.add(what+" no delay", 0, c.SetNoDelay(true))
				p.add(what+" keep alive", 0, c.SetKeepAlive(true))
				p.add(what+" linger", 0, c.SetLinger(3))
				p.add(what+" buffer", 0, c.SetReadBuffer(1<<16))
			}
		}},
	}
	for _, s := range states {
		for _, op := range ops {
			l, a, b := pair(t, network)
			a.SetReadDeadline(time.Now().Add(20 * time.Millisecond)) // what would wait
			b.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			s.set(a, b)
			op.do(fmt.Sprintf("%s, %s, %s", network, s.name, op.name), a, b)
			a.Close()
			b.Close()
			l.Close()
		}
	}
}

// addresses has listeners and the addresses of sockets.
func (p *probe) addresses(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "127.0.0.5", "0.0.0.0", "[::1]", "[::]", "localhost", ""} {
		l, err := net.Listen("tcp", host+":0")
		if p.add("listen "+host, 0, err); err != nil {
			continue
		}
		p.add("listens at "+numbers(l.Addr().String()), 0, nil)
		_, port, _ := net.SplitHostPort(l.Addr().String())
		for _, other := range []string{"127.0.0.1", "127.0.0.5", "0.0.0.0", "[::1]", "[::]", ""} {
			m, err := net.Listen("tcp", other+":"+port)
			if p.add("listen "+host+" and "+other, 0, err); err == nil {
				m.Close()
			}
			c, err := net.Dial("tcp", other+":"+port)
			if p.add("listen "+host+", dial "+other, 0, err); err == nil {
				p.add("from "+numbers(c.LocalAddr().String())+" to "+numbers(c.RemoteAddr().String()), 0, nil)
				d, err := l.Accept()
				if err != nil {
					t.Fatal(err)
				}
				p.add("accepted from "+numbers(d.RemoteAddr().String())+" at "+numbers(d.LocalAddr().String()), 0, nil)
				c.Close()
				d.Close()
			}
		}
		l.(*net.TCPListener).SetDeadline(time.Now().Add(time.Millisecond))
		_, err = l.Accept()
		p.add("accept, deadline", 0, err)
		p.add("close listener", 0, l.Close())
		p.add("close listener again", 0, l.Close())
		_, err = l.Accept()
		p.add("accept, closed", 0, err)
		_, err = net.Dial("tcp", "127.0.0.1:"+port)
		p.add("dial, closed", 0, err)
		l, err = net.Listen("tcp", host+":"+port)
		if p.add("listen again", 0, err); err == nil {
			l.Close()
		}
	}
	_, err := net.Dial("tcp", "127.0.0.1:1")
	p.add("dial, never there", 0, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c.SetDeadline(time.Now().Add(20 * time.Millisecond))
	n, err := c.Write([]byte("x"))
	p.add("not accepted, write", n, err)
	n, err = c.Read(make([]byte, 1))
	p.add("not accepted, read", n, err)
	l.Close()
	c.SetDeadline(time.Time{})
	n, err = c.Read(make([]byte, 1))
	p.add("listener closed, read", n, err)
	n, err = c.Write([]byte("x"))
	p.add("listener closed, write", n, err)
	c.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:1")
	p.add("dial, cancelled", 0, err)
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 3)}}
	l, err = net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	d, err := from.Dial("tcp", l.Addr().String())
	if p.add("dial from", 0, err); err == nil {
		p.add("from "+numbers(d.LocalAddr().String()), 0, nil)
		d.Close()
	}
}

// packets has UDP.
func (p *probe) packets(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "[::1]", "", "0.0.0.0"} {
		a, err := net.ListenPacket("udp", host+":0")
		if p.add("udp "+host, 0, err); err != nil {
			continue
		}
		p.add("udp at "+numbers(a.LocalAddr().String()), 0, nil)
		_, port, _ := net.SplitHostPort(a.LocalAddr().String())
		_, err = net.ListenPacket("udp", host+":"+port)
		p.add("udp, in use", 0, err)
		to := "127.0.0.1:" + port
		if host == "[::1]" {
			to = "[::1]:" + port
		}
		c, err := net.Dial("udp", to)
		if err != nil {
			t.Fatal(err)
		}
		p.add("udp from "+numbers(c.LocalAddr().String())+" to "+numbers(c.RemoteAddr().String()), 0, nil)
		buf := make([]byte, 3)
		a.SetDeadline(time.Now().Add(20 * time.Millisecond))
		for _, size := range []int{2, 0, 3, 5, 65507, 65508, 70000} {
			n, err := c.Write(make([]byte, size))
			p.add(fmt.Sprint("udp write ", size), n, err)
			if err == nil {
				n, from, err := a.ReadFrom(buf)
				p.add(fmt.Sprint("udp read ", size), n, err)
				if err == nil {
					p.add("udp came from "+numbers(from.String()), 0, nil)
					n, err = a.WriteTo(buf[:1], from)
					p.add("udp answer", n, err)
					n, err = c.Read(buf)
					p.add("udp answer comes", n, err)
				}
			}
		}
		n, oobn, flags, from, err := a.(*net.UDPConn).ReadMsgUDP(buf, nil)
		p.add(fmt.Sprint("udp message ", oobn, flags, from == nil), n, err)
		c.Write(make([]byte, 9))
		n, _, flags, _, err = a.(*net.UDPConn).ReadMsgUDP(buf, nil)
		p.add(fmt.Sprint("udp message cut ", flags&syscall.MSG_TRUNC != 0), n, err)
		n, err = c.(*net.UDPConn).WriteTo(buf, a.LocalAddr())
		p.add("udp connected, write to", n, err)
		a.Close()
		n, err = c.Write(buf)
		p.add("udp closed, write", n, err)
		c.SetDeadline(time.Now().Add(20 * time.Millisecond))
		n, err = c.Read(buf)
		p.add("udp closed, read", n, err)
		n, err = c.Write(buf)
		p.add("udp closed, write again", n, err)
		n, err = c.Write(buf)
		p.add("udp closed, write once more", n, err)
		c.Close()
		n, err = a.WriteTo(buf, c.LocalAddr())
		p.add("udp closed itself, write", n, err)
	}
	for _, host := range []string{"127.0.0.1", "[::1]", ""} {
		c, err := net.ListenPacket("udp", host+":0")
		if err != nil {
			t.Fatal(err)
		}
		for _, size := range []int{0, 1, 65507, 65508, 65527, 65528, 65535, 65536, 70000} {
			n, err := c.(net.Conn).Write(make([]byte, size))
			p.add(fmt.Sprint("udp ", host, ", not connected, write ", size), n, err)
			for _, to := range []string{"127.0.0.1", "::1"} {
				at := &net.UDPAddr{IP: net.ParseIP(to), Port: c.LocalAddr().(*net.UDPAddr).Port}
				n, err := c.WriteTo(make([]byte, size), at)
				p.add(fmt.Sprint("udp ", host, ", write to ", to, " ", size), n, err)
			}
		}
		c.Close()
	}
	c, err := net.Dial("udp", "127.0.0.1:9")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	n, err := c.Write([]byte("x"))
	p.add("udp, never there, write", n, err)
	c.SetDeadline(time.Now().Add(20 * time.Millisecond))
	n, err = c.Read(make([]byte, 1))
	p.add("udp, never there, read", n, err)
}

// local has unix sockets.
func (p *probe) local(t *testing.T) {
	name := filepath.Join(dir(t), "s")
	_, err := net.Dial("unix", name)
	p.add("unix, never there", 0, err)
	l, err := net.Listen("unix", name)
	p.add("unix", 0, err)
	_, err = net.Listen("unix", name)
	p.add("unix, in use", 0, err)
	_, err = net.Dial("unixgram", name)
	p.add("unix, another type", 0, err)
	c, err := net.Dial("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	d, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	p.add(fmt.Sprintf("unix addresses %q %q %q %q", numbers(c.LocalAddr().String()), numbers(c.RemoteAddr().String()),
		numbers(d.LocalAddr().String()), numbers(d.RemoteAddr().String())), 0, nil)
	c.Close()
	d.Close()
	l.(*net.UnixListener).SetUnlinkOnClose(false)
	l.Close()
	_, err = net.Dial("unix", name)
	p.add("unix, closed, with its file", 0, err)
	os.Remove(name)
	_, err = net.Dial("unix", name)
	p.add("unix, without its file", 0, err)
	a, err := net.ListenPacket("unixgram", name)
	if err != nil {
		t.Fatal(err)
	}
	e, err := net.Dial("unixgram", name)
	p.add("unixgram", 0, err)
	n, err := e.Write([]byte("hello"))
	p.add("unixgram write", n, err)
	n, from, err := a.ReadFrom(make([]byte, 3))
	p.add(fmt.Sprint("unixgram read from ", from), n, err)
	a.Close()
	for _, time := range []string{"", " again", " once more"} {
		n, err = e.Write([]byte("hello"))
		p.add("unixgram closed, write"+time, n, err)
	}
	e.Close()
	p.datagrams(t)
	f, err := net.Listen("unix", "@coirprobe-abstract")
	p.add("abstract", 0, err)
	_, err = net.Listen("unix", "@coirprobe-abstract")
	p.add("abstract, in use", 0, err)
	g, err := net.Dial("unix", "@coirprobe-abstract")
	if p.add("abstract, dial", 0, err); err == nil {
		p.add(fmt.Sprintf("abstract %q %q", g.LocalAddr(), g.RemoteAddr()), 0, nil)
		g.Close()
	}
	f.Close()
	_, err = net.Dial("unix", "@coirprobe-abstract")
	p.add("abstract, closed", 0, err)
}

// datagrams has unix sockets with packets.
func (p *probe) datagrams(t *testing.T) {
	buf := make([]byte, 300000)
	open := func(to *net.UnixConn, named bool) *net.UnixConn {
		at := &net.UnixAddr{Name: filepath.Join(dir(t), "s"), Net: "unixgram"}
		c, err := (*net.UnixConn)(nil), error(nil)
		switch {
		case to == nil:
			c, err = net.ListenUnixgram("unixgram", at)
		case named:
			c, err = net.DialUnix("unixgram", at, to.LocalAddr().(*net.UnixAddr))
		default:
			c, err = net.DialUnix("unixgram", nil, to.LocalAddr().(*net.UnixAddr))
		}
		if p.add("unixgram, open", 0, err); err != nil {
			return nil
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	soon := func(c *net.UnixConn) { c.SetDeadline(time.Now().Add(20 * time.Millisecond)) }
	write := func(what string, c *net.UnixConn, size int) {
		soon(c)
		n, err := c.Write(buf[:size])
		p.add("unixgram, "+what, n, err)
	}
	writeTo := func(what string, c, to *net.UnixConn, size int) {
		soon(c)
		n, err := c.WriteTo(buf[:size], to.LocalAddr())
		p.add("unixgram, "+what, n, err)
	}
	read := func(what string, c *net.UnixConn) {
		soon(c)
		n, from, err := c.ReadFrom(buf[:100])
		p.add(fmt.Sprint("unixgram, "+what+", from ", numbers(fmt.Sprint(from))), n, err)
	}
	for _, how := range []string{"read", "write", "both"} {
		a, b := open(nil, true), (*net.UnixConn)(nil)
		b = open(a, true)
		write("before "+how, b, 5)
		for _, c := range []*net.UnixConn{a, b} {
			if how != "write" {
				p.add("unixgram, close read", 0, c.CloseRead())
			}
			if how != "read" {
				p.add("unixgram, close write", 0, c.CloseWrite())
			}
			for range 2 {
				read(how+" closed, read", a)
				read(how+" closed, read other end", b)
				writeTo(how+" closed, write", a, b, 3)
				write(how+" closed, write at other end", b, 4)
			}
		}
	}
	a := open(nil, true)
	b := open(a, true)
	c := open(nil, true)
	for _, size := range []int{0, 1, 212992 - 32, 212992 - 31, 300000} {
		write(fmt.Sprint("write ", size), b, size)
		writeTo(fmt.Sprint("write to ", size), c, a, size)
		read("size", a)
		read("size", a)
	}
	writeTo("write to one that is connected to another", c, b, 1)
	if open(b, true) != nil {
		t.Error("a socket that is connected has a second one")
	}
	writeTo("write to itself", c, c, 1)
	write("write, not connected", c, 1)
	writeTo("before the other end is closed", a, b, 5)
	a.Close()
	writeTo("write to one that is closed", c, a, 1)
	for range 3 {
		write("other end closed, write", b, 1)
	}
	read("other end closed, what it wrote", b)
	writeTo("closed to one that was connected", c, b, 1)
	read("one that was connected", b)
	for _, kind := range []string{"connected", "both connected", "not connected"} { // how many fit
		a := open(nil, true)
		b := open(a, true)
		one := func() (int, error) { return b.Write(buf[:1]) }
		switch kind {
		case "both connected":
			rc, err := a.SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			rc.Control(func(fd uintptr) {
				to := &syscall.SockaddrUnix{Name: b.LocalAddr().String()}
				p.add("connect to the other end", 0, syscall.Connect(int(fd), to))
			})
		case "not connected":
			b = open(nil, true)
			one = func() (int, error) { return b.WriteTo(buf[:1], a.LocalAddr()) }
		}
		for i := range 30 {
			soon(b)
			n, err := one()
			p.add(fmt.Sprint("unixgram, ", kind, ", packet ", i), n, err)
		}
	}
}

// names has the addresses of unix sockets that are found by another name, and of those that they read from.
func (p *probe) names(t *testing.T) {
	buf := make([]byte, 100)
	for _, network := range []string{"unix", "unixpacket", "unixgram"} {
		d := dir(t)
		at := func(name string) *net.UnixAddr { return &net.UnixAddr{Name: filepath.Join(d, name), Net: network} }
		name := func(a net.Addr) string {
			if u, _ := a.(*net.UnixAddr); u != nil {
				return filepath.Base(u.Name)
			}
			return "nil"
		}
		if err := os.Symlink("s", at("link").Name); err != nil {
			t.Fatal(err)
		}
		var l *net.UnixListener
		var b *net.UnixConn
		var err error
		if network == "unixgram" {
			b, err = net.ListenUnixgram(network, at("s"))
		} else {
			l, err = net.ListenUnix(network, at("s"))
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, from := range []*net.UnixAddr{nil, at("c")} {
			a, err := net.DialUnix(network, from, at("link"))
			if err != nil {
				t.Fatal(err)
			}
			if l != nil {
				if b, err = l.AcceptUnix(); err != nil {
					t.Fatal(err)
				}
			}
			what := network + " from " + name(from)
			p.add(fmt.Sprint(what, " at ", name(a.LocalAddr()), " to ", name(a.RemoteAddr())), 0, nil)
			p.add(fmt.Sprint(what, " accepted at ", name(b.LocalAddr()), " from ", name(b.RemoteAddr())), 0, nil)
			for i, c := range []*net.UnixConn{a, b} {
				other := []*net.UnixConn{b, a}[i]
				_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
				read := func(size int) {
					n, from, err := c.ReadFrom(buf[:size])
					p.add(fmt.Sprint(what, " end ", i, " reads ", size, " from ", name(from)), n, err)
				}
				read(3)
				if network == "unixgram" && i == 0 {
					if from == nil {
						continue // it has no name to write to
					}
					_, err = b.WriteTo(buf[:10], from)
				} else {
					_, err = other.Write(buf[:10])
				}
				p.add(what+" writes", 0, err)
				read(0)
				read(3)
				n, _, _, from, err := c.ReadMsgUnix(buf[:3], nil)
				p.add(fmt.Sprint(what, " end ", i, " reads a message from ", name(from)), n, err)
			}
			_ = a.Close()
			_ = b.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
			for range 3 { // some is left
				n, from, err := b.ReadFrom(buf[:4])
				p.add(fmt.Sprint(what, ", other end closed, reads from ", name(from)), n, err)
			}
			if l != nil {
				_ = b.Close()
			}
			os.Remove(at("c").Name)
		}
		if l != nil {
			_ = l.Close()
		} else {
			_ = b.Close()
		}
	}
}

// options has what a program may do with a raw connection.
func (p *probe) options(t *testing.T) {
	l, a, b := pair(t, "tcp4")
	raw := func(what string, c syscall.Conn, opt int) {
		rc, err := c.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		rc.Control(func(fd uintptr) {
			v, err := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, opt)
			p.add(what, v, err)
		})
	}
	tcp := a.(*net.TCPConn)
	raw("type of a connection", tcp, syscall.SO_TYPE)
	raw("type of a listener", l.(*net.TCPListener), syscall.SO_TYPE)
	raw("listens, a connection", tcp, syscall.SO_ACCEPTCONN)
	raw("listens, a listener", l.(*net.TCPListener), syscall.SO_ACCEPTCONN)
	raw("error of a connection", tcp, syscall.SO_ERROR)
	rc, _ := tcp.SyscallConn()
	alive := func(what string) { // as drivers of databases check a connection
		var n int
		var err error
		rc.Read(func(fd uintptr) bool {
			n, err = syscall.Read(int(fd), make([]byte, 1))
			return true
		})
		p.add(what, n, err)
	}
	alive("check of an open connection")
	b.Write([]byte("x"))
	for _, what := range []string{"peek", "peek again"} { // as drivers of databases check it, too
		rc.Read(func(fd uintptr) bool {
			n, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
			p.add(what, n, err)
			return true
		})
	}
	alive("check of one with data")
	b.Close()
	alive("check of one that is closed")
	alive("check again")
}
