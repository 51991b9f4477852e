package netio

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
)

// TestPortsRunOut checks that a port is assigned to one connection at a time. When no port is left, a dial fails until
// another connection is closed.
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

// TestListenersRunOutOfPorts checks that a listener that asks for any port fails if there is none.
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

// TestClosingFreesThePort checks a dial from the port of a connection that is being closed: it succeeds in some orders
// and fails in others. A model checker that skips equivalent orders must find both results.
func TestClosingFreesThePort(t *testing.T) {
	free, used := 0, 0
	r := sim.Explore(func(ctx context.Context, s *sim.Sim) {
		l, err := Listen("tcp", "peer:7")
		if err != nil {
			s.Fatalf("%v", err)
		}
		d := &Dialer{LocalAddr: &net.TCPAddr{Port: 5000}}
		c, err := d.Dial("tcp", "peer:7")
		if err != nil {
			s.Fatalf("%v", err)
		}
		err = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("close", func(context.Context) error { return c.Close() })
			n.Go("dial", func(context.Context) error {
				again, err := d.Dial("tcp", "peer:7")
				if errors.Is(err, syscall.EADDRINUSE) {
					used++
					return nil
				}
				if err != nil {
					return err
				}
				free++
				return again.Close()
			})
			return nil
		})
		if err := errors.Join(err, l.Close()); err != nil {
			s.Errorf("%v", err)
		}
	}, sim.WithStrategy(func(uint64) sim.Strategy { return sim.DPOR() }))
	if r.Failure != nil || !r.Complete || free == 0 || used == 0 {
		t.Errorf("complete %v, the port was free in %d and used in %d: %v", r.Complete, free, used, r.Failure)
	}
}
