//go:build unix

package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
	"github.com/coir-go/coir/remote/postgres"
	"github.com/coir-go/coir/remote/postgres/internal/server"
	"github.com/coir-go/coir/remote/transporttest"
)

// TestMain also checks that no goroutine of the package is left.
func TestMain(m *testing.M) {
	code := m.Run()
	if shared.s != nil {
		if err := shared.s.Stop(); err != nil {
			_, _ = os.Stderr.WriteString(err.Error())
			code = 1
		}
	}
	for end := time.Now().Add(10 * time.Second); code == 0; runtime.Gosched() {
		all := make([]byte, 1<<20)
		all = all[:runtime.Stack(all, true)]
		if !strings.Contains(string(all), "remote/postgres.") && !strings.Contains(string(all), "pgxpool.") {
			break
		}
		if time.Now().After(end) {
			_, _ = os.Stderr.WriteString("goroutines are left:\n" + string(all))
			code = 1
		}
	}
	os.Exit(code)
}

// shared is the server of the tests that need no special settings.
var shared struct {
	sync.Mutex
	s    *server.Server
	last int
}

// database makes a database on the shared server, and returns how to connect to it.
func database(t testing.TB) (dsn string) {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.s == nil {
		shared.s = start(t)
	}
	shared.last++
	name := "test" + strconv.Itoa(shared.last)
	pool, err := pgxpool.New(t.Context(), shared.s.DSN)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	exec(t, pool, "create database "+name)
	return strings.Replace(shared.s.DSN, "dbname=postgres", "dbname="+name, 1)
}

// start starts a server.
func start(t testing.TB, settings ...string) *server.Server {
	t.Helper()
	s, err := server.Start(settings...)
	return started(t, s, err)
}

// started returns a server that was started.
func started(t testing.TB, s *server.Server, err error) *server.Server {
	t.Helper()
	if errors.Is(err, server.ErrNotInstalled) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// own starts a server for one test.
func own(t testing.TB, settings ...string) *server.Server {
	t.Helper()
	s := start(t, settings...)
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t testing.TB, s *server.Server) {
	if err := s.Stop(); err != nil {
		t.Error(err)
	}
}

// connect returns a pool of connections to a server.
func connect(t testing.TB, dsn string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// prepared returns a pool of connections to a server that has the tables.
func prepared(t testing.TB, dsn string) *pgxpool.Pool {
	t.Helper()
	pool := connect(t, dsn)
	exec(t, pool, postgres.SQL("coir"))
	return pool
}

func exec(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := pool.Exec(context.Background(), sql, args...); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// number returns the number that a query returns.
func number(t testing.TB, pool *pgxpool.Pool, sql string) (n int) {
	t.Helper()
	if err := pool.QueryRow(context.Background(), sql).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// transport returns a transport.
func transport(t testing.TB, pool *pgxpool.Pool, opts ...postgres.Option) *postgres.Transport {
	t.Helper()
	tr, err := postgres.New(t.Context(), pool, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tr.Close() })
	return tr
}

// durable opens a channel whose values are at least stored.
func durable[T any](
	ctx context.Context, n *coir.Nursery, t remote.Transport, name string, capacity int, opts ...remote.Option,
) (*remote.Chan[T], error) {
	return remote.Durable[T](ctx, n, t, name, capacity, append(opts, remote.WithMeaning(remote.MeaningStored))...)
}

func TestTransport(t *testing.T) {
	dsn := database(t)
	a, b := prepared(t, dsn), connect(t, dsn)
	lease := postgres.WithLease(time.Second)
	transporttest.Run(t, func(t testing.TB) (_, _ remote.Transport) { return transport(t, a, lease), transport(t, b, lease) })
}

// No wait outlasts its context, while another session has locked all tables.
func TestSilentBroker(t *testing.T) {
	transporttest.RunSilent(t, func(t testing.TB) (_ remote.Transport, silence func()) {
		dsn := database(t)
		tr, other := transport(t, prepared(t, dsn)), connect(t, dsn)
		return tr, func() {
			tx, err := other.Begin(context.Background())
			if err == nil {
				t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
				_, err = tx.Exec(t.Context(), "lock table coir.queue, coir.message, coir.id, coir.kept, coir.serving, coir.mail")
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
}

// Transports of different schemas do not see each other, and a server without the tables is refused with advice.
func TestSchema(t *testing.T) {
	dsn := database(t)
	pool := connect(t, dsn)
	if _, err := postgres.New(t.Context(), pool); err == nil || !strings.Contains(err.Error(), "postgres.SQL") {
		t.Fatalf("without tables: %v", err)
	}
	var made sync.WaitGroup
	for range 4 { // processes that start at the same time
		made.Go(func() {
			if _, err := pool.Exec(t.Context(), postgres.SQL("coir")+postgres.SQL("other")); err != nil {
				t.Error(err)
			}
		})
	}
	made.Wait()
	a, b := transport(t, pool), transport(t, pool, postgres.WithSchema("other"))
	for i, tr := range []*postgres.Transport{a, b} {
		if err := tr.Open(t.Context(), "q", 1+i); err != nil {
			t.Error(err)
		}
	}
}

// The transport reads the meaning of a stored message from the server. If it becomes weaker, Publish fails, and stores
// nothing.
func TestMeaning(t *testing.T) {
	s := own(t)
	pool := prepared(t, s.DSN)
	tr := transport(t, pool)
	if m := tr.Info().Meaning; m != remote.MeaningStoredSynced {
		t.Errorf("a server that syncs: %v", m)
	}
	if m := transport(t, connect(t, s.DSN+" synchronous_commit=off")).Info().Meaning; m != remote.MeaningStored {
		t.Errorf("a session that does not wait for the disk: %v", m)
	}
	if err := tr.Open(t.Context(), "q", 1_000_000_000); err != nil {
		t.Fatal(err)
	}
	exec(t, pool, "alter system set synchronous_commit = off")
	exec(t, pool, "select pg_reload_conf()")
	stored := 0
	for seq := uint64(1); ; seq++ { // a session notices the change soon
		err := tr.Publish(t.Context(), "q", remote.Msg{ID: remote.ID{Sender: 1, Seq: seq}})
		if err == nil {
			stored++
			continue
		}
		if errors.Is(err, remote.ErrUnknown) || errors.Is(err, remote.ErrUnavailable) ||
			!strings.Contains(err.Error(), "only stored") {
			t.Errorf("publish when the server no longer syncs: %v", err)
		}
		break
	}
	if n := number(t, pool, "select count(*) from coir.message"); n != stored {
		t.Errorf("%d messages are stored, and %d were published", n, stored)
	}
}

func TestMeaningWithoutFsync(t *testing.T) {
	s := own(t, "fsync=off")
	if m := transport(t, prepared(t, s.DSN)).Info().Meaning; m != remote.MeaningStored {
		t.Errorf("a server that does not sync: %v", m)
	}
}

// A value that was sent on a durable channel survives the loss of the server: one of two standbys has it.
func TestDurableSurvivesTheServer(t *testing.T) {
	if testing.Short() {
		t.Skip("starts three servers")
	}
	s := own(t, "synchronous_standby_names=ANY 1 (one, two)")
	var standbys []*server.Server
	for _, name := range []string{"one", "two"} {
		b, err := s.Standby(name)
		standbys = append(standbys, started(t, b, err))
		t.Cleanup(func() { stop(t, b) })
	}
	tr := transport(t, prepared(t, s.DSN))
	err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		c, err := remote.Durable[string](ctx, n, tr, "orders", 4) // needs MeaningDurable
		if err != nil {
			return err
		}
		defer c.Leave()
		return c.Send(ctx, "kept")
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Kill()
	next, most := standbys[0], -1
	for _, b := range standbys {
		at := number(t, connect(t, b.DSN), "select pg_wal_lsn_diff(pg_last_wal_receive_lsn(), '0/0')::bigint")
		if at > most {
			next, most = b, at
		}
	}
	if err := next.Promote(); err != nil {
		t.Fatal(err)
	}
	tr = transport(t, connect(t, next.DSN))
	if m := tr.Info().Meaning; m != remote.MeaningStoredSynced {
		t.Errorf("the server that is left alone: %v", m)
	}
	err = coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		c, err := durable[string](ctx, n, tr, "orders", 4)
		if err != nil {
			return err
		}
		defer c.Leave()
		it, err := c.Recv(ctx)
		if err != nil {
			return err
		}
		if it.Value != "kept" {
			t.Errorf("received %q", it.Value)
		}
		return it.Ack(ctx)
	})
	if err != nil {
		t.Error(err)
	}
}

// Many senders of two processes store exactly as many values as the queue holds.
func TestTheBoundIsExact(t *testing.T) {
	dsn := database(t)
	pool := prepared(t, dsn)
	ts := []*postgres.Transport{transport(t, pool), transport(t, connect(t, dsn))}
	const capacity, senders = 64, 50
	var stored atomic.Int64
	err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		for i, tr := range ts {
			if err := tr.Open(ctx, "q", capacity); err != nil {
				return err
			}
			for j := range senders {
				n.Go("sender", func(ctx context.Context) error {
					for seq := uint64(0); ; seq++ {
						m := remote.Msg{ID: remote.ID{Sender: uint64(i*senders + j), Seq: seq}}
						if err := tr.Publish(ctx, "q", m); errors.Is(err, remote.ErrFull) {
							return nil
						} else if err != nil {
							return err
						}
						stored.Add(1)
					}
				}, coir.WithIndex(j))
			}
		}
		return nil
	})
	if n := number(t, pool, "select count(*) from coir.message"); err != nil || n != capacity || stored.Load() != capacity {
		t.Errorf("%d stored, %d returned nil, for %d places: %v", n, stored.Load(), capacity, err)
	}
}

// An ID is forgotten when the window of the process that stored it has passed, and not earlier, whatever the windows of
// other processes.
func TestTheWindow(t *testing.T) {
	dsn := database(t)
	pool := prepared(t, dsn)
	long, short := transport(t, pool), transport(t, connect(t, dsn), postgres.WithWindow(time.Microsecond))
	for _, tr := range []*postgres.Transport{long, short} {
		if err := tr.Open(t.Context(), "q", 10); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		tr    *postgres.Transport
		clean string
		want  int
	}{{long, "select 1", 1}, {long, "select coir.clean()", 1}, {short, "select coir.clean()", 2}} {
		tr := c.tr
		for range 2 {
			if err := tr.Publish(t.Context(), "q", remote.Msg{ID: remote.ID{Sender: 1, Seq: 1}}); err != nil {
				t.Fatal(err)
			}
			if n := number(t, pool, "select count(*) from coir.message"); n > c.want {
				t.Errorf("%d messages after %s", n, c.clean)
			}
			exec(t, pool, c.clean)
		}
		exec(t, pool, "truncate coir.id, coir.message")
	}
}

// A value of a volatile channel may be large, although NOTIFY alone would not carry it.
func TestLargeRequest(t *testing.T) {
	dsn := database(t)
	a, b := transport(t, prepared(t, dsn)), transport(t, connect(t, dsn))
	served, err := b.Serve(t.Context(), "echo", func(data []byte) []byte { return data })
	if err != nil {
		t.Fatal(err)
	}
	large := bytes.Repeat([]byte{0, 1, 255}, 100_000)
	out, err := a.Request(t.Context(), "echo", large)
	if err != nil || !bytes.Equal(out, large) {
		t.Errorf("%d bytes came back: %v", len(out), err)
	}
	if err := served.Close(); err != nil {
		t.Error(err)
	}
}

// A statement that gets no connection from the pool was not sent.
func TestTheWaitForAConnectionEnds(t *testing.T) {
	dsn := database(t)
	prepared(t, dsn)
	config, err := pgxpool.ParseConfig(dsn + " pool_max_conns=1")
	if err != nil {
		t.Fatal(err)
	}
	begun := make(acquires, 100)
	config.ConnConfig.Tracer = begun
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	tr := transport(t, pool)
	if err := tr.Open(t.Context(), "q", 1); err != nil {
		t.Fatal(err)
	}
	only, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer only.Release()
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := postgres.New(short, pool); !errors.Is(err, remote.ErrUnavailable) {
		t.Errorf("New: %v", err)
	}
	for len(begun) > 0 {
		<-begun
	}
	ops := []func() error{
		func() error { return tr.Publish(t.Context(), "q", remote.Msg{}) },
		func() error { return tr.End(t.Context(), "q") },
		func() error { _, err := tr.Get(t.Context(), "key"); return err },
		func() error { _, err := tr.Pull(t.Context(), "q", 1); return err },
	}
	errs := make([]error, len(ops))
	var ended sync.WaitGroup
	for i, op := range ops {
		ended.Go(func() { errs[i] = op() })
		<-begun
	}
	tr.Close() // ends the statements
	ended.Wait()
	for i, err := range errs {
		if !errors.Is(err, remote.ErrUnavailable) || errors.Is(err, remote.ErrUnknown) {
			t.Errorf("operation %d: %v", i, err)
		}
	}
}

// acquires receives an element for each call that asks a pool for a connection.
type acquires chan struct{}

func (a acquires) TraceAcquireStart(
	ctx context.Context, _ *pgxpool.Pool, _ pgxpool.TraceAcquireStartData,
) context.Context {
	a <- struct{}{}
	return ctx
}

func (acquires) TraceAcquireEnd(context.Context, *pgxpool.Pool, pgxpool.TraceAcquireEndData) {}

func (acquires) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	return ctx
}

func (acquires) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// A process that has ended serves nothing, even though it sends no message about its end, and its rows are deleted.
func TestANodeThatIsGone(t *testing.T) {
	dsn := database(t)
	pool := prepared(t, dsn)
	a, b := transport(t, pool), transport(t, connect(t, dsn))
	if _, err := b.Serve(t.Context(), "echo", func(data []byte) []byte { return data }); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Request(t.Context(), "echo", nil); err != nil {
		t.Fatal(err)
	}
	b.Close()
	for gone := false; !gone; { // the server notices the end of a connection a moment later; until then there is no answer
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		_, err := a.Request(ctx, "echo", nil)
		cancel()
		if gone = errors.Is(err, remote.ErrUnavailable); !gone && !errors.Is(err, remote.ErrUnknown) {
			t.Fatalf("request to a node that is gone: %v", err)
		}
	}
	exec(t, pool, "select coir.clean()")
	if n := number(t, pool, "select count(*) from coir.serving"); n != 0 {
		t.Errorf("%d subjects of the node are left", n)
	}
}

// A transport whose connections are lost connects again, and serves the same subjects as before.
func TestConnectionsAreLost(t *testing.T) {
	dsn := database(t)
	a, b := transport(t, prepared(t, dsn)), transport(t, connect(t, dsn))
	if _, err := b.Serve(t.Context(), "echo", func(data []byte) []byte { return data }); err != nil {
		t.Fatal(err)
	}
	operator := connect(t, dsn)
	// Delete the rows too, as another node might have done.
	exec(t, operator, "select pg_terminate_backend(pid) from pg_stat_activity "+
		"where datname = current_database() and pid <> pg_backend_pid()")
	exec(t, operator, "delete from coir.serving")
	servesAgain(t, a)
	var name string
	if err := operator.QueryRow(t.Context(), "select current_database()").Scan(&name); err != nil {
		t.Fatal(err)
	}
	outside := connect(t, database(t)) // a connection to the database would forbid this
	allow := func(value string) {
		exec(t, outside, "alter database "+name+" allow_connections "+value)
	}
	lost := func(want string) { // waits until a knows that
		for began := time.Now(); ; runtime.Gosched() {
			since, err := a.Lost()
			if want == "" && err == nil && since.IsZero() ||
				want != "" && err != nil && strings.Contains(err.Error(), want) && !since.Before(began.Add(-time.Minute)) {
				return
			}
			if time.Since(began) > time.Minute {
				t.Fatalf("the connection is lost since %v: %v; want %q", since, err, want)
			}
		}
	}
	lost("")
	allow("false")
	exec(t, outside, "select pg_terminate_backend(pid) from pg_stat_activity where datname = '"+name+"'")
	lost("not currently accepting connections")
	allow("true")
	lost("")
}

// A subject whose row another node has deleted is registered again, although the connection was not lost.
func TestARegistrationIsLost(t *testing.T) {
	dsn := database(t)
	pool := prepared(t, dsn)
	a, b := transport(t, pool), transport(t, connect(t, dsn), postgres.WithWindow(time.Second))
	if _, err := b.Serve(t.Context(), "echo", func(data []byte) []byte { return data }); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Request(t.Context(), "echo", nil); err != nil { // b has begun to listen
		t.Fatal(err)
	}
	exec(t, pool, "delete from coir.serving")
	servesAgain(t, a)
}

// A node that connects again while another one deletes its rows keeps them.
func TestANodeThatComesBack(t *testing.T) {
	pool := prepared(t, database(t))
	exec(t, pool, "insert into coir.serving (subject, node) values ('echo', 7)")
	busy, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := busy.Exec(t.Context(), "update coir.serving set subject = subject"); err != nil { // clean waits for it
		t.Fatal(err)
	}
	cleaned := make(chan error, 1)
	go func() {
		_, err := pool.Exec(context.Background(), "select coir.clean()")
		cleaned <- err
	}()
	for number(t, pool, "select count(*) from pg_locks where not granted and locktype = 'transactionid'") == 0 {
		runtime.Gosched()
	}
	exec(t, pool, "select pg_advisory_lock_shared(7)") // the session ends with the pool
	if err := busy.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-cleaned; err != nil {
		t.Fatal(err)
	}
	if n := number(t, pool, "select count(*) from coir.serving"); n != 1 {
		t.Errorf("a node that is connected has %d rows, not 1", n)
	}
}

// servesAgain waits until a request to the subject echo is answered.
func servesAgain(t *testing.T, tr *postgres.Transport) {
	t.Helper()
	for {
		try, cancel := context.WithTimeout(t.Context(), time.Second)
		out, err := tr.Request(try, "echo", []byte("again"))
		cancel()
		if err == nil {
			if string(out) != "again" {
				t.Errorf("the answer is %q", out)
			}
			return
		}
		if !errors.Is(err, remote.ErrUnavailable) && !errors.Is(err, remote.ErrUnknown) {
			t.Fatal(err)
		}
	}
}
