package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
)

// Transport implements [remote.Transport]. [New] makes it.
//
// The subjects, below the prefix:
//
//	q.<capacity>.<queue>  the messages of a queue, in the stream of its capacity
//	m.<queue>             the capacity of a queue, and e.<queue> its end, in the stream of all queues
//	p.<key>               the data of Put, in a separate stream
//	t.<subject>           for Tell, and r.<subject> for Request; a subject keeps its dots
type Transport struct {
	set     settings
	nc      *client.Conn
	js      jetstream.JetStream
	answers answers
	meaning remote.Meaning
	subs    []*client.Subscription
	life    context.Context // ends with the transport
	stop    context.CancelFunc
	ended   sync.WaitGroup

	reconnected chan struct{}         // has a value when a lost connection is back
	dropped     atomic.Pointer[error] // why the connection was lost; nil if not known, or if it is back

	mu       sync.Mutex       // guards the fields below; not held during waits
	weak     map[string]error // streams that now guarantee less than at first
	gone     map[string]error // streams that were deleted
	streams  map[string]bool  // false if the stream was deleted
	queues   map[string]*queue
	subjects map[string]*queue // by the subjects of their messages and their ends
	intakes  map[consumerKey]*intake
	lists    map[int]*list // by capacity
	warned   map[string]bool
}

// New returns a transport that uses the connection nc, and does not close it. New makes a stream for the list of queues
// if there is none, and reads what the servers promise.
func New(ctx context.Context, nc *client.Conn, opts ...Option) (*Transport, error) {
	t := &Transport{
		set: settings{
			prefix: "coir", group: "default", replicas: 3, lease: 30 * time.Second, window: 2 * time.Minute, sync: "coir.sync",
		},
		nc: nc, reconnected: make(chan struct{}, 1), lists: map[int]*list{},
		weak: map[string]error{}, gone: map[string]error{}, streams: map[string]bool{}, queues: map[string]*queue{},
		subjects: map[string]*queue{}, intakes: map[consumerKey]*intake{}, warned: map[string]bool{},
	}
	for _, o := range opts {
		o(&t.set)
	}
	t.life, t.stop = context.WithCancel(context.Background())
	var err error
	if t.js, err = jetstream.New(nc); err != nil {
		return nil, fmt.Errorf("nats: %w", err)
	}
	if err := t.answers.open(nc); err != nil {
		return nil, err
	}
	t.subs = append(t.subs, t.answers.sub)
	sub, err := nc.Subscribe(t.subject("e", "*"), t.heardOfEnd)
	if err == nil {
		t.subs = append(t.subs, sub)
		err = t.ensureStream(ctx, t.listConfig())
	}
	if err == nil {
		t.meaning, err = t.check(ctx, t.listConfig().Name)
	}
	if err != nil {
		t.Close()
		return nil, err
	}
	t.hearOfLoss()
	changed := nc.StatusChanged(client.CONNECTED, client.DISCONNECTED, client.RECONNECTING, client.CLOSED)
	if !nc.IsConnected() {
		t.noteLoss()
	}
	t.ended.Add(2)
	go t.attend(changed)
	go t.inspect()
	return t, nil
}

// Close ends the transport. The queues stay, and messages that the transport has fetched are given back. Close reports
// whether this call ended the transport.
func (t *Transport) Close() bool {
	t.mu.Lock()
	first := t.life.Err() == nil
	t.stop()
	intakes := t.intakes
	t.intakes = map[consumerKey]*intake{}
	var queues []*queue
	for _, q := range t.queues {
		queues = append(queues, q)
	}
	t.mu.Unlock()
	for _, in := range intakes {
		in.close()
	}
	for _, q := range queues {
		_, ds := q.giveBack()
		nakAll(ds)
	}
	for _, s := range t.subs {
		t.answers.unsubscribe(s)
	}
	t.ended.Wait()
	return first
}

// checkEvery is the interval at which the settings of the servers are read. NATS sends no event when a server restarts
// with another setting, or replaces another server.
const checkEvery = 5 * time.Second

// attend follows the state of the connection. While it is lost, requests fail at once. nats.go would keep them, and
// send them after their callers have given up. It also holds its lock while it connects, so that a fiber would block.
func (t *Transport) attend(changed chan client.Status) {
	defer t.ended.Done()
	defer t.nc.RemoveStatusListener(changed)
	again := time.NewTicker(lookEvery)
	defer again.Stop()
	for {
		select {
		case <-t.life.Done():
			return
		case <-again.C:
			if t.answers.lost.Load() != nil {
				t.noteLoss() // the reason may have become known
			}
			continue
		case status := <-changed:
			if status != client.CONNECTED {
				t.noteLoss()
				continue
			}
			t.answers.lost.Store(nil)
			t.dropped.Store(nil)
		}
		t.mu.Lock()
		for _, q := range t.queues {
			q.suspect() // an end may have been missed
		}
		intakes := slices.Collect(maps.Values(t.intakes))
		t.mu.Unlock()
		for _, in := range intakes {
			go in.renew() // this goroutine does not call nats.go, so that it learns of the next loss at once
		}
		select {
		case t.reconnected <- struct{}{}:
		default:
		}
	}
}

// lookEvery is the interval at which the error of a lost connection is read.
const lookEvery = time.Second

// hearOfLoss records why the connection is lost. nats.go passes that only to the handler of the connection, so
// hearOfLoss sets a handler that also calls the previous one.
func (t *Transport) hearOfLoss() {
	before := t.nc.DisconnectErrHandler()
	t.nc.SetDisconnectErrHandler(func(nc *client.Conn, err error) {
		if err != nil {
			t.dropped.Store(&err)
		}
		if before != nil {
			before(nc, err)
		}
	})
}

// noteLoss records that the connection is lost, and why. Only one goroutine calls it at a time.
func (t *Transport) noteLoss() {
	lost := t.answers.lost.Load()
	if lost == nil {
		lost = &loss{since: time.Now()}
		t.answers.lost.Store(lost)
	}
	if err := t.dropped.Load(); err != nil {
		t.answers.lost.Store(&loss{lost.since, *err})
	}
}

// Lost implements [remote.Transport].
func (t *Transport) Lost() (since time.Time, err error) {
	if lost := t.answers.lost.Load(); lost != nil {
		return lost.since, lost
	}
	return time.Time{}, nil
}

// inspect checks again what the servers promise, from time to time and after a reconnect.
func (t *Transport) inspect() {
	defer t.ended.Done()
	again := time.NewTicker(checkEvery)
	defer again.Stop()
	for {
		select {
		case <-t.life.Done():
			return
		case <-again.C:
		case <-t.reconnected:
		}
		t.checkAgain()
	}
}

// checkAgain checks the lists of consumers, and all streams. While a stream promises less than before, operations of
// queues and Put return remote.ErrUnavailable. If checkAgain cannot read the promise of a stream, it keeps the last
// one.
//
// Operations return ErrUnavailable too while their stream does not exist. A process does not make such a stream again
// while it runs, because that would hide that values are lost. It is made again by Open, and so by any process that
// starts.
func (t *Transport) checkAgain() {
	ctx, cancel := context.WithTimeout(t.life, 2*checkEvery)
	defer cancel()
	t.checkLists(ctx)
	t.mu.Lock()
	names := []string{t.listConfig().Name}
	for name := range t.streams {
		names = append(names, name)
	}
	t.mu.Unlock()
	for _, name := range names {
		m, err := t.check(ctx, name)
		switch {
		case err == nil:
			t.exists(name, m)
		case errors.Is(err, jetstream.ErrStreamNotFound):
			t.isGone(name)
		}
	}
}

// exists records what a stream promises now.
func (t *Transport) exists(name string, m remote.Meaning) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, ok := t.streams[name]; ok {
		t.streams[name] = true
	}
	delete(t.gone, name)
	delete(t.weak, name)
	if m < t.meaning {
		t.weak[name] = fmt.Errorf("nats: the stream %s was %v, and is now only %v: check the settings of its servers",
			name, t.meaning, m)
	}
}

// isGone records that a stream was deleted.
func (t *Transport) isGone(name string) {
	err := errGone(name)
	t.mu.Lock()
	if _, ok := t.streams[name]; ok {
		t.streams[name] = false
	}
	t.gone[name] = err
	t.mu.Unlock()
	t.warnOnce(err.Error())
}

// errGone returns the error of a stream that was deleted.
func errGone(name string) error {
	return fmt.Errorf("nats: the stream %s does not exist any more: it was deleted, or its servers have lost it, with the "+
		"values that it stored: restart a process that uses it, which makes it again", name)
}

// Info implements [remote.Transport].
func (t *Transport) Info() remote.Info {
	return remote.Info{Meaning: t.meaning, Lease: t.set.lease, Window: t.set.window}
}

// subject returns a subject made of the parts. Each part is one token.
func (t *Transport) subject(parts ...string) string {
	return t.set.prefix + "." + strings.Join(parts, ".")
}

// token returns a name, escaped so that it is one token of a subject.
func token(name string) string {
	if !strings.ContainsFunc(name, escaped) {
		return name
	}
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; escaped(rune(c)) {
			fmt.Fprintf(&b, "=%02x", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// escaped reports whether token must escape a byte, or a rune of several bytes.
func escaped(c rune) bool {
	return ('a' > c || c > 'z') && ('A' > c || c > 'Z') && ('0' > c || c > '9') && c != '-' && c != '_'
}

// path returns a subject for Tell or Request. Each of its parts is a token, so that permissions can name them.
func (t *Transport) path(kind, subject string) string {
	parts := []string{kind}
	for part := range strings.SplitSeq(subject, ".") {
		if part = token(part); part == "" {
			part = "="
		}
		parts = append(parts, part)
	}
	return t.subject(parts...)
}

// listConfig returns the stream that has the capacities and the ends of all queues.
func (t *Transport) listConfig() jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: t.set.prefix + "-queues", Subjects: []string{t.subject("m", "*"), t.subject("e", "*")},
		Storage: jetstream.FileStorage, Replicas: t.set.replicas, MaxMsgsPerSubject: 1, AllowDirect: true,
		Retention: jetstream.LimitsPolicy,
	}
}

// queueConfig returns the stream of the queues with the capacity.
func (t *Transport) queueConfig(capacity int) jetstream.StreamConfig {
	n := strconv.Itoa(capacity)
	return jetstream.StreamConfig{
		Name: t.set.prefix + "-" + n, Subjects: []string{t.subject("q", n, "*")},
		Storage: jetstream.FileStorage, Replicas: t.set.replicas, Retention: jetstream.WorkQueuePolicy,
		Discard: jetstream.DiscardNew, DiscardNewPerSubject: true, MaxMsgsPerSubject: int64(capacity),
		Duplicates: t.set.window,
	}
}

// ensureStream makes a stream, unless it exists. It fails if the stream exists and is not as the transport needs it.
func (t *Transport) ensureStream(ctx context.Context, config jetstream.StreamConfig) error {
	what := "make the stream " + config.Name
	if lost := t.answers.lost.Load(); lost != nil { // nats.go would wait
		return fmt.Errorf("nats: %s: %w: %w", what, remote.ErrUnavailable, lost)
	}
	_, err := coir.Blocking(ctx, func() (jetstream.Stream, error) {
		s, err := t.js.CreateStream(ctx, config)
		if !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			return s, err
		}
		if s, err = t.js.Stream(ctx, config.Name); err != nil {
			return nil, err
		}
		return s, t.differ(s.CachedInfo().Config, config)
	})
	if errors.Is(err, errDiffers) {
		return fmt.Errorf("nats: %w", err)
	}
	if ended := coir.Ended(ctx); err != nil && ended != nil { // not ErrUnknown: the stream can be made again
		return fmt.Errorf("nats: %s: %w", what, ended)
	}
	if err != nil {
		return notSent(apiError(what, err))
	}
	return nil
}

// errDiffers is the error of a stream that exists with another configuration.
var errDiffers = errors.New("the stream exists with another configuration")

// differ compares the configuration that a stream has with the one that this process wants. It returns an error if the
// stream would not keep a promise of the transport. For other differences it logs a warning, so that processes can run
// while an operator changes a setting. It ignores settings that the transport does not make, such as placement.
func (t *Transport) differ(has, want jetstream.StreamConfig) error {
	drops := has.Discard == jetstream.DiscardOld && (has.MaxMsgs > 0 || has.MaxBytes > 0)
	ages := has.MaxAge != want.MaxAge && has.Name != t.putConfig().Name
	switch {
	case has.Duplicates < want.Duplicates:
		return fmt.Errorf("%w: the window of %s is %v, and that of this process is %v: first raise that of the stream, by "+
			"nats stream edit --dupe-window", errDiffers, has.Name, has.Duplicates, want.Duplicates)
	case !slices.Equal(has.Subjects, want.Subjects), has.Retention != want.Retention, has.Discard != want.Discard,
		has.DiscardNewPerSubject != want.DiscardNewPerSubject, has.MaxMsgsPerSubject != want.MaxMsgsPerSubject, drops, ages:
		return fmt.Errorf("%w: %s would not keep what this package stores: nats stream info %s shows it", errDiffers, has.Name,
			has.Name)
	}
	name := has.Name
	warn := func(setting string, differs bool, has, want any) {
		if differs {
			t.warnOnce("nats: a stream has another setting than this process, and that of the stream counts", "setting", setting,
				"stream", name, "has", fmt.Sprint(has), "process", fmt.Sprint(want))
		}
	}
	warn("replicas", has.Replicas != want.Replicas, has.Replicas, want.Replicas)
	warn("window", want.Duplicates > 0 && has.Duplicates != want.Duplicates, has.Duplicates, want.Duplicates)
	warn("keep", has.MaxAge != want.MaxAge, has.MaxAge, want.MaxAge)
	return nil
}

// apiError returns the error of an administrative request, which can be repeated.
func apiError(what string, err error) error {
	var api *jetstream.APIError
	switch {
	case errors.As(err, &api) && api.Code != 503 && api.ErrorCode != jetstream.JSErrCodeStreamNotFound:
		return fmt.Errorf("nats: %s: %w", what, err)
	case errors.As(err, &api), errors.Is(err, client.ErrNoResponders), errors.Is(err, client.ErrConnectionReconnecting):
		return fmt.Errorf("nats: %s: %w: %w", what, remote.ErrUnavailable, err)
	}
	return fmt.Errorf("nats: %s: %w: %w", what, remote.ErrUnknown, err)
}

// check reads what a stored message of a stream means: it looks at the number of servers, and at the setting of each
// server.
func (t *Transport) check(ctx context.Context, stream string) (remote.Meaning, error) {
	own := "" // the server that this process is connected to
	info, err := coir.Blocking(ctx, func() (*jetstream.StreamInfo, error) {
		s, err := t.js.Stream(ctx, stream)
		if err != nil {
			return nil, err
		}
		own = t.nc.ConnectedServerName()
		return s.CachedInfo(), nil
	})
	if err != nil {
		return 0, apiError("look at the stream "+stream, err)
	}
	peers := map[string]bool{} // the value says whether the server is known to sync
	if c := info.Cluster; c != nil && c.Leader != "" {
		peers[c.Leader] = false
		for _, p := range c.Replicas {
			peers[p.Name] = false
		}
	} else {
		peers[own] = false
	}
	if len(peers) < info.Config.Replicas { // some are not known yet, or not running
		return 0, fmt.Errorf("nats: %d of the %d servers of the stream %s are known: %w", len(peers), info.Config.Replicas, stream,
			remote.ErrUnavailable)
	}
	file := info.Config.Storage == jetstream.FileStorage && info.Config.PersistMode == jetstream.DefaultPersistMode
	if !file {
		return remote.MeaningStored, nil
	}
	if all, err := t.allSync(ctx, peers); err != nil || !all {
		return remote.MeaningStored, err
	}
	if info.Config.Replicas < 3 {
		return remote.MeaningStoredSynced, nil
	}
	return remote.MeaningDurable, nil
}

// allSync asks all servers whether they sync, and reports whether all peers said that they do. If only some servers
// have answered, allSync returns an error, and the caller can ask again. If none answers, the subject may not exist.
// But if the servers have said before that they sync, that is an error too, because a stalled link is silent as well.
func (t *Transport) allSync(ctx context.Context, peers map[string]bool) (bool, error) {
	got := coir.NewChan[*client.Msg](coir.Unbounded)
	inbox := t.nc.NewInbox()
	sub, err := coir.Blocking(ctx, func() (*client.Subscription, error) {
		sub, err := t.nc.Subscribe(inbox, func(m *client.Msg) { _ = got.TrySend(m) })
		if err == nil {
			err = t.nc.PublishRequest(t.set.sync, inbox, []byte(`{"config":true}`))
		}
		return sub, err
	})
	if sub != nil {
		defer t.answers.unsubscribe(sub)
	}
	if err != nil {
		return false, fmt.Errorf("nats: ask the servers whether they sync: %w: %w", remote.ErrUnavailable, err)
	}
	for heard, left := false, len(peers); left > 0; heard = true {
		m, err := got.RecvTimeout(ctx, 2*time.Second)
		if err != nil && !heard && t.meaning == remote.MeaningStored && coir.Ended(ctx) == nil {
			return false, nil // the subject does not exist
		}
		if err != nil {
			return false, fmt.Errorf("nats: ask the servers whether they sync: %w: %w", remote.ErrUnavailable, err)
		}
		var said struct {
			Server struct{ Name string }
			Data   struct {
				Config struct {
					SyncAlways bool `json:"sync_always"`
				}
			}
		}
		if json.Unmarshal(m.Data, &said) != nil {
			return false, nil // not an answer of a server
		}
		if done, ok := peers[said.Server.Name]; !ok || done {
			continue
		}
		if !said.Data.Config.SyncAlways {
			return false, nil
		}
		peers[said.Server.Name] = true
		left--
	}
	return true, nil
}

// Tell implements [remote.Transport].
func (t *Transport) Tell(subject string, data []byte) {
	t.answers.tell(t.path("t", subject), data)
}

// Request implements [remote.Transport].
func (t *Transport) Request(ctx context.Context, subject string, data []byte) ([]byte, error) {
	m, err := t.answers.ask(ctx, &client.Msg{Subject: t.path("r", subject), Data: data})
	if err != nil {
		return nil, fmt.Errorf("nats: request to %s: %w", subject, err)
	}
	return m.Data, nil
}

// Serve implements [remote.Transport].
func (t *Transport) Serve(ctx context.Context, subject string, f func(data []byte) []byte) (io.Closer, error) {
	if err := coir.Ended(ctx); err != nil {
		return nil, fmt.Errorf("nats: serve %s: %w", subject, err)
	}
	if lost := t.answers.lost.Load(); lost != nil {
		return nil, serveError(subject, lost)
	}
	told, err := t.nc.Subscribe(t.path("t", subject), func(m *client.Msg) { f(m.Data) })
	if err != nil {
		return nil, serveError(subject, err)
	}
	asked, err := t.nc.QueueSubscribe(t.path("r", subject), "one", func(m *client.Msg) { _ = m.Respond(f(m.Data)) })
	s := server{&t.answers, [2]*client.Subscription{told, asked}}
	if err == nil { // the server must know the subscriptions when Serve returns
		err = t.flush(ctx)
	}
	if err == nil {
		return s, nil
	}
	_ = s.Close()
	if ended := coir.Ended(ctx); ended != nil {
		return nil, fmt.Errorf("nats: serve %s: %w", subject, ended)
	}
	return nil, serveError(subject, err)
}

// flushTime is how long the server has to say that it has read what was sent to it.
const flushTime = 5 * time.Second

// flush waits until the server has read what was sent to it.
func (t *Transport) flush(ctx context.Context) error {
	short, cancel := context.WithTimeout(ctx, flushTime)
	defer cancel()
	_, err := coir.Blocking(ctx, func() (struct{}, error) { return struct{}{}, t.nc.FlushWithContext(short) })
	return err
}

// serveError returns the error of Serve. All errors are temporary, except those of a closed connection and of a wrong
// subject.
func serveError(subject string, err error) error {
	for _, stays := range []error{client.ErrConnectionClosed, client.ErrConnectionDraining, client.ErrBadSubject} {
		if errors.Is(err, stays) {
			return fmt.Errorf("nats: serve %s: %w", subject, err)
		}
	}
	return fmt.Errorf("nats: serve %s: %w: %w", subject, remote.ErrUnavailable, err)
}

// server has the subscriptions of a Serve.
type server struct {
	a    *answers
	subs [2]*client.Subscription
}

// Close implements io.Closer.
func (s server) Close() error {
	for _, sub := range s.subs {
		if sub != nil {
			s.a.unsubscribe(sub)
		}
	}
	return nil
}
