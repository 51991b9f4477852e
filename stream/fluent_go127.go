//go:build go1.27

package stream

import (
	"context"
	"time"

	"github.com/coir-go/coir"
)

// From Go 1.27 on, methods may have type parameters, so a pipeline can be written as a chain of calls. Each method
// calls the function of the same name. Stages whose element type contains T, such as [Batch], cannot be methods: the
// compiler would have to instantiate Stream[[]T] for each Stream[T], without end.

// Map is the function [Map].
func (s Stream[T]) Map[U any](f func(T) U) Stream[U] { return Map(s, f) }

// MapErr is the function [MapErr].
func (s Stream[T]) MapErr[U any](f func(ctx context.Context, v T) (U, error)) Stream[U] { return MapErr(s, f) }

// Filter is the function [Filter].
func (s Stream[T]) Filter(keep func(T) bool) Stream[T] { return Filter(s, keep) }

// FlatMap is the function [FlatMap].
func (s Stream[T]) FlatMap[U any](f func(T) Stream[U]) Stream[U] { return FlatMap(s, f) }

// Scan is the function [Scan].
func (s Stream[T]) Scan[A any](zero A, f func(acc A, v T) A) Stream[A] { return Scan(s, zero, f) }

// Enumerate is the function [Enumerate].
func (s Stream[T]) Enumerate[U any](f func(i int, v T) U) Stream[U] { return Enumerate(s, f) }

// Take is the function [Take].
func (s Stream[T]) Take(n int) Stream[T] { return Take(s, n) }

// Skip is the function [Skip].
func (s Stream[T]) Skip(n int) Stream[T] { return Skip(s, n) }

// TakeWhile is the function [TakeWhile].
func (s Stream[T]) TakeWhile(keep func(T) bool) Stream[T] { return TakeWhile(s, keep) }

// Buffer is the function [Buffer].
func (s Stream[T]) Buffer(capacity int, opts ...coir.ChanOption) Stream[T] { return Buffer(s, capacity, opts...) }

// Throttle is the function [Throttle].
func (s Stream[T]) Throttle(period time.Duration, burst int) Stream[T] { return Throttle(s, period, burst) }

// Debounce is the function [Debounce].
func (s Stream[T]) Debounce(quiet time.Duration) Stream[T] { return Debounce(s, quiet) }

// Sample is the function [Sample].
func (s Stream[T]) Sample(period time.Duration) Stream[T] { return Sample(s, period) }

// Latch is the function [Latch].
func (s Stream[T]) Latch() Stream[T] { return Latch(s) }

// Timeout is the function [Timeout].
func (s Stream[T]) Timeout(limit time.Duration) Stream[T] { return Timeout(s, limit) }

// Until is the function [Until].
func (s Stream[T]) Until(ctx context.Context) Stream[T] { return Until(ctx, s) }

// Zip is the function [Zip].
func (s Stream[T]) Zip[B, R any](b Stream[B], f func(T, B) R) Stream[R] { return Zip(s, b, f) }

// CombineLatest is the function [CombineLatest].
func (s Stream[T]) CombineLatest[B, R any](b Stream[B], f func(T, B) R) Stream[R] { return CombineLatest(s, b, f) }

// Catch is the function [Catch].
func (s Stream[T]) Catch(f func(err error) (Stream[T], error)) Stream[T] { return Catch(s, f) }

// Retry is the function [Retry].
func (s Stream[T]) Retry(times int, first, most time.Duration) Stream[T] { return Retry(s, times, first, most) }

// Parallel is the function [Parallel].
func (s Stream[T]) Parallel[R any](n int, f func(ctx context.Context, v T) (R, error)) Stream[R] {
	return Parallel(s, n, f)
}

// ParallelUnordered is the function [ParallelUnordered].
func (s Stream[T]) ParallelUnordered[R any](n int, f func(ctx context.Context, v T) (R, error)) Stream[R] {
	return ParallelUnordered(s, n, f)
}

// ParallelPerKey is the function [ParallelPerKey].
func (s Stream[T]) ParallelPerKey[K comparable, R any](
	n int, key func(T) K, f func(ctx context.Context, v T) (R, error),
) Stream[R] {
	return ParallelPerKey(s, n, key, f)
}

// GroupBy is the function [GroupBy].
func (s Stream[T]) GroupBy[K comparable, R any](
	bound int, key func(T) K, f func(ctx context.Context, key K, group Stream[T]) (R, error),
) Stream[R] {
	return GroupBy(s, bound, key, f)
}

// Stage is the function [Stage].
func (s Stream[T]) Stage[R any](
	f func(ctx context.Context, in Stream[T], emit func(ctx context.Context, v R) error) error,
) Stream[R] {
	return Stage(s, f)
}

// Monitor is the function [Monitor].
func (s Stream[T]) Monitor(m *Meter) Stream[T] { return Monitor(s, m) }

// ForEach is the function [ForEach].
func (s Stream[T]) ForEach(ctx context.Context, f func(ctx context.Context, v T) error) error {
	return ForEach(ctx, s, f)
}

// Reduce is the function [Reduce].
func (s Stream[T]) Reduce[A any](ctx context.Context, zero A, f func(acc A, v T) A) (A, error) {
	return Reduce(ctx, s, zero, f)
}

// Count is the function [Count].
func (s Stream[T]) Count(ctx context.Context) (int, error) { return Count(ctx, s) }

// ToSlice is the function [ToSlice].
func (s Stream[T]) ToSlice(ctx context.Context) ([]T, error) { return ToSlice(ctx, s) }

// First is the function [First].
func (s Stream[T]) First(ctx context.Context) (T, error) { return First(ctx, s) }

// To is the function [To].
func (s Stream[T]) To(ctx context.Context, out Sender[T]) error { return To(ctx, s, out) }
