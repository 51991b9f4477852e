// Package chat is a chat server on package netio: what one client writes, all clients read, in the same order.
//
// A client that reads too slowly holds up no other. It has a queue of lines that it has not read, and when that is full
// the client is dropped: its connection is closed, and it is counted.
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
	// Greeting is the line that the server writes first. From then on the client reads all that is said.
	Greeting = "welcome"

	longest = 512              // bytes of a line
	batch   = 4 << 10          // bytes that are written together
	grace   = 10 * time.Second // in which a client that has left reads the rest
)

// Server passes lines between its clients.
type Server struct {
	queue  int
	events *coir.Chan[event] // for the room

	clients, messages, deliveries, dropped atomic.Int64

	onAccept func(line string) // for tests
}

// New makes a server that keeps up to queue lines for a client.
func New(queue int) *Server {
	return &Server{queue: queue, events: coir.NewChan[event](64, coir.WithName("events"))}
}

// Stats are figures of a server.
type Stats struct {
	Clients    int64 // that are there now
	Messages   int64 // that were accepted
	Deliveries int64 // to one client each
	Dropped    int64 // clients that were too slow
}

// Stats returns the figures up to now.
func (s *Server) Stats() Stats {
	return Stats{s.clients.Load(), s.messages.Load(), s.deliveries.Load(), s.dropped.Load()}
}

// String returns the figures in a line.
func (s Stats) String() string {
	return fmt.Sprintf("%d clients, %d messages, %d deliveries, %d clients dropped",
		s.Clients, s.Messages, s.Deliveries, s.Dropped)
}

// client is a connection.
type client struct {
	conn *netio.Conn
	out  *coir.Chan[string] // lines to write. Only the room sends to it, and closes it
	at   int                // among the clients of the room, or -1
}

// event is an action of a client in the room.
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
				return nil // the failure of one connection is no other's
			})
		}
	})
}

// room passes what clients say to all of them. It is one fiber, which owns the list of clients, so it needs no lock. It
// waits for no client.
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
			if c.at < 0 { // it has been dropped
				continue
			}
			s.messages.Add(1)
			if s.onAccept != nil {
				s.onAccept(e.line)
			}
			for i := len(all) - 1; i >= 0; i-- { // remove fills the gap with one that has got the line
				c := all[i]
				if errors.Is(c.out.TrySend(e.line), coir.ErrWouldBlock) {
					remove(c)
					s.dropped.Add(1)
					_ = c.conn.Close() // ends what its fibers wait for
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
				_ = conn.Close() // so that the reader ends too
			}
			return nil
		})
		err := s.read(ctx, c)
		_ = conn.SetWriteDeadline(time.Now().Add(grace))
		return errors.Join(err, s.events.Send(ctx, event{c, leaves, ""}))
	})
}

// read passes the client's lines to the room, until there are no more.
func (s *Server) read(ctx context.Context, c *client) error {
	in := bufio.NewReaderSize(reader{ctx, c.conn}, longest)
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return nil // it has left, has been dropped, or writes what is no line
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

// write writes the lines for the client, many of them at once if there are many.
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
			b = nil // most clients are idle most of the time
		}
	}
}
