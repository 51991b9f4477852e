//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package netio_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/netio"
)

// TestMain fails if descriptors or goroutines of the package are left after all tests have closed theirs.
func TestMain(m *testing.M) {
	if l, err := net.Listen("tcp", "localhost:0"); err == nil { // opens the descriptors of Go's own poller
		_ = l.Close()
	}
	before := descriptors()
	code := m.Run()
	patience := time.Now().Add(10 * time.Second)
	for code == 0 {
		stacks := make([]byte, 1<<20)
		stacks = stacks[:runtime.Stack(stacks, true)]
		goroutines := strings.Contains(string(stacks), "coir/netio.")
		now := descriptors()
		if now <= before && !goroutines {
			break
		}
		if time.Now().After(patience) {
			fmt.Printf("%d descriptors before, %d after\n%s\n", before, now, stacks)
			code = 1
		}
		runtime.Gosched()
	}
	os.Exit(code)
}

// descriptors returns the number of open descriptors below 1,000, or 0 if it cannot be found out.
func descriptors() (n int) {
	for fd := range 1000 {
		var st syscall.Stat_t
		if syscall.Fstat(fd, &st) == nil {
			n++
		}
	}
	return n
}

// inBoth runs body in a fiber and then in a goroutine.
func inBoth(t *testing.T, body func(t *testing.T, start func(func()))) {
	t.Helper()
	t.Run("goroutine", func(t *testing.T) {
		var all sync.WaitGroup
		defer all.Wait()
		body(t, func(f func()) { all.Go(f) })
	})
	t.Run("fiber", func(t *testing.T) {
		err := coir.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
			body(t, func(f func()) {
				n.Go("client", func(context.Context) error { f(); return nil })
			})
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// pair returns a connection of netio and its peer, which is a connection of package net.
func pair(t *testing.T, network string) (net.Conn, net.Conn) {
	t.Helper()
	address := "localhost:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	l, err := netio.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	peer, err := net.Dial(network, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(); _ = peer.Close() })
	return c, peer
}

// fill writes until a write would block. The buffers may accept a little more later, so use a large write to wait.
func fill(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.SetWriteDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1<<16)
	for {
		if _, err := c.Write(b); err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Fatal(err)
			}
			break
		}
	}
	if err := c.SetWriteDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
}

// want checks that err is the error that package net returns: an OpError for op that wraps target.
func want(t *testing.T, what string, err error, op string, target error) {
	t.Helper()
	var e *net.OpError
	if !errors.Is(err, target) || !errors.As(err, &e) || e.Op != op {
		t.Errorf("%s: got %v, want an OpError of %s that is %v", what, err, op, target)
	}
}

// Close ends every wait with net.ErrClosed, including waits for a turn.
//
// Spec: TK-17 (descriptor readiness completes a ticket)
func TestCloseEndsWaits(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		inBoth(t, func(t *testing.T, start func(func())) {
			c, _ := pair(t, network)
			l, err := netio.Listen("tcp", "localhost:0")
			if err != nil {
				t.Fatal(err)
			}
			fill(t, c)
			for range 3 {
				start(func() {
					_, err := c.Read(make([]byte, 1))
					want(t, "read", err, "read", net.ErrClosed)
				})
				start(func() {
					_, err := c.Write(make([]byte, 8<<20))
					want(t, "write", err, "write", net.ErrClosed)
				})
				start(func() {
					_, err := l.Accept()
					want(t, "accept", err, "accept", net.ErrClosed)
				})
			}
			start(func() {
				netio.AwaitWaiting(c, 3, 3)
				netio.AwaitWaiting(l, 3, 0)
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				want(t, "second close", c.Close(), "close", net.ErrClosed)
				if err := l.Close(); err != nil {
					t.Error(err)
				}
				want(t, "deadline", c.SetDeadline(time.Time{}), "set", net.ErrClosed)
			})
		})
	}
}

func TestDeadlines(t *testing.T) {
	inBoth(t, func(t *testing.T, start func(func())) {
		c, peer := pair(t, "tcp")
		fill(t, c)
		var over sync.WaitGroup
		over.Add(4)
		for range 2 {
			start(func() {
				defer over.Done()
				_, err := c.Read(make([]byte, 1))
				want(t, "read", err, "read", os.ErrDeadlineExceeded)
				var e net.Error
				if !errors.As(err, &e) || !e.Timeout() {
					t.Errorf("%v is no timeout", err)
				}
			})
			start(func() {
				defer over.Done()
				_, err := c.Write(make([]byte, 8<<20))
				want(t, "write", err, "write", os.ErrDeadlineExceeded)
			})
		}
		start(func() {
			for _, d := range []time.Duration{time.Hour, 5 * time.Millisecond} {
				if err := c.SetDeadline(time.Now().Add(d)); err != nil {
					t.Error(err)
				}
			}
			_, _ = coir.Blocking(context.Background(), func() (int, error) { over.Wait(); return 0, nil })
			_, err := c.Read(make([]byte, 1))
			want(t, "late read", err, "read", os.ErrDeadlineExceeded)
			if err := c.SetDeadline(time.Time{}); err != nil {
				t.Error(err)
			}
			if _, err := peer.Write([]byte("x")); err != nil {
				t.Error(err)
			}
			if n, err := c.Read(make([]byte, 2)); n != 1 || err != nil {
				t.Error(n, err)
			}
		})
	})
}

// TestBothDeadlines checks that after a read has ended at the deadline of both sides, a write fails too, whichever
// timer is late.
func TestBothDeadlines(t *testing.T) {
	inBoth(t, func(t *testing.T, start func(func())) {
		c, _ := pair(t, "tcp")
		start(func() {
			for range 100 {
				if err := c.SetDeadline(time.Now().Add(time.Millisecond)); err != nil {
					t.Error(err)
				}
				_, err := c.Read(make([]byte, 1))
				want(t, "read", err, "read", os.ErrDeadlineExceeded)
				_, err = c.Write([]byte("x"))
				want(t, "write", err, "write", os.ErrDeadlineExceeded)
				if t.Failed() {
					return
				}
			}
		})
	})
}

// After a read that returned less than requested, the next reads return the data that has arrived since, and the end.
func TestShortReads(t *testing.T) {
	inBoth(t, func(t *testing.T, start func(func())) {
		start(func() {
			for i := range 200 {
				c, peer := pair(t, "tcp")
				b := make([]byte, 100)
				start(func() {
					for range i % 4 {
						_, _ = peer.Write([]byte("abc"))
					}
					if i%3 == 0 {
						_ = coir.Yield(context.Background())
					}
					_ = peer.Close()
				})
				total := 0
				for {
					n, err := c.Read(b)
					total += n
					if err == io.EOF {
						break
					}
					if err != nil {
						t.Error(err)
						break
					}
				}
				if total != i%4*3 {
					t.Errorf("read %d bytes of %d", total, i%4*3)
				}
				_ = c.Close()
			}
		})
	})
}

// A read stops at urgent data and leaves the data after it: the next read must not wait for more.
func TestUrgentData(t *testing.T) {
	c, peer := pair(t, "tcp")
	raw, err := peer.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan int)
	go func() {
		defer close(got)
		b := make([]byte, 100)
		for {
			n, err := c.Read(b)
			if err != nil {
				return
			}
			got <- n
		}
	}()
	send := func(s string, flags int) {
		_ = raw.Write(func(fd uintptr) bool {
			err = syscall.Sendto(int(fd), []byte(s), flags, nil)
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	send("ab", 0)
	n := <-got
	for range 100 {
		send("cd!", syscall.MSG_OOB) // the last byte is urgent
		send("ef", 0)
		for n += <-got; n%4 != 2; {
			n += <-got
		}
	}
	_ = peer.Close()
	for m := range got {
		n += m
	}
	if n != 402 {
		t.Errorf("read %d bytes", n)
	}
}

func TestHalfClose(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		inBoth(t, func(t *testing.T, start func(func())) {
			c, peer := pair(t, network)
			start(func() {
				defer c.Close()
				b, err := io.ReadAll(c)
				if string(b) != "question" || err != nil {
					t.Errorf("%q, %v", b, err)
				}
				if _, err := c.Write([]byte("answer")); err != nil {
					t.Error(err)
				}
				if err := c.(*netio.Conn).CloseWrite(); err != nil {
					t.Error(err)
				}
				if _, err := c.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
					t.Error(err)
				}
			})
			if _, err := peer.Write([]byte("question")); err != nil {
				t.Error(err)
			}
			if err := peer.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
				t.Error(err)
			}
			start(func() {
				b, err := coir.Blocking(context.Background(), func() ([]byte, error) { return io.ReadAll(peer) })
				if string(b) != "answer" || err != nil {
					t.Errorf("%q, %v", b, err)
				}
			})
		})
	}
}

// When the peer resets the connection, waiting reads and writes end.
func TestReset(t *testing.T) {
	inBoth(t, func(t *testing.T, start func(func())) {
		c, peer := pair(t, "tcp")
		fill(t, c)
		var told atomic.Int32 // the first caller gets the error of the socket, the other one the end
		start(func() {
			if _, err := c.Read(make([]byte, 1)); err != io.EOF {
				want(t, "read", err, "read", syscall.ECONNRESET)
				told.Add(1)
			}
		})
		start(func() {
			if _, err := c.Write(make([]byte, 8<<20)); !errors.Is(err, syscall.EPIPE) {
				want(t, "write", err, "write", syscall.ECONNRESET)
				told.Add(1)
			}
		})
		t.Cleanup(func() {
			if told.Load() != 1 {
				t.Errorf("%d were told of the reset", told.Load())
			}
		})
		start(func() {
			netio.AwaitWaiting(c, 1, 1)
			_ = peer.(*net.TCPConn).SetLinger(0)
			_ = peer.Close()
		})
	})
}

// An operation under a context ends with it, and leaves the connection usable.
func TestContexts(t *testing.T) {
	inBoth(t, func(t *testing.T, start func(func())) {
		nc, peer := pair(t, "tcp")
		c := nc.(*netio.Conn)
		nl, err := netio.Listen("tcp", "localhost:0")
		if err != nil {
			t.Fatal(err)
		}
		start(func() {
			defer nl.Close()
			fill(t, c)
			ctx, cancel := coir.WithTimeout(context.Background(), 5*time.Millisecond)
			defer cancel()
			_, err := c.ReadContext(ctx, make([]byte, 1))
			want(t, "read", err, "read", context.DeadlineExceeded)
			_, err = c.WriteContext(ctx, make([]byte, 8<<20))
			want(t, "write", err, "write", context.DeadlineExceeded)
			_, err = nl.(*netio.Listener).AcceptContext(ctx)
			want(t, "accept", err, "accept", context.DeadlineExceeded)
			_ = nl.(*netio.Listener).SetDeadline(time.Unix(1, 0))
			none, err := nl.Accept()
			if want(t, "accept", err, "accept", os.ErrDeadlineExceeded); none != nil {
				t.Errorf("Accept returns a %T with an error", none)
			}
			if _, err := peer.Write([]byte("x")); err != nil {
				t.Error(err)
			}
			_, err = c.ReadContext(ctx, make([]byte, 1))
			want(t, "read of what is there", err, "read", context.DeadlineExceeded)
			if n, err := c.Read(make([]byte, 2)); n != 1 || err != nil {
				t.Error(n, err)
			}
		})
	})
}

// A callback is called when there is something to read, at the end, at a deadline and at Close, once each time.
//
// Spec: TK-17 (descriptor readiness completes a ticket)
func TestOnReadable(t *testing.T) {
	nc, peer := pair(t, "tcp")
	c := nc.(*netio.Conn)
	called := make(chan struct{}, 10)
	arm := func() {
		t.Helper()
		if err := c.OnReadable(func() { called <- struct{}{} }); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		arm()
		if err := c.OnReadable(func() {}); err == nil {
			t.Error("a second callback was taken")
		}
		if _, err := peer.Write([]byte("abc")); err != nil {
			t.Fatal(err)
		}
		<-called
		if i%2 == 0 { // leave some data, which must be reported
			if n, err := c.Read(make([]byte, 1)); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			arm()
			<-called
		}
		if n, err := c.Read(make([]byte, 10)); n == 0 || err != nil {
			t.Fatal(n, err)
		}
	}
	arm()
	if err := c.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	<-called
	if err := c.OnReadable(func() {}); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error(err)
	}
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	arm()
	_ = peer.Close()
	<-called
	arm()
	<-called // the end is still reported
	if len(called) != 0 {
		t.Error("called too often")
	}
	nc, _ = pair(t, "tcp")
	c = nc.(*netio.Conn)
	arm()
	_ = c.Close()
	<-called
	if err := c.OnReadable(func() {}); !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
}

// A callback that calls runtime.Goexit does not prevent other callbacks or end the waits of other connections.
func TestOnReadableGoexit(t *testing.T) {
	other, otherPeer := pair(t, "tcp")
	for range 20 {
		const conns = 8
		called := make(chan struct{}, conns)
		var peers []net.Conn
		for range conns {
			c, peer := pair(t, "tcp")
			peers = append(peers, peer)
			err := c.(*netio.Conn).OnReadable(func() {
				called <- struct{}{}
				runtime.Goexit()
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		got := make(chan error)
		go func() {
			_, err := other.Read(make([]byte, 1))
			got <- err
		}()
		for _, peer := range peers {
			if _, err := peer.Write([]byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		for range conns {
			<-called
		}
		if _, err := otherPeer.Write([]byte("y")); err != nil {
			t.Fatal(err)
		}
		if err := <-got; err != nil {
			t.Fatal(err)
		}
	}
}

// Close and SetDeadline complete their work even if a callback does not return.
func TestOnReadableUnwinds(t *testing.T) {
	for name, unwind := range map[string]func(){"panic": func() { panic("user") }, "goexit": runtime.Goexit} {
		for _, in := range []string{"Close", "SetDeadline"} {
			t.Run(name+" in "+in, func(t *testing.T) {
				nc, peer := pair(t, "tcp")
				c := nc.(*netio.Conn)
				if err := c.OnReadable(unwind); err != nil {
					t.Fatal(err)
				}
				over := make(chan any)
				go func() {
					defer func() { over <- recover() }()
					if in == "Close" {
						_ = c.Close()
					} else {
						_ = c.SetDeadline(time.Unix(1, 0))
					}
				}()
				if v := <-over; name == "panic" && v != "user" {
					t.Error("the panic did not come out of the call: ", v)
				}
				target := os.ErrDeadlineExceeded
				if in == "Close" {
					target = net.ErrClosed
				}
				_, err := c.Read(make([]byte, 1))
				want(t, "read", err, "read", target)
				_, err = c.Write(make([]byte, 1))
				want(t, "write", err, "write", target)
				if err := c.Close(); in == "Close" {
					want(t, "second Close", err, "close", net.ErrClosed)
				} else if err != nil {
					t.Error(err)
				}
				if _, err := peer.Read(make([]byte, 1)); err != io.EOF {
					t.Error("the peer did not see the end: ", err)
				}
			})
		}
	}
}

// If a function of a RawConn panics or calls runtime.Goexit, the connection stays usable.
func TestRawUnwinds(t *testing.T) {
	for name, unwind := range map[string]func(){"panic": func() { panic("user") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			c, peer := pair(t, "tcp")
			raw, err := c.(*netio.Conn).SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			f := func(uintptr) bool { unwind(); return true }
			for _, call := range []func(){
				func() { _ = raw.Read(f) },
				func() { _ = raw.Write(f) },
				func() { _ = raw.Control(func(uintptr) { unwind() }) },
			} {
				over := make(chan any)
				go func() {
					defer func() { over <- recover() }()
					call()
				}()
				if v := <-over; name == "panic" && v != "user" {
					t.Error("the panic did not come out of the call: ", v)
				}
			}
			b := make([]byte, 1)
			if _, err := c.Write(b); err != nil {
				t.Error(err)
			}
			if _, err := peer.Write(b); err != nil {
				t.Error(err)
			}
			if _, err := c.Read(b); err != nil {
				t.Error(err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A raw Read or Write calls its function immediately, even if the last Read took all available data, and waits only if
// the function returns false. Database drivers check in this way whether an idle connection is alive.
func TestRawCallsBeforeItWaits(t *testing.T) {
	c, peer := pair(t, "tcp")
	raw, err := c.(*netio.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	// The first Read times out, so that the poller reports events. The second one takes all available data.
	if err := c.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(make([]byte, 10)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("read in vain: ", err)
	}
	if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil { // in case a call waits
		t.Fatal(err)
	}
	if _, err := peer.Write([]byte("answer")); err != nil {
		t.Fatal(err)
	}
	if n, err := io.ReadAtLeast(c, make([]byte, 10), len("answer")); n != len("answer") || err != nil {
		t.Fatal("read: ", n, err)
	}
	for name, call := range map[string]func(func(uintptr) bool) error{"Read": raw.Read, "Write": raw.Write} {
		calls := 0
		if err := call(func(uintptr) bool { calls++; return true }); err != nil || calls != 1 {
			t.Errorf("raw %s called its function %d times, and returned %v", name, calls, err)
		}
	}
	n, calls := 0, 0
	err = raw.Read(func(fd uintptr) bool {
		calls++
		b := make([]byte, 10)
		var err error
		n, err = syscall.Read(int(fd), b)
		if calls == 1 {
			if err != syscall.EAGAIN {
				t.Error("first call: ", err)
			}
			_, _ = peer.Write([]byte("more"))
		}
		return err != syscall.EAGAIN
	})
	if err != nil || n != len("more") || calls < 2 {
		t.Errorf("raw Read called its function %d times, got %d bytes, and returned %v", calls, n, err)
	}
}

// Like package net, WriteTo takes an address without an IP as this host, and rejects an invalid IP.
func TestWriteToInvalid(t *testing.T) {
	for _, network := range []string{"udp", "udp4"} {
		c, err := netio.ListenPacket(network, ":0")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		twin, err := net.ListenPacket(network, ":0")
		if err != nil {
			t.Fatal(err)
		}
		defer twin.Close()
		port := c.LocalAddr().(*net.UDPAddr).Port
		for _, ip := range []net.IP{nil, {}, {1, 2, 3}, make(net.IP, 5), make(net.IP, 17)} {
			to := &net.UDPAddr{IP: ip, Port: port}
			_, err := c.WriteTo([]byte("x"), to)
			_, wanted := twin.WriteTo([]byte("x"), to)
			var e, w *net.AddrError
			switch {
			case len(ip) == 0:
				if err != nil || wanted != nil {
					t.Errorf("%s: to %v: got %v, package net %v", network, to, err, wanted)
				}
			case !errors.As(err, &e) || !errors.As(wanted, &w) || *e != *w:
				t.Errorf("%s: to %v: got %v, package net %v", network, to, err, wanted)
			}
		}
	}
}

// Close does not remove the name of a Unix socket that a listener of package net might have kept.
func TestKeepsName(t *testing.T) {
	for name, take := range map[string]func(l *net.UnixListener) net.Listener{
		"SetUnlinkOnClose": func(l *net.UnixListener) net.Listener {
			l.SetUnlinkOnClose(false)
			return l
		},
		"FileListener": func(l *net.UnixListener) net.Listener {
			f, err := l.File()
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			l.SetUnlinkOnClose(false)
			_ = l.Close()
			again, err := net.FileListener(f)
			if err != nil {
				t.Fatal(err)
			}
			return again
		},
	} {
		path := filepath.Join(t.TempDir(), "s")
		l, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		n, err := netio.NewListener(take(l.(*net.UnixListener)))
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// OnReadable without a function panics immediately, and the connection accepts another function.
func TestOnReadableNil(t *testing.T) {
	nc, _ := pair(t, "tcp")
	c := nc.(*netio.Conn)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_ = c.OnReadable(nil)
	}()
	if err := c.OnReadable(func() {}); err != nil {
		t.Error(err)
	}
}

// Many readers and writers of one connection take turns, and the data of a write stays together.
func TestManyShareAConn(t *testing.T) {
	inBoth(t, func(t *testing.T, start func(func())) {
		a, peer := pair(t, "tcp")
		b, err := netio.NewConn(peer)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close() })
		const writers, size = 20, 1 << 17
		var all sync.WaitGroup
		for i := range writers {
			all.Add(1)
			start(func() {
				defer all.Done()
				if n, err := a.Write([]byte(strings.Repeat(string(rune('a'+i)), size))); n != size || err != nil {
					t.Error(n, err)
				}
			})
		}
		start(func() {
			seen := make(map[byte]bool)
			p := make([]byte, size)
			for range writers {
				if _, err := io.ReadFull(b, p); err != nil {
					t.Error(err)
					return
				}
				if strings.Count(string(p), string(p[:1])) != size || seen[p[0]] {
					t.Error("torn, or twice")
				}
				seen[p[0]] = true
			}
		})
	})
}

func TestPackets(t *testing.T) {
	dir := t.TempDir()
	for _, at := range [][3]string{
		{"udp", "127.0.0.1:0", "127.0.0.1:0"},
		{"udp", ":0", "127.0.0.1:0"},
		{"udp6", "[::1]:0", "[::1]:0"},
		{"unixgram", filepath.Join(dir, "a"), filepath.Join(dir, "b")},
	} {
		inBoth(t, func(t *testing.T, start func(func())) {
			for _, path := range at[1:] {
				_ = os.Remove(path)
			}
			a, err := netio.ListenPacket(at[0], at[1])
			if err != nil {
				t.Skip(err)
			}
			b, err := net.ListenPacket(at[0], at[2])
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = a.Close(); _ = b.Close() })
			start(func() {
				p := make([]byte, 100)
				for {
					n, from, err := a.ReadFrom(p)
					if errors.Is(err, net.ErrClosed) {
						return
					}
					if err != nil || from.String() != b.LocalAddr().String() {
						t.Error(n, from, err)
						return
					}
					if _, err := a.WriteTo(p[:n], from); err != nil {
						t.Error(err)
					}
				}
			})
			start(func() {
				defer a.Close()
				_, _ = coir.Blocking(context.Background(), func() (int, error) {
					to := a.LocalAddr()
					if u, ok := to.(*net.UDPAddr); ok && u.IP.IsUnspecified() {
						to = &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: u.Port}
					}
					for _, s := range []string{"packet", "", "another"} {
						if _, err := b.WriteTo([]byte(s), to); err != nil {
							t.Error(err)
						}
						p := make([]byte, 100)
						n, from, err := b.ReadFrom(p)
						if string(p[:n]) != s || err != nil || from.String() != to.String() {
							t.Errorf("%q from %v, %v", p[:n], from, err)
						}
					}
					return 0, nil
				})
			})
		})
	}
}

func TestFD(t *testing.T) {
	inBoth(t, func(t *testing.T, start func(func())) {
		var p [2]int
		if err := syscall.Pipe(p[:]); err != nil {
			t.Fatal(err)
		}
		r, err := netio.NewFD(p[0], "r")
		if err != nil {
			t.Fatal(err)
		}
		w, err := netio.NewFD(p[1], "w")
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		start(func() {
			defer r.Close()
			for range 2 {
				if err := r.WaitRead(ctx); err != nil { // does not read
					t.Error(err)
				}
			}
			b := make([]byte, 10)
			if n, err := r.Read(ctx, b); n != 3 || err != nil {
				t.Error(n, err)
			}
			if err := w.WaitWrite(ctx); err != nil {
				t.Error(err)
			}
			if err := r.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
				t.Error(err)
			}
			if err := r.WaitRead(ctx); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error(err)
			}
			if err := errors.Join(w.Close(), r.SetReadDeadline(time.Time{})); err != nil {
				t.Error(err)
			}
			if _, err := r.Read(ctx, b); err != io.EOF {
				t.Error(err)
			}
			if _, err := w.Write(ctx, b); !errors.Is(err, os.ErrClosed) {
				t.Error(err)
			}
		})
		start(func() {
			if n, err := w.Write(ctx, []byte("abc")); n != 3 || err != nil {
				t.Error(n, err)
			}
		})
	})
}

// When a listener is closed, the name of its Unix socket is removed, and its address can be used again at once.
func TestListenAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	address := "localhost:0"
	for range 20 {
		u, err := netio.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		l, err := netio.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		address = l.Addr().String()
		over := make(chan struct{})
		go func() {
			defer close(over)
			_, err := l.Accept()
			want(t, "accept", err, "accept", net.ErrClosed)
		}()
		if err := errors.Join(u.Close(), l.Close()); err != nil {
			t.Fatal(err)
		}
		<-over
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Error(err)
		}
	}
}

// A connection that is dropped is closed by the garbage collector: the peer reads the end.
func TestDropped(t *testing.T) {
	l, err := netio.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	peer, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	func() {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(time.Millisecond))
		_, _ = c.Read(make([]byte, 1))
	}()
	over := make(chan error)
	go func() {
		_, err := peer.Read(make([]byte, 1))
		over <- err
	}()
	for {
		runtime.GC()
		select {
		case err := <-over:
			if err != io.EOF {
				t.Error(err)
			}
			return
		default:
		}
	}
}

// A call that fails to open something leaves no descriptor open, as TestMain checks.
func TestFailures(t *testing.T) {
	l, err := netio.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := netio.Listen("tcp", l.Addr().String()); !errors.Is(err, syscall.EADDRINUSE) {
		t.Error(err)
	}
	_ = l.Close()
	if _, err := netio.Dial("tcp", l.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Error(err)
	}
	if _, err := netio.Dial("nonsense", "x"); err == nil {
		t.Error("no error")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := new(netio.Dialer).DialContext(ctx, "tcp", "localhost:1"); err == nil {
		t.Error("no error")
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if _, err := netio.NewConn(a); err == nil {
		t.Error("a pipe was taken over")
	}
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Dup(int(f.Fd()))
	_ = f.Close()
	if err != nil {
		t.Fatal(err)
	}
	file, err := netio.NewFD(fd, "file")
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "linux" {
		if err := file.WaitRead(t.Context()); !errors.Is(err, syscall.EPERM) {
			t.Error(err)
		}
	}
	_ = file.Close()
}

// A wait does not allocate.
func TestAllocations(t *testing.T) {
	c, peer := pair(t, "tcp")
	go func() { _, _ = io.Copy(peer, peer) }()
	err := coir.Run(t.Context(), func(ctx context.Context, _ *coir.Nursery) error {
		b := make([]byte, 10)
		if n := testing.AllocsPerRun(200, func() {
			if _, err := c.Write(b[:3]); err != nil {
				t.Error(err)
			}
			if _, err := c.Read(b); err != nil {
				t.Error(err)
			}
		}); n >= 1 {
			t.Errorf("%v allocations", n)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
