package nats

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
)

// opened returns the queue with the name. It fails if the queue has not been opened.
func (t *Transport) opened(name string) (*queue, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.weak) > 0 { // this may be temporary
		return nil, fmt.Errorf("%w: %w", remote.ErrUnavailable, errors.Join(slices.Collect(maps.Values(t.weak))...))
	}
	q := t.queues[name]
	if q != nil && t.gone[q.stream] != nil {
		return nil, fmt.Errorf("%w: %w", remote.ErrUnavailable, t.gone[q.stream])
	}
	if q != nil {
		return q, nil
	}
	return nil, fmt.Errorf("nats: the queue %s has not been opened: call Open first", name)
}

// Open implements [remote.Transport].
func (t *Transport) Open(ctx context.Context, name string, capacity int) error {
	if err := t.openStream(ctx, t.queueConfig(capacity)); err != nil {
		return err
	}
	is := capacity
	m := t.listed(name, capacity)
	switch err := t.store(ctx, m); {
	case isNotFirst(err): // the queue exists
		text, found, err := t.last(ctx, t.listConfig().Name, m.Subject)
		if err != nil {
			return err
		}
		if is, err = strconv.Atoi(text); err != nil || !found { // another process is about to store it
			return fmt.Errorf("nats: open %s: %w", name, remote.ErrUnavailable)
		}
	case err != nil:
		return fmt.Errorf("nats: open %s: %w", name, err)
	}
	if is != capacity {
		return fmt.Errorf("nats: the queue %s has a capacity of %d: it cannot be opened with %d", name, is, capacity)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.queues[name] == nil {
		q := t.newQueue(name, capacity)
		q.doubt.Store(true)
		t.queues[name], t.subjects[q.subject], t.subjects[q.endSubject()] = q, q, q
	}
	return nil
}

// listed returns the message that stores the queue's capacity. The server refuses it if one is already stored.
func (t *Transport) listed(name string, capacity int) *client.Msg {
	return &client.Msg{
		Subject: t.subject("m", token(name)), Data: strconv.AppendInt(nil, int64(capacity), 10),
		Header: client.Header{jetstream.ExpectedLastSubjSeqHeader: {"0"}},
	}
}

func (t *Transport) newQueue(name string, capacity int) *queue {
	return &queue{
		t: t, name: name, capacity: capacity, stream: t.queueConfig(capacity).Name,
		subject: t.subject("q", strconv.Itoa(capacity), token(name)),
	}
}

// openStream makes a stream, unless it exists, and checks what the stream guarantees.
func (t *Transport) openStream(ctx context.Context, config jetstream.StreamConfig) error {
	t.mu.Lock()
	known := t.streams[config.Name]
	t.mu.Unlock()
	if known {
		return nil
	}
	if err := t.ensureStream(ctx, config); err != nil {
		return err
	}
	m, err := t.check(ctx, config.Name)
	if err != nil {
		return err
	}
	if m < t.meaning {
		return fmt.Errorf("nats: stream %s guarantees %v; %v is required", config.Name, m, t.meaning)
	}
	t.mu.Lock()
	t.streams[config.Name] = true
	delete(t.gone, config.Name)
	t.mu.Unlock()
	return nil
}

// Publish implements [remote.Transport].
func (t *Transport) Publish(ctx context.Context, name string, m remote.Msg) error {
	q, err := t.opened(name)
	if err == nil {
		err = q.checkEnd(ctx)
	}
	if err != nil {
		return err
	}
	err = t.store(ctx, q.message(m))
	if err != nil {
		return fmt.Errorf("nats: publish to %s: %w", name, err)
	}
	return nil
}

// message returns m as it is stored.
func (q *queue) message(m remote.Msg) *client.Msg {
	id := token(q.name) + "/" + m.ID.String() // NATS compares IDs within the whole stream
	return &client.Msg{Subject: q.subject, Data: m.Data, Header: client.Header{jetstream.MsgIDHeader: {id}}}
}

// codeError is an error of the server, with its code.
type codeError struct {
	*jetstream.APIError
}

func isCode(err error, code jetstream.ErrorCode) bool {
	var c codeError
	return errors.As(err, &c) && c.ErrorCode == code
}

// isNotFirst reports whether a message was refused because its subject already has a message.
func isNotFirst(err error) bool {
	return isCode(err, jetstream.JSErrCodeStreamWrongLastSequence) ||
		isCode(err, jetstream.JSErrCodeStreamWrongLastSequenceConstant)
}

// Error codes that nats.go has no names for.
const (
	codeMaxPerSubject = 10077
	codeInProcess     = 10158 // a message with the same ID is being stored
	codeNotUnique     = 10100 // another consumer has one of the subjects
	codeMaxConsumers  = 10026
)

// store stores a message in a stream.
func (t *Transport) store(ctx context.Context, m *client.Msg) error {
	out, err := t.answers.ask(ctx, m)
	if err != nil {
		return err
	}
	var ack struct {
		Stream string
		Error  *jetstream.APIError
	}
	if err := json.Unmarshal(out.Data, &ack); err != nil || ack.Error == nil && ack.Stream == "" {
		return fmt.Errorf("%w: the answer cannot be read: %.100q", remote.ErrUnknown, out.Data)
	}
	switch e := ack.Error; {
	case e == nil:
		return nil
	case e.ErrorCode == codeMaxPerSubject:
		return remote.ErrFull
	case e.ErrorCode == codeInProcess:
		return fmt.Errorf("%w: %w", remote.ErrUnknown, codeError{e})
	case e.Code == 503:
		return fmt.Errorf("%w: %w", remote.ErrUnavailable, codeError{e})
	default:
		return codeError{e}
	}
}

// last returns the last message of a subject of a stream.
func (t *Transport) last(ctx context.Context, stream, subject string) (data string, found bool, err error) {
	out, err := t.answers.ask(ctx, &client.Msg{Subject: "$JS.API.STREAM.MSG.GET." + stream,
		Data: fmt.Appendf(nil, `{"last_by_subj":%q}`, subject)})
	if err != nil {
		return "", false, err
	}
	var answer struct {
		Message struct{ Data []byte }
		Error   *jetstream.APIError
	}
	if err := json.Unmarshal(out.Data, &answer); err != nil {
		return "", false, fmt.Errorf("nats: the answer about %s cannot be read: %w", subject, err)
	}
	switch e := answer.Error; {
	case e == nil:
		return string(answer.Message.Data), true, nil
	case e.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return "", false, nil
	default:
		return "", false, fmt.Errorf("%w: %w", remote.ErrUnavailable, codeError{e})
	}
}

// isEmpty reports whether the stream is known to have no message of the queue.
func (q *queue) isEmpty(ctx context.Context) bool {
	some, err := q.t.empty(ctx, []*queue{q}, 1)
	return err == nil && len(some) == 1
}

// empty returns up to n queues that have no message. The queues have the same capacity.
func (t *Transport) empty(ctx context.Context, queues []*queue, n int) (some []*queue, err error) {
	for together := range slices.Chunk(queues, maxFilters) {
		more, err := t.emptyOf(ctx, together)
		if err != nil {
			return nil, err
		}
		if some = append(some, more...); len(some) >= n {
			return some[:n], nil
		}
	}
	return some, nil
}

// emptyOf implements empty for at most maxFilters queues. It asks about all of them at the same time.
func (t *Transport) emptyOf(ctx context.Context, queues []*queue) (some []*queue, err error) {
	ctx, cancel := coir.WithTimeout(ctx, countTime)
	defer cancel()
	requests := make([]*request, len(queues))
	for i, q := range queues {
		r, errSend := t.askCount(q)
		requests[i], err = r, cmp.Or(err, errSend)
	}
	for i, r := range requests {
		if r == nil {
			continue
		}
		n, errCount := r.count(ctx, queues[i].subject)
		if err = cmp.Or(err, errCount); n == 0 {
			some = append(some, queues[i])
		}
	}
	return some, err
}

// Len implements [remote.Transport].
func (t *Transport) Len(ctx context.Context, name string) (int, error) {
	q, err := t.opened(name)
	if err != nil {
		return 0, err
	}
	r, err := t.askCount(q)
	if err != nil {
		return 0, fmt.Errorf("nats: count the messages of %s: %w", name, err)
	}
	n, err := r.count(ctx, q.subject)
	if err != nil {
		return 0, fmt.Errorf("nats: count the messages of %s: %w", name, err)
	}
	return int(n), nil
}

// askCount asks for the number of messages of a queue: see request.count.
func (t *Transport) askCount(q *queue) (*request, error) {
	return t.answers.send(&client.Msg{
		Subject: "$JS.API.STREAM.INFO." + q.stream,
		Data:    fmt.Appendf(nil, `{"subjects_filter":%q}`, q.subject),
	})
}

// countTime is the time limit for counting the messages of queues.
const countTime = 5 * time.Second

// count returns the number of messages of the subject, from the answer to a request of askCount.
func (r *request) count(ctx context.Context, subject string) (uint64, error) {
	out, err := r.wait(ctx)
	if err != nil {
		return 0, err
	}
	var info struct {
		Error *jetstream.APIError
		State struct{ Subjects map[string]uint64 }
	}
	if err := json.Unmarshal(out.Data, &info); err != nil {
		return 0, fmt.Errorf("nats: the answer about %s cannot be read: %w", subject, err)
	}
	if info.Error != nil {
		return 0, apiError("count the messages of "+subject, info.Error)
	}
	return info.State.Subjects[subject], nil
}
