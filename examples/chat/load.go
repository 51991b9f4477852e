package chat

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/netio"
)

// Load connects clients to the server at an address, and calls joined when the server has greeted all of them. Then
// each of the first clients, speakers in number, says the given number of messages, and waits for each to come back
// before it says the next. Load returns how long it took until all clients had read all messages. It returns an error
// if the clients did not all read the same.
func Load(
	ctx context.Context, address string, clients, speakers, messages int, joined func() error,
) (took time.Duration, err error) {
	all := make([]*member, clients)
	defer func() {
		for _, m := range all {
			if m != nil {
				_ = m.conn.Close()
			}
		}
	}()
	err = coir.ForEach(ctx, 64, count(clients), func(ctx context.Context, i int) (err error) {
		all[i], err = join(ctx, address)
		return err
	})
	if err == nil {
		err = joined()
	}
	if err != nil {
		return 0, err
	}
	began := time.Now()
	err = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
		for i, m := range all {
			n.Go("member", func(ctx context.Context) error {
				say := 0
				if i < speakers {
					say = messages
				}
				return m.talk(ctx, fmt.Sprintf("member %d says ", i), say, speakers*messages)
			})
		}
		return nil
	})
	took = time.Since(began)
	for _, m := range all {
		if err == nil && m.heard != all[0].heard {
			err = errors.New("two clients have not read the same")
		}
	}
	return took, err
}

func count(n int) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	}
}

// member is a client of the server.
type member struct {
	reader
	in    *bufio.Reader
	heard uint64 // a hash of all lines, in order
}

// join connects to the server and waits for its greeting.
func join(ctx context.Context, address string) (*member, error) {
	conn, err := new(netio.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	m := &member{reader: reader{ctx, conn.(*netio.Conn)}}
	m.in = bufio.NewReaderSize(&m.reader, longest)
	line, err := m.in.ReadString('\n')
	if err == nil && line != Greeting+"\n" {
		err = fmt.Errorf("the greeting is %q", line)
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return m, nil
}

// talk says a number of lines, waiting for each to come back before it says the next. It reads until it has read all
// lines.
func (m *member) talk(ctx context.Context, prefix string, say, all int) error {
	m.ctx = ctx
	said, hash := 0, fnv.New64a()
	for heard := 0; ; {
		if said < say {
			if _, err := m.conn.WriteContext(ctx, fmt.Appendf(nil, "%s%d\n", prefix, said)); err != nil {
				return err
			}
		}
		for back := false; !back && heard < all; heard++ {
			line, err := m.in.ReadString('\n')
			if err != nil {
				return err
			}
			_, _ = hash.Write([]byte(line))
			back = said < say && strings.HasPrefix(line, prefix)
		}
		if said++; heard == all {
			m.heard = hash.Sum64()
			return nil
		}
	}
}
