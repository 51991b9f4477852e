// Package hub is a chat: all members receive what each member says, in the same order.
//
// Members join and leave at any time. A slow member does not delay the others: it misses the oldest messages that it
// has not read, and a line tells it how many. When the chat is closed, members still receive their unread messages.
package hub

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/pubsub"
)

// Conn is the connection of a member. One goroutine reads while another writes.
type Conn interface {
	ReadLine(ctx context.Context) (string, error) // io.EOF if the member has left
	WriteLine(ctx context.Context, line string) error
}

// Hub passes messages to its members.
type Hub struct {
	keep  int
	lines *pubsub.Broadcast[string]
}

// New makes a hub that keeps up to keep unread messages for each member.
func New(keep int) *Hub {
	return &Hub{keep: keep, lines: pubsub.NewBroadcast[string](coir.WithName("lines"))}
}

// Len returns the number of members.
func (h *Hub) Len() int { return h.lines.Len() }

// Close ends the chat. Members receive their unread messages, and then their Join returns. A message that is being
// published during Close may reach only some members.
func (h *Hub) Close() { h.lines.Close() }

// Join makes c a member and serves it. It returns nil when the member leaves or the hub is closed, and an error if ctx
// ends.
func (h *Hub) Join(ctx context.Context, name string, c Conn) error {
	sub := h.lines.Subscribe(h.keep, coir.WithOverflow(coir.OverflowDropOldest), coir.WithName("lines for "+name))
	defer func() {
		sub.Close()
		_ = h.lines.Publish(coir.Shield(ctx), name+" has left")
	}()
	err := h.lines.Publish(ctx, name+" has come")
	if err == nil {
		err = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("hear", func(ctx context.Context) error { return h.hear(ctx, name, c) }, coir.WithGoroutine())
			n.Go("tell", func(ctx context.Context) error { return tell(ctx, sub, c) }, coir.WithGoroutine())
			return nil
		})
	}
	if errors.Is(err, io.EOF) || errors.Is(err, coir.ErrClosed) {
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
		err = h.lines.Publish(ctx, name+": "+text)
		if errors.Is(err, coir.ErrClosed) {
			return nil // the member may still have unread messages
		}
		if err != nil {
			return err
		}
	}
}

// tell writes the messages to the member, and the number of messages that it has missed.
func tell(ctx context.Context, sub *pubsub.Subscription[string], c Conn) error {
	told := uint64(0)
	for {
		line, err := sub.Recv(ctx)
		if err != nil {
			return err
		}
		if missed := sub.Lagged(); missed > told {
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

// Serve accepts connections until ctx ends, and makes each of them a member whose name is its first line. Then it
// closes the hub, and returns when the members have read their messages or grace has passed.
func (h *Hub) Serve(ctx context.Context, l net.Listener, grace time.Duration) error {
	members, cancel := coir.WithGrace(ctx, grace)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	return coir.Run(members, func(members context.Context, n *coir.Nursery) error {
		defer h.Close()
		for {
			conn, err := coir.Blocking(members, l.Accept)
			if errors.Is(err, net.ErrClosed) {
				return nil
			}
			if err != nil {
				return err
			}
			n.Go("member", func(member context.Context) error {
				defer func() { _ = conn.Close() }()
				c := &lineConn{conn, bufio.NewReader(conn)}
				if name, err := c.ReadLine(ctx); err == nil {
					_ = h.Join(member, name, c) // one failed connection must not end the others
				}
				return nil
			}, coir.WithGoroutine())
		}
	})
}

// lineConn is a Conn on a network connection.
type lineConn struct {
	net.Conn
	in *bufio.Reader
}

// ReadLine reads the next line. It is interrupted when ctx ends.
func (c *lineConn) ReadLine(ctx context.Context) (string, error) {
	defer context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })()
	line, err := c.in.ReadString('\n')
	return strings.TrimSpace(line), err
}

// WriteLine writes a line. It is interrupted when ctx ends.
func (c *lineConn) WriteLine(ctx context.Context, line string) error {
	defer context.AfterFunc(ctx, func() { _ = c.SetWriteDeadline(time.Unix(1, 0)) })()
	_, err := io.WriteString(c, line+"\n")
	return err
}
