// Package chat is a chat server on package netio: all clients read what each client writes, in the same order.
//
// A slow reader does not delay the other clients. Each client has a queue of lines that it has not read. When the queue
// is full, the server drops the client: it closes the connection and counts the client in [Stats].
package chat

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/netio"
)

const (
	// Greeting is the line that the server writes first. After it, a client reads every line that the server accepts.
	Greeting = "welcome"

	longest = 512              // the longest line, in bytes
	batch   = 4 << 10          // the most bytes written together
	grace   = 10 * time.Second // how long a client that has left may take to read the rest
)

// Server passes lines between its clients.
type Server struct {
	queue  int
	events *coir.Chan[event] // read by the room

	clients, messages, deliveries, dropped atomic.Int64

	onAccept func(line string) // set by tests
}

// New makes a server that queues up to queue unread lines for each client.
func New(queue int) *Server {
	return &Server{queue: queue, events: coir.NewChan[event](64, coir.WithName("events"))}
}

// Stats are the figures of a server.
type Stats struct {
	Clients    int64 // connected now
	Messages   int64 // accepted so far
	Deliveries int64 // lines queued, counted once for each client
	Dropped    int64 // clients dropped because they were too slow
}

// Stats returns the current figures.
func (s *Server) Stats() Stats {
	return Stats{s.clients.Load(), s.messages.Load(), s.deliveries.Load(), s.dropped.Load()}
}

// String returns the figures in one line.
func (s Stats) String() string {
	return fmt.Sprintf("%d clients, %d messages, %d deliveries, %d clients dropped",
		s.Clients, s.Messages, s.Deliveries, s.Dropped)
}

// client is a connection to a client.
type client struct {
	conn *netio.Conn
	out  *coir.Chan[string] // lines to write; only the room sends to it and closes it
	at   int                // index in the room's list of clients, or -1
}

// event tells the room what a client did.
type event struct {
	from *client
	what what
	line string
}

type what uint8

const (
	says what = iota
	comes
	leaves
)

// Serve serves the connections of l until ctx ends, closes them and l, and returns ctx's error.
func (s *Server) Serve(ctx context.Context, l *netio.Listener) error {
	defer func() { _ = l.Close() }()
	return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("room", s.room)
		for {
			conn, err := l.AcceptContext(ctx)
			if err != nil {
				return err
			}
			n.Go("client", func(ctx context.Context) error {
				s.serve(ctx, conn)
				return nil // one failed connection must not end the others
			})
		}
	})
}

// room passes what clients say to all clients. It is one fiber, which owns the list of clients, so it needs no lock. It
// never waits for a client.
func (s *Server) room(ctx context.Context) error {
	var all []*client
	defer func() { s.clients.Add(-int64(len(all))) }()
	remove := func(c *client) {
		last := len(all) - 1
		all[c.at], all[last].at = all[last], c.at
		all[last], c.at = nil, -1
		all = all[:last]
		s.clients.Add(-1)
		c.out.Close()
	}
	for e, err := range s.events.All(ctx) {
		if err != nil {
			return err
		}
		switch c := e.from; e.what {
		case comes:
			c.at = len(all)
			all = append(all, c)
			s.clients.Add(1)
			_ = c.out.TrySend(Greeting + "\n")
		case leaves:
			if c.at >= 0 {
				remove(c)
			}
		case says:
			if c.at < 0 { // the client was dropped
				continue
			}
			s.messages.Add(1)
			if s.onAccept != nil {
				s.onAccept(e.line)
			}
			for i := len(all) - 1; i >= 0; i-- { // backwards, because remove moves the last client into the gap
				c := all[i]
				if errors.Is(c.out.TrySend(e.line), coir.ErrWouldBlock) {
					remove(c)
					s.dropped.Add(1)
					_ = c.conn.Close() // ends the operations of the client's fibers
					continue
				}
				s.deliveries.Add(1)
			}
		}
	}
	return nil
}

// serve serves one connection.
func (s *Server) serve(ctx context.Context, conn *netio.Conn) {
	defer func() { _ = conn.Close() }()
	c := &client{conn: conn, out: coir.NewChan[string](s.queue, coir.WithName("lines for a client")), at: -1}
	_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		if err := s.events.Send(ctx, event{c, comes, ""}); err != nil {
			return err
		}
		n.Go("write", func(ctx context.Context) error {
			if err := c.write(ctx); err != nil {
				_ = conn.Close() // ends the client's reader too
			}
			return nil
		})
		err := s.read(ctx, c)
		_ = conn.SetWriteDeadline(time.Now().Add(grace))
		return errors.Join(err, s.events.Send(ctx, event{c, leaves, ""}))
	})
}

// read passes the client's lines to the room until there are no more.
func (s *Server) read(ctx context.Context, c *client) error {
	in := bufio.NewReaderSize(reader{ctx, c.conn}, longest)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return nil // the client has left, was dropped, or wrote an overlong line
		}
		if err := s.events.Send(ctx, event{c, says, string(line)}); err != nil {
			return err
		}
	}
}

// reader reads from a connection until ctx ends.
type reader struct {
	ctx  context.Context
	conn *netio.Conn
}

func (r reader) Read(p []byte) (int, error) { return r.conn.ReadContext(r.ctx, p) }

// write writes the client's lines. If several are queued, it writes them together.
func (c *client) write(ctx context.Context) error {
	var b []byte
	for {
		line, err := c.out.Recv(ctx)
		if errors.Is(err, coir.ErrClosed) {
			return nil
		}
		for err == nil {
			if b = append(b, line...); len(b) >= batch {
				break
			}
			line, err = c.out.TryRecv()
		}
		if len(b) == 0 {
			return err
		}
		if _, err := c.conn.WriteContext(ctx, b); err != nil {
			return err
		}
		if b = b[:0]; cap(b) > longest {
			b = nil // frees the memory: most clients are idle most of the time
		}
	}
}
