package stream

import (
	"cmp"
	"context"
	"iter"

	"github.com/coir-go/coir"
)

// A stream is implemented as a function that runs it. The function calls push with the elements, and returns when there
// are no more, when push has returned false, or with an error. A stage calls the function of its input with its own
// push. So a sequence of stages is one loop, in the source, and between two stages there is only a call.
//
// A source makes the next element after push has returned, so the consumer sets the pace. A call for each element and
// stage would cost more than the work of a small function, so push takes a chunk of elements. A consumer that wants one
// element at a time gets chunks of one: see demand.
//
// Rules that all stages keep:
//
//	R1 loan:   the slice given to push belongs to the caller of push. It is not changed, nor kept after push returns.
//	R2 demand: a chunk has at least one element, and at most demand.want, as it is when push is called.
//	R3 stop:   after push has returned false, push is not called again, and run returns nil.
//	R4 order:  an error is returned after push has got all elements that came before the error.
//	R5 join:   when run returns, or panics, every fiber that it has started has ended.
//
// Rejected design: pull iterators (func() (T, bool)). They cost as many calls, an iter.Seq as a source would need a
// coroutine switch for each element, and only Zip would be simpler.
type runner[T any] func(ctx context.Context, d *demand, push func([]T) bool) error

// demand says how many elements the consumer takes at once.
//
// It is 1 unless the consumer collects elements before it uses them: [Count], [Reduce], [ToSlice], and [Batch] up to
// the size of a batch. [Take] lowers it to the number that it still needs.
type demand struct {
	want int // the largest chunk for the next call of push; at least 1
}

// maxChunk is the largest number of elements in a chunk. It is large enough to make the cost of a call small.
const maxChunk = 256

func one() *demand { return &demand{want: 1} }

// Stream is a sequence of elements. When the stream runs, it produces them one by one, as the consumer asks for them.
// Then it ends, or fails with an error, which comes after all its elements.
//
// A Stream does nothing by itself and holds no resources. A sink such as [ForEach], or a loop over [Stream.All], runs
// it; each run starts over at the source. The zero Stream has no elements.
type Stream[T any] struct {
	run   runner[T]
	plan  *plan
	under func(p *plan) runner[T] // makes run for another name; nil if run does not depend on the name
}

// Named gives the last stage of the stream a name. The stage's fibers and channels have it: those of a [Parallel],
// which are called "worker" and "work" by default, are then "worker of price" and "work of price". A fiber that runs
// the input of a boundary has the name of the last of its stages that has one, in place of "input of" the boundary; so
// have the channels and consumers of a [Tee], [FanOut] or [Partition]. The fiber of a [Stage] has the stage's name, or
// that of its input. Snapshots, the reports of package sim, the errors of waits and [Stream.Explain] show the name.
// Errors of your functions are not changed.
//
//	priced := stream.Parallel(orders, 8, price).Named("price")
func (s Stream[T]) Named(name string) Stream[T] {
	p := plan{stage: "Empty"}
	if s.plan != nil {
		p = *s.plan
	}
	p.name = name
	s.plan = &p
	if s.under != nil {
		s.run = s.under(&p)
	}
	return s
}

// named returns the stream of a stage that uses the name in its plan.
func named[T any](p *plan, under func(p *plan) runner[T]) Stream[T] {
	return Stream[T]{run: under(p), plan: p, under: under}
}

// start runs the stream.
func (s Stream[T]) start(ctx context.Context, d *demand, push func([]T) bool) error {
	if s.run == nil {
		return coir.Ended(ctx)
	}
	return s.run(ctx, d, push)
}

// sink runs the stream for a sink, unless ctx has ended. A source checks ctx only after an element: without this check,
// a consumer that stops at its first element, or a stage that wants none, would not notice that ctx has ended.
func (s Stream[T]) sink(ctx context.Context, d *demand, push func([]T) bool) error {
	if err := coir.Ended(ctx); err != nil {
		return err
	}
	return s.start(ctx, d, push)
}

// sinkEach is sink with one element at a time.
func (s Stream[T]) sinkEach(ctx context.Context, push func(T) bool) error {
	return s.sink(ctx, one(), func(vs []T) bool { return push(vs[0]) })
}

// each runs the stream one element at a time.
func (s Stream[T]) each(ctx context.Context, push func(T) bool) error {
	return s.start(ctx, one(), func(vs []T) bool { return push(vs[0]) })
}

// pass runs the stream and calls f with each element, until f returns an error.
func (s Stream[T]) pass(ctx context.Context, f func(v T) error) error {
	var failed error
	err := s.each(ctx, func(v T) bool {
		failed = f(v)
		return failed == nil
	})
	return cmp.Or(failed, err)
}

// All returns an iterator that runs the stream and yields its elements. If the stream fails, the last pair is the zero
// value with the error:
//
//	for v, err := range s.All(ctx) {
//		if err != nil {
//			return err
//		}
//		...
//	}
//
// The loop asks for one element at a time. If the loop ends early, all stages end before the statement after the loop.
func (s Stream[T]) All(ctx context.Context) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		left := false
		err := s.sinkEach(ctx, func(v T) bool {
			left = !yield(v, nil)
			return !left
		})
		if err != nil && !left {
			var none T
			yield(none, err)
		}
	}
}

// room returns a slice of n elements that reuses buf.
func room[T any](buf []T, n int) []T {
	if cap(buf) < n {
		return make([]T, n, max(n, min(2*cap(buf), maxChunk)))
	}
	return buf[:n]
}

// pulse is called by a loop between chunks: it checks ctx, and yields from time to time.
type pulse struct{ passed int }

// beat returns an error if ctx has ended. It is called after a chunk of n elements.
func (p *pulse) beat(ctx context.Context, n int) error {
	if p.passed += n; p.passed >= 1024 {
		p.passed = 0
		return coir.Yield(ctx)
	}
	if ctx.Err() != nil { // cheaper than Ended
		return coir.Ended(ctx)
	}
	return nil
}
