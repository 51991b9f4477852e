package stream

import (
	"cmp"
	"context"
	"sync/atomic"

	"github.com/coir-go/coir"
)

// Merge passes on the elements of all streams as they come. Each stream runs in a fiber of its own, one element ahead.
// The elements of one stream keep their order, and streams that have elements take turns. Merge ends when all streams
// have ended. The first error ends it, after the elements that came before the error.
//
//	         a-----b-c-|
//	         ---1-2------3-|
//	Merge    a--1-2b-c---3-|
func Merge[T any](streams ...Stream[T]) Stream[T] {
	p := apart(describe(0), "Merge", plans(streams)...)
	return boundary(p, func(ctx context.Context, n *home, d *demand, push func([]T) bool) error {
		// All streams share one channel: waiting senders are in a queue, which is a fair order.
		in := &inlet[T]{Chan: coir.NewChan[T](0, coir.WithName(n.called("merge")))}
		if len(streams) == 0 {
			return coir.Ended(ctx)
		}
		var left, failed atomic.Int64
		left.Store(int64(len(streams)))
		for _, s := range streams {
			spawn(n, inputName(s.plan, n.called("merge")), func(ctx context.Context) error {
				return sendAll(ctx, s, 1, in.Chan)
			}, func(err error) {
				if err != nil && failed.Add(1) == 1 {
					in.failed = err
					in.Close()
				}
				if left.Add(-1) == 0 {
					in.Close()
				}
			})
		}
		return in.pass(ctx, d, push)
	})
}

func plans[T any](streams []Stream[T]) []*plan {
	all := make([]*plan, len(streams))
	for i, s := range streams {
		all[i] = s.plan
	}
	return all
}

// MergePriority is like [Merge], but earlier streams have priority: if several streams have an element when the
// consumer asks, it gets the element of the first. A stream that always has an element starves the streams after it.
//
//	                 -----a-b-|
//	                 1-2-3-4-5-|
//	MergePriority    1-2--a-b345|   a slow consumer
func MergePriority[T any](streams ...Stream[T]) Stream[T] {
	p := apart(describe(0), "MergePriority", plans(streams)...)
	return boundary(p, func(ctx context.Context, n *home, _ *demand, push func([]T) bool) error {
		var (
			ins   = make([]*inlet[T], len(streams))
			cases = make([]coir.Case, len(streams))
			buf   [1]T
		)
		for i, s := range streams {
			ins[i] = open(n, n.called("merge by priority"), s, 1, 0)
			cases[i] = ins[i].RecvCase(&buf[0])
		}
		for left := len(streams); left > 0; {
			i, err := coir.SelectPriority(ctx, cases...)
			switch {
			case i < 0:
				return err
			case err == nil:
				if !push(buf[:]) {
					return nil
				}
			case ins[i].end(err) != nil:
				if !passOffered(ins, push) {
					return nil
				}
				return ins[i].end(err)
			default:
				cases[i] = coir.Case{}
				left--
			}
		}
		return coir.Ended(ctx)
	})
}

// passOffered passes the elements that streams have ready. It reports whether the consumer wants more.
func passOffered[T any](ins []*inlet[T], push func([]T) bool) bool {
	for _, in := range ins {
		if v, err := in.TryRecv(); err == nil && !push([]T{v}) {
			return false
		}
	}
	return true
}

// Zip combines the first elements of both streams, then the second elements, and so on. It ends with the shorter
// stream. The first stream stays in its loop; the second runs in a fiber of its own, one element ahead. So if the
// second ends or fails earlier, Zip notices it at the next element of the first.
//
//	       a-b-----c-|
//	       1---2-3---4-|
//	Zip    a1--b2--c3|
func Zip[A, B, R any](a Stream[A], b Stream[B], f func(A, B) R) Stream[R] {
	p := apart("the first in the loop, the second by a "+describe(0), "Zip", a.plan, b.plan)
	return boundary(p, func(ctx context.Context, n *home, _ *demand, push func([]R) bool) error {
		in := open(n, n.called("zip"), b, 1, 0)
		var (
			failed error
			buf    [1]R
		)
		err := a.each(ctx, func(v A) bool {
			w, err := in.Recv(ctx)
			if err != nil {
				failed = in.end(err)
				return false
			}
			buf[0] = f(v, w)
			return push(buf[:])
		})
		return cmp.Or(failed, err)
	})
}

// CombineLatest waits until both streams have had an element. It combines their newest elements then, and each time one
// of them has a new one. It ends when both have ended. Each stream runs in a fiber of its own, one element ahead.
//
//	                 a-----b-----|
//	                 --1-2-----3-|
//	CombineLatest    --a1a2b2--b3|
func CombineLatest[A, B, R any](a Stream[A], b Stream[B], f func(A, B) R) Stream[R] {
	p := apart(describe(0), "CombineLatest", a.plan, b.plan)
	return boundary(p, func(ctx context.Context, n *home, _ *demand, push func([]R) bool) error {
		var (
			name       = n.called("combine")
			ina, inb   = open(n, name+" (first)", a, 1, 0), open(n, name+" (second)", b, 1, 0)
			va         A
			vb         B
			nexta      = ina.RecvCase(&va)
			nextb      = inb.RecvCase(&vb)
			hasa, hasb bool
			buf        [1]R
		)
		for left := 2; left > 0; {
			i, err := coir.Select(ctx, nexta, nextb)
			switch {
			case i < 0:
				return err
			case err == nil:
				hasa, hasb = hasa || i == 0, hasb || i == 1
				if hasa && hasb {
					buf[0] = f(va, vb)
					if !push(buf[:]) {
						return nil
					}
				}
				continue
			case i == 0:
				err, nexta = ina.end(err), coir.Case{}
			default:
				err, nextb = inb.end(err), coir.Case{}
			}
			if err != nil {
				return err
			}
			left--
		}
		return coir.Ended(ctx)
	})
}

// Catch calls f if s fails, and continues with the stream that f returns. If f returns an error, the stream fails with
// that error. A cancel of the context is not a failure of the stream: Catch then returns the error of the context,
// without calling f.
//
//	         a-b-X
//	Catch    a-b-c-d-|   f returns c-d-|
func Catch[T any](s Stream[T], f func(err error) (Stream[T], error)) Stream[T] {
	return stage(fused(s.plan, "Catch"), func(ctx context.Context, d *demand, push func([]T) bool) error {
		err := s.start(ctx, d, push)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return cutShort(ctx, err)
		}
		next, err := f(err)
		if err != nil {
			return err
		}
		return next.start(ctx, d, push)
	})
}
