package hub

// Members join, speak, leave and are slow in any order. All receive the same messages, and missed messages are counted.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
)

// scripted is a member that says a few lines, and takes time to read.
type scripted struct {
	name   string
	says   []string
	stays  bool // until the hub is closed
	takes  time.Duration
	got    []string
	missed int
}

func (m *scripted) ReadLine(ctx context.Context) (string, error) {
	if len(m.says) == 0 && m.stays {
		return "", coir.WaitCancel(ctx)
	}
	if len(m.says) == 0 {
		return "", io.EOF
	}
	text := m.says[0]
	m.says = m.says[1:]
	return text, coir.Yield(ctx)
}

func (m *scripted) WriteLine(ctx context.Context, line string) error {
	var missed int
	if _, err := fmt.Sscanf(line, "(%d missed)", &missed); err == nil {
		m.missed += missed
		return nil
	}
	m.got = append(m.got, line)
	return coir.Sleep(ctx, m.takes)
}

func TestJoin(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		const keep = 2
		h := New(keep)
		log := h.lines.Subscribe(coir.Unbounded) // all messages, in order
		members := []*scripted{
			{name: "Ada", says: []string{"a", "b"}},
			{name: "Bob", says: []string{"c"}, stays: true},
			{name: "Eve", says: []string{"d", "e"}, stays: true, takes: time.Second},
		}
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			for _, m := range members {
				n.Go(m.name, func(ctx context.Context) error { return h.Join(ctx, m.name, m) })
			}
			n.Go("close", func(ctx context.Context) error {
				err := coir.Sleep(ctx, time.Duration(s.Intn(3))*time.Second)
				h.Close()
				return err
			})
			return nil
		})
		if n := h.Len(); err != nil || n > 1 {
			s.Errorf("%d members are left, %v", n, err)
		}
		var said []string
		for line, err := range log.All(ctx) {
			if err != nil {
				s.Errorf("%v", err)
			}
			said = append(said, line)
		}
		for _, m := range members {
			// If a line was being published when the hub was closed, it is the last line, and only some members
			// received it.
			at := 0
			for k, line := range m.got {
				i := slices.Index(said[at:], line)
				if i < 0 && k == len(m.got)-1 {
					break
				}
				if i < 0 {
					s.Errorf("%s heard %q, of %q", m.name, m.got, said)
					return
				}
				at += i + 1
			}
			came := slices.Index(said, m.name+" has come")
			if came >= 0 && m.stays && len(m.got)+m.missed < len(said)-1-came {
				s.Errorf("%s heard %q and missed %d, of %q", m.name, m.got, m.missed, said)
			}
		}
		s.Sometimes(len(said) == 9, "all that they have to say")
		s.Sometimes(members[2].missed > 0, "a slow member misses something")
		s.Sometimes(members[1].missed == 0 && len(members[1].got) == 9, "a fast one hears all")
		s.Sometimes(slices.Index(said, "Eve has come") < 0, "one comes too late")
		s.Sometimes(slices.Contains(said, "Ada has left"), "one leaves early")
	}, sim.WithSchedules(3000))
}

// TestCancel checks that a member leaves when its context ends, and that Join returns the error.
func TestCancel(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		h := New(4)
		stays := &scripted{name: "Bob", stays: true}
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("Bob", func(ctx context.Context) error { return h.Join(ctx, "Bob", stays) })
			ctx, cancel := coir.WithTimeout(ctx, time.Second)
			defer cancel()
			if err := h.Join(ctx, "Ada", &scripted{stays: true}); !errors.Is(err, coir.ErrTimeout) {
				s.Errorf("Join returns %v", err)
			}
			h.Close()
			return nil
		})
		if got := stays.got; got[len(got)-1] != "Ada has left" {
			s.Errorf("Bob heard %q", got)
		}
	})
}

// TestServe checks that connected members receive each other's messages, and after a stop what was said before it.
func TestServe(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- New(100).Serve(ctx, l, time.Minute) }()
	var ins [2]*bufio.Scanner
	for i, name := range []string{"Ada", "Bob"} {
		conn, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		ins[i] = bufio.NewScanner(conn)
		fmt.Fprintln(conn, name)
		for j := range i + 1 {
			if want := name + " has come"; !ins[j].Scan() || ins[j].Text() != want {
				t.Fatalf("member %d hears %q, not %q", j, ins[j].Text(), want)
			}
		}
		fmt.Fprintln(conn, "hello")
		for j := range i + 1 {
			if want := name + ": hello"; !ins[j].Scan() || ins[j].Text() != want {
				t.Fatalf("member %d hears %q, not %q", j, ins[j].Text(), want)
			}
		}
	}
	idle, err := net.Dial("tcp", l.Addr().String()) // sends no name, and must not delay the stop
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = idle.Close() }()
	stop()
	if err := <-served; err != nil {
		t.Errorf("it ended with %v", err)
	}
	for i, in := range ins {
		if in.Scan() {
			t.Errorf("after the stop member %d hears %q", i, in.Text())
		}
	}
}
