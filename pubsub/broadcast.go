package pubsub

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
)

// Broadcast passes each value to all subscribers. All subscribers get the values in the same order. Create one with
// [NewBroadcast].
type Broadcast[T any] struct {
	order *locks.Mutex       // held by Publish, which may wait
	late  []*Subscription[T] // the subscribers that Publish waits for
	topic[T]
}

// NewBroadcast returns a Broadcast without subscribers. [coir.WithName] gives it a name, which reports show.
func NewBroadcast[T any](opts ...coir.NameOption) *Broadcast[T] {
	b := &Broadcast[T]{order: locks.NewMutex(opts...)}
	b.init(opts)
	return b
}

// Publish passes v to each subscriber. It first passes v to the subscribers that can take it now, and then waits for
// those whose channels are full and have [coir.OverflowWait]. If another Publish is waiting, it waits for that call
// first.
//
// If ctx ends, or the Broadcast is closed, before all subscribers have v, Publish returns ctx's error, or an error that
// matches [coir.ErrClosed]. In that case some subscribers may have v.
//
// The call of Publish is ordered before the return of a receive of v. Receives of different subscribers are not
// ordered.
func (b *Broadcast[T]) Publish(ctx context.Context, v T) error {
	if err := b.order.Lock(ctx); err != nil {
		return err
	}
	defer b.order.Unlock()
	subs, err := b.all()
	if err != nil {
		return err
	}
	defer b.forgetLate()
	return b.pass(ctx, subs, v)
}

// pass passes v to subs. If a handler of [coir.OnUndelivered] panics, the others still get v before the panic
// continues.
func (b *Broadcast[T]) pass(ctx context.Context, subs []*Subscription[T], v T) (err error) {
	at := 0
	defer func() {
		if at < len(subs) {
			err = b.pass(ctx, subs[at+1:], v)
		}
	}()
	closed := false
	for ; at < len(subs); at++ {
		s := subs[at]
		switch err := s.ch.TrySend(v); {
		case err == nil:
		case errors.Is(err, coir.ErrWouldBlock):
			b.late = append(b.late, s)
		default:
			closed = true
		}
	}
	// Measurements show that the reverse order is slightly cheaper.
	for _, s := range slices.Backward(b.late) {
		switch err := s.ch.Send(ctx, v); {
		case err == nil:
		case errors.Is(err, coir.ErrWouldBlock): // the channel has coir.OverflowFail
			s.missed.Add(1)
		case errors.Is(err, coir.ErrClosed):
			closed = true
		default:
			return err
		}
	}
	if closed { // the subscriber has left, or the Broadcast is closed
		_, err = b.all()
	}
	return err
}

// forgetLate empties the list of subscribers to wait for, so that subscribers that have left can be collected.
func (b *Broadcast[T]) forgetLate() {
	clear(b.late)
	b.late = b.late[:0]
}

// Subscribe adds a subscriber, which gets the values that are published from now on. The capacity and the options are
// those of its channel: see [coir.NewChan]. [coir.WithOverflow] sets what happens when the subscriber is slow; by
// default, publishers wait. With the other policies the subscriber misses values, which [Subscription.Lagged] counts,
// and Publish returns nil. The function of [coir.OnUndelivered] gets the missed values, except with
// [coir.OverflowFail], which drops the newest like [coir.OverflowDropNewest]; it must not call Publish. The channel has
// the name of the Broadcast, unless [coir.WithName] gives it another. After Close, a new subscriber finds its channel
// closed.
func (b *Broadcast[T]) Subscribe(capacity int, opts ...coir.ChanOption) *Subscription[T] {
	return b.add(capacity, opts)
}

// Close ends the Broadcast: subscribers get the values that they have not received yet, and then [coir.ErrClosed]. A
// Publish that waits for a subscriber continues to wait until the subscriber has taken the value or left. Close reports
// whether this call ended the Broadcast.
func (b *Broadcast[T]) Close() bool { return b.close() }

// Len returns the number of subscribers.
func (b *Broadcast[T]) Len() int { return b.len() }

// String returns a short description of the Broadcast.
func (b *Broadcast[T]) String() string {
	return fmt.Sprintf("pubsub.Broadcast(%s, %d subscribers)", b.name, b.len())
}

// topic is a list of subscribers.
type topic[T any] struct {
	name string

	// mu is held for a few instructions only. It is not a sync.Mutex, so that package sim sees which operations depend
	// on each other. subs is replaced, not changed, so that it can be read without mu.
	mu     *locks.Mutex
	subs   []*Subscription[T]
	closed bool
}

func (t *topic[T]) init(opts []coir.NameOption) {
	for _, o := range opts {
		t.name = o.Name()
	}
	t.mu = locks.NewMutex()
	if t.name != "" {
		t.mu = locks.NewMutex(coir.WithName("subscribers of " + t.name))
	}
}

var recvVerb = &coir.Verb{Name: "recv", Waits: "to receive from", Ends: "publish to or close", Of: "subscription"}

func (t *topic[T]) lock() { must(t.mu.Lock(context.Background())) }

// must panics if a wait in context.Background has failed. Such a wait fails only if package sim ends it, after a
// failure that it reports. Then the caller must not continue as if it held the lock.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// all returns the subscribers.
func (t *topic[T]) all() ([]*Subscription[T], error) {
	t.lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, fmt.Errorf("pubsub: publish to %q: %w", t.name, coir.ErrClosed)
	}
	return t.subs, nil
}

// add adds a subscriber, whose channel holds the given values.
func (t *topic[T]) add(capacity int, opts []coir.ChanOption, first ...T) *Subscription[T] {
	s := &Subscription[T]{topic: t}
	s.ch = coir.NewChan[T](capacity, append([]coir.ChanOption{coir.WithName(t.name)}, opts...)...)
	s.ch.Describe(recvVerb)
	for _, v := range first {
		_ = s.ch.TrySend(v) // there is room
	}
	t.lock()
	closed := t.closed
	if !closed {
		t.subs = append(slices.Clip(t.subs), s)
	}
	t.mu.Unlock()
	if closed {
		s.ch.Close()
	}
	return s
}

func (t *topic[T]) remove(s *Subscription[T]) {
	t.lock()
	defer t.mu.Unlock()
	if at := slices.Index(t.subs, s); at >= 0 {
		t.subs = slices.Concat(t.subs[:at], t.subs[at+1:])
	}
}

// close closes the channels of all subscribers. It reports whether this call closed the topic.
func (t *topic[T]) close() bool {
	t.lock()
	subs, first := t.subs, !t.closed
	t.subs, t.closed = nil, true
	t.mu.Unlock()
	for _, s := range subs {
		s.ch.Close()
	}
	return first
}

func (t *topic[T]) len() int {
	t.lock()
	defer t.mu.Unlock()
	return len(t.subs)
}

// Subscription is one subscriber of a [Broadcast] or a [Latest]. If several fibers or goroutines receive from it, each
// value goes to one of them.
type Subscription[T any] struct {
	topic  *topic[T]
	ch     *coir.Chan[T]
	missed atomic.Uint64
}

// Recv receives the next value. It returns an error that matches [coir.ErrClosed] when the publisher has closed and all
// values have been received, or after Close.
func (s *Subscription[T]) Recv(ctx context.Context) (T, error) { return s.ch.Recv(ctx) }

// TryRecv is like Recv, but never waits: if there is no value, it returns [coir.ErrWouldBlock].
func (s *Subscription[T]) TryRecv() (T, error) { return s.ch.TryRecv() }

// RecvMany is [coir.Chan.RecvMany]: it waits for a value, and receives as many as there are, up to len(into).
func (s *Subscription[T]) RecvMany(ctx context.Context, into []T) (int, error) {
	return s.ch.RecvMany(ctx, into)
}

// RecvBatch is [coir.Chan.RecvBatch]: it waits for a value, and collects more for as long as linger.
func (s *Subscription[T]) RecvBatch(ctx context.Context, into []T, linger time.Duration) (int, error) {
	return s.ch.RecvBatch(ctx, into, linger)
}

// RecvCase returns a case that receives into *dst. If dst is nil, the value is discarded.
func (s *Subscription[T]) RecvCase(dst *T) coir.Case { return s.ch.RecvCase(dst) }

// All iterates over the values until the publisher closes, like [coir.Chan.All]. If it ends for another reason, the
// last pair has an error.
func (s *Subscription[T]) All(ctx context.Context) iter.Seq2[T, error] { return s.ch.All(ctx) }

// Lagged returns how many values the subscriber has missed because it was slow. For a watcher of a [Latest] these are
// the values that were replaced before it received them. After Close it also counts the values that were not received.
func (s *Subscription[T]) Lagged() uint64 { return s.ch.Stats().Dropped + s.missed.Load() }

// Close ends the subscription. Values that were not received are dropped. Publishers no longer wait for the subscriber.
// Close reports whether this call ended the subscription; after the publisher has closed, it reports false.
func (s *Subscription[T]) Close() bool {
	s.topic.remove(s)
	return s.ch.Abort(nil)
}
