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
	"sync/atomic"
	"time"

	client "github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
)

// How messages come out of a queue.
//
// A process cannot ask a consumer of many queues for messages of one of them. So while a call of Pull waits, the
// process asks the consumer for as many messages as are wanted, and keeps the messages of other queues for their calls
// of Pull. The consumer has no bound for messages that are not acknowledged, because one queue whose messages are not
// acknowledged would starve the others. Each queue has its own bound instead.
//
// A request first asks for the messages that exist already (no_wait), and then waits for one message. So at most one
// message reaches a process after its last call of Pull has ended. The lease of that message is not renewed before it
// is pulled.
//
// The time that NATS takes to change a consumer's list of queues is quadratic in their number. So a consumer has few
// queues, and a group has as many consumers as it needs.

// maxFilters is the largest number of queues of a consumer.
const maxFilters = 500

// queue holds what a transport knows about a queue.
type queue struct {
	t        *Transport
	name     string
	capacity int
	subject  string

	doubt  atomic.Bool  // the queue may have been ended
	number atomic.Int64 // 1 + the number of the consumer that has the queue; 0 if unknown

	cond  coir.Cond   // guards the fields below
	until time.Time   // when the doubt ends
	ended bool        // the queue is known to have been ended
	in    *intake     // nil if this process does not pull from the queue
	joins int         // running calls of takeIn: messages may arrive before in is set
	wants int         // messages wanted by waiting Pulls
	asked int         // how many of the wanted messages in asks for; 0 without in
	ready []*delivery // messages that were fetched, and not pulled
}

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

// opened returns the queue with the name. It fails if the queue has not been opened.
func (t *Transport) opened(name string) (*queue, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.weak) > 0 { // this may be temporary
		return nil, fmt.Errorf("%w: %w", remote.ErrUnavailable, errors.Join(slices.Collect(maps.Values(t.weak))...))
	}
	if q := t.queues[name]; q != nil {
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
	return &queue{t: t, name: name, capacity: capacity, subject: t.subject("q", strconv.Itoa(capacity), token(name))}
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

// notSent converts the error of a preliminary request: the main request was not sent, so its outcome is not unknown.
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

// Pull implements [remote.Transport].
func (t *Transport) Pull(ctx context.Context, name string, credit int) ([]remote.Delivery, error) {
	if err := coir.Ended(ctx); err != nil {
		return nil, fmt.Errorf("nats: pull from %s: %w", name, err)
	}
	q, err := t.opened(name)
	if err != nil {
		return nil, err
	}
	for {
		in, err := t.takeIn(ctx, q)
		if err != nil {
			return nil, err
		}
		closed := errors.Is(q.checkEnd(ctx), coir.ErrClosed)
		if closed && q.isEmpty(ctx) {
			return nil, fmt.Errorf("nats: pull from %s: %w", name, coir.ErrClosed)
		}
		ds, err := q.take(ctx, in, credit, closed)
		if err != nil {
			return nil, fmt.Errorf("nats: pull from %s: %w", name, err)
		}
		if ds != nil {
			return ds, nil
		}
	}
}

// take returns messages that were fetched, and waits for one. It returns neither messages nor an error if the caller
// must check again whether the queue has ended: because the queue may have been ended, or, if closed is set, because
// its last message may have been removed.
func (q *queue) take(ctx context.Context, in *intake, credit int, closed bool) (ds []remote.Delivery, err error) {
	short := ctx
	again := closed || q.doubt.Load()
	if again {
		limited, cancel := coir.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
		short = limited
	}
	q.cond.Lock()
	if len(q.ready) == 0 && q.in == in {
		q.wants += credit
		q.ask()
		q.cond.Unlock()
		in.ask()
		q.cond.Lock()
		if len(q.ready) == 0 && q.in == in && q.ended == closed && q.doubt.Load() == (again && !closed) {
			err = q.cond.Wait(short)
		}
		q.wants -= credit
		if q.in != in { // the queue has another consumer, or none; the caller looks for it
			q.ask()
			q.cond.Unlock()
			return nil, coir.Ended(ctx)
		}
	}
	defer q.cond.Unlock()
	q.forgetOld()
	n := min(credit, len(q.ready))
	for _, d := range q.ready[:n] {
		ds = append(ds, d)
	}
	q.ready = slices.Delete(q.ready, 0, n)
	q.ask() // only once: the intake must not see an intermediate number
	if n > 0 || again && coir.Ended(ctx) == nil {
		err = nil
	}
	return ds, err
}

// ask sets how many messages the intake asks for: those that calls of Pull want, less those that have arrived already.
// The caller holds the lock.
func (q *queue) ask() {
	if q.in != nil {
		n := max(q.wants-len(q.ready), 0)
		q.in.wanted.Add(int64(n - q.asked))
		q.asked = n
	}
}

// checkLists checks that the consumers still have the queues that this process pulls from. A change to a list may be
// lost, because NATS has no way to change a list that another process changes at the same time. Then the next Pull
// makes the change again.
func (t *Transport) checkLists(ctx context.Context) {
	taken := map[int][]*queue{}
	t.mu.Lock()
	for _, q := range t.queues {
		if q.intake() != nil {
			taken[q.capacity] = append(taken[q.capacity], q)
		}
	}
	t.mu.Unlock()
	for capacity, queues := range taken {
		consumers, err := t.consumers(ctx, t.queueConfig(capacity).Name)
		if err != nil {
			continue // try again next time
		}
		has := places(consumers)
		for _, q := range queues {
			in := q.intake()
			if number, ok := has[q.subject]; in != nil && (!ok || number != in.key.number) {
				q.number.Store(0)
				t.Leave(q.name)
			}
		}
	}
}

// places returns, for each subject, the number of the consumer that has it.
func places(consumers [][]string) map[string]int {
	has := map[string]int{}
	for number, filters := range consumers {
		for _, subject := range filters {
			has[subject] = number
		}
	}
	return has
}

// forgetOld forgets messages whose lease has ended, because they are delivered again.
func (q *queue) forgetOld() {
	q.ready = slices.DeleteFunc(q.ready, func(d *delivery) bool { return time.Since(d.came) > q.t.set.lease })
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
		Subject: "$JS.API.STREAM.INFO." + t.queueConfig(q.capacity).Name,
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

// consumerKey names a consumer of the group.
type consumerKey struct{ capacity, number int }

// consumerName returns the name of a consumer of the group.
func (t *Transport) consumerName(number int) string {
	if number == 0 {
		return t.set.group
	}
	return t.set.group + "=" + strconv.Itoa(number) // no group has this name
}

// list has the queues of one capacity that wait to be added to a consumer. It is guarded by the lock of the transport.
//
// A goroutine of the transport adds all waiting queues together. It continues when their callers give up, because it
// may take longer than any of them waits; a later call finds the result.
type list struct {
	runs  bool // the goroutine runs
	waits map[*queue]*coir.Promise[int]
}

// consumerOf returns the number of the consumer of the group that has the queue. If none has it, consumerOf adds the
// queue to one.
func (t *Transport) consumerOf(ctx context.Context, q *queue) (int, error) {
	if n := q.number.Load(); n > 0 {
		return int(n) - 1, nil
	}
	number, err := t.want(q)
	if err != nil {
		return 0, err
	}
	n, err := number.Wait(ctx)
	if err != nil {
		return 0, fmt.Errorf("nats: pull from %s: wait for a consumer: %w", q.name, err)
	}
	return n, nil
}

// want requests a consumer for a queue, and returns a promise of its number.
func (t *Transport) want(q *queue) (*coir.Promise[int], error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.life.Err() != nil {
		return nil, errStopped(q)
	}
	l := t.lists[q.capacity]
	if l == nil {
		l = &list{waits: map[*queue]*coir.Promise[int]{}}
		t.lists[q.capacity] = l
	}
	if l.waits[q] == nil {
		l.waits[q] = new(coir.Promise[int])
	}
	if !l.runs {
		l.runs = true
		t.ended.Go(func() { t.addAll(l) })
	}
	return l.waits[q], nil
}

func errStopped(q *queue) error {
	return fmt.Errorf("nats: pull from %s: the transport was closed: %w", q.name, coir.ErrClosed)
}

// addAll adds the waiting queues to consumers, until none waits.
func (t *Transport) addAll(l *list) {
	for {
		t.mu.Lock()
		waits := l.waits
		l.waits = map[*queue]*coir.Promise[int]{}
		l.runs = len(waits) > 0
		t.mu.Unlock()
		if len(waits) == 0 {
			return
		}
		err := t.filter(t.life, slices.Collect(maps.Keys(waits)))
		for q, p := range waits {
			if n := q.number.Load(); n > 0 {
				p.Resolve(int(n) - 1)
			} else {
				p.Reject(cmp.Or(err, remote.ErrUnavailable)) // another process has changed a list since
			}
		}
	}
}

// filter adds queues of one capacity to consumers of the group. Other processes may do so at the same time, and the
// last change of a consumer wins. So filter checks afterwards that the consumers have the queues.
//
// A consumer never moves back: when it gets a queue, it delivers only messages after its position. So only an empty
// queue is added to an existing consumer, while that consumer is paused. The other queues get a new consumer, which
// begins with the first message of the stream.
func (t *Transport) filter(ctx context.Context, queues []*queue) error {
	stream := t.queueConfig(queues[0].capacity).Name
	for {
		consumers, err := t.consumers(ctx, stream)
		if err != nil {
			return err
		}
		has := places(consumers)
		queues = slices.DeleteFunc(queues, func(q *queue) bool {
			number, ok := has[q.subject]
			if ok {
				q.number.Store(int64(number) + 1)
			}
			return ok
		})
		if len(queues) == 0 {
			return nil
		}
		number := slices.IndexFunc(consumers, func(filters []string) bool { return len(filters) < maxFilters })
		changed := false
		if number >= 0 {
			changed, err = t.extend(ctx, stream, number, queues)
		}
		if !changed && err == nil {
			_, err = t.js.CreateConsumer(ctx, stream, jetstream.ConsumerConfig{
				Durable: t.consumerName(len(consumers)), AckPolicy: jetstream.AckExplicitPolicy, AckWait: t.set.lease,
				MaxAckPending: -1, MaxDeliver: -1, FilterSubjects: subjects(queues[:min(len(queues), maxFilters)]),
			})
		}
		var api *jetstream.APIError
		if errors.Is(err, jetstream.ErrConsumerExists) || errors.As(err, &api) && api.ErrorCode == codeNotUnique {
			continue // another process of the group has made the consumer, or has added a queue to another one
		}
		if err != nil {
			return apiError("receive from "+queues[0].name, err)
		}
	}
}

// pauseTime is the longest pause of a consumer, in case the process that changes it fails.
const pauseTime = 30 * time.Second

// extend adds empty queues to a consumer, as many as it has room for. It reports whether it has changed the consumer.
//
// The consumer is paused, so that its position stays where it is. A message that is added to an empty queue meanwhile
// has a later position. If another process has ended the pause, extend takes out the queues that are no longer empty.
// The consumer has delivered none of their messages, because extend has paused it again.
func (t *Transport) extend(ctx context.Context, stream string, number int, queues []*queue) (changed bool, err error) {
	name, until := t.consumerName(number), time.Now().Add(pauseTime)
	s, err := t.js.Stream(ctx, stream)
	if err != nil {
		return false, err
	}
	if _, err := t.js.PauseConsumer(ctx, stream, name, until); err != nil {
		return false, err
	}
	defer func() {
		_, errResume := t.js.ResumeConsumer(context.WithoutCancel(ctx), stream, name)
		if err == nil {
			err = errResume
		}
	}()
	c, err := s.Consumer(ctx, name)
	if err != nil {
		return false, err
	}
	info := c.CachedInfo()
	has := filters(info.Config)
	queues, err = t.empty(ctx, queues, maxFilters-len(has))
	if err != nil || len(queues) == 0 || !info.Paused { // not paused: the clock of the server is far ahead
		return false, err
	}
	set := func(queues []*queue) (jetstream.Consumer, error) {
		config := info.Config
		config.FilterSubject, config.FilterSubjects = "", append(slices.Clone(has), subjects(queues)...)
		config.PauseUntil = &until
		return s.UpdateConsumer(ctx, config)
	}
	c, err = set(queues)
	if err != nil || c.CachedInfo().Delivered.Stream == info.Delivered.Stream {
		return true, err
	}
	queues, err = t.empty(ctx, queues, len(queues))
	if err == nil {
		_, err = set(queues)
	}
	return true, err
}

func subjects(queues []*queue) (all []string) {
	for _, q := range queues {
		all = append(all, q.subject)
	}
	return all
}

// consumers returns the subjects of each consumer of the group.
func (t *Transport) consumers(ctx context.Context, stream string) (all [][]string, err error) {
	for {
		c, err := t.js.Consumer(ctx, stream, t.consumerName(len(all)))
		switch {
		case errors.Is(err, jetstream.ErrConsumerNotFound):
			return all, nil
		case err != nil:
			return nil, apiError("look at the consumers of "+stream, err)
		}
		all = append(all, filters(c.CachedInfo().Config))
	}
}

// filters returns the subjects of a consumer. NATS has two fields for them.
func filters(c jetstream.ConsumerConfig) []string {
	if c.FilterSubject != "" {
		return []string{c.FilterSubject}
	}
	return slices.Clone(c.FilterSubjects)
}

// fetched keeps a message for the calls of Pull.
func (t *Transport) fetched(m *client.Msg) {
	d := &delivery{t: t, reply: m.Reply, msg: remote.Msg{Data: m.Data}, came: time.Now()}
	meta, errMeta := m.Metadata()
	if errMeta == nil {
		d.tries = int(meta.NumDelivered)
	}
	text := m.Header.Get(jetstream.MsgIDHeader)
	errID := d.msg.ID.UnmarshalText([]byte(text[max(0, len(text)-32):]))
	if errID != nil && errMeta == nil { // a foreign message has no ID; no sender is 0
		d.msg.ID = remote.ID{Seq: meta.Sequence.Stream}
	}
	t.mu.Lock()
	to := t.subjects[m.Subject]
	t.mu.Unlock()
	if to == nil || !to.keep(d) {
		d.Nak(time.Second) // for another process of the group
	}
}

// keep keeps a message if this process pulls from the queue, or is about to. It reports whether it has kept the
// message.
func (q *queue) keep(d *delivery) bool {
	q.cond.Lock()
	defer q.cond.Unlock()
	if q.in == nil && q.joins == 0 {
		return false
	}
	q.ready = append(q.ready, d)
	q.ask()
	q.cond.Signal()
	return true
}

// Leave implements [remote.Transport].
func (t *Transport) Leave(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.queues[name]
	if q == nil {
		return
	}
	in := q.giveBack()
	if in == nil {
		return
	}
	if in.queues--; in.queues == 0 { // the server forgets the open request of the intake
		delete(t.intakes, in.key)
		in.close()
	}
}

// giveBack gives back the messages that were fetched and not pulled. It returns the intake that the queue had.
func (q *queue) giveBack() *intake {
	q.cond.Lock()
	q.forgetOld()
	in, ds := q.in, q.ready
	if in != nil {
		in.wanted.Add(-int64(q.asked))
	}
	q.in, q.asked, q.ready = nil, 0, nil
	q.cond.Broadcast() // for calls of Pull
	q.cond.Unlock()
	for _, d := range ds {
		d.Nak(0)
	}
	return in
}

// delivery implements remote.Delivery.
type delivery struct {
	t     *Transport
	reply string
	msg   remote.Msg
	tries int
	came  time.Time
}

func (d *delivery) Msg() remote.Msg { return d.msg }

func (d *delivery) Tries() int { return d.tries }

// Ack waits for the answer of the server, which comes when the removal is stored.
func (d *delivery) Ack(ctx context.Context) error {
	if _, err := d.t.answers.ask(ctx, &client.Msg{Subject: d.reply, Data: []byte("+ACK")}); err != nil {
		return fmt.Errorf("nats: acknowledge %v: %w", d.msg.ID, err)
	}
	return nil
}

func (d *delivery) Nak(delay time.Duration) {
	d.t.answers.tell(d.reply, fmt.Appendf(nil, `-NAK {"delay": %d}`, max(delay, 0)))
}

func (d *delivery) Progress() { d.t.answers.tell(d.reply, []byte("+WPI")) }
