package nats

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/nats-io/nats.go"

	"github.com/coir-go/coir/remote"
)

// intake asks a consumer of the group for messages while calls of Pull wait. It makes one request at a time.
type intake struct {
	t      *Transport
	key    consumerKey
	next   string // the subject of requests
	inbox  string
	sub    *client.Subscription
	queues int          // queues that this process pulls from; guarded by the lock of the transport
	wanted atomic.Int64 // messages that calls of Pull wait for

	mu     sync.Mutex
	number uint64 // of the current request
	closed bool
	left   int         // messages that the request may still bring; 0 without a request
	alarm  *time.Timer // fires when the server has been silent about the request for too long
}

const (
	requestTime = 5 * time.Second        // time that a request waits at the server
	requestBeat = time.Second            // interval of server heartbeats
	requestLost = 250 * time.Millisecond // limit for an answer to no_wait
	requestMost = 500                    // largest number of messages of a request
)

// newIntake returns an intake without a request.
func (t *Transport) newIntake(key consumerKey) (*intake, error) {
	if lost := t.answers.lost.Load(); lost != nil {
		return nil, fmt.Errorf("%w: %w", remote.ErrUnavailable, lost)
	}
	in := &intake{
		t: t, key: key, inbox: t.nc.NewInbox(),
		next: "$JS.API.CONSUMER.MSG.NEXT." + t.queueConfig(key.capacity).Name + "." + t.consumerName(key.number),
	}
	var err error
	if in.sub, err = t.nc.Subscribe(in.inbox+".*", in.came); err != nil {
		return nil, err
	}
	return in, nil
}

func (in *intake) close() {
	in.t.answers.unsubscribe(in.sub)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	if in.alarm != nil {
		in.alarm.Stop()
	}
}

// most returns the number of messages that a request asks for.
func (in *intake) most() int { return int(min(in.wanted.Load(), requestMost)) }

// ask makes a request for the wanted messages, unless a request is still open.
func (in *intake) ask() {
	n := in.most()
	var m *client.Msg
	in.mu.Lock()
	if n > 0 && in.left == 0 {
		m = in.request(n, true)
	}
	in.mu.Unlock()
	in.send(m)
}

// renew makes a new request, because the open one is lost with the connection.
func (in *intake) renew() {
	in.mu.Lock()
	in.left = 0
	in.mu.Unlock()
	in.ask()
}

// send sends a request, unless it is nil. While the connection is lost, send does nothing: the request counts as lost,
// and is made again. The caller holds no lock.
func (in *intake) send(m *client.Msg) {
	if m != nil && in.t.answers.lost.Load() == nil {
		_ = in.t.nc.PublishMsg(m)
	}
}

// request returns a request for up to n messages: for those that exist already if now is set, and otherwise for the
// next ones. It returns nil if the intake is closed. The caller holds the lock, and sends the request afterwards.
func (in *intake) request(n int, now bool) *client.Msg {
	if in.closed {
		return nil
	}
	in.number++
	in.left = n
	ask := fmt.Appendf(nil, `{"batch":%d,"expires":%d,"idle_heartbeat":%d}`, n, requestTime, requestBeat)
	within := 2*requestBeat + requestLost
	if now {
		ask, within = fmt.Appendf(nil, `{"batch":%d,"no_wait":true}`, n), requestLost
	}
	in.watch(within)
	return &client.Msg{Subject: in.next, Reply: in.inbox + "." + strconv.FormatUint(in.number, 36), Data: ask}
}

// watch asks again if the server is silent about the request for some time: the request was lost, or the server has
// ended.
func (in *intake) watch(within time.Duration) {
	if in.alarm != nil {
		in.alarm.Stop()
	}
	number := in.number
	in.alarm = time.AfterFunc(within, func() {
		in.mu.Lock()
		lost := in.number == number
		if lost {
			in.left = 0
		}
		in.mu.Unlock()
		if lost {
			in.ask()
		}
	})
}

// came is called with a message, or with the status of a request.
func (in *intake) came(m *client.Msg) {
	status := m.Header.Get("Status")
	if status == "" {
		in.t.fetched(m)
	}
	in.send(in.after(m, status, in.most()))
}

// after returns the request that follows a message or a status, or nil. n is the number of messages to ask for.
func (in *intake) after(m *client.Msg, status string, n int) *client.Msg {
	in.mu.Lock()
	defer in.mu.Unlock()
	if status != "" && m.Subject != in.inbox+"."+strconv.FormatUint(in.number, 36) {
		return nil // the end of an earlier request
	}
	switch status {
	case "":
		if in.left = max(in.left-1, 0); in.left == 0 && n > 0 { // a late message of an earlier request counts too
			return in.request(n, true)
		}
	case "100": // the request still waits
		in.watch(2*requestBeat + requestLost)
	case "404", "408": // there is no message, or none came in time
		if in.left = 0; n > 0 {
			return in.request(1, false)
		}
	default: // the consumer has lost its leader, or cannot be reached
		in.left = 0
		if n > 0 {
			time.AfterFunc(50*time.Millisecond, in.ask)
		}
	}
	return nil
}

// takeIn makes this process receive the messages of the queue.
func (t *Transport) takeIn(ctx context.Context, q *queue) (*intake, error) {
	if in := q.intake(); in != nil {
		return in, nil
	}
	q.join()
	defer q.joined()
	number, err := t.consumerOf(ctx, q)
	if err != nil {
		return nil, err
	}
	key := consumerKey{q.capacity, number}
	if in, err := t.use(q, key, nil); in != nil || err != nil {
		return in, err
	}
	fresh, err := t.newIntake(key)
	if err != nil {
		return nil, fmt.Errorf("nats: pull from %s: %w", q.name, err)
	}
	in, err := t.use(q, key, fresh)
	if in != fresh {
		fresh.close()
	}
	return in, err
}

// use makes the queue use the intake with the key, or fresh if there is none. It returns the intake, or nil if fresh is
// nil too.
func (t *Transport) use(q *queue, key consumerKey, fresh *intake) (*intake, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.life.Err() != nil {
		return nil, errStopped(q)
	}
	in := t.intakes[key]
	if in == nil {
		if fresh == nil {
			return nil, nil
		}
		in = fresh
		t.intakes[key] = in
	}
	q.cond.Lock()
	defer q.cond.Unlock()
	if q.in == nil {
		q.in = in
		in.queues++
	}
	return in, nil
}

// join makes keep accept messages, until joined.
func (q *queue) join() {
	q.cond.Lock()
	defer q.cond.Unlock()
	q.joins++
}

// joined ends a join. If this process does not pull from the queue, joined gives back the messages that have arrived.
func (q *queue) joined() {
	q.cond.Lock()
	q.joins--
	var ds []*delivery
	if q.in == nil && q.joins == 0 {
		ds, q.ready = q.ready, nil
	}
	q.cond.Unlock()
	nakAll(ds)
}

func (q *queue) intake() *intake {
	q.cond.Lock()
	defer q.cond.Unlock()
	return q.in
}
