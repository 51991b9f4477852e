package coir

import (
	"context"
	"errors"
	"iter"
	"math"

	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/xatomic"
)

// Race calls all the functions, each in a fiber, and returns the value of the first that succeeds. It cancels the
// others, and returns when they have ended. Use it to send a request to several servers, or again after a delay if
// there is no answer. If all functions fail, Race returns their errors, joined, with the first failure first.
//
//	body, err := coir.Race(ctx, fetchFrom(mirrorA), fetchFrom(mirrorB))
//
// A value that comes too late is dropped. If such a value must be closed, the function should check its context before
// it returns the value. If a function panics, Race panics with a [*PanicError] when the others have ended.
//
//go:noinline
func Race[T any](ctx context.Context, fns ...func(ctx context.Context) (T, error)) (T, error) {
	var (
		first T
		won   xatomic.Bool
	)
	if len(fns) == 0 {
		return first, errors.New("coir: Race has no functions to call")
	}
	for _, fn := range fns {
		if fn == nil {
			panic(noFunction("Race"))
		}
	}
	pc := coro.CallerPC()
	err := Run(ctx, func(_ context.Context, n *Nursery) error {
		for i, fn := range fns {
			n.Go("race", func(ctx context.Context) error {
				v, err := fn(ctx)
				if err == nil && won.CompareAndSwap(false, true) {
					first = v
					n.Cancel(nil)
				}
				return err
			}, FiberOption{pc: pc, index: numbered(i), role: isolated})
		}
		return nil
	})
	if won.Load() {
		return first, nil
	}
	if err == nil {
		err = ErrGoexit // each of them called Goexit
	}
	return first, err
}

// ForEach calls fn with each item, at most limit calls at a time, each in a fiber of its own, and returns when all
// calls have ended. It takes an item from the sequence only when there is room for another call, so the sequence may be
// infinite. The first error cancels the other calls, and ForEach takes no more items. It returns the errors of all
// calls, joined, with the first failure first. If fn panics, ForEach panics with a [*PanicError]. If fn calls
// runtime.Goexit, the other calls continue, and ForEach returns [ErrGoexit].
//
//	err := coir.ForEach(ctx, 8, slices.Values(files), upload)
//
// The options are those of [Nursery.Go], such as [WithGoroutine] if fn blocks outside of coir.
//
//go:noinline
func ForEach[T any](ctx context.Context, limit int, items iter.Seq[T],
	fn func(ctx context.Context, item T) error, opts ...FiberOption,
) error {
	// items is an iterator because slices, maps, channels and files can all be iterated over. limit comes before it,
	// where it is easy to see, and has no default, because the right number depends on what fn uses.
	set := FiberOption{pc: coro.CallerPC()}
	set.add(opts)
	if fn == nil {
		panic(noFunction("ForEach"))
	}
	return forEach(ctx, "each", limit, items, set, func(item T) func(context.Context) error {
		return func(ctx context.Context) error { return fn(ctx, item) }
	})
}

// Map is like [ForEach], but returns the results of fn, in the order of the items. If there is an error, it returns no
// results.
//
//	sizes, err := coir.Map(ctx, 8, slices.Values(files), size)
//
//go:noinline
func Map[T, R any](ctx context.Context, limit int, items iter.Seq[T],
	fn func(ctx context.Context, item T) (R, error), opts ...FiberOption,
) ([]R, error) {
	set := FiberOption{pc: coro.CallerPC()}
	set.add(opts)
	if fn == nil {
		panic(noFunction("Map"))
	}
	var values []*R // pointers, because the slice grows while calls write
	err := forEach(ctx, "map", limit, items, set, func(item T) func(context.Context) error {
		to := new(R)
		values = append(values, to)
		return func(ctx context.Context) error {
			v, err := fn(ctx, item)
			*to = v
			return err
		}
	})
	if err != nil {
		return nil, err
	}
	all := make([]R, len(values))
	for i, v := range values {
		all[i] = *v
	}
	return all, nil
}

// forEach runs a child for each item, at most limit at a time. prepare returns the child's function; it is called for
// one item at a time.
//
// forEach starts a child for each item, rather than limit workers, because the name of a fiber then identifies the
// item, a panic or Goexit needs no special handling, and starting a fiber costs about as much as handing an item to a
// worker.
func forEach[T any](ctx context.Context, name string, limit int, items iter.Seq[T], set FiberOption,
	prepare func(T) func(context.Context) error,
) error {
	if limit < 1 {
		panic("coir: a limit of " + number(limit) + " lets nothing run: write 1 or more, or coir.Unbounded")
	}
	if items == nil {
		panic("coir: a nil iter.Seq has no items to range over")
	}
	places, unwound := NewChan[struct{}](limit), NewChan[*Fiber](Unbounded) // at most limit are in it
	var returned xatomic.Int64
	begun := int64(0)
	alone := set.role&isolated != 0
	err := Run(ctx, func(ctx context.Context, n *Nursery) error {
		if err := room(ctx, places, unwound); err != nil { // fn must be called with each item that is taken
			return err
		}
		for item := range items {
			fn := prepare(item)
			set.index = numbered(int(begun))
			begun++
			n.Go(name, func(ctx context.Context) error {
				ended, ok := false, alone
				defer func() {
					if ok {
						_, _ = places.TryRecv() // receives the value sent for this item or for another
					} else if !ended {
						_ = unwound.TrySend(Self(ctx))
					}
				}()
				err := fn(ctx)
				ended, ok = true, alone || err == nil // if fn failed, no item may be taken before the cancellation
				returned.Add(1)
				return err
			}, set)
			if err := room(ctx, places, unwound); err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && returned.Load() < begun {
		return ErrGoexit
	}
	return err
}

// room waits until there is room for another call. The fiber of a call that did not return has panicked or exited. A
// panic cancels ctx when the fiber has ended; after an exit, the next call gets the place.
func room(ctx context.Context, places *Chan[struct{}], unwound *Chan[*Fiber]) error {
	var f *Fiber
	i, err := Select(ctx, places.SendCase(struct{}{}), unwound.RecvCase(&f))
	if i == 1 {
		if err := f.Wait(ctx); err != ErrGoexit { //nolint:errorlint // the error of the fiber itself
			return err
		}
	}
	return err
}

// numbered returns the index field of a FiberOption for number i, or 0 if i is too large.
func numbered(i int) int32 {
	if i >= math.MaxInt32 {
		return 0
	}
	return int32(i) + 1
}
