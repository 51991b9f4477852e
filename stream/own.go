package stream

import (
	"cmp"
	"context"

	"github.com/coir-go/coir"
)

// Stage is a stage of your own: f gets the stream, and emit passes on a result. f runs in a fiber. It may start more
// fibers, in a nursery of its own ([coir.Run]) or as the consumers of a [FanOut] or [Tee]; they may call emit at the
// same time. emit waits until the stage behind takes the result, and fails when no more results are wanted.
//
// When f returns nil, the stream ends. When f returns an error, the stream fails with it, after all results for which
// emit has returned nil. If s fails, f gets the error from the sink that it calls: it should return that error, or the
// stream ends as if s had not failed. When the consumer stops or the context ends, the context of f ends, and Stage
// waits until f has returned. After that emit returns an error that is [coir.ErrClosed].
//
//	            a---b---c-|
//	Stage(f)    -a0a1-b0b1-c0c1-|   f emits two results for each element
func Stage[T, R any](
	s Stream[T], f func(ctx context.Context, in Stream[T], emit func(ctx context.Context, v R) error) error,
) Stream[R] {
	p := apart("a fiber that runs the function, "+describe(0), "Stage", s.plan)
	return boundary(p, func(ctx context.Context, n *home, d *demand, push func([]R) bool) error {
		name := n.called(cmp.Or(s.plan.loop(), "stage"))
		out := outlet[R](n.of("results"), 0)
		defer out.Abort(nil) // ends emit if its context does not
		spawn(n, name, func(ctx context.Context) error {
			return cmp.Or(f(ctx, s, out.Send), coir.Ended(ctx)) // f may have ignored the error of a cancel
		}, func(err error) {
			out.failed = err
			out.Close()
		})
		return out.pass(ctx, d, push)
	})
}
