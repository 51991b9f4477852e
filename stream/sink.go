package stream

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"

	"github.com/coir-go/coir"
)

// ForEach runs the stream and calls f with each element. The first error of f ends the stream. ForEach returns the
// error of f or of the stream, when all stages have ended.
func ForEach[T any](ctx context.Context, s Stream[T], f func(ctx context.Context, v T) error) error {
	if err := coir.Ended(ctx); err != nil {
		return err
	}
	return s.pass(ctx, func(v T) error { return f(ctx, v) })
}

// Reduce runs the stream and combines its elements: f(f(f(zero, a), b), c). If the stream fails, it returns the error
// and the result so far.
func Reduce[T, A any](ctx context.Context, s Stream[T], zero A, f func(acc A, v T) A) (A, error) {
	acc := zero
	err := s.sink(ctx, &demand{want: maxChunk}, func(vs []T) bool {
		acc = reduceFrom(acc, vs, f)
		return true
	})
	return acc, err
}

// Count runs the stream and returns the number of its elements. If the stream fails, it returns the error and the
// number so far.
func Count[T any](ctx context.Context, s Stream[T]) (int, error) {
	n := 0
	err := s.sink(ctx, &demand{want: maxChunk}, func(vs []T) bool {
		n += len(vs)
		return true
	})
	return n, err
}

// ToSlice runs the stream and returns its elements. If the stream fails, it returns the error and the elements before
// it.
func ToSlice[T any](ctx context.Context, s Stream[T]) ([]T, error) {
	var all []T
	err := s.sink(ctx, &demand{want: maxChunk}, func(vs []T) bool {
		all = append(all, vs...)
		return true
	})
	return all, err
}

// ErrEmpty is returned by [First] if the stream has no element.
var ErrEmpty = errors.New("stream: the stream has no element")

// First runs the stream until its first element, and returns it.
func First[T any](ctx context.Context, s Stream[T]) (T, error) {
	var first T
	found := false
	err := s.sinkEach(ctx, func(v T) bool {
		first, found = v, true
		return false
	})
	if !found && err == nil {
		err = ErrEmpty
	}
	return first, err
}

// Sender is the destination of [To]: a [coir.Chan] or a [coir.Writer].
type Sender[T any] interface {
	Send(ctx context.Context, v T) error
	Close() bool
}

// To runs the stream, sends its elements to a channel, and closes the channel when the stream has ended. If out is a
// [coir.Writer] and its last Reader is closed, To ends the stream, even while it waits for input, and returns nil. If
// out is a channel that has been closed or aborted, To notices that at the next send, and returns nil as well.
//
// The receiver of the channel does not see whether the stream has failed: only To returns the error.
func To[T any](ctx context.Context, s Stream[T], out Sender[T]) error {
	// Spec: ST-02 (a combinator ends with its input)
	// Spec: ST-03 (a combinator ends with its reader)
	defer out.Close()
	send := func(ctx context.Context) error {
		var failed error
		err := s.sinkEach(ctx, func(v T) bool {
			failed = out.Send(ctx, v)
			return failed == nil
		})
		if errors.Is(failed, coir.ErrClosed) { // the receiver wants no more elements
			return nil
		}
		return cmp.Or(failed, err)
	}
	pipe, ok := out.(interface{ GoneCase() coir.Case })
	if !ok {
		return send(ctx)
	}
	var gone atomic.Bool
	return within(ctx, &plan{}, func(ctx context.Context, n *home) error {
		n.Go("watch reader", func(ctx context.Context) error {
			if i, _ := coir.Select(ctx, pipe.GoneCase()); i == 0 {
				gone.Store(true)
				n.Cancel(nil)
			}
			return nil
		})
		err := send(ctx)
		if gone.Load() { // an error of a stream that To has cancelled does not matter
			return nil
		}
		return err
	})
}
