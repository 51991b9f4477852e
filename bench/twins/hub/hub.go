// Package hub is examples/hub with goroutines, channels and errgroup.
//
// Members come and leave at any time. A slow member delays no other: it misses the oldest messages that it has not read
// yet, and is told how many. When the chat is closed, members get the messages that they have not read.
package hub

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// Conn is the connection of a member. One goroutine reads while another writes.
type Conn interface {
	ReadLine(ctx context.Context) (string, error) // io.EOF if the member has left
	WriteLine(ctx context.Context, line string) error
}

var errClosed = errors.New("the hub is closed")

// Hub passes messages to its members.
type Hub struct {
	keep    int
	mu      sync.Mutex // guards the fields below; held while a message is passed on
	members map[*member]struct{}
	closed  bool
}

type member struct {
	lines  chan string
	missed atomic.Uint64
}

// New makes a hub that keeps up to keep messages for a slow member.
func New(keep int) *Hub {
	return &Hub{keep: keep, members: make(map[*member]struct{})}
}

// Len returns the number of members.
func (h *Hub) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.members)
}

// Close ends the chat: members get the messages that they have not read, and then their Join returns.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for m := range h.members {
		close(m.lines)
	}
	clear(h.members)
}

func (h *Hub) subscribe() *member {
	m := &member{lines: make(chan string, h.keep)}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.closed {
		h.members[m] = struct{}{}
	}
	return m
}

func (h *Hub) unsubscribe(m *member) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.members, m)
}

func (h *Hub) publish(line string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return errClosed
	}
	for m := range h.members {
		m.put(line)
	}
	return nil
}

// put passes a line to a member. If there is no room it drops the oldest line. Only the holder of the hub's lock puts.
func (m *member) put(line string) {
	for {
		select {
		case m.lines <- line:
			return
		default:
		}
		select {
		case <-m.lines:
			m.missed.Add(1)
		default: // the member has just taken it
		}
	}
}

// Join makes c a member, and serves it until it leaves or the hub is closed, which is not an error, or until ctx ends.
func (h *Hub) Join(ctx context.Context, name string, c Conn) error {
	m := h.subscribe()
	defer func() {
		h.unsubscribe(m)
		_ = h.publish(name + " has left")
	}()
	err := h.publish(name + " has come")
	if err == nil {
		eg, ctx := errgroup.WithContext(ctx)
		eg.Go(func() error { return h.hear(ctx, name, c) })
		eg.Go(func() error { return m.tell(ctx, c) })
		err = eg.Wait()
	}
	if errors.Is(err, io.EOF) || errors.Is(err, errClosed) {
		return nil
	}
	return err
}

// hear publishes what the member says.
func (h *Hub) hear(ctx context.Context, name string, c Conn) error {
	for {
		text, err := c.ReadLine(ctx)
		if err != nil {
			return err
		}
		if err := h.publish(name + ": " + text); err != nil {
			return nil // closed: there may still be messages to tell
		}
	}
}

// tell writes what the members say, and how much the member has missed.
func (m *member) tell(ctx context.Context, c Conn) error {
	told := uint64(0)
	for {
		var line string
		var ok bool
		select {
		case line, ok = <-m.lines:
		case <-ctx.Done():
			return ctx.Err()
		}
		if !ok {
			return errClosed
		}
		if missed := m.missed.Load(); missed > told {
			if err := c.WriteLine(ctx, fmt.Sprintf("(%d missed)", missed-told)); err != nil {
				return err
			}
			told = missed
		}
		if err := c.WriteLine(ctx, line); err != nil {
			return err
		}
	}
}

// Serve makes each connection that it accepts a member, whose name is the first line, until ctx ends. Then it closes
// the hub, and returns when the members have read their messages, or grace has passed.
func (h *Hub) Serve(ctx context.Context, l net.Listener, grace time.Duration) error {
	members, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		_ = l.Close()
		time.AfterFunc(grace, cancel)
	})()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer h.Close()
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		wg.Go(func() {
			defer func() { _ = conn.Close() }()
			c := &lineConn{conn, bufio.NewReader(conn)}
			if name, err := c.ReadLine(ctx); err == nil {
				_ = h.Join(members, name, c) // the failure of one connection does not affect others
			}
		})
	}
}

// lineConn is a Conn on a network.
type lineConn struct {
	net.Conn
	in *bufio.Reader
}

// ReadLine reads the next line. The end of ctx interrupts it.
func (c *lineConn) ReadLine(ctx context.Context) (string, error) {
	defer context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })()
	line, err := c.in.ReadString('\n')
	return strings.TrimSpace(line), err
}

// WriteLine writes a line. The end of ctx interrupts it.
func (c *lineConn) WriteLine(ctx context.Context, line string) error {
	defer context.AfterFunc(ctx, func() { _ = c.SetWriteDeadline(time.Unix(1, 0)) })()
	_, err := io.WriteString(c, line+"\n")
	return err
}
