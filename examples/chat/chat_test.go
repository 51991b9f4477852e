//go:build !plan9

package chat

// Clients are late, are slow, lose connections and leave, in any order. Clients that stay read every line accepted
// since they joined, in order. Clients that are too slow are disconnected and counted.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/netio"
	"github.com/coir-go/coir/sim"
)

const address = "chat:7000"

// guest is a simulated client.
type guest struct {
	name   string
	says   int           // number of lines
	takes  time.Duration // how long it takes to read a line
	leaves bool          // leaves after its last line

	got     []string
	greeted bool
	failed  error // the error of a read or a write; the system reports a reset once, to one of the two
	err     error // the error that ended the guest
}

// visit says the guest's lines, and reads until the server closes the connection.
func (g *guest) visit(ctx context.Context) {
	conn, err := netio.Dial("tcp", address)
	for errors.Is(err, syscall.ECONNREFUSED) && coir.Sleep(ctx, time.Second) == nil {
		conn, err = netio.Dial("tcp", address)
	}
	if g.err = err; err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
		n.Go("say", func(context.Context) error {
			for i := range g.says {
				if _, g.failed = fmt.Fprintf(conn, "%s %d\n", g.name, i); g.failed != nil {
					return nil
				}
			}
			if g.leaves {
				_ = conn.(*netio.Conn).CloseWrite()
			}
			return nil
		})
		g.err = g.listen(ctx, conn)
		return nil
	})
}

func (g *guest) listen(ctx context.Context, conn net.Conn) error {
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil // perhaps in the middle of a line, if the server dropped the client
		}
		if err != nil {
			return err
		}
		if line = strings.TrimSpace(line); !g.greeted {
			if g.greeted = true; line != Greeting {
				return fmt.Errorf("the greeting is %q", line)
			}
			continue
		}
		g.got = append(g.got, line)
		if err := coir.Sleep(ctx, g.takes); err != nil {
			return err
		}
	}
}

// TestClients runs for an hour of virtual time, in which all work ends.
func TestClients(t *testing.T) {
	schedules := 8_000
	if testing.Short() {
		schedules = 1_000
	}
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		guests := []*guest{
			{name: "Ada", says: 3},
			{name: "Bob", says: 2, leaves: true},
			{name: "Eve", says: 1, takes: 2 * time.Minute},
		}
		server := New(2)
		var accepted []string
		server.onAccept = func(line string) { accepted = append(accepted, strings.TrimSpace(line)) }
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			l, err := netio.Listen("tcp", address)
			if err != nil {
				return err
			}
			for _, g := range guests {
				n.Go(g.name, func(ctx context.Context) error { g.visit(ctx); return nil })
			}
			ctx, stop := coir.WithTimeout(ctx, time.Hour)
			defer stop()
			if err := server.Serve(ctx, l.(*netio.Listener)); !errors.Is(err, context.DeadlineExceeded) {
				s.Errorf("Serve returns %v", err)
			}
			return nil
		})
		if err != nil {
			s.Errorf("%v", err)
		}
		check(s, server.Stats(), guests, accepted)
	}, sim.WithSchedules(schedules),
		sim.WithFaults("netio delay", "netio partial read", "netio small buffer", "netio refuse", "netio reset"))
}

// check compares the lines that each guest has read with the accepted lines.
func check(s *sim.Sim, st Stats, guests []*guest, accepted []string) {
	if int(st.Messages) != len(accepted) || st.Clients < 0 {
		s.Errorf("%v, and %d accepted", st, len(accepted))
	}
	cut := 0
	for _, g := range guests {
		// The lines that the guest has read are a part of the accepted lines, without a gap.
		at := 0
		if len(g.got) > 0 {
			at = slices.Index(accepted, g.got[0])
		}
		if at < 0 || at+len(g.got) > len(accepted) || !slices.Equal(accepted[at:at+len(g.got)], g.got) {
			s.Errorf("%s has read %q, of %q", g.name, g.got, accepted)
			continue
		}
		reset := errors.Is(g.err, syscall.ECONNRESET)
		if g.err != nil && !reset {
			s.Errorf("%s: %v", g.name, g.err)
		}
		stayed := !reset && g.failed == nil && !g.leaves && st.Dropped == 0
		if stayed && len(g.got) > 0 && at+len(g.got) != len(accepted) {
			s.Errorf("%s stayed, and has read %q, of %q", g.name, g.got, accepted)
		}
		// A guest reads its own lines, because it says them after its greeting.
		if stayed && !slices.Contains(g.got, g.name+" 0") {
			s.Errorf("%s stayed, and has not read its own lines, but %q, of %q", g.name, g.got, accepted)
		}
		if len(g.got) < len(accepted) {
			cut++
		}
		s.Sometimes(g.name == "Eve" && st.Dropped > 0 && len(g.got) < len(accepted), "a slow client is dropped")
		s.Sometimes(g.name == "Bob" && stays(g, accepted) && g.err == nil, "one that has said all reads the rest")
		s.Sometimes(reset && len(g.got) > 0, "one is reset in the middle")
	}
	s.Sometimes(cut == 0 && len(accepted) == 6, "all read all")
	if int(st.Dropped) > len(guests) {
		s.Errorf("%d clients were dropped", st.Dropped)
	}
}

// stays reports whether the guest has read its own last line.
func stays(g *guest, accepted []string) bool {
	last := fmt.Sprintf("%s %d", g.name, g.says-1)
	return slices.Contains(accepted, last) && slices.Contains(g.got, last)
}

// TestADroppedClientIsClosed checks that a client that never reads is dropped when its queue is full, and that no other
// client waits for it.
func TestADroppedClientIsClosed(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		server := New(4)
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			l, err := netio.Listen("tcp", address)
			if err != nil {
				return err
			}
			n.Go("serve", func(ctx context.Context) error { return server.Serve(ctx, l.(*netio.Listener)) })
			mute, err := join(ctx, address) // it does not read again
			if err != nil {
				return err
			}
			defer func() { _ = mute.conn.Close() }()
			speaker, err := join(ctx, address)
			if err != nil {
				return err
			}
			defer func() { _ = speaker.conn.Close() }()
			line := strings.Repeat("x", 500)
			for range 64<<10/len(line) + 20 { // more than the connection and the queue hold
				if err := speaker.talk(ctx, line, 1, 1); err != nil {
					s.Errorf("the speaker: %v", err)
					break
				}
			}
			if st := server.Stats(); st.Dropped != 1 || st.Clients != 1 {
				s.Errorf("server.Stats() = %v, want Dropped 1, Clients 1", st)
			}
			for err = nil; err == nil; {
				_, err = mute.conn.Read(make([]byte, 1<<20)) // the remaining data, and then the end
			}
			n.Cancel(nil)
			return nil
		})
		if st := server.Stats(); st.Clients != 0 {
			s.Errorf("when the server has ended: %v", st)
		}
	}, sim.WithSchedules(10), sim.WithSteps(100_000))
}

// TestManyConnections uses real connections. Another process runs the clients, because both ends need too many
// descriptors for one.
func TestManyConnections(t *testing.T) {
	const speakers, messages = 10, 5
	if to := os.Getenv("CHAT_TEST_SERVER"); to != "" { // this is the other process
		clients, _ := strconv.Atoi(os.Getenv("CHAT_TEST_CLIENTS"))
		took, err := Load(t.Context(), to, clients, speakers, messages, func() error { return nil })
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%d messages to %d clients in %v: %.0f deliveries a second\n", speakers*messages, clients, took,
			speakers*messages*float64(clients)/took.Seconds())
		return
	}
	clients := 200
	if os.Getenv("COIR_SOAK") != "" {
		clients = 10_000
	}
	l, err := netio.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := New(100)
	ctx, stop := coir.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- server.Serve(ctx, l.(*netio.Listener)) }()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestManyConnections$", "-test.v")
	cmd.Env = append(os.Environ(), "CHAT_TEST_SERVER="+l.Addr().String(), "CHAT_TEST_CLIENTS="+strconv.Itoa(clients))
	out, err := cmd.CombinedOutput()
	stop()
	t.Logf("%s", out)
	if end := <-served; err != nil || !errors.Is(end, context.Canceled) {
		t.Errorf("clients: %v, server: %v", err, end)
	}
	want := Stats{Messages: speakers * messages, Deliveries: int64(speakers * messages * clients)}
	if got := server.Stats(); got.Messages != want.Messages || got.Deliveries != want.Deliveries || got.Dropped != 0 ||
		got.Clients != 0 {
		t.Errorf("%v, want %v", got, want)
	}
}
