package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
)

// How messages that are not stored reach their processes.
//
// Each transport is a node with a number. One table lists the nodes that serve each subject, and another table holds
// the messages for each node. NOTIFY wakes a node, on a separate channel for each node, and the node takes its messages
// out of the table. So messages may have any size, and NOTIFY carries no data. Both tables are unlogged, and are lost
// if the server crashes. Then the connection is lost too, and the node registers again.
//
// A node counts as connected while its connection holds an advisory lock with the node's number. If a process is
// killed, the server releases the lock, and Request no longer chooses the node. The other nodes delete its rows.

const (
	beatTime    = 5 * time.Second // interval at which a node checks that its connection works
	reconnectIn = 100 * time.Millisecond
)

// letter is a message for this node.
type letter struct {
	id      int64
	kind    byte
	sender  int64
	request int64
	subject string
	data    []byte
}

// The kinds of letters.
const (
	kindTold     = 't'
	kindRequest  = 'q'
	kindAnswer   = 'a'
	kindUnserved = 'n'
)

// connect returns a connection that listens.
func (t *Transport) connect(ctx context.Context) (*pgx.Conn, error) {
	c, err := t.acquire(ctx)
	if err != nil {
		return nil, err
	}
	conn := c.Hijack()
	// Shared, because the server may not have noticed yet that the previous connection has ended.
	if _, err = conn.Exec(ctx, "select pg_advisory_lock_shared($1)", t.node); err == nil {
		_, err = conn.Exec(ctx, "listen coir_"+strconv.FormatUint(uint64(t.node), 16))
	}
	if err != nil {
		hangUp(conn)
		return nil, err
	}
	return conn, nil
}

func hangUp(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // if Close fails, the connection is closed anyway
}

// attend takes the messages for this node. When the connection is lost, it connects again.
func (t *Transport) attend(ctx context.Context, conn *pgx.Conn) {
	defer t.running.Done()
	for {
		lost := &loss{time.Now(), t.listen(ctx, conn)}
		t.lost.Store(lost)
		hangUp(conn)
		for conn = nil; conn == nil; {
			select {
			case <-ctx.Done():
				return
			case <-time.After(reconnectIn):
			}
			try, cancel := context.WithTimeout(ctx, statementTime)
			var err error
			if conn, err = t.connect(try); err != nil {
				t.lost.Store(&loss{lost.since, err})
			}
			cancel()
		}
		t.lost.Store(nil)
	}
}

// loss says that the connection that listens is lost. The statements use other connections.
type loss struct {
	since time.Time
	last  error // of the connection, or of the last attempt to connect
}

func (l *loss) Error() string {
	return fmt.Sprintf("the connection that listens for messages of PostgreSQL is lost: %v", l.last)
}

// Lost implements [remote.Transport]. It is about the connection that listens.
func (t *Transport) Lost() (since time.Time, err error) {
	if lost := t.lost.Load(); lost != nil {
		return lost.since, lost
	}
	return time.Time{}, nil
}

// listen takes messages until the connection is lost, and returns why it is lost. At the start and then regularly, it
// cleans the tables and registers the subjects again.
func (t *Transport) listen(ctx context.Context, conn *pgx.Conn) error {
	every := max(t.set.window/4, beatTime)
	var cleaned time.Time
	for ctx.Err() == nil {
		if time.Since(cleaned) > every {
			if err := t.clean(ctx, conn); err != nil {
				return err
			}
			t.registerAgain()
			cleaned = time.Now()
		}
		letters, err := t.fetch(ctx, conn)
		if err != nil {
			return err
		}
		for _, l := range letters {
			t.came(l)
		}
		if len(letters) > 0 {
			continue
		}
		wait, cancel := context.WithTimeout(ctx, beatTime)
		_, err = conn.WaitForNotification(wait)
		late := wait.Err() != nil
		cancel()
		if err != nil && !late {
			return err
		}
	}
	return ctx.Err()
}

func (t *Transport) clean(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	_, err := conn.Exec(ctx, t.sql("select coir.clean()"))
	return err
}

// fetch takes the messages for this node out of the table.
func (t *Transport) fetch(ctx context.Context, conn *pgx.Conn) ([]letter, error) {
	ctx, cancel := context.WithTimeout(ctx, statementTime)
	defer cancel()
	rows, err := conn.Query(ctx, t.sql("delete from coir.mail where node = $1 "+
		"returning id, ascii(kind::text), sender, request, subject, data"), t.node)
	if err != nil {
		return nil, err
	}
	letters, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (l letter, err error) {
		var kind int
		err = row.Scan(&l.id, &kind, &l.sender, &l.request, &l.subject, &l.data)
		l.kind = byte(kind)
		return l, err
	})
	slices.SortFunc(letters, func(a, b letter) int { return cmp.Compare(a.id, b.id) }) // a delete keeps no order
	return letters, err
}

// came passes on a message.
func (t *Transport) came(l letter) {
	t.mu.Lock()
	servers := t.servers[l.subject]
	asked := t.requests[l.request]
	t.mu.Unlock()
	switch l.kind {
	case kindTold:
		for _, s := range servers {
			s.f(slices.Clone(l.data))
		}
	case kindRequest:
		a := reply{node: l.sender, request: l.request, kind: kindUnserved, data: []byte{}}
		if len(servers) > 0 {
			a.kind, a.data = kindAnswer, append(a.data, servers[0].f(l.data)...)
		}
		t.answers.post(a)
	case kindAnswer, kindUnserved:
		if asked != nil {
			asked.Resolve(l)
		}
	}
}

// note is a message of Tell.
type note struct {
	subject string
	data    []byte
}

// tellMost is the largest number of messages of Tell that wait for the server. Further messages are lost.
const tellMost = 10_000

// Tell implements [remote.Transport].
func (t *Transport) Tell(subject string, data []byte) {
	if t.tells.len() < tellMost {
		t.tells.post(note{subject, append([]byte{}, data...)})
	}
}

func (t *Transport) tell(ctx context.Context, ns []note) ([]struct{}, error) {
	subjects, contents := make([]string, len(ns)), make([][]byte, len(ns))
	for i, n := range ns {
		subjects[i], contents[i] = n.subject, n.data
	}
	err := t.exec(ctx, "select coir.tell($1, $2)", subjects, contents)
	return make([]struct{}, len(ns)), err
}

// reply is an answer to a request of another node.
type reply struct {
	node, request int64
	kind          byte
	data          []byte
}

func (t *Transport) answer(ctx context.Context, rs []reply) ([]struct{}, error) {
	nodes, requests := make([]int64, len(rs)), make([]int64, len(rs))
	kinds, contents := make([]string, len(rs)), make([][]byte, len(rs))
	for i, r := range rs {
		nodes[i], requests[i], kinds[i], contents[i] = r.node, r.request, string(r.kind), r.data
	}
	err := t.exec(ctx, `select coir.answer($1, $2::text[]::"char"[], $3, $4)`,
		nodes, kinds, requests, contents)
	return make([]struct{}, len(rs)), err
}

// Request implements [remote.Transport].
func (t *Transport) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	what := "request to " + subject
	p := new(coir.Promise[letter])
	t.mu.Lock()
	t.last++
	number := t.last
	t.requests[number] = p
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.requests, number)
	}()
	data = append([]byte{}, data...)
	passed, err := call(ctx, t, what, func(ctx context.Context) (passed bool, err error) {
		err = t.scan(ctx, "select coir.ask($1, $2, $3, $4)", []any{subject, t.node, number, data}, &passed)
		return passed, err
	}, nil)
	if err != nil {
		return nil, err
	}
	if passed {
		l, err := p.Wait(ctx)
		if err != nil {
			return nil, fmt.Errorf("postgres: %s: %w: %w", what, remote.ErrUnknown, err)
		}
		if l.kind == kindAnswer {
			return l.data, nil
		}
	}
	return nil, fmt.Errorf("postgres: %s: no process serves it: %w", what, remote.ErrUnavailable)
}

// server is a function of Serve.
type server struct {
	t       *Transport
	subject string
	f       func(data []byte) []byte
}

// Serve implements [remote.Transport].
func (t *Transport) Serve(ctx context.Context, subject string, f func(data []byte) []byte) (io.Closer, error) {
	s := &server{t, subject, f}
	t.mu.Lock()
	t.servers[subject] = append(t.servers[subject], s)
	t.mu.Unlock()
	if _, err := t.registry.ask(ctx, subject); err != nil {
		_ = s.Close() // never fails, and takes back a registration in progress, so the outcome is certain
		if ended := coir.Ended(ctx); ended != nil {
			return nil, fmt.Errorf("postgres: serve %s: %w", subject, ended)
		}
		if errors.Is(err, remote.ErrUnknown) {
			return nil, fmt.Errorf("postgres: serve %s: %w: %v", subject, remote.ErrUnavailable, err)
		}
		return nil, fmt.Errorf("postgres: serve %s: %w", subject, err)
	}
	return s, nil
}

// Close ends the serving. It does not wait.
func (s *server) Close() error {
	t := s.t
	t.mu.Lock()
	left := slices.DeleteFunc(slices.Clone(t.servers[s.subject]), func(x *server) bool { return x == s })
	if t.servers[s.subject] = left; len(left) == 0 {
		delete(t.servers, s.subject)
	}
	t.mu.Unlock()
	if len(left) == 0 {
		t.registry.post(s.subject)
	}
	return nil
}

// register records which of the subjects this node serves now. One statement runs at a time, so the last one is right.
func (t *Transport) register(ctx context.Context, subjects []string) ([]struct{}, error) {
	var served, unserved []string
	t.mu.Lock()
	for _, s := range subjects {
		if len(t.servers[s]) > 0 {
			served = append(served, s)
		} else {
			unserved = append(unserved, s)
		}
	}
	t.mu.Unlock()
	err := t.exec(ctx, "with gone as (delete from coir.serving where node = $1 and subject = any ($3)) "+
		"insert into coir.serving (subject, node) select distinct s, $1 from unnest($2::text[]) s on conflict do nothing",
		t.node, served, unserved)
	return make([]struct{}, len(subjects)), err
}

// registerAgain registers all subjects, because other nodes may have deleted the rows of this node. It does not wait:
// if it fails, the next cycle repeats it. It adds nothing while the subjects of an earlier cycle wait.
func (t *Transport) registerAgain() {
	t.mu.Lock()
	subjects := make([]string, 0, len(t.servers))
	for s := range t.servers {
		subjects = append(subjects, s)
	}
	t.mu.Unlock()
	if t.registry.len() >= len(subjects) {
		return
	}
	for _, s := range subjects {
		t.registry.post(s)
	}
}
