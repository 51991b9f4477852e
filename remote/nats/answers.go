package nats

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	client "github.com/nats-io/nats.go"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
)

// answers holds the requests of a transport that wait for an answer. They share one subscription. A fiber that waits
// for an answer leaves its worker; Conn.Request would block the worker.
//
// After nats.go has lost its connection, it holds its lock while it connects, for as long as a dial takes, and each
// call of it waits. So a fiber calls it only while lost is nil, and never under a lock. lost is set a moment after
// nats.go knows of the loss; the runtime replaces the worker of a fiber that calls nats.go in between.
type answers struct {
	nc     *client.Conn
	prefix string
	sub    *client.Subscription
	lost   atomic.Pointer[loss] // nil while there is a connection

	mu    sync.Mutex
	last  uint64
	waits map[uint64]*coir.Promise[*client.Msg]
}

func (a *answers) open(nc *client.Conn) (err error) {
	a.nc, a.waits, a.prefix = nc, map[uint64]*coir.Promise[*client.Msg]{}, nc.NewInbox()+"."
	if a.sub, err = nc.Subscribe(a.prefix+"*", a.came); err != nil {
		return fmt.Errorf("nats: %w", err)
	}
	return nil
}

// came is called with an answer.
func (a *answers) came(m *client.Msg) {
	id, err := strconv.ParseUint(m.Subject[len(a.prefix):], 36, 64)
	if err != nil {
		return
	}
	if p := a.take(id); p != nil {
		p.Resolve(m)
	}
}

func (a *answers) take(id uint64) *coir.Promise[*client.Msg] {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.waits[id]
	delete(a.waits, id)
	return p
}

// tell sends a message that may be lost.
func (a *answers) tell(subject string, data []byte) {
	if a.lost.Load() == nil {
		_ = a.nc.Publish(subject, data)
	}
}

// unsubscribe ends a subscription. While the connection is lost, it does not wait for nats.go.
func (a *answers) unsubscribe(s *client.Subscription) {
	if a.lost.Load() == nil {
		_ = s.Unsubscribe() // fails only if the connection has ended
		return
	}
	go func() { _ = s.Unsubscribe() }()
}

// ask sends a request, and waits for its answer.
func (a *answers) ask(ctx context.Context, m *client.Msg) (*client.Msg, error) {
	if err := coir.Ended(ctx); err != nil {
		return nil, err
	}
	r, err := a.send(m)
	if err != nil {
		return nil, err
	}
	return r.wait(ctx)
}

// request is a request that was sent.
type request struct {
	a      *answers
	id     uint64
	answer *coir.Promise[*client.Msg]
}

// loss is the error of a request that is not tried because there is no connection.
type loss struct {
	since time.Time
	last  error // why it was lost; nil if that is not known
}

func (l *loss) Error() string {
	if l.last == nil {
		return "the connection to NATS is lost"
	}
	return "the connection to NATS is lost: " + l.last.Error()
}

// send sends a request. The caller must wait for its answer.
func (a *answers) send(m *client.Msg) (*request, error) {
	if lost := a.lost.Load(); lost != nil {
		return nil, fmt.Errorf("%w: %w", remote.ErrUnavailable, lost)
	}
	r := &request{a: a, answer: new(coir.Promise[*client.Msg])}
	a.mu.Lock()
	a.last++
	r.id = a.last
	a.waits[r.id] = r.answer
	a.mu.Unlock()
	m.Reply = a.prefix + strconv.FormatUint(r.id, 36)
	if err := a.nc.PublishMsg(m); err != nil {
		a.take(r.id)
		if errors.Is(err, client.ErrMaxPayload) {
			return nil, err
		}
		return nil, fmt.Errorf("%w: %w", remote.ErrUnavailable, err)
	}
	return r, nil
}

// wait waits for the answer.
func (r *request) wait(ctx context.Context) (*client.Msg, error) {
	out, err := r.answer.Wait(ctx)
	switch {
	case err != nil:
		r.a.take(r.id)
		return nil, fmt.Errorf("%w: %w", remote.ErrUnknown, err)
	case len(out.Data) == 0 && out.Header.Get("Status") == "503":
		return nil, fmt.Errorf("%w: no server or process answers", remote.ErrUnavailable)
	}
	return out, nil
}
