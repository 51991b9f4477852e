package nats

import (
	"context"
	"errors"
	"fmt"
	"time"

	client "github.com/nats-io/nats.go"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
)

// doubtTime is how long to look for the end of a queue after the end message, which arrives before it is stored.
const doubtTime = 10 * time.Second

// suspect records that the queue may have been ended, and wakes the waiting calls of Pull.
func (q *queue) suspect() {
	q.cond.Lock()
	defer q.cond.Unlock()
	q.until = time.Now().Add(doubtTime)
	q.doubt.Store(true)
	q.cond.Broadcast()
}

// heardOfEnd is called with the message by which a process ends a queue, before the message is stored.
func (t *Transport) heardOfEnd(m *client.Msg) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if q := t.subjects[m.Subject]; q != nil {
		q.suspect()
	}
}

func (q *queue) endSubject() string { return q.t.subject("e", token(q.name)) }

// checkEnd returns coir.ErrClosed if the queue was ended.
func (q *queue) checkEnd(ctx context.Context) error {
	if q.doubt.Load() {
		_, found, err := q.t.last(ctx, q.t.listConfig().Name, q.endSubject())
		if err != nil {
			return fmt.Errorf("nats: look for the end of %s: %w", q.name, notSent(err))
		}
		q.cond.Lock()
		if q.ended = q.ended || found; q.ended || time.Now().After(q.until) {
			q.doubt.Store(false)
		}
		q.cond.Unlock()
	}
	q.cond.Lock()
	defer q.cond.Unlock()
	if q.ended {
		return fmt.Errorf("nats: %s: %w", q.name, coir.ErrClosed)
	}
	return nil
}

// notSent converts the error of a preliminary request, or of a read after a refusal: the main request was not sent, or
// was refused, so its outcome is not unknown.
func notSent(err error) error {
	if errors.Is(err, remote.ErrUnknown) {
		return fmt.Errorf("%w: %v", remote.ErrUnavailable, err)
	}
	return err
}

// End implements [remote.Transport].
func (t *Transport) End(ctx context.Context, name string) error {
	q, err := t.opened(name)
	if err != nil {
		return err
	}
	if err := t.store(ctx, &client.Msg{Subject: q.endSubject()}); err != nil {
		return fmt.Errorf("nats: end %s: %w", name, err)
	}
	q.cond.Lock()
	defer q.cond.Unlock()
	q.ended = true
	q.cond.Broadcast()
	return nil
}
