//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package netio_test

// Connections and listeners of a simulation can be used only in that simulation.

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/netio"
	"github.com/coir-go/coir/sim"
)

// kept holds what a program wrongly keeps from one schedule to the next.
type kept struct {
	l    net.Listener
	a, b net.Conn
}

// dial fills in k.
func (k *kept) dial(s *sim.Sim) {
	var err error
	if k.l, err = netio.Listen("tcp", "peer:7"); err != nil {
		s.Fatalf("%v", err)
	}
	if k.a, err = netio.Dial("tcp", "peer:7"); err != nil {
		s.Fatalf("%v", err)
	}
	if k.b, err = k.l.Accept(); err != nil {
		s.Fatalf("%v", err)
	}
}

// uses has all operations, with the name of the object that each uses.
var uses = []struct {
	what string
	use  func(k *kept) error
}{
	{"the connection to peer:7", func(k *kept) error {
		_, err := k.a.Read(make([]byte, 1))
		return err
	}},
	{"the connection to peer:7", func(k *kept) error {
		_, err := k.a.Write(make([]byte, 1))
		return err
	}},
	{"the connection to peer:7", func(k *kept) error { return k.a.Close() }},
	{"the connection to 10.0.0.1:49152", func(k *kept) error { return k.b.SetDeadline(time.Now()) }},
	{"the connection to 10.0.0.1:49152", func(k *kept) error { return k.b.(*netio.Conn).CloseWrite() }},
	{"the connection to 10.0.0.1:49152", func(k *kept) error { return k.b.(*netio.Conn).OnReadable(func() {}) }},
	{"the listener of peer:7", func(k *kept) error {
		_, err := k.l.Accept()
		return err
	}},
	{"the listener of peer:7", func(k *kept) error { return k.l.Close() }},
	{"the listener of peer:7", func(k *kept) error { return k.l.(*netio.Listener).SetDeadline(time.Now()) }},
}

// TestAConnectionIsOfItsSchedule checks that using a connection in another schedule, of the same exploration or of
// another, is detected.
func TestAConnectionIsOfItsSchedule(t *testing.T) {
	for i, test := range uses {
		var k kept
		program := func(_ context.Context, s *sim.Sim) {
			if k.l == nil {
				k.dial(s)
			} else {
				_ = test.use(&k)
			}
		}
		for range 2 {
			f := sim.Explore(program).Failure
			if f == nil || f.Kind != sim.KindPanic ||
				!strings.Contains(f.Text, "netio: "+test.what+" was made in another schedule") {
				t.Errorf("use %d: %v", i, f)
			}
		}
	}
}

// TestAConnectionIsOfItsSimulation checks that outside of the simulation all operations return an error that says so.
func TestAConnectionIsOfItsSimulation(t *testing.T) {
	var k kept
	if f := sim.Run(1, func(_ context.Context, s *sim.Sim) { k.dial(s) }); f != nil {
		t.Fatal(f)
	}
	for i, test := range uses {
		err := test.use(&k)
		if err == nil || !strings.Contains(err.Error(), "use it in fibers of the function that sim runs") {
			t.Errorf("use %d: %v", i, err)
		}
	}
}

// TestARealOneIsRefused checks that a simulation cannot wait for a connection that was made outside of it, even if the
// connection was used before.
func TestARealOneIsRefused(t *testing.T) {
	for _, waited := range []bool{false, true} {
		l, err := netio.Listen("tcp", "localhost:0")
		if err != nil {
			t.Fatal(err)
		}
		a, err := netio.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		b, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		if waited {
			_ = l.(*netio.Listener).SetDeadline(time.Now().Add(time.Millisecond))
			_, _ = l.Accept()
			_ = l.(*netio.Listener).SetDeadline(time.Time{})
			_ = a.SetDeadline(time.Now().Add(time.Millisecond))
			_, _ = a.Read(make([]byte, 1))
			_ = a.SetDeadline(time.Time{})
		}
		f := sim.Run(1, func(ctx context.Context, s *sim.Sim) {
			_, accepted := l.(*netio.Listener).AcceptContext(ctx)
			_, read := a.Read(make([]byte, 1))
			for _, err := range []error{accepted, read} {
				if err == nil || !strings.Contains(err.Error(), "made outside of the simulation") {
					s.Errorf("waited before: %t: %v", waited, err)
				}
			}
		})
		if f != nil {
			t.Error(f)
		}
		if _, err := b.Write([]byte("x")); err != nil {
			t.Error(err)
		}
		if _, err := io.ReadFull(a, make([]byte, 1)); err != nil {
			t.Errorf("after the simulation: %v", err)
		}
		for _, c := range []io.Closer{a, b, l} {
			_ = c.Close()
		}
	}
}

// TestAGoroutineIsFound checks that package sim reports a goroutine, and that the goroutine's operation fails.
//
// Spec: SM-06 (an outside goroutine is reported)
func TestAGoroutineIsFound(t *testing.T) {
	f := sim.Run(1, func(ctx context.Context, s *sim.Sim) {
		var k kept
		k.dial(s)
		got := make(chan error)
		go func() {
			_, err := io.WriteString(k.a, "x")
			got <- err
		}()
		if err := <-got; err == nil {
			t.Error("the goroutine has written")
		}
		_ = coir.Yield(ctx)
	})
	if f == nil || f.Kind != sim.KindUncontrolled {
		t.Errorf("the simulation found %v, want a failure of kind sim.KindUncontrolled", f)
	}
}

// TestAFunctionOfTheClockNeedsAContext checks that when the clock calls the function of OnReadable, an operation finds
// the simulated network through a context, and does not use the real network if it has none.
func TestAFunctionOfTheClockNeedsAContext(t *testing.T) {
	called := false
	f := sim.Run(1, exchange(
		func(ctx context.Context, _ *sim.Sim, _ *netio.Conn) error { return coir.Sleep(ctx, time.Hour) },
		func(ctx context.Context, s *sim.Sim, c *netio.Conn) error {
			if err := c.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				return err
			}
			err := c.OnReadable(func() {
				called = true
				_, dial := netio.Dial("tcp", "127.0.0.1:1")
				l, listen := netio.Listen("tcp", "127.0.0.1:0")
				p, packet := netio.ListenPacket("udp", "127.0.0.1:0")
				for _, err := range []error{dial, listen, packet} {
					if err == nil || !strings.Contains(err.Error(), "context of the simulation") {
						s.Errorf("without a context: %v", err)
					}
				}
				if listen == nil {
					_ = l.Close()
				}
				if packet == nil {
					_ = p.Close()
				}
				l, err := new(netio.ListenConfig).Listen(ctx, "tcp", "with:1")
				if err != nil {
					s.Errorf("with a context: %v", err)
					return
				}
				d, err := new(netio.Dialer).DialContext(ctx, "tcp", "with:1")
				if err != nil {
					s.Errorf("with a context: %v", err)
					return
				}
				if err := errors.Join(d.Close(), l.Close()); err != nil {
					s.Errorf("%v", err)
				}
			})
			return errors.Join(err, coir.Sleep(ctx, time.Hour))
		},
	))
	if f != nil || !called {
		t.Error(called, f)
	}
}

// TestANilContextLeavesNothingLocked checks that an operation with a nil context panics, and that the connection and
// the listener can still be used.
func TestANilContextLeavesNothingLocked(t *testing.T) {
	f := sim.Run(1, func(_ context.Context, s *sim.Sim) {
		var k kept
		k.dial(s)
		l, a := k.l.(*netio.Listener), k.a.(*netio.Conn)
		var none context.Context
		for name, op := range map[string]func(){
			"read":   func() { _, _ = a.ReadContext(none, make([]byte, 1)) },
			"write":  func() { _, _ = a.WriteContext(none, []byte("x")) },
			"accept": func() { _, _ = l.AcceptContext(none) },
		} {
			func() {
				defer func() {
					if recover() == nil {
						s.Errorf("%s in a nil context did not panic", name)
					}
				}()
				op()
			}()
		}
		if err := errors.Join(a.Close(), k.b.Close(), l.Close()); err != nil {
			s.Errorf("%v", err)
		}
	})
	if f != nil {
		t.Error(f)
	}
}
