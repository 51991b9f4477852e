//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package netio_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/netio"
	"github.com/coir-go/coir/sim"
)

var simFaults = []string{
	"netio refuse", "netio delay", "netio partial read", "netio reset", "netio small buffer",
}

// echoServer serves l until it is closed.
func echoServer(n *coir.Nursery, l net.Listener) {
	n.Go("accept", func(context.Context) error {
		for {
			c, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			if err != nil {
				return err
			}
			n.Go("echo", func(context.Context) error {
				defer func() { _ = c.Close() }()
				_, _ = io.Copy(c, c)
				return nil
			})
		}
	})
}

// serve is the example of the package's documentation.
func serve(ctx context.Context, l net.Listener) error {
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		for {
			c, err := l.(*netio.Listener).AcceptContext(ctx)
			if err != nil {
				return err
			}
			n.Go("echo", func(ctx context.Context) error {
				return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
					n.Go("close", func(ctx context.Context) error {
						_ = coir.WaitCancel(ctx)
						return c.Close()
					})
					defer n.Cancel(nil)
					_, err := io.Copy(c, c)
					return err
				})
			})
		}
	})
}

// TestServe checks that the server of the documentation serves clients, and ends when it is cancelled while a client is
// connected, with sockets and in a simulation.
func TestServe(t *testing.T) {
	program := func(ctx context.Context) error {
		l, err := netio.Listen("tcp", "localhost:0")
		if err != nil {
			return err
		}
		defer func() { _ = l.Close() }()
		done := errors.New("the clients are done")
		err = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("server", func(ctx context.Context) error { return serve(ctx, l) })
			ask := func() (net.Conn, error) {
				c, err := netio.Dial("tcp", l.Addr().String())
				if err != nil {
					return nil, err
				}
				answer := make([]byte, 2)
				if _, err = c.Write([]byte("hi")); err == nil {
					_, err = io.ReadFull(c, answer)
				}
				if err == nil && string(answer) != "hi" {
					err = fmt.Errorf("the answer is %q", answer)
				}
				return c, err
			}
			first, err := ask()
			if err != nil {
				return err
			}
			if err := first.Close(); err != nil {
				return err
			}
			second, err := ask()
			if err != nil {
				return err
			}
			n.Cancel(done)
			if _, err := io.ReadAll(second); err != nil {
				return err
			}
			return errors.Join(done, second.Close())
		})
		if errors.Is(err, done) {
			return nil
		}
		return fmt.Errorf("the server has failed: %w", err)
	}
	if err := program(t.Context()); err != nil {
		t.Error(err)
	}
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		if err := program(ctx); err != nil {
			s.Errorf("%v", err)
		}
	}, sim.WithSchedules(300))
}

// dialHard dials until the dial is not refused.
func dialHard(ctx context.Context, address string) (c net.Conn, err error) {
	for {
		c, err = netio.Dial("tcp", address)
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return c, err
		}
		if err := coir.Sleep(ctx, time.Second); err != nil {
			return nil, err
		}
	}
}

// echoClient sends text, closes its writing side, and returns the data that comes back.
func echoClient(ctx context.Context, text string) ([]byte, error) {
	c, err := dialHard(ctx, "echo:7")
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	got := []byte{}
	err = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
		n.Go("send", func(context.Context) error {
			for part := range slices.Chunk([]byte(text), 10) {
				if _, err := c.Write(part); err != nil {
					return err
				}
			}
			return c.(*netio.Conn).CloseWrite()
		})
		got, err = io.ReadAll(c)
		return err
	})
	return got, err
}

// echo runs a server and two clients. Each client receives what it has sent, or a prefix of it if the connection was
// reset.
func echo(ctx context.Context, s *sim.Sim) {
	began := time.Now()
	_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		l, err := netio.Listen("tcp", "echo:7")
		if err != nil {
			s.Fatalf("%v", err)
		}
		defer func() { _ = l.Close() }()
		echoServer(n, l)
		return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			for i := range 2 {
				n.Go("client", func(ctx context.Context) error {
					text := strings.Repeat("0123456789abcdef"[i:], 2)
					got, err := echoClient(ctx, text)
					switch {
					case err == nil && string(got) != text, !strings.HasPrefix(text, string(got)):
						s.Errorf("%q came back, of %q; %v", got, text, err)
					case err != nil && !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) &&
						!errors.Is(err, syscall.ENOTCONN):
						s.Errorf("%v", err)
					}
					s.Sometimes(err == nil, "all came back")
					s.Sometimes(err == nil && s.Now() > 0, "late")
					s.Sometimes(errors.Is(err, syscall.ECONNRESET) && len(got) > 0, "reset in the middle")
					return nil
				})
			}
			return nil
		})
	})
	if s.Now() > time.Since(began)+time.Second {
		s.Sometimes(true, "virtual time is ahead of the real one")
	}
}

func TestEchoSimulated(t *testing.T) {
	schedules := 5_000
	if testing.Short() {
		schedules = 2_000
	}
	sim.Test(t, echo, sim.WithFaults(simFaults...), sim.WithSchedules(schedules))
}

// TestEveryFaultHappens checks that each fault happens if it is the only one named, and does not happen if it is not
// named.
func TestEveryFaultHappens(t *testing.T) {
	for _, name := range simFaults {
		res := sim.Explore(echo, sim.WithFaults(name), sim.WithSchedules(100))
		if res.Failure != nil {
			t.Error(name, res.Failure)
		}
		if slices.ContainsFunc(res.Never, func(n string) bool { return strings.HasPrefix(n, "fault "+name) }) {
			t.Errorf("%s never happens", name)
		}
	}
	res := sim.Explore(func(ctx context.Context, s *sim.Sim) {
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			l, _ := netio.Listen("tcp", "echo:7")
			echoServer(n, l)
			got, err := echoClient(ctx, "the quick brown fox jumps over the lazy dog")
			if len(got) != 43 || err != nil || s.Now() != 0 {
				s.Errorf("%q after %v: %v", got, s.Now(), err)
			}
			return l.Close()
		})
	}, sim.WithSchedules(300))
	if res.Failure != nil {
		t.Error(res.Failure)
	}
}

// TestEchoIsDeterministic checks that the same seed gives the same schedules, and that a token gives the same failure
// and the same trace.
//
// Spec: SM-03 (the same decisions give the same run)
func TestEchoIsDeterministic(t *testing.T) {
	opts := []sim.Option{sim.WithFaults(simFaults...), sim.WithSchedules(100)}
	if a, b := sim.Explore(echo, opts...), sim.Explore(echo, opts...); a.Steps != b.Steps || a.Failure != nil {
		t.Errorf("%d steps, then %d; %v", a.Steps, b.Steps, a.Failure)
	}
	fails := func(ctx context.Context, s *sim.Sim) {
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			l, _ := netio.Listen("tcp", "echo:7")
			defer func() { _ = l.Close() }()
			echoServer(n, l)
			_, err := echoClient(ctx, "some text that is longer than a small buffer")
			if errors.Is(err, syscall.ECONNRESET) && s.Now() > time.Second {
				s.Errorf("after %v: %v", s.Now(), err)
			}
			return nil
		})
	}
	f := sim.Explore(fails, sim.WithFaults(simFaults...), sim.WithSchedules(10_000)).Failure
	if f == nil {
		t.Fatal("there is no schedule with a late reset")
	}
	again, err := sim.Replay(f.Token, fails, sim.WithFaults(simFaults...))
	if err != nil || again == nil || again.Text != f.Text {
		t.Errorf("first: %v\nagain: %v, %v", f, again, err)
	}
	if err != nil || again == nil {
		return
	}
	if a, b := steps(f.Error()), steps(again.Error()); a == "" || a != b {
		t.Errorf("the traces differ:\n%s\n%s", a, b)
	}
}

// steps returns the table of a report, without the mark of the step at which a passing schedule diverges.
func steps(report string) string {
	_, table, _ := strings.Cut(report, "\n   step |")
	return strings.ReplaceAll(table, "=>", "  ")
}

// exchange runs a server and a client on a simulated connection.
func exchange(server, client func(context.Context, *sim.Sim, *netio.Conn) error) func(context.Context, *sim.Sim) {
	return func(ctx context.Context, s *sim.Sim) {
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			l, err := netio.Listen("tcp", "chat:1234")
			if err != nil {
				return err
			}
			n.Go("server", func(ctx context.Context) error {
				defer func() { _ = l.Close() }()
				c, err := l.Accept()
				if err != nil {
					return err
				}
				defer func() { _ = c.Close() }()
				return server(ctx, s, c.(*netio.Conn))
			})
			n.Go("client", func(ctx context.Context) error {
				c, err := netio.Dial("tcp", "chat:1234")
				if err != nil {
					return err
				}
				defer func() { _ = c.Close() }()
				return client(ctx, s, c.(*netio.Conn))
			})
			return nil
		})
		if err != nil {
			s.Errorf("%v", err)
		}
	}
}

// TestAResetIsToldOnce checks that at each end only the first operation fails with ECONNRESET. Then reads return
// io.EOF, and writes fail with EPIPE.
func TestAResetIsToldOnce(t *testing.T) {
	end := func(ctx context.Context, s *sim.Sim, c *netio.Conn) error {
		for {
			_, err := c.WriteContext(ctx, []byte("x"))
			if err == nil {
				_, err = c.ReadContext(ctx, make([]byte, 1))
			}
			if err != nil {
				if errors.Is(err, io.EOF) {
					return nil // the other end has left
				}
				if !errors.Is(err, syscall.ECONNRESET) {
					s.Errorf("first: %v", err)
				}
				break
			}
			if s.Intn(2) == 0 {
				return nil
			}
		}
		s.Sometimes(true, "reset")
		if _, err := c.ReadContext(ctx, make([]byte, 1)); err != io.EOF { //nolint:errorlint // as io.Reader says
			s.Errorf("then read: %v", err)
		}
		if _, err := c.WriteContext(ctx, []byte("x")); !errors.Is(err, syscall.EPIPE) {
			s.Errorf("then write: %v", err)
		}
		return nil
	}
	sim.Test(t, exchange(end, end), sim.WithFaults("netio reset"), sim.WithSchedules(300))
}

// TestSimulationFindsProtocolBugs checks that incorrect programs pass without faults, and that sim finds their bugs
// with faults.
func TestSimulationFindsProtocolBugs(t *testing.T) {
	const message = "ping\n"
	for _, test := range []struct {
		name, fault    string
		server, client func(ctx context.Context, s *sim.Sim, c *netio.Conn) error
	}{
		{
			"one read is one message", "netio partial read",
			func(_ context.Context, s *sim.Sim, c *netio.Conn) error {
				b := make([]byte, 100)
				n, err := c.Read(b) // a bug: use io.ReadFull or a bufio.Reader
				if string(b[:n]) != message {
					s.Errorf("the message is %q, %v", b[:n], err)
				}
				return nil
			},
			func(_ context.Context, _ *sim.Sim, c *netio.Conn) error {
				_, err := io.WriteString(c, message)
				return err
			},
		},
		{
			"a reset is a normal end", "netio reset",
			func(_ context.Context, s *sim.Sim, c *netio.Conn) error {
				all, _ := io.ReadAll(c) // a bug: the error says whether this is all
				if string(all) != message {
					s.Errorf("all of it is %q", all)
				}
				return nil
			},
			func(_ context.Context, _ *sim.Sim, c *netio.Conn) error {
				_, _ = io.WriteString(c, message)
				return nil
			},
		},
		{
			"an answer always comes within a second", "netio delay",
			func(_ context.Context, _ *sim.Sim, c *netio.Conn) error {
				_, err := io.Copy(c, c)
				return err
			},
			func(_ context.Context, s *sim.Sim, c *netio.Conn) error {
				_, _ = io.WriteString(c, message)
				_ = c.SetReadDeadline(time.Now().Add(time.Second))
				if _, err := bufio.NewReader(c).ReadString('\n'); err != nil {
					s.Errorf("no answer: %v", err)
				}
				return nil
			},
		},
		{
			"both write before they read", "netio small buffer",
			func(_ context.Context, _ *sim.Sim, c *netio.Conn) error { return writeThenRead(c) },
			func(_ context.Context, _ *sim.Sim, c *netio.Conn) error { return writeThenRead(c) },
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			program := exchange(test.server, test.client)
			if res := sim.Explore(program, sim.WithSchedules(200)); res.Failure != nil {
				t.Errorf("without the fault: %v", res.Failure)
			}
			if res := sim.Explore(program, sim.WithFaults(test.fault), sim.WithSchedules(200)); res.Failure == nil {
				t.Error("not found")
			}
		})
	}
}

func writeThenRead(c *netio.Conn) error {
	text := strings.Repeat("x", 100)
	if _, err := io.WriteString(c, text); err != nil {
		return err
	}
	_, err := io.ReadFull(c, make([]byte, len(text)))
	return err
}

// TestForgottenHalfCloseIsADeadlock checks a server that reads until the end and a client that forgets to close its
// writing side: they wait forever, and the report names both waits.
func TestForgottenHalfCloseIsADeadlock(t *testing.T) {
	f := sim.Explore(exchange(
		func(_ context.Context, _ *sim.Sim, c *netio.Conn) error {
			all, err := io.ReadAll(c)
			if err == nil {
				_, err = c.Write(all)
			}
			return err
		},
		func(_ context.Context, _ *sim.Sim, c *netio.Conn) error {
			if _, err := io.WriteString(c, "ping"); err != nil {
				return err
			}
			_, err := io.ReadAll(c)
			return err
		},
	)).Failure
	if f == nil || f.Kind != sim.KindDeadlock {
		t.Fatalf("the simulation found %v, want a deadlock", f)
	}
	for _, want := range []string{"to read from chat:1234", "to read from 10.0.0.1:49152"} {
		if !strings.Contains(f.Error(), want) {
			t.Errorf("the report does not say %q:\n%v", want, f)
		}
	}
}

// TestFullBuffersAreADeadlock checks two ends that wait for each other to read.
func TestFullBuffersAreADeadlock(t *testing.T) {
	fill := func(_ context.Context, _ *sim.Sim, c *netio.Conn) error {
		_, err := c.Write(make([]byte, 1<<20))
		return err
	}
	f := sim.Explore(exchange(fill, fill)).Failure
	if f == nil || f.Kind != sim.KindDeadlock || !strings.Contains(f.Error(), "to write to chat:1234") {
		t.Errorf("the simulation found %v, want a deadlock of a write to chat:1234", f)
	}
}

// TestASlowReaderHoldsUpItsWriter checks that a writer waits for a slow reader, but no longer than necessary.
func TestASlowReaderHoldsUpItsWriter(t *testing.T) {
	sim.Test(t, exchange(
		func(ctx context.Context, s *sim.Sim, c *netio.Conn) error {
			if err := coir.Sleep(ctx, time.Minute); err != nil {
				return err
			}
			n, err := io.Copy(io.Discard, c)
			if n != 100<<10 {
				s.Errorf("%d bytes", n)
			}
			return err
		},
		func(_ context.Context, s *sim.Sim, c *netio.Conn) error {
			_, err := c.Write(make([]byte, 100<<10))
			if s.Now() != time.Minute {
				s.Errorf("written after %v", s.Now())
			}
			return err
		},
	), sim.WithSchedules(200))
}

// TestWritesAreWhole checks that the data of two fibers that write to one connection, in parts, is not mixed.
func TestWritesAreWhole(t *testing.T) {
	sim.Test(t, exchange(
		func(_ context.Context, s *sim.Sim, c *netio.Conn) error {
			all, err := io.ReadAll(c)
			if a, b := strings.Repeat("a", 40), strings.Repeat("b", 40); string(all) != a+b && string(all) != b+a {
				s.Errorf("read %s, want 40 times a and b, not mixed", all)
			}
			s.Sometimes(all[0] == 'b', "b is first")
			return err
		},
		func(ctx context.Context, _ *sim.Sim, c *netio.Conn) error {
			return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
				for _, text := range []string{"a", "b"} {
					n.Go("write", func(context.Context) error {
						_, err := io.WriteString(c, strings.Repeat(text, 40))
						return err
					})
				}
				return nil
			})
		},
	), sim.WithFaults("netio small buffer"), sim.WithSchedules(1000))
}

// TestALargeWriteNeedsSteps checks that 64 KiB through a small buffer take more operations than a schedule has by
// default, and fewer than the documentation says.
func TestALargeWriteNeedsSteps(t *testing.T) {
	if testing.Short() {
		t.Skip("a million steps")
	}
	program := exchange(
		func(_ context.Context, _ *sim.Sim, c *netio.Conn) error {
			_, err := io.Copy(io.Discard, c)
			return err
		},
		func(_ context.Context, _ *sim.Sim, c *netio.Conn) error {
			_, err := c.Write(make([]byte, 64<<10))
			return err
		},
	)
	opts := []sim.Option{sim.WithFaults("netio small buffer"), sim.WithSchedules(10), sim.WithStrategy(sim.Random)}
	if f := sim.Explore(program, opts...).Failure; f == nil || f.Kind != sim.KindLivelock {
		t.Errorf("with the usual number of steps: %v", f)
	}
	res := sim.Explore(program, append(opts, sim.WithSteps(50_000))...)
	if res.Failure != nil || len(res.Never) > 0 {
		t.Errorf("with more: %v, %v", res.Failure, res.Never)
	}
}

// TestConnectionsOvertakeEachOther checks that data sent later may arrive earlier on another connection, but never on
// the same one.
func TestConnectionsOvertakeEachOther(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		got := coir.NewChan[string](10)
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			l, err := netio.Listen("unix", "@overtake")
			if err != nil {
				return err
			}
			defer func() { _ = l.Close() }()
			for i := range 2 {
				c, err := netio.Dial("unix", "@overtake")
				if err != nil {
					return err
				}
				peer, err := l.Accept()
				if err != nil {
					return err
				}
				n.Go("read", func(ctx context.Context) error {
					defer func() { _ = peer.Close() }()
					in := bufio.NewScanner(peer)
					for in.Scan() {
						if err := got.Send(ctx, in.Text()); err != nil {
							return err
						}
					}
					return in.Err()
				})
				for k := range 2 {
					if _, err := fmt.Fprintf(c, "%d %d\n", i, k); err != nil {
						return err
					}
				}
				if err := c.Close(); err != nil {
					return err
				}
			}
			return nil
		})
		got.Close()
		var order []string
		for line := range got.All(ctx) {
			order = append(order, line)
		}
		for _, i := range []string{"0", "1"} {
			if a, b := slices.Index(order, i+" 0"), slices.Index(order, i+" 1"); a < 0 || b < a {
				s.Errorf("in the order %q", order)
			}
		}
		s.Sometimes(len(order) > 0 && order[0] == "1 0", "the second connection is faster")
	}, sim.WithFaults("netio delay"), sim.WithSchedules(500))
}

// TestDeadlinesAreVirtual checks that deadlines pass on the clock of the simulation, and that a deadline alone advances
// that clock.
func TestDeadlinesAreVirtual(t *testing.T) {
	began := time.Now()
	sim.Test(t, exchange(
		func(ctx context.Context, _ *sim.Sim, _ *netio.Conn) error { return coir.Sleep(ctx, 3*time.Hour) },
		func(ctx context.Context, s *sim.Sim, c *netio.Conn) error {
			_ = c.SetReadDeadline(time.Now().Add(time.Hour))
			_, err := c.Read(make([]byte, 1))
			if !errors.Is(err, os.ErrDeadlineExceeded) || s.Now() != time.Hour {
				s.Errorf("%v after %v", err, s.Now())
			}
			_ = c.SetReadDeadline(time.Time{})
			ctx, cancel := coir.WithTimeout(ctx, 30*time.Minute)
			defer cancel()
			_, err = c.ReadContext(ctx, make([]byte, 1))
			if !errors.Is(err, coir.ErrTimeout) || s.Now() != 90*time.Minute {
				s.Errorf("%v after %v", err, s.Now())
			}
			_ = c.SetReadDeadline(time.Now().Add(time.Hour))
			_ = c.SetWriteDeadline(time.Now().Add(time.Minute))
			_, err = c.Write(make([]byte, 1<<20))
			if !errors.Is(err, os.ErrDeadlineExceeded) || s.Now() != 91*time.Minute {
				s.Errorf("%v after %v", err, s.Now())
			}
			return nil
		},
	), sim.WithSchedules(200))
	if took := time.Since(began); took > time.Hour {
		t.Errorf("it took %v", took)
	}
}

// TestADeadlineIsTakenAtTheCall checks that a deadline does not depend on how long other fibers run while it is set.
// The test uses a bubble, in which time.Now advances only by time.Sleep.
func TestADeadlineIsTakenAtTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		between := map[string]int{}
		program := exchange(func(ctx context.Context, s *sim.Sim, c *netio.Conn) error {
			l, err := netio.Listen("tcp", "other:7")
			if err != nil {
				return err
			}
			defer func() { _ = l.Close() }()
			var now atomic.Value // the deadline being set
			now.Store("")
			others := func(ctx context.Context) error {
				for range 4 {
					if err := coir.Yield(ctx); err != nil {
						return err
					}
					if what := now.Load().(string); what != "" {
						between[what]++
						time.Sleep(20 * time.Millisecond)
					}
				}
				return nil
			}
			ends := func(what string, set func(time.Time) error, wait func() error) error {
				return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
					n.Go("others", others)
					began := s.Now()
					now.Store(what)
					err := set(time.Now().Add(time.Second))
					now.Store("")
					if err != nil {
						return err
					}
					err = wait()
					if passed := s.Now() - began; !errors.Is(err, os.ErrDeadlineExceeded) || passed != time.Second {
						s.Errorf("%s: %v after %v", what, err, passed)
					}
					return nil
				})
			}
			accept := func() error { _, err := l.Accept(); return err }
			read := func() error { _, err := c.Read(make([]byte, 1)); return err }
			return errors.Join(
				ends("accept", l.(*netio.Listener).SetDeadline, accept),
				ends("read", c.SetReadDeadline, read),
			)
		}, func(ctx context.Context, _ *sim.Sim, _ *netio.Conn) error { return coir.Sleep(ctx, time.Minute) })
		if r := sim.Explore(program, sim.WithSchedules(100)); r.Failure != nil {
			t.Error(r.Failure)
		}
		if len(between) < 2 {
			t.Errorf("other fibers have run while these were set: %v", between)
		}
	})
}

// TestDialSimulated checks that a dial to an address without a listener is refused, that a time limit ends a dial, and
// that a dial on a network that is not simulated fails with an error that says so.
func TestDialSimulated(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		if _, err := netio.Dial("tcp", "nowhere:1"); !errors.Is(err, syscall.ECONNREFUSED) {
			s.Errorf("dial: %v", err)
		}
		l, err := netio.Listen("tcp", ":80")
		if err != nil {
			s.Fatalf("%v", err)
		}
		defer func() { _ = l.Close() }()
		if _, err := netio.Listen("tcp", "127.0.0.1:80"); !errors.Is(err, syscall.EADDRINUSE) {
			s.Errorf("listen: %v", err)
		}
		local := &net.TCPAddr{IP: net.IPv4(10, 1, 1, 1)}
		d := &netio.Dialer{Timeout: 5 * time.Second, LocalAddr: local}
		var all []net.Conn
		for local.Port = range 128 { // these are not accepted
			c, err := d.Dial("tcp", "www:http")
			if err != nil || local.Port > 0 && c.LocalAddr().String() != local.String() {
				s.Fatalf("dial: %v, %v", c, err)
			}
			all = append(all, c)
		}
		local.Port = 0
		_, err = d.Dial("tcp", "www:80")
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, coir.ErrTimeout) || s.Now() < 5*time.Second {
			s.Errorf("dial: %v after %v", err, s.Now())
		}
		if _, err := netio.Dial("tcp", "[no name]:80"); !errors.As(err, new(*net.DNSError)) {
			s.Errorf("dial of what is no name: %v", err)
		}
		for _, c := range all {
			_ = c.Close()
		}
		if _, err := netio.ListenPacket("udp", ":53"); !errors.Is(err, errors.ErrUnsupported) {
			s.Errorf("udp: %v", err)
		}
		if _, err := netio.Dial("udp", "ns:53"); !errors.Is(err, errors.ErrUnsupported) {
			s.Errorf("udp: %v", err)
		}
		if _, err := l.(*netio.Listener).SyscallConn(); err == nil {
			s.Errorf("it has a descriptor")
		}
	}, sim.WithSchedules(20))
}

// TestACallbackStartsAFiber tests data that arrives late, data that is already there, and a deadline that passes.
func TestACallbackStartsAFiber(t *testing.T) {
	sim.Test(t, exchange(
		func(ctx context.Context, _ *sim.Sim, c *netio.Conn) error {
			_, err := io.WriteString(c, "wake up")
			return errors.Join(err, coir.Sleep(ctx, time.Hour))
		},
		func(ctx context.Context, s *sim.Sim, c *netio.Conn) error {
			return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				for range 2 {
					done := coir.NewPromise[int]()
					_ = c.SetReadDeadline(time.Now().Add(time.Minute))
					err := c.OnReadable(func() {
						n.Go("request", func(context.Context) error {
							k, _ := c.Read(make([]byte, 100))
							done.Resolve(k)
							return nil
						})
					})
					if err != nil {
						return err
					}
					if _, err := done.Wait(ctx); err != nil {
						return err
					}
				}
				if s.Now() < time.Minute {
					s.Errorf("the deadline has passed after %v", s.Now())
				}
				return nil
			})
		},
	), sim.WithFaults("netio delay"), sim.WithSchedules(1000))
}

// TestAWriteDeadlineIsNotForReaders checks that the function of OnReadable is not called when the deadline of writes
// passes.
func TestAWriteDeadlineIsNotForReaders(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		l, err := netio.Listen("tcp", "peer:7")
		if err != nil {
			s.Fatalf("%v", err)
		}
		defer func() { _ = l.Close() }()
		c, err := netio.Dial("tcp", "peer:7")
		if err != nil {
			s.Fatalf("%v", err)
		}
		defer func() { _ = c.Close() }()
		called := false
		if err := c.(*netio.Conn).OnReadable(func() { called = true }); err != nil {
			s.Fatalf("%v", err)
		}
		limited, cancel := coir.WithTimeout(ctx, time.Hour)
		defer cancel()
		_ = c.SetWriteDeadline(time.Now().Add(time.Minute))
		if _, err := c.(*netio.Conn).WriteContext(limited, make([]byte, 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) {
			s.Errorf("the write returned %v, want that its deadline has passed", err)
		}
		if called {
			s.Errorf("the function of OnReadable was called, and there is nothing to read")
		}
	}, sim.WithSchedules(20))
	if f := sim.Run(1, func(_ context.Context, s *sim.Sim) {
		if _, err := netio.Dial("unix", ""); err == nil {
			s.Errorf("an empty address can be dialled")
		}
	}); f != nil {
		t.Error(f)
	}
}

// TestACancelBeforeACallback checks that DPOR explores both orders of a read in the function of OnReadable and a
// cancellation of its context. The fiber that cancels continues because of an action of the other fiber just before it
// calls the function.
func TestACancelBeforeACallback(t *testing.T) {
	canceled, empty := 0, 0
	r := sim.Explore(func(ctx context.Context, s *sim.Sim) {
		l, err := netio.Listen("tcp", "peer:7")
		if err != nil {
			s.Fatalf("%v", err)
		}
		dialled, err := netio.Dial("tcp", "peer:7")
		if err != nil {
			s.Fatalf("%v", err)
		}
		c := dialled.(*netio.Conn)
		in, cancel := coir.WithCancel(ctx)
		err = c.OnReadable(func() {
			switch _, err := c.ReadContext(in, nil); {
			case err == nil:
				empty++
			case errors.Is(err, context.Canceled):
				canceled++
			default:
				s.Errorf("read: %v", err)
			}
		})
		if err != nil {
			s.Fatalf("%v", err)
		}
		err = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("reader", func(ctx context.Context) error {
				defer cancel()
				if _, err := c.ReadContext(ctx, make([]byte, 1)); err != io.EOF {
					s.Errorf("read: %v", err)
				}
				return nil
			})
			n.Go("closer", func(context.Context) error { return c.CloseRead() })
			return nil
		})
		if err := errors.Join(err, c.Close(), l.Close()); err != nil {
			s.Errorf("%v", err)
		}
	}, sim.WithStrategy(func(uint64) sim.Strategy { return sim.DPOR() }))
	if r.Failure != nil || !r.Complete || empty == 0 || canceled == 0 {
		t.Errorf("complete %v, %d reads before the cancel and %d after it: %v", r.Complete, empty, canceled, r.Failure)
	}
}
