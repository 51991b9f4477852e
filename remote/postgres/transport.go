package postgres

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
)

// Transport implements [remote.Transport]. [New] makes it.
type Transport struct {
	set     settings
	pool    *pgxpool.Pool
	node    int64 // the number of this transport, for messages that are not stored
	meaning remote.Meaning

	ctx     context.Context // the context of statements
	cancel  context.CancelFunc
	unhook  context.CancelFunc // ends the connection that listens
	running sync.WaitGroup     // goroutines

	removals lot[place, bool]
	renewals lot[renewal, struct{}]
	tells    lot[note, struct{}]
	answers  lot[reply, struct{}]
	registry lot[string, struct{}]

	lost atomic.Pointer[loss] // nil while the connection that listens works

	mu       sync.Mutex // guards the fields below; not held during waits
	closed   bool
	expected string // the settings behind the meaning
	queues   map[string]*queue
	servers  map[string][]*server
	requests map[int64]*coir.Promise[letter]
	last     int64 // the number of the last request
}

// errClosed is the error of an operation of a transport that was closed.
var errClosed = fmt.Errorf("postgres: the transport was closed: %w", coir.ErrClosed)

// New returns a transport that uses the pool, and does not close it. The tables of [SQL] must exist.
func New(ctx context.Context, pool *pgxpool.Pool, opts ...Option) (*Transport, error) {
	t := &Transport{
		set:  settings{schema: "coir", lease: 30 * time.Second, window: 2 * time.Minute},
		pool: pool, queues: map[string]*queue{}, servers: map[string][]*server{},
		requests: map[int64]*coir.Promise[letter]{},
	}
	for _, o := range opts {
		o(&t.set)
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	t.node = int64(binary.BigEndian.Uint64(b[:]))
	t.ctx, t.cancel = context.WithCancel(context.Background()) // statements may outlive the calls that make them
	t.removals = lot[place, bool]{t: t, what: "remove messages", do: t.remove}
	t.renewals = lot[renewal, struct{}]{t: t, what: "renew leases", do: t.renew}
	t.tells = lot[note, struct{}]{t: t, what: "tell", do: t.tell, size: func(n note) int { return len(n.data) }}
	t.answers = lot[reply, struct{}]{t: t, what: "answer", do: t.answer, size: func(r reply) int { return len(r.data) }}
	t.registry = lot[string, struct{}]{t: t, what: "register subjects", do: t.register}
	conn, err := coir.Blocking(ctx, func() (*pgx.Conn, error) {
		if err := t.scan(ctx, "select coir.settings()", nil, &t.expected); err != nil {
			return nil, err
		}
		return t.connect(ctx)
	})
	if err != nil {
		t.cancel()
		return nil, outcome("make a transport", err)
	}
	t.meaning = meaningOf(t.expected)
	listening, unhook := context.WithCancel(t.ctx)
	t.unhook = unhook
	t.running.Add(1)
	go t.attend(listening, conn)
	return t, nil
}

// closeTime is the longest time for which Close waits for statements that are on their way.
const closeTime = time.Second

// Close ends the transport. The queues stay. Close reports whether this call ended the transport.
func (t *Transport) Close() bool {
	t.mu.Lock()
	first := !t.closed
	t.closed = true
	t.mu.Unlock()
	t.unhook()
	late := time.AfterFunc(closeTime, t.cancel)
	_, _ = coir.Blocking(t.ctx, func() (struct{}, error) {
		t.running.Wait()
		return struct{}{}, nil
	})
	late.Stop()
	t.cancel()
	return first
}

// begin counts a goroutine that starts. It reports false if the transport was closed.
func (t *Transport) begin() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.running.Add(1)
	return true
}

// sql returns a statement, changed to use the tables of this transport.
func (t *Transport) sql(text string) string { return inSchema(text, t.set.schema) }

// Info implements [remote.Transport].
func (t *Transport) Info() remote.Info {
	return remote.Info{Meaning: t.meaning, Lease: t.set.lease, Window: t.set.window}
}

// meaningOf returns the meaning of a commit under the settings of the server.
func meaningOf(settings string) remote.Meaning {
	fsync, rest, _ := strings.Cut(settings, " ")
	commit, standbys, _ := strings.Cut(rest, " ")
	switch {
	case fsync != "on" || commit == "off":
		return remote.MeaningStored
	case (commit == "on" || commit == "remote_apply") && isMajority(standbys):
		return remote.MeaningDurable
	}
	return remote.MeaningStoredSynced
}

var standbyList = regexp.MustCompile(`(?is)^\s*(?:(?:any|first)?\s*(\d+)\s*\((.*)\)|(.*))\s*$`)

// isMajority reports whether the standbys that a commit waits for are, together with the server, a majority of at least
// three machines. A list with "*" is not a majority, because the number of its machines is not known.
func isMajority(standbys string) bool {
	m := standbyList.FindStringSubmatch(standbys)
	if m == nil {
		return false
	}
	waits, names := 1, m[2]+m[3]
	if m[1] != "" {
		waits, _ = strconv.Atoi(m[1])
	}
	if strings.TrimSpace(names) == "" || strings.Contains(names, "*") {
		return false
	}
	machines := 2 + strings.Count(names, ",")
	return machines >= 3 && waits < machines && 2*(waits+1) > machines
}

// strengthen accepts changed settings if their meaning is not weaker than before.
func (t *Transport) strengthen(settings string) error {
	if m := meaningOf(settings); m < t.meaning {
		return fmt.Errorf("postgres: the server's settings are now %q: a message is only %v, and was %v before: "+
			"change the settings back, or make a new transport", settings, m, t.meaning)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.expected = settings
	return nil
}
