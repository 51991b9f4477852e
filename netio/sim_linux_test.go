package netio_test

// A simulated connection behaves like a real one on the loopback device of Linux: the same operations have the same
// results and errors.

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

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/netio"
	"github.com/coir-go/coir/sim"
)

// twoEnds has the two ends of a connection, and a record of the results of operations on them.
type twoEnds struct {
	ctx     context.Context
	n       *coir.Nursery
	l       net.Listener
	a, b    *netio.Conn // a is the end that dialled
	network string
	log     []string
}

func (p *twoEnds) say(format string, args ...any) {
	p.log = append(p.log, fmt.Sprintf(format, args...))
}

// read reads up to size bytes from c.
func (p *twoEnds) read(c *netio.Conn, size int) {
	b := make([]byte, size)
	n, err := c.Read(b)
	p.say("read %q %s", b[:n], outcome(err))
}

func (p *twoEnds) write(c *netio.Conn, text string) {
	n, err := c.Write([]byte(text))
	p.say("write %d %s", n, outcome(err))
}

func (p *twoEnds) do(what string, err error) { p.say("%s %s", what, outcome(err)) }

// text records the text of an error, which is the same for both connections if they have the same types and addresses.
func (p *twoEnds) text(what string, err error) {
	text := fmt.Sprint(err)
	for e := err; e != nil; e = errors.Unwrap(e) {
		text += fmt.Sprintf(" %T", e)
	}
	p.do(what+" "+strings.ReplaceAll(text, p.l.Addr().String(), "the listener"), err)
}

// awaitWait returns when f is waiting.
func (p *twoEnds) awaitWait(f *coir.Fiber) {
	for f.State() != coir.StateWaiting {
		_ = coir.Yield(p.ctx)
	}
}

// outcome describes the properties of an error that a program can see.
func outcome(err error) string {
	if err == nil {
		return "ok"
	}
	text := ""
	var op *net.OpError
	if errors.As(err, &op) {
		text += op.Op + " " + op.Net + " "
		if op.Source != nil {
			text += "from a source "
		}
		if op.Addr != nil {
			text += "with an address "
		}
	}
	var call *os.SyscallError
	if errors.As(err, &call) {
		text += call.Syscall + " "
	}
	for _, known := range []error{
		io.EOF, net.ErrClosed, os.ErrDeadlineExceeded, context.Canceled, context.DeadlineExceeded, syscall.ECONNRESET,
		syscall.EPIPE, syscall.ECONNREFUSED, syscall.EADDRINUSE, syscall.ENOTCONN, syscall.ENOENT,
	} {
		if errors.Is(err, known) {
			text += "(" + known.Error() + ")"
		}
	}
	var timed net.Error
	if errors.As(err, &timed) && timed.Timeout() {
		text += " timeout"
	}
	return text
}

var past = time.Unix(1, 0)

// conformance has the operations on a pair.
var conformance = map[string]func(p *twoEnds){
	"exchange": func(p *twoEnds) {
		p.write(p.a, "hello")
		p.read(p.b, 3)
		p.read(p.b, 10)
		p.write(p.b, "x")
		p.write(p.b, "y")
		b := make([]byte, 2)
		n, err := io.ReadFull(p.a, b)
		p.say("%q %d %s", b, n, outcome(err))
	},
	"nothing": func(p *twoEnds) {
		p.write(p.a, "")
		p.read(p.a, 0)
		p.do("close", p.a.Close())
		p.write(p.a, "")
		p.read(p.a, 0)
	},
	"close": func(p *twoEnds) {
		p.write(p.a, "last")
		p.do("close", p.a.Close())
		p.do("close", p.a.Close())
		p.read(p.a, 1)
		p.write(p.a, "x")
		p.read(p.b, 10)
		p.read(p.b, 10)
		p.read(p.b, 10)
	},
	"closed: set": func(p *twoEnds) {
		p.do("close", p.a.Close())
		p.do("set", p.a.SetDeadline(time.Time{}))
		p.do("set", p.a.SetReadDeadline(past))
		p.do("set", p.a.SetWriteDeadline(past))
		p.do("close read", p.a.CloseRead())
		p.do("close write", p.a.CloseWrite())
		p.do("readable", p.a.OnReadable(func() {}))
	},
	"write to a closed peer": func(p *twoEnds) {
		p.do("close", p.a.Close())
		p.read(p.b, 1)
		p.write(p.b, "x")
		p.write(p.b, "x")
		p.write(p.b, "x")
		p.read(p.b, 1)
		p.do("close write", p.b.CloseWrite())
		p.do("close", p.b.Close())
	},
	"close with unread data": func(p *twoEnds) {
		p.write(p.a, "unread")
		p.write(p.b, "read")
		p.do("close", p.b.Close())
		p.read(p.a, 10)
		p.read(p.a, 10)
		p.read(p.a, 10)
		p.write(p.a, "x")
		p.do("close read", p.a.CloseRead())
		p.do("close", p.a.Close())
	},
	"close with unread data, then write": func(p *twoEnds) {
		p.write(p.a, "unread")
		p.do("close", p.b.Close())
		p.write(p.a, "x")
		p.write(p.a, "x")
		p.read(p.a, 10)
	},
	"half-close": func(p *twoEnds) {
		p.write(p.a, "request")
		p.do("close write", p.a.CloseWrite())
		p.write(p.a, "x")
		p.write(p.a, "")
		p.read(p.b, 10)
		p.read(p.b, 10)
		p.write(p.b, "answer")
		p.read(p.a, 10)
		p.do("close write", p.a.CloseWrite())
		p.do("close", p.b.Close())
		p.read(p.a, 10)
		p.do("close", p.a.Close())
	},
	"both half-closed": func(p *twoEnds) {
		p.do("close write", p.a.CloseWrite())
		p.read(p.b, 1)
		p.do("close write", p.b.CloseWrite())
		p.read(p.a, 1)
		p.read(p.b, 1)
		p.write(p.a, "x")
		p.do("close write", p.a.CloseWrite())
		p.do("close read", p.b.CloseRead())
		p.do("close", p.a.Close())
		p.do("close", p.b.Close())
	},
	"close of the reading side": func(p *twoEnds) {
		p.write(p.b, "before")
		p.do("close read", p.a.CloseRead())
		p.read(p.a, 10)
		p.read(p.a, 10)
		p.write(p.b, "after")
		p.write(p.a, "x")
		p.read(p.b, 10)
	},
	"deadlines that have passed": func(p *twoEnds) {
		p.write(p.a, "there")
		p.do("set", p.b.SetReadDeadline(past))
		p.read(p.b, 10)
		p.read(p.b, 0)
		p.write(p.b, "x")
		p.do("set", p.b.SetWriteDeadline(past))
		p.write(p.b, "x")
		p.do("readable", p.b.OnReadable(func() {}))
		p.do("set", p.b.SetDeadline(time.Time{}))
		p.read(p.b, 10)
		p.write(p.b, "x")
		p.do("set", p.b.SetDeadline(past))
		p.do("close", p.b.Close())
		p.read(p.b, 1)
	},
	"a deadline while waiting": func(p *twoEnds) {
		p.do("set", p.a.SetReadDeadline(time.Now().Add(time.Millisecond)))
		p.read(p.a, 1)
		p.do("set", p.a.SetReadDeadline(time.Now().Add(time.Hour)))
		p.write(p.b, "x")
		p.read(p.a, 1)
	},
	"a full buffer": func(p *twoEnds) {
		var n int
		w := coir.Start(p.n, "writer", func(context.Context) (_ string, err error) {
			n, err = p.a.Write(make([]byte, 32<<20))
			return outcome(err), nil
		})
		p.awaitWait(w.Fiber())
		p.do("set", p.a.SetWriteDeadline(past))
		got, _ := w.Wait(p.ctx)
		p.say("write %v %s", 0 < n && n < 32<<20, got)
		p.do("set", p.a.SetWriteDeadline(time.Time{}))
		drained := coir.NewEvent()
		p.n.Go("drain", func(context.Context) error {
			m, err := io.CopyN(io.Discard, p.b, int64(n)+1<<20)
			p.say("drained %v %s", m == int64(n)+1<<20, outcome(err))
			drained.Set()
			return nil
		})
		m, err := p.a.Write(make([]byte, 1<<20))
		_ = drained.Wait(p.ctx)
		p.say("write %d %s", m, outcome(err))
	},
	"close while another reads": func(p *twoEnds) {
		r := coir.Start(p.n, "reader", func(context.Context) (string, error) {
			_, err := p.a.Read(make([]byte, 1))
			return outcome(err), nil
		})
		p.awaitWait(r.Fiber())
		p.do("close", p.a.Close())
		got, _ := r.Wait(p.ctx)
		p.say("read %s", got)
	},
	"contexts": func(p *twoEnds) {
		ctx, cancel := coir.WithTimeout(p.ctx, time.Millisecond)
		defer cancel()
		_, err := p.a.ReadContext(ctx, make([]byte, 1))
		p.do("read", err)
		_, err = p.a.WriteContext(ctx, make([]byte, 1))
		p.do("write", err)
		_, err = p.l.(*netio.Listener).AcceptContext(ctx)
		p.do("accept", err)
		p.write(p.b, "x")
		p.read(p.a, 1)
	},
	"dials that have ended": func(p *twoEnds) {
		free := "127.0.0.1:0"
		if p.network == "unix" {
			free = "@ended"
		}
		gone, cancel := coir.WithCancel(p.ctx)
		cancel()
		late, cancel := coir.WithTimeout(p.ctx, 0)
		defer cancel()
		_ = coir.WaitCancel(late)
		std, cancel := context.WithCancel(late)
		defer cancel()
		for _, ctx := range []context.Context{gone, late, std} {
			_, err := new(netio.Dialer).DialContext(ctx, p.network, p.l.Addr().String())
			p.text("dial", err)
			_, err = new(netio.Dialer).DialContext(ctx, p.network, "")
			p.text("dial nothing", err)
			_, err = (&netio.Dialer{LocalAddr: &net.IPAddr{}}).DialContext(ctx, p.network, p.l.Addr().String())
			p.text("dial from elsewhere", err)
			l, err := new(netio.ListenConfig).Listen(ctx, p.network, free)
			if p.text("listen", err); err == nil {
				p.do("close", l.Close())
			}
		}
		for _, d := range []*netio.Dialer{{Timeout: -1}, {Deadline: past}} {
			_, err := d.Dial(p.network, p.l.Addr().String())
			p.text("dial", err)
		}
	},
	"dials from an address": func(p *twoEnds) {
		for _, local := range []net.Addr{
			&net.UDPAddr{}, &net.IPAddr{}, &net.UnixAddr{Net: "unixgram", Name: "@x"}, (*net.TCPAddr)(nil),
			&net.TCPAddr{IP: net.IPv6loopback}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)},
		} {
			c, err := (&netio.Dialer{LocalAddr: local}).Dial(p.network, p.l.Addr().String())
			if p.text(fmt.Sprintf("from %T %v", local, local), err); err == nil {
				p.do("close", c.Close())
			}
		}
		if p.network == "tcp" {
			_, err := (&netio.Dialer{LocalAddr: p.a.LocalAddr()}).Dial("tcp", p.l.Addr().String())
			p.do("from an address in use", err)
		}
	},
	"malformed addresses": func(p *twoEnds) {
		for _, network := range []string{"tcp", "tcp4", "tcp6", "unix", "", "tcp5", "TCP", "x:tcp"} {
			for _, address := range []string{
				"", ":", "0", "a:b:c", "[::1", "[::1]", "[::1]x:1", "127.0.0.1:99999", "127.0.0.1:-1", "127.0.0.1:no-service",
				"[]:0", "[::1]:0", "127.0.0.1:0", "0.0.0.0:0", "\x00",
			} {
				if network == "unix" && address != "" {
					continue // the simulation accepts any name
				}
				_, err := netio.Dial(network, address)
				p.text(fmt.Sprintf("dial %s %q", network, address), err)
				l, err := netio.Listen(network, address)
				p.text(fmt.Sprintf("listen %s %q", network, address), err)
				if err != nil {
					continue
				}
				if a, ok := l.Addr().(*net.TCPAddr); ok {
					p.say("at %v", a.IP)
				}
				p.do("close", l.Close())
			}
		}
	},
	"callbacks": func(p *twoEnds) {
		for _, how := range []func(){
			func() { p.write(p.b, "now") },
			func() { p.do("close write", p.b.CloseWrite()) },
		} {
			called := coir.NewEvent()
			p.do("readable", p.a.OnReadable(func() { called.Set() }))
			p.do("again", p.a.OnReadable(func() {}))
			how()
			p.do("called", called.Wait(p.ctx))
			p.read(p.a, 10)
		}
		called := coir.NewEvent()
		p.do("at the end", p.a.OnReadable(func() { called.Set() }))
		p.do("called", called.Wait(p.ctx))
		called = coir.NewEvent()
		p.do("readable", p.b.OnReadable(func() { called.Set() }))
		p.do("set", p.b.SetReadDeadline(past))
		p.do("called", called.Wait(p.ctx))
		called = coir.NewEvent()
		p.do("set", p.b.SetReadDeadline(time.Time{}))
		p.do("readable", p.b.OnReadable(func() { called.Set() }))
		p.do("close", p.b.Close())
		p.do("called", called.Wait(p.ctx))
	},
	"a callback after a reset": func(p *twoEnds) {
		p.write(p.a, "unread")
		p.do("close", p.b.Close())
		called := coir.NewEvent()
		p.do("readable", p.a.OnReadable(func() { called.Set() }))
		p.do("set", p.a.SetReadDeadline(time.Now().Add(time.Hour)))
		p.do("called", called.Wait(p.ctx))
		p.read(p.a, 1)
	},
	"after a reset": func(p *twoEnds) {
		p.write(p.a, "unread")
		p.do("close", p.b.Close())
		for range 2 {
			p.read(p.a, 1)
		}
		p.write(p.a, "x")
		p.read(p.a, 1)
	},
	"listening": func(p *twoEnds) {
		_, err := netio.Listen(p.network, p.l.Addr().String())
		p.do("again", err)
		p.do("set", p.l.(*netio.Listener).SetDeadline(past))
		_, err = p.l.Accept()
		p.do("accept", err)
		p.do("set", p.l.(*netio.Listener).SetDeadline(time.Time{}))
		left, err := netio.Dial(p.network, p.l.Addr().String())
		p.do("dial", err)
		p.do("close", p.l.Close())
		p.do("close", p.l.Close())
		_, err = p.l.Accept()
		p.do("accept", err)
		p.do("set", p.l.(*netio.Listener).SetDeadline(past))
		_, err = left.Read(make([]byte, 1))
		p.do("read", err)
		p.do("close", left.Close())
		_, err = netio.Dial(p.network, p.l.Addr().String())
		p.do("dial", err)
		l, err := netio.Listen(p.network, p.l.Addr().String())
		p.do("listen", err)
		if err == nil {
			p.do("close", l.Close())
		}
	},
	"addresses": func(p *twoEnds) {
		p.say("%T %s %T %s", p.a.LocalAddr(), p.a.LocalAddr().Network(), p.a.RemoteAddr(), p.a.RemoteAddr().Network())
		p.say("%v", p.a.LocalAddr().String() == p.b.RemoteAddr().String())
		p.say("%v", p.b.LocalAddr().String() == p.a.RemoteAddr().String())
		p.say("%v", p.b.LocalAddr().String() == p.l.Addr().String())
	},
}

// withPair calls f with a new pair, and closes it.
func withPair(ctx context.Context, network, address string, f func(p *twoEnds)) (log []string, err error) {
	p := &twoEnds{network: network}
	err = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		p.ctx, p.n = ctx, n
		if p.l, err = netio.Listen(network, address); err != nil {
			return err
		}
		defer func() { _ = p.l.Close() }()
		a, err := netio.Dial(network, p.l.Addr().String())
		if err != nil {
			return err
		}
		defer func() { _ = a.Close() }()
		b, err := p.l.Accept()
		if err != nil {
			return err
		}
		defer func() { _ = b.Close() }()
		p.a, p.b = a.(*netio.Conn), b.(*netio.Conn)
		f(p)
		return nil
	})
	return p.log, err
}

func hasIPv6() bool {
	l, err := net.Listen("tcp6", "[::1]:0")
	if err == nil {
		_ = l.Close()
	}
	return err == nil
}

func TestSimulatedConnectionsDoWhatRealOnesDo(t *testing.T) {
	schedules := 100
	if testing.Short() {
		schedules = 5
	}
	for _, network := range []string{"tcp", "unix"} {
		for name, f := range conformance {
			t.Run(network+"/"+name, func(t *testing.T) {
				if name == "malformed addresses" && !hasIPv6() {
					t.Skip("there is no IPv6")
				}
				address := "127.0.0.1:0"
				if network == "unix" {
					address = filepath.Join(t.TempDir(), "s")
				}
				real, err := withPair(t.Context(), network, address, f)
				if err != nil {
					t.Fatal(err)
				}
				want := strings.Join(real, "\n")
				sim.Test(t, func(ctx context.Context, s *sim.Sim) {
					got, err := withPair(ctx, network, address, f)
					if err != nil {
						s.Errorf("%v", err)
					} else if got := strings.Join(got, "\n"); got != want {
						s.Errorf("simulated:\n%s\nreal:\n%s", got, want)
					}
				}, sim.WithSchedules(schedules))
			})
		}
	}
}

// TestTimeLimits checks that an error says which time limit has passed, for real and simulated connections.
func TestTimeLimits(t *testing.T) {
	check := func(p *twoEnds) {
		late, cancel := coir.WithTimeout(p.ctx, 0)
		defer cancel()
		_ = coir.WaitCancel(late)
		l := p.l.(*netio.Listener)
		_, dial := new(netio.Dialer).DialContext(late, p.network, l.Addr().String())
		_, read := p.a.ReadContext(late, make([]byte, 1))
		_, write := p.a.WriteContext(late, make([]byte, 1))
		_, accept := l.AcceptContext(late)
		_, _ = p.a.SetDeadline(past), l.SetDeadline(past)
		_, readDue := p.a.Read(make([]byte, 1))
		_, writeDue := p.a.Write(make([]byte, 1))
		_, acceptDue := l.Accept()
		for _, x := range []struct {
			what string
			err  error
			is   string
		}{
			{"dial", dial, "context"},
			{"read", read, "context coir"},
			{"write", write, "context coir"},
			{"accept", accept, "context coir"},
			{"read after its deadline", readDue, "os"},
			{"write after its deadline", writeDue, "os"},
			{"accept after its deadline", acceptDue, "os"},
		} {
			var is []string
			for _, kind := range []struct {
				name string
				err  error
			}{{"context", context.DeadlineExceeded}, {"coir", coir.ErrTimeout}, {"os", os.ErrDeadlineExceeded}} {
				if errors.Is(x.err, kind.err) {
					is = append(is, kind.name)
				}
			}
			var timed net.Error
			if got := strings.Join(is, " "); got != x.is || !errors.As(x.err, &timed) || !timed.Timeout() {
				p.say("%s: %v is %s, want %s", x.what, x.err, got, x.is)
			}
		}
	}
	wrong, err := withPair(t.Context(), "tcp", "127.0.0.1:0", check)
	if err != nil || len(wrong) > 0 {
		t.Errorf("real: %q, %v", wrong, err)
	}
	if f := sim.Run(1, func(ctx context.Context, s *sim.Sim) {
		if wrong, err := withPair(ctx, "tcp", "127.0.0.1:0", check); err != nil || len(wrong) > 0 {
			s.Errorf("simulated: %q, %v", wrong, err)
		}
	}); f != nil {
		t.Error(f)
	}
}
