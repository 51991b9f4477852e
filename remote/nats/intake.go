package nats

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/nats-io/nats.go"
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

// newIntake returns an intake without a request. The caller holds the lock of the transport.
func (t *Transport) newIntake(key consumerKey) (*intake, error) {
	in := &intake{
		t: t, key: key, inbox: t.nc.NewInbox(),
		next: "$JS.API.CONSUMER.MSG.NEXT." + t.queueConfig(key.capacity).Name + "." + t.consumerName(key.number),
	}
	var err error
	if in.sub, err = t.nc.Subscribe(in.inbox+".*", in.came); err != nil {
		return nil, fmt.Errorf("nats: %w", err)
	}
	return in, nil
}

func (in *intake) close() {
	_ = in.sub.Unsubscribe()
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
	in.mu.Lock()
	defer in.mu.Unlock()
	if n > 0 && in.left == 0 {
		in.request(n, true)
	}
}

// request sends a request for up to n messages: for those that exist already if now is set, and otherwise for the next
// ones.
func (in *intake) request(n int, now bool) {
	if in.closed {
		return
	}
	in.number++
	in.left = n
	ask := fmt.Appendf(nil, `{"batch":%d,"expires":%d,"idle_heartbeat":%d}`, n, requestTime, requestBeat)
	within := 2*requestBeat + requestLost
	if now {
		ask, within = fmt.Appendf(nil, `{"batch":%d,"no_wait":true}`, n), requestLost
	}
	_ = in.t.nc.PublishRequest(in.next, in.inbox+"."+strconv.FormatUint(in.number, 36), ask)
	in.watch(within)
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
	n := in.most()
	in.mu.Lock()
	defer in.mu.Unlock()
	if status != "" && m.Subject != in.inbox+"."+strconv.FormatUint(in.number, 36) {
		return // the end of an earlier request
	}
	switch status {
	case "":
		if in.left = max(in.left-1, 0); in.left == 0 && n > 0 { // a late message of an earlier request counts too
			in.request(n, true)
		}
	case "100": // the request still waits
		in.watch(2*requestBeat + requestLost)
	case "404", "408": // there is no message, or none came in time
		if in.left = 0; n > 0 {
			in.request(1, false)
		}
	default: // the consumer has lost its leader, or cannot be reached
		in.left = 0
		if n > 0 {
			time.AfterFunc(50*time.Millisecond, in.ask)
		}
	}
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
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.life.Err() != nil {
		return nil, errStopped(q)
	}
	key := consumerKey{q.capacity, number}
	in := t.intakes[key]
	if in == nil {
		if in, err = t.newIntake(key); err != nil {
			return nil, err
		}
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
	for _, d := range ds {
		d.Nak(0)
	}
}

func (q *queue) intake() *intake {
	q.cond.Lock()
	defer q.cond.Unlock()
	return q.in
}
