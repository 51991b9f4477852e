package main

import (
	"bytes"
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/inspect"
)

// ran runs coir-top, and returns its output.
func ran(t *testing.T, want int, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(args, &out, &errs); code != want {
		t.Errorf("coir-top %v: exit code %d, want %d\n%s%s", args, code, want, &out, &errs)
	}
	return out.String() + errs.String()
}

func TestArguments(t *testing.T) {
	has(t, ran(t, 0, "-h"), "coir-top shows what a running program of coir waits for")
	has(t, ran(t, 2, "a:1", "b:2"), "it shows one program", "Run 'coir-top -h' for more.")
	has(t, ran(t, 2, "-interval", "1ms"), "-interval must be at least 100ms")
	has(t, ran(t, 2, "-x"), "-x")
	has(t, ran(t, 2, "none.json"), "file none.json does not exist")
	has(t, ran(t, 2, filepath.Join("testdata", "locks.json")), "the output is not a terminal: use -once")
	has(t, ran(t, 1, "-once", "main_test.go"), "coir-top: main_test.go: not a dump")
}

// The guide shows the screen of locks.json. To make that file, build examples/stuck with -trimpath, run it with -bug
// locks, and run curl -o locks.json localhost:7117/dump.
func TestTheScreenOfTheGuide(t *testing.T) {
	got := ran(t, 0, "-once", filepath.Join("testdata", "locks.json"))
	guide := filepath.Join("..", "..", "docs", "guide", "seeing.md")
	b, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(b), "\r\n", "\n")
	const begin, end = "<!-- coir-top -once cmd/coir-top/testdata/locks.json -->\n```\n", "```\n"
	before, rest, found := strings.Cut(text, begin)
	old, after, closed := strings.Cut(rest, end)
	switch {
	case !found || !closed:
		t.Errorf("%s has no screen", guide)
	case old == got:
	case *updating:
		if err := os.WriteFile(guide, []byte(before+begin+got+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("run make generate: %s shows\n%s\nand it is\n%s", guide, old, got)
	}
}

// pipes is a network in memory with one server.
type pipes struct {
	conns chan net.Conn
	ctx   context.Context
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.ctx.Done():
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// coir-top follows a real program on a virtual clock. The program sends ten values a second to a channel and receives
// two a second, so the channel is full after some seconds.
func TestFollowsAProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		rt := coir.NewRuntime()
		ended := make(chan error, 1)
		go func() { ended <- rt.Run(ctx, slowly) }()

		network := &pipes{make(chan net.Conn), ctx}
		server := &http.Server{Handler: inspect.Handler(inspect.WithSource(rt))}
		go func() { _ = server.Serve(network) }()

		from, err := newPage("http://localhost:7117/")
		if err != nil {
			t.Fatal(err)
		}
		transport := &http.Transport{DialContext: network.dial}
		from.client.Transport = transport
		m := newModel(ctx, from, time.Second)
		cmd := m.Init()
		follow := func(d time.Duration) { // runs the commands that the program would run
			for end := time.Now().Add(d); time.Now().Before(end); {
				_, cmd = m.Update(cmd())
			}
		}
		m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
		follow(8 * time.Second)
		m.press("3", "enter")
		has(t, m.text(), "objects > channel lines", "length", "sent", "received")
		follow(30 * time.Second)
		full := strings.Repeat("█", 33) // the channel is full from the fifth second on
		rates := full[len("█"):] + "  at most 2.0/s"
		has(t, m.text(), "live 00:00:37", "1 waits to send, the oldest for 350ms", "32 of 32, at most 32 so far;",
			"106 sent, 74 received", "length    "+full+"  of 32", "sent       "+rates, "received   "+rates,
			">   350ms  read #", "waits to send to lines", "    450ms  write #",
			"received last, waits for time to pass")

		stop()
		<-ended
		_ = rt.Close(t.Context())
		transport.CloseIdleConnections()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
}

// slowly runs a producer that is faster than its consumer. Neither does anything at whole seconds, when snapshots are
// taken.
func slowly(_ context.Context, n *coir.Nursery) error {
	lines := coir.NewChan[int](32, coir.WithName("lines"))
	every := func(d, first time.Duration, do func(ctx context.Context) error) func(ctx context.Context) error {
		return func(ctx context.Context) error {
			err := coir.Sleep(ctx, first)
			for err == nil {
				if err = do(ctx); err == nil {
					err = coir.Sleep(ctx, d)
				}
			}
			return err
		}
	}
	n.Go("read", every(100*time.Millisecond, 30*time.Millisecond, func(ctx context.Context) error {
		return lines.Send(ctx, 1)
	}))
	n.Go("write", every(500*time.Millisecond, 50*time.Millisecond, func(ctx context.Context) error {
		_, err := lines.Recv(ctx)
		return err
	}))
	return nil
}
