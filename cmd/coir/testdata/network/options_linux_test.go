package network

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"syscall"
	"testing"
	"unsafe"
)

// Tests of options, and of system calls that are made without the functions of package syscall, as by
// golang.org/x/sys/unix.

// control calls f with the descriptor of a socket.
func control(t *testing.T, c any, f func(fd uintptr)) {
	t.Helper()
	rc, err := c.(syscall.Conn).SyscallConn()
	if err == nil {
		err = rc.Control(f)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// setRaw sets an option by a system call.
func setRaw(fd uintptr, level, opt int, value int32) error {
	_, _, err := syscall.Syscall6(syscall.SYS_SETSOCKOPT, fd, uintptr(level), uintptr(opt),
		uintptr(unsafe.Pointer(&value)), 4, 0)
	if err != 0 {
		return err
	}
	return nil
}

// getRaw reads an option by a system call.
func getRaw(fd uintptr, level, opt int) (int, error) {
	var value int32
	size := int32(4)
	_, _, err := syscall.Syscall6(syscall.SYS_GETSOCKOPT, fd, uintptr(level), uintptr(opt),
		uintptr(unsafe.Pointer(&value)), uintptr(unsafe.Pointer(&size)), 0)
	if err != 0 {
		return int(value), err
	}
	return int(value), nil
}

const (
	reusePort   = 15 // SO_REUSEPORT
	userTimeout = 18 // TCP_USER_TIMEOUT
)

// values has the options of sockets: each socket has its own, and a connection begins with those of its listener.
func (p *probe) values(t *testing.T) {
	all := []struct {
		name       string
		level, opt int
		value      int32
	}{
		{"type", syscall.SOL_SOCKET, syscall.SO_TYPE, -1},
		{"domain", syscall.SOL_SOCKET, 39, -1},
		{"error", syscall.SOL_SOCKET, syscall.SO_ERROR, -1},
		{"listens", syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN, -1},
		{"reuse", syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1},
		{"reuse port", syscall.SOL_SOCKET, reusePort, 1},
		{"keep alive", syscall.SOL_SOCKET, syscall.SO_KEEPALIVE, 0},
		{"broadcast", syscall.SOL_SOCKET, syscall.SO_BROADCAST, 1},
		{"read buffer", syscall.SOL_SOCKET, syscall.SO_RCVBUF, 5000},
		{"no delay", syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 0},
		{"cork", syscall.IPPROTO_TCP, syscall.TCP_CORK, 1},
		{"idle", syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, 60},
		{"idle, wrong", syscall.IPPROTO_TCP, syscall.TCP_KEEPIDLE, -5},
		{"count", syscall.IPPROTO_TCP, syscall.TCP_KEEPCNT, 7},
		{"user timeout", syscall.IPPROTO_TCP, userTimeout, 1000},
		{"type of service", syscall.IPPROTO_IP, syscall.IP_TOS, 16},
		{"time to live", syscall.IPPROTO_IP, syscall.IP_TTL, 33},
		{"only IPv6", syscall.IPPROTO_IPV6, syscall.IPV6_V6ONLY, 1},
		{"hops", syscall.IPPROTO_IPV6, syscall.IPV6_UNICAST_HOPS, 12},
	}
	for _, network := range []string{"tcp4", "tcp6", "unix", "unixpacket", "udp4", "udp6"} {
		var sockets []any
		if network == "udp4" || network == "udp6" {
			address := map[string]string{"udp4": "127.0.0.1:0", "udp6": "[::1]:0"}[network]
			for range 2 {
				c, err := net.ListenPacket(network, address)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { c.Close() })
				sockets = append(sockets, c)
			}
		} else {
			l, a, b := pair(t, network)
			sockets = append(sockets, l, a, b)
		}
		read := func(when string) {
			for i, s := range sockets {
				control(t, s, func(fd uintptr) {
					for _, o := range all {
						what := fmt.Sprintf("%s, %s, %s of %d", network, when, o.name, i)
						v, err := getRaw(fd, o.level, o.opt)
						p.add(what, v, err)
						w, err2 := syscall.GetsockoptInt(int(fd), o.level, o.opt)
						if w != v || err2 != nil && err2 != err {
							t.Error(what, v, err, "and", w, err2)
						}
					}
					u, err := syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
					if err != nil {
						t.Fatal(err)
					}
					p.add(fmt.Sprintf("%s, %s, process of %d, %d, %d", network, when, i, u.Uid, u.Gid), 0, nil)
					if u.Pid != 0 && int(u.Pid) != os.Getpid() {
						t.Error(u)
					}
				})
			}
		}
		read("first")
		for i, s := range sockets {
			control(t, s, func(fd uintptr) {
				for k, o := range all {
					switch what := fmt.Sprintf("%s, set %s of %d", network, o.name, i); {
					case o.value == -1:
					case k%2 == 0:
						p.add(what, 0, setRaw(fd, o.level, o.opt, o.value))
					default:
						p.add(what, 0, syscall.SetsockoptInt(int(fd), o.level, o.opt, int(o.value)))
					}
				}
			})
			read(fmt.Sprint("set ", i))
		}
		if l, ok := sockets[0].(net.Listener); ok {
			c, err := net.Dial(network, l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			d, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			sockets = []any{c, d}
			read("of the listener")
			c.Close()
			d.Close()
		}
	}
}

// An option that is set by a system call counts: two listeners have one port.
func TestReusePort(t *testing.T) {
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var err error
		if e := c.Control(func(fd uintptr) { err = setRaw(fd, syscall.SOL_SOCKET, reusePort, 1) }); e != nil {
			return e
		}
		return err
	}}
	a, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	b, err := lc.Listen(t.Context(), "tcp", a.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	_ = b.Close()
	if _, err := net.Listen("tcp", a.Addr().String()); err == nil {
		t.Error("a listener that does not share its port has the same one")
	}
}

// A connection is reset if the option for that was set by a system call.
func TestLinger(t *testing.T) {
	_, a, b := pair(t, "tcp4")
	control(t, b, func(fd uintptr) {
		linger := syscall.Linger{Onoff: 1}
		_, _, err := syscall.Syscall6(syscall.SYS_SETSOCKOPT, fd, syscall.SOL_SOCKET, syscall.SO_LINGER,
			uintptr(unsafe.Pointer(&linger)), unsafe.Sizeof(linger), 0)
		if err != 0 {
			t.Error(err)
		}
	})
	_ = b.Close()
	if _, err := a.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Error(err)
	}
}

// What the kernel puts into control messages is not in memory.
func TestPacketInfoOnKernel(t *testing.T) {
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	control(t, c, func(fd uintptr) {
		if err := syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, syscall.IP_PKTINFO, 1); err != nil {
			t.Error(err)
		}
	})
	d, err := net.Dial("udp4", c.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	_, _ = d.Write([]byte("x"))
	if _, n, _, _, err := c.ReadMsgUDP(make([]byte, 10), make([]byte, 100)); n == 0 || err != nil {
		t.Error(n, err)
	}
}

// What the kernel knows of a connection is its state.
func TestInfo(t *testing.T) {
	l, a, b := pair(t, "tcp4")
	for _, c := range []struct {
		of    syscall.Conn
		state uint64
	}{{l.(*net.TCPListener), 10}, {a.(*net.TCPConn), 1}, {b.(*net.TCPConn), 1}} {
		control(t, c.of, func(fd uintptr) {
			if state, err := getRaw(fd, syscall.IPPROTO_TCP, syscall.TCP_INFO); uint64(state)&0xff != c.state || err != nil {
				t.Errorf("the state is %d, not %d: %v", state&0xff, c.state, err)
			}
		})
	}
	_ = b.Close()
	_, _ = a.Read(make([]byte, 1)) // so that it knows
	control(t, a, func(fd uintptr) {
		if state, err := getRaw(fd, syscall.IPPROTO_TCP, syscall.TCP_INFO); state&0xff != 8 || err != nil {
			t.Error(state&0xff, err)
		}
	})
}

// System calls of other modules are the kernel's, each of them.
func TestNameOnKernel(t *testing.T)     { calls(t, syscall.SYS_GETSOCKNAME) }
func TestPeerNameOnKernel(t *testing.T) { calls(t, syscall.SYS_GETPEERNAME) }
func TestStatOnKernel(t *testing.T)     { calls(t, syscall.SYS_FSTAT) }

// calls makes a system call that stores something about a connection.
func calls(t *testing.T, trap uintptr) {
	_, a, _ := pair(t, "tcp4")
	control(t, a, func(fd uintptr) {
		buf := make([]byte, 1000)
		size := int32(len(buf))
		_, _, err := syscall.RawSyscall(trap, fd, uintptr(unsafe.Pointer(&buf[0])), uintptr(unsafe.Pointer(&size)))
		if err != 0 {
			t.Error(err)
		}
	})
}

func TestSyscallStatOnKernel(t *testing.T) {
	_, a, _ := pair(t, "tcp4")
	control(t, a, func(fd uintptr) {
		var st syscall.Stat_t
		if err := syscall.Fstat(int(fd), &st); err != nil || st.Mode&syscall.S_IFMT != syscall.S_IFSOCK {
			t.Error(err)
		}
	})
}

func TestEpollOnKernel(t *testing.T) {
	_, a, _ := pair(t, "tcp4")
	ep, err := syscall.EpollCreate1(0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(ep)
	control(t, a, func(fd uintptr) {
		event := &syscall.EpollEvent{Events: syscall.EPOLLOUT, Fd: int32(fd)}
		if err := syscall.EpollCtl(ep, syscall.EPOLL_CTL_ADD, int(fd), event); err != nil {
			t.Error(err)
		}
	})
}

func TestPollOnKernel(t *testing.T) {
	_, a, _ := pair(t, "tcp4")
	control(t, a, func(fd uintptr) {
		fds := []struct {
			fd              int32
			events, revents int16
		}{{-1, 0, 0}, {int32(fd), 4, 0}} // POLLOUT
		trap := map[string]uintptr{"amd64": 271, "arm64": 73}[runtime.GOARCH] // ppoll
		n, _, err := syscall.Syscall6(trap, uintptr(unsafe.Pointer(&fds[0])), 2,
			uintptr(unsafe.Pointer(&syscall.Timespec{})), 0, 0, 0)
		if n != 1 || err != 0 || fds[1].revents != 4 {
			t.Error(n, err, fds)
		}
	})
}
