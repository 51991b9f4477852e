package netio_test

import (
	"bufio"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/netio"
)

// If the peer disappears without closing the connection, the next write finds out, because the system answers it with a
// reset. Until then a read waits, and a deadline ends it.
func TestHalfOpen(t *testing.T) {
	inBoth(t, func(t *testing.T, start func(func())) {
		c, peer := pair(t, "tcp")
		raw, err := peer.(*net.TCPConn).SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		const repair = 19 // TCP_REPAIR: a socket in repair is closed silently
		failed := raw.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, repair, 1)
		})
		if failed != nil {
			t.Fatal(failed)
		}
		if err != nil {
			t.Skip("a connection cannot be made half open here: ", err)
		}
		_ = peer.Close()
		start(func() {
			_ = c.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
			_, err := c.Read(make([]byte, 1))
			want(t, "read", err, "read", os.ErrDeadlineExceeded)
			_ = c.SetReadDeadline(time.Time{})
			if _, err := c.Write([]byte("x")); err != nil {
				t.Error(err)
			}
			_, err = c.Read(make([]byte, 1))
			want(t, "read", err, "read", syscall.ECONNRESET)
			_, err = c.Write([]byte("x"))
			want(t, "write", err, "write", syscall.EPIPE)
		})
	})
}

// When the process of the peer is killed, reads and writes end.
func TestKilledPeer(t *testing.T) {
	if address := os.Getenv("NETIO_TEST_PEER"); address != "" {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write([]byte("here\n"))
		time.Sleep(time.Hour) // killed before it returns
	}
	l, err := netio.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	inBoth(t, func(t *testing.T, start func(func())) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilledPeer$")
		cmd.Env = append(os.Environ(), "NETIO_TEST_PEER="+l.Addr().String())
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if s, err := bufio.NewReader(c).ReadString('\n'); s != "here\n" || err != nil {
			t.Error(s, err)
		}
		fill(t, c)
		t.Cleanup(func() { _ = c.Close() })
		start(func() {
			if _, err := c.Read(make([]byte, 1)); err != io.EOF {
				want(t, "read", err, "read", syscall.ECONNRESET)
			}
		})
		start(func() {
			if _, err := c.Write(make([]byte, 8<<20)); !errors.Is(err, syscall.EPIPE) {
				want(t, "write", err, "write", syscall.ECONNRESET)
			}
		})
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
}

// Connections still work after the default runtime has been closed. The test closes it in another process.
func TestClosedDefaultRuntime(t *testing.T) {
	if os.Getenv("NETIO_TEST_CLOSE") == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestClosedDefaultRuntime$", "-test.timeout=30s")
		cmd.Env = append(os.Environ(), "NETIO_TEST_CLOSE=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	c, peer := pair(t, "tcp")
	b := make([]byte, 10)
	for i := range 3 {
		over := make(chan error)
		go func() {
			_, err := c.Read(b)
			over <- err
		}()
		if i == 1 {
			if err := coir.Default().Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := peer.Write([]byte("x")); err != nil {
			t.Fatal(err)
		}
		if err := <-over; err != nil {
			t.Fatal(err)
		}
	}
}
