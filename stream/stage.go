package stream

import (
	"cmp"
	"context"
	"fmt"
)

// The stages in this file are calls in the loop of their source.

// stage returns the stream of a stage.
func stage[T any](p *plan, run runner[T]) Stream[T] { return Stream[T]{run: run, plan: p} }

// Map calls f with each element.
//
//	                1-2-3-|
//	Map(x * 10)    10-20-30-|
func Map[T, U any](s Stream[T], f func(T) U) Stream[U] {
	return stage(fused(s.plan, "Map"), func(ctx context.Context, d *demand, push func([]U) bool) error {
		var buf []U
		return s.start(ctx, d, func(vs []T) bool {
			buf = room(buf, len(vs))
			mapInto(buf, vs, f)
			return push(buf)
		})
	})
}

// MapErr is like [Map], for a function that may wait, or fail. An error of f ends the stream, after the results before
// it.
//
//	                a-b-c-|
//	MapErr(fetch)   A-B-X     fetch(c) fails
func MapErr[T, U any](s Stream[T], f func(ctx context.Context, v T) (U, error)) Stream[U] {
	return stage(fused(s.plan, "MapErr"), func(ctx context.Context, d *demand, push func([]U) bool) error {
		var (
			failed error
			buf    [1]U
		)
		err := s.start(ctx, one(), func(vs []T) bool { // one element at a time, because f may take long
			if buf[0], failed = f(ctx, vs[0]); failed != nil {
				return false
			}
			return push(buf[:])
		})
		return cmp.Or(failed, err)
	})
}

// Filter passes on the elements for which keep returns true.
//
//	               1-2-3-4-|
//	Filter(even)   --2---4-|
func Filter[T any](s Stream[T], keep func(T) bool) Stream[T] {
	return stage(fused(s.plan, "Filter"), func(ctx context.Context, d *demand, push func([]T) bool) error {
		var buf []T
		return s.start(ctx, d, func(vs []T) bool {
			buf = room(buf, len(vs))
			n := filterInto(buf, vs, keep)
			return n == 0 || push(buf[:n])
		})
	})
}

// FlatMap runs the streams that f returns, one after the other, and passes on their elements. With [FromSlice] as f it
// turns a stream of slices into a stream of their elements.
//
//	               a-----b-----|
//	FlatMap(f)     a1-a2-b1-b2-|
func FlatMap[T, U any](s Stream[T], f func(T) Stream[U]) Stream[U] {
	return stage(fused(s.plan, "FlatMap"), func(ctx context.Context, d *demand, push func([]U) bool) error {
		var failed error
		on := true
		inner := func(us []U) bool {
			on = push(us)
			return on
		}
		err := s.each(ctx, func(v T) bool {
			failed = f(v).start(ctx, d, inner)
			return on && failed == nil
		})
		return cmp.Or(failed, err)
	})
}

// Scan passes on the intermediate result of [Reduce] after each element.
//
//	               1-2-3-|
//	Scan(0, +)     1-3-6-|
func Scan[T, A any](s Stream[T], zero A, f func(acc A, v T) A) Stream[A] {
	return stage(fused(s.plan, "Scan"), func(ctx context.Context, d *demand, push func([]A) bool) error {
		acc := zero
		return Map(s, func(v T) A {
			acc = f(acc, v)
			return acc
		}).start(ctx, d, push)
	})
}

// Enumerate calls f with each element and its number, counted from 0.
//
//	                       a--b--c--|
//	Enumerate(i + v)      0a-1b-2c-|
func Enumerate[T, U any](s Stream[T], f func(i int, v T) U) Stream[U] {
	return stage(fused(s.plan, "Enumerate"), func(ctx context.Context, d *demand, push func([]U) bool) error {
		i := -1
		return Map(s, func(v T) U {
			i++
			return f(i, v)
		}).start(ctx, d, push)
	})
}

// Take passes on the first n elements, and then ends the stream. It asks its input for no more than n elements.
//
//	          a-b-c-d-|
//	Take(2)   a-b|
func Take[T any](s Stream[T], n int) Stream[T] {
	if n < 0 {
		panic(fmt.Sprintf("stream: Take(%d): the number of elements must be 0 or more", n))
	}
	return stage(fused(s.plan, "Take(%d)", n), func(ctx context.Context, d *demand, push func([]T) bool) error {
		left := n
		if left == 0 {
			return nil
		}
		own := demand{want: min(d.want, left)}
		return s.start(ctx, &own, func(vs []T) bool {
			left -= len(vs)
			on := push(vs)
			own.want = min(d.want, left)
			return on && left > 0
		})
	})
}

// Skip passes on all elements except the first n.
//
//	          a-b-c-d-|
//	Skip(2)   ----c-d-|
func Skip[T any](s Stream[T], n int) Stream[T] {
	if n < 0 {
		panic(fmt.Sprintf("stream: Skip(%d): the number of elements must be 0 or more", n))
	}
	return stage(fused(s.plan, "Skip(%d)", n), func(ctx context.Context, d *demand, push func([]T) bool) error {
		left := n
		return s.start(ctx, d, func(vs []T) bool {
			drop := min(left, len(vs))
			left -= drop
			return drop == len(vs) || push(vs[drop:])
		})
	})
}

// TakeWhile passes on elements while keep returns true. The first other element ends the stream.
//
//	                   1-2-3-1-|
//	TakeWhile(< 3)     1-2|
func TakeWhile[T any](s Stream[T], keep func(T) bool) Stream[T] {
	return stage(fused(s.plan, "TakeWhile"), func(ctx context.Context, _ *demand, push func([]T) bool) error {
		return s.start(ctx, one(), func(vs []T) bool { return keep(vs[0]) && push(vs) })
	})
}

// Distinct passes on each element only the first time it comes. It remembers all elements.
//
//	             a-b-a-c-b-|
//	Distinct     a-b---c---|
func Distinct[T comparable](s Stream[T]) Stream[T] {
	return stage(fused(s.plan, "Distinct"), func(ctx context.Context, d *demand, push func([]T) bool) error {
		seen := make(map[T]struct{})
		return Filter(s, func(v T) bool {
			before := len(seen)
			seen[v] = struct{}{}
			return len(seen) > before
		}).start(ctx, d, push)
	})
}

// Compact drops elements that are equal to the previous element. It remembers one element.
//
//	            a-a-b-b-a-|
//	Compact     a---b---a-|
func Compact[T comparable](s Stream[T]) Stream[T] {
	return stage(fused(s.plan, "Compact"), func(ctx context.Context, d *demand, push func([]T) bool) error {
		var last T
		begun := false
		return Filter(s, func(v T) bool {
			if begun && v == last {
				return false
			}
			begun, last = true, v
			return true
		}).start(ctx, d, push)
	})
}

// Concat passes on the elements of all streams, one stream after the other.
//
//	          a-b-|
//	                c-d-|
//	Concat    a-b-c-d-|
func Concat[T any](streams ...Stream[T]) Stream[T] {
	p := apart("", "Concat", plans(streams)...)
	return stage(p, func(ctx context.Context, d *demand, push func([]T) bool) error {
		on := true
		for _, s := range streams {
			err := s.start(ctx, d, func(vs []T) bool {
				on = push(vs)
				return on
			})
			if err != nil || !on {
				return err
			}
		}
		return nil
	})
}
