//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package netio_test

// Functions of OnReadable that do not return: the operation that calls such a function completes its work, or undoes
// it.

import (
	"context"
	"errors"
	"io"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/netio"
	"github.com/coir-go/coir/sim"
)

var unwinds = map[string]func(){"panic": func() { panic("user") }, "goexit": runtime.Goexit}

// inFiber calls f in a fiber. f may panic or call runtime.Goexit.
func inFiber(n *coir.Nursery, f func()) {
	done := coir.NewEvent()
	n.Go("unwinds", func(context.Context) error {
		defer done.Set()
		defer func() { _ = recover() }()
		f()
		return nil
	})
	_ = done.Wait(context.Background())
}

// linked calls f with both ends of a connection.
func linked(
	f func(ctx context.Context, s *sim.Sim, n *coir.Nursery, a, b *netio.Conn),
) func(context.Context, *sim.Sim) {
	return func(ctx context.Context, s *sim.Sim) {
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
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
			f(ctx, s, n, a.(*netio.Conn), b.(*netio.Conn))
			return errors.Join(a.Close(), b.Close(), l.Close())
		})
	}
}

// TestAWriterGivesUpItsTurn checks that a function of OnReadable that does not return ends the Write that calls it, and
// that the next Write gets the turn.
func TestAWriterGivesUpItsTurn(t *testing.T) {
	for name, unwind := range unwinds {
		t.Run(name, func(t *testing.T) {
			sim.Test(t, linked(func(ctx context.Context, s *sim.Sim, n *coir.Nursery, a, b *netio.Conn) {
				if err := b.OnReadable(unwind); err != nil {
					s.Fatalf("%v", err)
				}
				inFiber(n, func() { _, _ = a.Write(make([]byte, 1<<20)) }) // needs more than one turn
				n.Go("drain", func(context.Context) error {
					_, err := io.Copy(io.Discard, b)
					return err
				})
				ctx, cancel := coir.WithTimeout(ctx, time.Minute)
				defer cancel()
				if _, err := a.WriteContext(ctx, []byte("next")); err != nil {
					s.Errorf("the next write: %v", err)
				}
				_ = a.CloseWrite()
			}), sim.WithSchedules(20))
		})
	}
}

// TestAResetTellsBothEnds checks that both ends see a reset, even if the function of one end does not return.
func TestAResetTellsBothEnds(t *testing.T) {
	for name, unwind := range unwinds {
		t.Run(name, func(t *testing.T) {
			sim.Test(t, linked(func(ctx context.Context, s *sim.Sim, n *coir.Nursery, a, b *netio.Conn) {
				told := 0
				for _, c := range []*netio.Conn{a, b} {
					if err := c.OnReadable(func() { told++; unwind() }); err != nil {
						s.Fatalf("%v", err)
					}
				}
				var err error
				reset := false
				for range 200 {
					inFiber(n, func() { _, err = a.Write(nil) })
					if reset = reset || errors.Is(err, syscall.EPIPE); reset {
						break
					}
				}
				inFiber(n, func() { _ = a.Close() }) // calls the functions if there was no reset
				inFiber(n, func() { _ = b.Close() })
				if s.Sometimes(reset, "reset"); reset && told != 2 {
					s.Errorf("%d functions of 2 were called", told)
				}
			}), sim.WithFaults("netio reset"), sim.WithSchedules(50))
		})
	}
}

// TestACloseResetsAllThatWait checks that closing a listener resets the connections that have not been accepted, even
// if the function of one of them does not return.
func TestACloseResetsAllThatWait(t *testing.T) {
	for name, unwind := range unwinds {
		t.Run(name, func(t *testing.T) {
			sim.Test(t, func(ctx context.Context, s *sim.Sim) {
				_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
					l, err := netio.Listen("tcp", "peer:7")
					if err != nil {
						s.Fatalf("%v", err)
					}
					told := 0
					for range 3 {
						c, err := netio.Dial("tcp", "peer:7")
						if err != nil {
							s.Fatalf("%v", err)
						}
						if err := c.(*netio.Conn).OnReadable(func() { told++; unwind() }); err != nil {
							s.Fatalf("%v", err)
						}
					}
					if inFiber(n, func() { _ = l.Close() }); told != 3 {
						s.Errorf("%d functions of 3 were called", told)
					}
					return nil
				})
			}, sim.WithSchedules(20))
		})
	}
}

// TestGoexitAtATime checks that the clock still works after a function of OnReadable that it called has called
// runtime.Goexit.
func TestGoexitAtATime(t *testing.T) {
	sim.Test(t, linked(func(ctx context.Context, s *sim.Sim, _ *coir.Nursery, a, b *netio.Conn) {
		_ = a.SetReadDeadline(time.Now().Add(time.Hour))
		called := coir.NewEvent()
		if err := a.OnReadable(func() { called.Set(); runtime.Goexit() }); err != nil {
			s.Fatalf("%v", err)
		}
		if err := called.Wait(ctx); err != nil || s.Now() != time.Hour {
			s.Errorf("called after %v: %v", s.Now(), err)
		}
		if _, err := a.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			s.Errorf("read: %v", err)
		}
	}), sim.WithSchedules(20))
}

// TestACallbackAtATimeUsesItsConnection checks a function of OnReadable that uses its connection, and is called again
// by the simulation's clock.
func TestACallbackAtATimeUsesItsConnection(t *testing.T) {
	sim.Test(t, linked(func(ctx context.Context, s *sim.Sim, _ *coir.Nursery, a, b *netio.Conn) {
		var at []time.Duration
		var tick func()
		tick = func() {
			at = append(at, s.Now())
			if len(at) == 3 {
				_ = a.Close()
				return
			}
			if err := errors.Join(a.SetReadDeadline(time.Now().Add(time.Hour)), a.OnReadable(tick)); err != nil {
				s.Errorf("%v", err)
			}
		}
		tick()
		if n, err := b.Read(make([]byte, 1)); err != io.EOF {
			s.Errorf("read %d, %v", n, err)
		}
		if len(at) != 3 || at[1] != time.Hour || at[2] != 2*time.Hour {
			s.Errorf("called at %v", at)
		}
	}), sim.WithSchedules(20))
}
