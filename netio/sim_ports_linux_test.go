package netio

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/coir-go/coir/sim"
)

// TestPortsRunOut: a port is given to one connection at a time. When there is none left, a dial fails, until another
// connection is closed.
func TestPortsRunOut(t *testing.T) {
	f := sim.Run(1, func(_ context.Context, s *sim.Sim) {
		l, err := Listen("tcp", "10.0.0.1:7")
		if err != nil {
			s.Fatalf("%v", err)
		}
		seen := map[string]bool{}
		dial := func() (*Conn, error) {
			c, err := Dial("tcp", "10.0.0.1:7")
			if err != nil {
				return nil, err
			}
			if at := c.LocalAddr().String(); seen[at] {
				s.Errorf("%s is given to two connections", at)
			} else {
				seen[at] = true
			}
			_, err = l.Accept()
			return c.(*Conn), err
		}
		var c *Conn
		for range lastPort - firstPort + 1 {
			if c, err = dial(); err != nil {
				s.Fatalf("%v", err)
			}
		}
		if _, err := dial(); !errors.Is(err, syscall.EADDRNOTAVAIL) {
			s.Errorf("a dial without a port: %v", err)
		}
		if _, err := Dial("tcp", "10.0.0.1:8"); !errors.Is(err, syscall.ECONNREFUSED) {
			s.Errorf("a dial that is refused: %v", err)
		}
		_ = c.Close()
		delete(seen, c.LocalAddr().String())
		if _, err := dial(); err != nil {
			s.Errorf("after a close: %v", err)
		}
	}, sim.WithSteps(1<<20))
	if f != nil {
		t.Error(f)
	}
}

// TestListenersRunOutOfPorts: one that asks for any port fails if there is none.
func TestListenersRunOutOfPorts(t *testing.T) {
	f := sim.Run(1, func(ctx context.Context, s *sim.Sim) {
		n := simulated(ctx)
		for port := firstPort; port <= lastPort; port++ {
			at := titled(&net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: port}, "")
			n.listeners = append(n.listeners, &simListener{net: n, addr: at})
		}
		if _, err := Listen("tcp", "127.0.0.1:0"); !errors.Is(err, syscall.EADDRINUSE) {
			s.Errorf("listen: %v", err)
		}
		n.listeners = n.listeners[1:]
		if l, err := Listen("tcp", "127.0.0.1:0"); err != nil || l.Addr().String() != "127.0.0.1:49152" {
			s.Errorf("listen: %v, %v", l, err)
		}
	})
	if f != nil {
		t.Error(f)
	}
}
