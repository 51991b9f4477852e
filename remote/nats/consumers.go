package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/remote"
)

// maxFilters is the largest number of queues of a consumer. The time that NATS takes to change a consumer's list of
// queues is quadratic in their number. So a consumer has few queues, and a group has as many consumers as it needs.
const maxFilters = 500

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
		refused := map[*queue]error{}
		err := t.filter(t.life, slices.Collect(maps.Keys(waits)), refused)
		for q, p := range waits {
			if n := q.number.Load(); n > 0 {
				p.Resolve(int(n) - 1)
			} else {
				p.Reject(cmp.Or(refused[q], err, remote.ErrUnavailable)) // another process has changed a list since
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
//
// filter leaves out the queues that another group has, and adds them to refused.
func (t *Transport) filter(ctx context.Context, queues []*queue, refused map[*queue]error) error {
	stream := queues[0].stream
	for conflicts := 0; ; {
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
		switch {
		case err == nil:
		case errors.Is(err, jetstream.ErrConsumerExists): // another process of the group has made the consumer
		case errors.As(err, &api) && api.ErrorCode == codeNotUnique: // or has added a queue to another one
			if conflicts++; conflicts > mostConflicts {
				return fmt.Errorf("nats: receive from %s: %w: the group %s cannot have the queue: is there another group that "+
					"receives from it?", queues[0].name, remote.ErrUnavailable, t.set.group)
			}
			if queues = t.leaveOut(ctx, stream, queues, refused); len(queues) == 0 {
				return nil
			}
		case errors.As(err, &api) && api.ErrorCode == codeMaxConsumers:
			return tooMany(queues[0].name, stream, t.set.group, consumers, err)
		default:
			return apiError("receive from "+queues[0].name, err)
		}
	}
}

// mostConflicts is how often filter tries again because another consumer has a queue. The processes of a group seldom
// make consumers at the same time, and each of them makes some progress.
const mostConflicts = 100

// leaveOut returns the queues that no other group has, and adds the others to refused. If it cannot read the consumers,
// it returns all.
func (t *Transport) leaveOut(
	ctx context.Context, stream string, queues []*queue, refused map[*queue]error,
) []*queue {
	ctx, cancel := context.WithTimeout(ctx, listTime)
	defer cancel()
	s, err := t.js.Stream(ctx, stream)
	if err != nil {
		return queues
	}
	groups := map[string]string{} // by subject
	for info := range s.ListConsumers(ctx).Info() {
		if group, _, _ := strings.Cut(info.Name, "="); group != t.set.group {
			for _, subject := range filters(info.Config) {
				groups[subject] = group
			}
		}
	}
	return slices.DeleteFunc(queues, func(q *queue) bool {
		group, ok := groups[q.subject]
		if ok {
			refused[q] = fmt.Errorf("nats: receive from %s: the group of this process is %s, and the group %s receives from the "+
				"queue: give both the same WithGroup, or delete the consumers of %s when its processes have ended", q.name,
				t.set.group, group, group)
		}
		return ok
	})
}

// listTime is the time limit for a list of all consumers of a stream.
const listTime = 2 * time.Second

// tooMany returns the error of a consumer that NATS refuses to make because there are too many.
func tooMany(queue, stream, group string, consumers [][]string, err error) error {
	n := 0
	for _, filters := range consumers {
		n += len(filters)
	}
	return fmt.Errorf("nats: receive from %s: the stream %s has as many consumers as NATS permits: the group %s has %d, for "+
		"%d queues. Each time when a process begins to receive from queues that have messages, these queues need a new "+
		"consumer, which can have %d queues. So begin to receive from them at the same time, or before they have messages; "+
		"or raise the limit, max_consumers of the account and default_max_consumers of the server: %w",
		queue, stream, group, len(consumers), n, maxFilters, err)
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
		config := c.CachedInfo().Config
		if err := t.agree(ctx, stream, t.consumerName(len(all)), config); err != nil {
			return nil, apiError("change the lease of a consumer of "+stream, err)
		}
		all = append(all, filters(config))
	}
}

// agree makes the lease of a consumer at least as long as that of this process, which renews its leases in time for its
// own. A longer lease is safe, so processes of a group may have different ones while an operator changes it. A shorter
// one would deliver values again while they are held. So agree never makes it shorter: it cannot know whether another
// process of the group still has the longer lease. The operator knows, and the warning says how. Rejected: to record
// the lease of each process at the broker, because a process that is cut off for a while would be forgotten.
func (t *Transport) agree(ctx context.Context, stream, name string, config jetstream.ConsumerConfig) error {
	is := config.AckWait
	switch {
	case is == t.set.lease:
		return nil
	case is > t.set.lease:
		t.warnOnce("nats: a consumer has a longer lease than this process, and keeps it: when no process has the longer "+
			"lease any more, shorten it", "group", t.set.group, "stream", stream, "consumer", name,
			"lease", t.set.lease.String(), "consumerLease", is.String(),
			"shorten", fmt.Sprintf("nats consumer edit %s %s --wait %v", stream, name, t.set.lease))
		return nil
	}
	config.AckWait = t.set.lease
	if _, err := t.js.UpdateConsumer(ctx, stream, config); err != nil {
		return err
	}
	t.warnOnce("nats: a consumer had a shorter lease than this process, and now has that of this process", "group",
		t.set.group, "stream", stream, "consumer", name, "lease", t.set.lease.String(), "before", is.String())
	return nil
}

// warnOnce logs a warning, unless this transport has logged it before.
func (t *Transport) warnOnce(text string, attrs ...any) {
	key := text + fmt.Sprint(attrs...)
	t.mu.Lock()
	known := t.warned[key]
	t.warned[key] = true
	t.mu.Unlock()
	if !known {
		slog.Warn(text, attrs...)
	}
}

// filters returns the subjects of a consumer. NATS has two fields for them.
func filters(c jetstream.ConsumerConfig) []string {
	if c.FilterSubject != "" {
		return []string{c.FilterSubject}
	}
	return slices.Clone(c.FilterSubjects)
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
