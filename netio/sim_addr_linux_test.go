package netio_test

import (
	"context"
	"errors"
	"math"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/netio"
	"github.com/coir-go/coir/sim"
)

// TestListenersOfOneVersion checks that tcp4 and tcp6 listen for one version of IP, and tcp on all addresses for both.
// The expected results are those of Linux sockets.
func TestListenersOfOneVersion(t *testing.T) {
	type address [2]string
	tests := []struct {
		listen  []address
		fails   error // the error of the last listener
		dials   []address
		refused []address
	}{
		{
			listen: []address{{"tcp4", ":80"}, {"tcp6", ":80"}},
			dials:  []address{{"tcp4", "127.0.0.1:80"}, {"tcp6", "[::1]:80"}, {"tcp", "[::]:80"}, {"tcp", ":80"}},
		},
		{
			listen:  []address{{"tcp4", ":80"}},
			dials:   []address{{"tcp", "127.0.0.1:80"}, {"tcp", "localhost:80"}, {"tcp", "host:80"}},
			refused: []address{{"tcp6", "[::1]:80"}, {"tcp", "[::1]:80"}, {"tcp6", "host:80"}},
		},
		{
			listen:  []address{{"tcp6", ":80"}},
			dials:   []address{{"tcp", "[::1]:80"}, {"tcp6", "host:80"}},
			refused: []address{{"tcp4", "127.0.0.1:80"}, {"tcp", "localhost:80"}, {"tcp", "host:80"}},
		},
		{
			listen: []address{{"tcp", "127.0.0.1:80"}, {"tcp6", "[::]:80"}},
			dials:  []address{{"tcp", "127.0.0.1:80"}, {"tcp", "[::1]:80"}},
		},
		{
			listen: []address{{"tcp", "0.0.0.0:80"}},
			dials:  []address{{"tcp", "127.0.0.1:80"}, {"tcp", "[::1]:80"}},
		},
		{
			listen:  []address{{"tcp", "127.0.0.1:80"}},
			dials:   []address{{"tcp", "[::]:80"}, {"tcp", ":80"}, {"tcp", "[::ffff:127.0.0.1]:80"}},
			refused: []address{{"tcp6", "[::]:80"}, {"tcp", "[::1]:80"}},
		},
		{listen: []address{{"tcp4", ":80"}, {"tcp", ":80"}}, fails: syscall.EADDRINUSE},
		{listen: []address{{"tcp", ":80"}, {"tcp6", ":80"}}, fails: syscall.EADDRINUSE},
		{listen: []address{{"tcp4", ":80"}, {"tcp", "127.0.0.1:80"}}, fails: syscall.EADDRINUSE},
	}
	for _, test := range tests {
		f := sim.Run(1, func(_ context.Context, s *sim.Sim) {
			for i, a := range test.listen {
				var want error
				if i == len(test.listen)-1 {
					want = test.fails
				}
				if _, err := netio.Listen(a[0], a[1]); !errors.Is(err, want) {
					s.Errorf("listen %v: %v", a, err)
				}
			}
			for _, a := range test.dials {
				if _, err := netio.Dial(a[0], a[1]); err != nil {
					s.Errorf("%v", err)
				}
			}
			for _, a := range test.refused {
				if _, err := netio.Dial(a[0], a[1]); !errors.Is(err, syscall.ECONNREFUSED) {
					s.Errorf("dial %v: %v", a, err)
				}
			}
		})
		if f != nil {
			t.Errorf("%v: %v", test.listen, f)
		}
	}
}

// TestListenErrorHasTheAddress checks that the error has the requested address.
func TestListenErrorHasTheAddress(t *testing.T) {
	f := sim.Run(1, func(_ context.Context, s *sim.Sim) {
		if _, err := netio.Listen("tcp", "127.0.0.1:80"); err != nil {
			s.Errorf("%v", err)
		}
		_, err := netio.Listen("tcp", ":80")
		var e *net.OpError
		if !errors.As(err, &e) || e.Addr.String() != ":80" {
			s.Errorf("%v", err)
		}
	})
	if f != nil {
		t.Error(f)
	}
}

// TestNamesOfHosts checks that case and a final dot do not matter in names.
func TestNamesOfHosts(t *testing.T) {
	f := sim.Run(1, func(_ context.Context, s *sim.Sim) {
		for _, same := range [][2]string{
			{"Peer:7", "peer:7"},
			{"other:8", "other.:8"},
			{"LOCALHOST:9", "localhost:9"},
			{"localhost.:10", "127.0.0.1:10"},
		} {
			if _, err := netio.Listen("tcp", same[0]); err != nil {
				s.Errorf("%v", err)
			}
			if _, err := netio.Dial("tcp", same[1]); err != nil {
				s.Errorf("listen %s: %v", same[0], err)
			}
		}
		if _, err := netio.Dial("tcp", "stranger:7"); !errors.Is(err, syscall.ECONNREFUSED) {
			s.Errorf("another name: %v", err)
		}
	})
	if f != nil {
		t.Error(f)
	}
}

// TestDialerCancel checks that a dial fails if the channel of its Dialer has been closed.
func TestDialerCancel(t *testing.T) {
	f := sim.Run(1, func(_ context.Context, s *sim.Sim) {
		if _, err := netio.Listen("tcp", "peer:7"); err != nil {
			s.Errorf("%v", err)
		}
		stop := make(chan struct{})
		d := &netio.Dialer{Cancel: stop} //nolint:staticcheck // tested because package net still has it
		if _, err := d.Dial("tcp", "peer:7"); err != nil {
			s.Errorf("not cancelled: %v", err)
		}
		close(stop)
		_, err := d.Dial("tcp", "peer:7")
		if want := "dial tcp 10.0.0.1:7: operation was canceled"; !errors.Is(err, context.Canceled) || err.Error() != want {
			s.Errorf("cancelled: %v", err)
		}
	})
	if f != nil {
		t.Error(f)
	}
}

// TestTheEndOfTime checks that no deadline passes by itself when the clock cannot advance further.
func TestTheEndOfTime(t *testing.T) {
	f := sim.Run(1, func(ctx context.Context, s *sim.Sim) {
		if err := coir.Sleep(ctx, math.MaxInt64); err != nil {
			s.Errorf("%v", err)
		}
		l, err := netio.Listen("tcp", "peer:7")
		if err != nil {
			s.Fatalf("%v", err)
		}
		a, err := netio.Dial("tcp", "peer:7")
		if err != nil {
			s.Fatalf("%v", err)
		}
		b, err := l.Accept()
		if err != nil {
			s.Fatalf("%v", err)
		}
		if _, err := a.Write([]byte("x")); err != nil {
			s.Errorf("%v", err)
		}
		if _, err := b.Read(make([]byte, 1)); err != nil {
			s.Errorf("%v", err)
		}
		if err := b.SetDeadline(time.Unix(1, 0)); err != nil {
			s.Errorf("%v", err)
		}
		if _, err := b.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			s.Errorf("after a deadline: %v", err)
		}
	}, sim.WithFaults("netio delay"))
	if f != nil {
		t.Error(f)
	}
}

// TestSyscallConnOfClosed checks that SyscallConn returns net.ErrClosed for a closed connection, and an error about the
// missing descriptor for an open one.
func TestSyscallConnOfClosed(t *testing.T) {
	sim.Test(t, exchange(
		func(context.Context, *sim.Sim, *netio.Conn) error { return nil },
		func(_ context.Context, s *sim.Sim, c *netio.Conn) error {
			l, err := netio.Listen("tcp", "other:7")
			if err != nil {
				return err
			}
			_, conn := c.SyscallConn()
			_, listener := l.(*netio.Listener).SyscallConn()
			if conn == nil || listener == nil || errors.Is(errors.Join(conn, listener), net.ErrClosed) {
				s.Errorf("open: %v, %v", conn, listener)
			}
			if err := errors.Join(c.Close(), l.Close()); err != nil {
				return err
			}
			_, conn = c.SyscallConn()
			_, listener = l.(*netio.Listener).SyscallConn()
			if !errors.Is(conn, net.ErrClosed) || !errors.Is(listener, net.ErrClosed) {
				s.Errorf("closed: %v, %v", conn, listener)
			}
			return nil
		},
	), sim.WithSchedules(10))
}
