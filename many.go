package coir

import (
	"context"
	"errors"
	"iter"
	"math"

	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/xatomic"
)

// Race calls all the functions, each in a fiber, and returns the value of the first that succeeds. The others are
// cancelled, and Race returns when they have ended. It is for hedging: sending a request to several servers, or again
// after a while if there is no answer. If all fail, Race returns their errors, joined, the first one first.
//
//	body, err := coir.Race(ctx, fetchFrom(mirrorA), fetchFrom(mirrorB))
//
// A value that comes too late is dropped: a function whose value must be closed should check its context before it
// returns. If a function panics, so does Race, with a [*PanicError], when the others have ended.
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
		err = ErrGoexit // each of them
	}
	return first, err
}

// ForEach calls fn with each item, at most limit calls at a time, each in a fiber of its own, and returns when all have
// ended. Items are taken from the sequence one by one, when there is room for a call: it may be infinite. The first
// error cancels the other calls, and no more items are taken; ForEach returns the errors of all, joined, the first one
// first. If fn panics, so does ForEach, with a [*PanicError]; if it calls runtime.Goexit, the other calls continue, and
// ForEach returns [ErrGoexit].
//
//	err := coir.ForEach(ctx, 8, slices.Values(files), upload)
//
// The sequence is an iterator because slices, maps, channels and files all have one. The limit comes before it, where a
// reader looks for it, and has no default, because the right number depends on what fn uses. The options are those of
// [Nursery.Go], such as [OnGoroutine] if fn blocks outside of coir.
//
//go:noinline
func ForEach[T any](ctx context.Context, limit int, items iter.Seq[T],
	fn func(ctx context.Context, item T) error, opts ...FiberOption,
) error {
	set := FiberOption{pc: coro.CallerPC()}
	set.add(opts)
	if fn == nil {
		panic(noFunction("ForEach"))
	}
	return forEach(ctx, "each", limit, items, set, func(item T) func(context.Context) error {
		return func(ctx context.Context) error { return fn(ctx, item) }
	})
}

// Map is like [ForEach], and returns the values that fn returned, in the order of the items. If there is an error it
// returns no values.
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
// It starts a child for each item instead of limit workers: the name of a fiber then identifies the item, a panic or
// Goexit needs no special care, and starting a fiber costs about as much as handing an item to a worker.
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
		if err := room(ctx, places, unwound); err != nil { // before the item: fn is called with each item that is taken
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
						_, _ = places.TryRecv() // it finds the value sent for this item, or for another
					} else if !ended {
						_ = unwound.TrySend(Self(ctx))
					}
				}()
				err := fn(ctx)
				ended, ok = true, alone || err == nil // if it failed, no item must be taken before the cancel
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

// room waits until there is room for another call. A call that did not return has panicked or exited. A panic cancels
// ctx when the fiber has ended; an exit leaves its place to the next call.
func room(ctx context.Context, places *Chan[struct{}], unwound *Chan[*Fiber]) error {
	var f *Fiber
	i, err := Select(ctx, places.SendCase(struct{}{}), unwound.RecvCase(&f))
	if i == 1 {
		if err := f.Wait(ctx); err != ErrGoexit { //nolint:errorlint // that of the fiber itself
			return err
		}
	}
	return err
}

// numbered returns the index field of an option for number i, or 0 if i does not fit.
func numbered(i int) int32 {
	if i >= math.MaxInt32 {
		return 0
	}
	return int32(i) + 1
}
