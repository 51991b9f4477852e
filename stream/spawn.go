package stream

import (
	"context"

	"github.com/coir-go/coir"
)

// The functions in this file run a stream, or stages, in a fiber of a nursery, with pipes at the ends. The fiber ends
// when its input is closed, or when the last Reader of its output is closed. An error of the stream is the error of the
// fiber, and so cancels the nursery.

// Downstream starts a fiber of n that runs s, and returns the end of a pipe to receive the elements from. The pipe is
// closed when the stream ends. Close the Reader to end the stream. A function of the stream that calls runtime.Goexit
// ends only the fiber, and the pipe is closed as if the stream had ended.
//
//	lines := stream.Downstream(n, "lines", stream.Lines(file), 16)
func Downstream[T any](n *coir.Nursery, name string, s Stream[T], capacity int) *coir.Reader[T] {
	// Spec: ST-09 (a combinator runs here or in its own fiber)
	w, r := coir.Pipe[T](held[T](capacity), coir.WithName(name))
	n.Go(name, func(ctx context.Context) error { return To(ctx, s, w) }, coir.WithSpawnSite(maker()))
	return r
}

// Upstream starts a fiber of n that receives from a pipe, passes the elements through stages, sends the results to out,
// and closes out. It returns the Writer of the pipe. Close it to end the stream. If out is closed, sends fail with
// [coir.ErrClosed].
//
//	words := stream.Upstream(n, "upper", out, 0, func(s stream.Stream[string]) stream.Stream[string] {
//		return stream.Map(s, strings.ToUpper)
//	})
func Upstream[T, U any](
	n *coir.Nursery, name string, out Sender[U], capacity int, stages func(Stream[T]) Stream[U],
) *coir.Writer[T] {
	w, r := coir.Pipe[T](held[T](capacity), coir.WithName(name))
	n.Go(name, func(ctx context.Context) error {
		defer r.Close()
		// To calls stages, so that it closes out even if stages does not return.
		return To(ctx, source(name, func(ctx context.Context, d *demand, push func([]U) bool) error {
			return stages(From(r)).start(ctx, d, push)
		}), out)
	}, coir.WithSpawnSite(maker()))
	return w
}

// TwoEnded starts a fiber of n that passes elements through stages, and returns both ends: one to send to, and one to
// receive from. The fiber ends when either end is closed.
//
//	in, out := stream.TwoEnded(n, "upper", 0, upper)
func TwoEnded[T, U any](
	n *coir.Nursery, name string, capacity int, stages func(Stream[T]) Stream[U],
) (*coir.Writer[T], *coir.Reader[U]) {
	w, r := coir.Pipe[U](held[U](capacity), coir.WithName(name))
	return Upstream(n, name, w, capacity, stages), r
}
