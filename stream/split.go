package stream

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/coir-go/coir"
)

// The functions in this file pass one stream to several consumers. A consumer is a function that takes a stream, and
// the consumer has stopped when the function returns. If these functions returned streams instead, a stream that is
// never run would block the others forever.
//
// When the input ends or fails, each consumer gets the remaining elements, and then the end or the error. When a
// consumer returns nil, the others continue; when all have returned, the input is cancelled. When a consumer returns an
// error, all are cancelled.

// Consumer is a function that consumes elements of a stream: see [Tee], [FanOut] and [Partition]. It runs in a fiber of
// its own. It may return before the end of its stream.
type Consumer[T any] = func(ctx context.Context, s Stream[T]) error

// Tee runs the stream, and passes every element to every consumer. A consumer may be capacity elements behind; the
// slowest delays the others. When all consumers have returned, Tee returns the error of the stream, or the first error
// of a consumer.
//
//	Tee    a-b-c-|
//	       a-b-c-|   first consumer
//	       a-b-c-|   second consumer
func Tee[T any](ctx context.Context, s Stream[T], capacity int, consumers ...Consumer[T]) error {
	checkCapacity("Tee", capacity)
	name := checkConsumers("tee", s.plan, consumers)
	outs := make([]*inlet[T], len(consumers))
	for i := range outs {
		outs[i] = outlet[T](name, capacity)
	}
	return split(ctx, s, name, outs, consumers, func(ctx context.Context, v T) error {
		for _, o := range outs {
			if err := o.offer(ctx, v); err != nil {
				return err
			}
		}
		return nil
	})
}

// FanOut runs the stream, and passes each element to one of the consumers: the one that has waited longest. When all
// consumers have returned, FanOut returns the error of the stream, or the first error of a consumer.
//
//	FanOut    a-b-c-d-|
//	          a---c---|   first consumer
//	          --b---d-|   second consumer
func FanOut[T any](ctx context.Context, s Stream[T], consumers ...Consumer[T]) error {
	name := checkConsumers("fan-out", s.plan, consumers)
	all := outlet[T](name, 0)
	return split(ctx, s, name, []*inlet[T]{all}, consumers, all.offer)
}

// Partition runs the stream. For each element it calls which, and passes the element to the consumer with that number,
// or to none if the number is negative. A consumer may be capacity elements behind. Elements for a consumer that has
// returned are dropped. When all consumers have returned, Partition returns the error of the stream, or the first error
// of a consumer.
//
//	Partition(odd)    1-2-3-4-|
//	                  --2---4-|   consumer 0
//	                  1---3---|   consumer 1
func Partition[T any](
	ctx context.Context, s Stream[T], capacity int, which func(T) int, consumers ...Consumer[T],
) error {
	checkCapacity("Partition", capacity)
	name := checkConsumers("partition", s.plan, consumers)
	outs := make([]*inlet[T], len(consumers))
	for i := range outs {
		outs[i] = outlet[T](name, capacity)
	}
	return split(ctx, s, name, outs, consumers, func(ctx context.Context, v T) error {
		i := which(v)
		if i < 0 {
			return nil
		}
		if i >= len(outs) {
			panic(fmt.Sprintf("stream: Partition: consumer %d of %d", i, len(outs)))
		}
		return outs[i].offer(ctx, v)
	})
}

// checkConsumers panics if there are no consumers. It returns the name of the fibers and channels of a function that
// passes the stream of plan p to consumers.
func checkConsumers[T any](function string, p *plan, consumers []Consumer[T]) string {
	if len(consumers) == 0 {
		panic("stream: " + function + ": a stream needs at least one consumer")
	}
	return cmp.Or(p.loop(), function)
}

// outlet returns a channel to a consumer. Its sender sets failed and closes the channel.
func outlet[T any](name string, capacity int) *inlet[T] {
	return &inlet[T]{Chan: coir.NewChan[T](held[T](capacity), coir.WithName(name))}
}

// offer sends v. If the consumer has left, v is dropped.
func (in *inlet[T]) offer(ctx context.Context, v T) error {
	if err := in.Send(ctx, v); !errors.Is(err, coir.ErrClosed) {
		return err
	}
	return nil
}

// stream returns a stream of the elements received from the inlet.
func (in *inlet[T]) stream(name string) Stream[T] { return source(name, in.pass) }

// split runs s in the caller's fiber, passes its elements to route, and runs the consumers, each with the stream of its
// outlet. There is one outlet for each consumer, or one for all of them.
func split[T any](
	parent context.Context, s Stream[T], name string, outs []*inlet[T], consumers []Consumer[T],
	route func(context.Context, T) error,
) error {
	if err := coir.Ended(parent); err != nil {
		return err
	}
	var (
		first atomic.Pointer[error] // the error that split returns
		left  atomic.Int64
		all   = coir.NewEvent(coir.WithName("end of all consumers"))
	)
	left.Store(int64(len(consumers)))
	err := within(parent, &plan{at: maker()}, func(ctx context.Context, n *home) error {
		for i, consume := range consumers {
			out := outs[i%len(outs)]
			spawn(n, name+" consumer", func(ctx context.Context) error {
				return consume(ctx, out.stream(name))
			}, func(err error) {
				if err != nil && first.CompareAndSwap(nil, &err) {
					n.Cancel(nil)
				}
				if len(outs) > 1 {
					out.Abort(nil)
				}
				if left.Add(-1) == 0 {
					all.Set()
					n.Cancel(nil)
				}
			})
		}
		feed(ctx, s, route, func(err error) {
			if err != nil && (ctx.Err() == nil || parent.Err() != nil) { // not caused by split's own cancellation
				first.CompareAndSwap(nil, &err)
			}
			for _, out := range outs {
				out.failed = err
				out.Close()
			}
		})
		_ = all.Wait(ctx)
		return nil
	})
	if e := first.Load(); e != nil {
		return *e
	}
	return err
}

// feed runs s, passes its elements to route, and calls end with the error. If the stream or route panics or calls
// Goexit, the error is coir.ErrGoexit.
func feed[T any](ctx context.Context, s Stream[T], route func(context.Context, T) error, end func(error)) {
	err := coir.ErrGoexit
	defer func() { end(err) }()
	err = s.pass(ctx, func(v T) error { return route(ctx, v) })
}

// GroupBy divides the stream into groups by key, and calls f for each group, in a fiber of its own, with the stream of
// its elements. The result of f is an element of the resulting stream.
//
// At most bound groups are open, so memory is bounded for any number of keys. When another key comes, GroupBy closes
// the group that has gone longest without an element: its stream ends, and f returns its result. If the key of a closed
// group comes again, GroupBy opens a new group. Results come in the order in which groups end. If f returns before the
// stream of its group ends, the other elements of the group are dropped. Only f may use the stream of a group: after f
// has returned, it is empty. A key that is not equal to itself, such as NaN, opens a new group each time.
//
// If the input fails, so does the stream of each open group; the resulting stream fails when all groups have ended. An
// error of f ends the stream.
//
//	                        a1-b1-a2-|
//	GroupBy(10, key, sum)   ---------a3-b1|
func GroupBy[T any, K comparable, R any](
	s Stream[T], bound int, key func(T) K, f func(ctx context.Context, key K, group Stream[T]) (R, error),
) Stream[R] {
	if bound < 1 {
		panic(fmt.Sprintf("stream: GroupBy(%d): at least one group must be able to be open", bound))
	}
	p := apart(fmt.Sprintf("at most %d groups, each with a fiber", bound), "GroupBy", s.plan)
	return boundary(p, func(ctx context.Context, n *home, d *demand, push func([]R) bool) error {
		g := &grouping[T, K, R]{
			key: key, f: f, nursery: n, open: make(map[K]*list.Element),
			places: coir.NewChan[struct{}](bound, coir.WithName(n.of("groups"))),
			out:    outlet[R]("results of "+n.called("groups"), 0),
		}
		g.left.Store(1)
		spawn(n, inputName(s.plan, n.called("groups")), func(ctx context.Context) error { return g.route(ctx, s) }, g.inputEnded)
		return g.out.pass(ctx, d, push)
	})
}

// grouping is the state of a running GroupBy. The fiber of the input owns open, recent and the sending side of groups.
type grouping[T any, K comparable, R any] struct {
	key     func(T) K
	f       func(context.Context, K, Stream[T]) (R, error)
	nursery *home
	open    map[K]*list.Element  // in recent
	recent  list.List            // of *group[K, T]; the group with the newest element is first
	places  *coir.Chan[struct{}] // has one value for each running fiber of a group
	out     *inlet[R]
	left    atomic.Int64 // fibers that may still send to out: the input and the groups
	failed  atomic.Bool
}

type group[K comparable, T any] struct {
	key K
	in  *inlet[T]
}

// route passes each element to its group. When it ends, it closes the open groups.
func (g *grouping[T, K, R]) route(ctx context.Context, s Stream[T]) error {
	var failed error
	feed(ctx, s, func(ctx context.Context, v T) error {
		to, err := g.groupOf(ctx, g.key(v))
		if err != nil {
			return err
		}
		return to.in.offer(ctx, v)
	}, func(err error) {
		failed = err
		g.closeAll(err)
	})
	return failed
}

// closeAll closes the open groups, with the error of the input.
func (g *grouping[T, K, R]) closeAll(err error) {
	if err != nil && g.failed.CompareAndSwap(false, true) { // set before the groups get the error below
		g.out.failed = err
	}
	for e := g.recent.Back(); e != nil; e = e.Prev() { // the least recently used first
		in := e.Value.(*group[K, T]).in
		in.failed = err
		in.Close()
	}
}

// groupOf returns the group of a key. If there is none, it opens one.
func (g *grouping[T, K, R]) groupOf(ctx context.Context, key K) (*group[K, T], error) {
	if e, ok := g.open[key]; ok {
		g.recent.MoveToFront(e)
		return e.Value.(*group[K, T]), nil
	}
	if g.recent.Len() == g.places.Cap() { // not len(open): see findable
		e := g.recent.Back()
		oldest := g.recent.Remove(e).(*group[K, T])
		delete(g.open, oldest.key)
		oldest.in.Close()
	}
	if err := g.places.Send(ctx, struct{}{}); err != nil { // waits until a fiber of a group has ended
		return nil, err
	}
	to := &group[K, T]{key: key, in: outlet[T](g.nursery.of("group"), 1)}
	e := g.recent.PushFront(to)
	if findable(key) {
		g.open[key] = e
	}
	g.left.Add(1)
	spawn(g.nursery, to.in.Name(), func(ctx context.Context) error {
		defer func() { _, _ = g.places.TryRecv() }()
		defer to.in.Abort(nil)
		r, err := g.f(ctx, key, to.in.stream(to.in.Name()))
		if err != nil {
			return err
		}
		return g.out.offer(ctx, r)
	}, g.groupEnded)
	return to, nil
}

// findable reports whether a map can find the key again. A NaN, or a key that contains one, is not equal to itself: a
// map could neither find nor delete it, and would grow forever.
func findable[K comparable](key K) bool {
	same := key
	return key == same
}

// inputEnded is called when the input has ended. If it has failed, the groups end too, and their results come before
// the error.
func (g *grouping[T, K, R]) inputEnded(err error) {
	if err != nil && g.failed.CompareAndSwap(false, true) {
		g.out.failed = err
	}
	if g.left.Add(-1) == 0 {
		g.out.Close()
	}
}

// groupEnded is called when a group has ended. An error ends the stream immediately, unless the input has failed: then
// the group's error comes from the input.
func (g *grouping[T, K, R]) groupEnded(err error) {
	if err != nil && g.failed.CompareAndSwap(false, true) {
		g.out.failed = err
		g.out.Close()
	}
	if g.left.Add(-1) == 0 {
		g.out.Close()
	}
}
