package stream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/pace"
)

// Batch collects elements into slices of length size. If linger is positive, Batch passes on a batch when linger has
// passed since its first element, even if it is not full; the stages before it then run in a fiber of their own, up to
// size elements ahead, but at most 1024. If linger is 0, only the last batch may be smaller, and no fiber is needed.
// Each slice belongs to the consumer. A slice for more than 1024 elements grows as they come.
//
//	                a-b-c-d-------e-|
//	Batch(3, 2s)    ----abc---d-----e|
func Batch[T any](s Stream[T], size int, linger time.Duration) Stream[[]T] {
	if size < 1 {
		panic(fmt.Sprintf("stream: Batch(%d): a batch has at least one element", size))
	}
	if linger <= 0 {
		return batchBySize(s, size)
	}
	p := apart(describe(min(size, maxRoom)), fmt.Sprintf("Batch(%d, %v)", size, linger), s.plan)
	return boundary(p, func(ctx context.Context, n *home, _ *demand, push func([][]T) bool) error {
		in := open(n, n.called("batch"), s, min(size, maxChunk), min(size, maxRoom))
		var out [1][]T
		for {
			var err error
			if out[0], err = in.batch(ctx, size, linger, len(out[0])); err != nil {
				return in.end(err)
			}
			if !push(out[:]) {
				return nil
			}
		}
	})
}

// maxRoom is the largest initial capacity of a batch, unless the previous batch was larger.
const maxRoom = 1024

// batch receives a batch. last is the length of the previous batch.
func (in *inlet[T]) batch(ctx context.Context, size int, linger time.Duration, last int) ([]T, error) {
	batch := make([]T, min(size, max(last, maxRoom)))
	if len(batch) == size {
		k, err := in.RecvBatch(ctx, batch, linger)
		return batch[:k], err
	}
	k, err := in.RecvMany(ctx, batch)
	if err != nil {
		return nil, err
	}
	batch = batch[:k]
	until := coir.Now(ctx) + linger
	for left := linger; left > 0 && len(batch) < size; left = until - coir.Now(ctx) {
		v, err := in.RecvTimeout(ctx, left)
		if err != nil { // the next batch returns the error
			break
		}
		batch = append(batch, v)
		if n := min(in.Len(), size-len(batch)); n > 0 { // there is only one receiver, so this does not wait
			batch = slices.Grow(batch, n)
			k, _ := in.RecvMany(ctx, batch[len(batch):len(batch)+n])
			batch = batch[:len(batch)+k]
		}
	}
	return batch, nil
}

func batchBySize[T any](s Stream[T], size int) Stream[[]T] {
	return stage(fused(s.plan, "Batch(%d)", size), func(ctx context.Context, _ *demand, push func([][]T) bool) error {
		var (
			batch []T
			last  int // length of the previous batch
			out   [1][]T
			on    = true
			own   = demand{want: min(size, maxChunk)}
		)
		flush := func() bool {
			last = len(batch)
			out[0], batch = batch, nil
			on = push(out[:])
			return on
		}
		err := s.start(ctx, &own, func(vs []T) bool {
			if batch == nil {
				batch = make([]T, 0, min(size, max(last, maxRoom)))
			}
			batch = append(batch, vs...)
			if len(batch) == size {
				flush()
			}
			own.want = min(size-len(batch), maxChunk)
			return on
		})
		if on && len(batch) > 0 { // even before an error
			flush()
		}
		if !on {
			return nil
		}
		return err
	})
}

// Throttle limits the rate of elements: burst elements at once, and then one every period. It waits with a
// [pace.Limiter], in the loop of its input, and drops nothing. With a burst of 1 elements are at least a period apart.
//
//	                  abc-d----------|
//	Throttle(2s, 1)   a---b---c---d--|
func Throttle[T any](s Stream[T], period time.Duration, burst int) Stream[T] {
	pace.NewLimiter(period, burst) // panics if they are invalid
	p := fused(s.plan, "Throttle(%v, %d)", period, burst)
	return named(p, func(p *plan) runner[T] {
		return func(ctx context.Context, _ *demand, push func([]T) bool) error {
			limit := pace.NewLimiter(period, burst, coir.WithName(p.called("throttle")))
			var failed error
			err := s.start(ctx, one(), func(vs []T) bool {
				if failed = limit.Wait(ctx); failed != nil {
					return false
				}
				return push(vs)
			})
			return cmp.Or(failed, err)
		}
	})
}

// Debounce passes on an element when no other element has come for the duration quiet. When the input ends, the last
// element is passed on immediately. The stages before it run in a fiber of their own, and never wait for the consumer.
//
//	                a-b-c-------d-----e|
//	Debounce(2s)    --------c-------d--e|
func Debounce[T any](s Stream[T], quiet time.Duration) Stream[T] {
	p := apart(describe(coir.Conflated), fmt.Sprintf("Debounce(%v)", quiet), s.plan)
	return boundary(p, func(ctx context.Context, n *home, _ *demand, push func([]T) bool) error {
		in := open(n, n.called("debounce"), s, 1, coir.Conflated)
		var last [1]T
		for {
			v, err := in.Recv(ctx)
			if err != nil {
				return in.end(err)
			}
			for err == nil {
				last[0] = v
				v, err = in.RecvTimeout(ctx, quiet)
			}
			if ended := coir.Ended(ctx); ended != nil {
				return ended
			}
			if !push(last[:]) {
				return nil
			}
			if !errors.Is(err, coir.ErrTimeout) {
				return in.end(err)
			}
		}
	})
}

// Sample passes on the newest element at every tick of period, unless it has already passed it on. When the input ends,
// the newest element is passed on immediately. The stages before it run in a fiber of their own, and never wait for the
// consumer.
//
//	              a-b-c-------d-e|
//	Sample(3s)    ---b--c-------e|
func Sample[T any](s Stream[T], period time.Duration) Stream[T] {
	pace.NewTicker(period) // panics if it is invalid
	p := apart(describe(coir.Conflated), fmt.Sprintf("Sample(%v)", period), s.plan)
	return boundary(p, func(ctx context.Context, n *home, _ *demand, push func([]T) bool) error {
		over := coir.NewEvent(coir.WithName(n.of("end of input")))
		in := &inlet[T]{Chan: coir.NewChan[T](coir.Conflated, coir.WithName(n.called("sample")))}
		spawn(n, inputName(s.plan, n.called("sample")), func(ctx context.Context) error {
			return sendAll(ctx, s, 1, in.Chan)
		}, func(err error) {
			in.failed = err
			in.Close()
			over.Set()
		})
		tick := pace.NewTicker(period, coir.WithName(n.called("sample")))
		var newest [1]T
		for {
			if i, err := coir.SelectPriority(ctx, over.DoneCase(), tick.WaitCase(nil)); i < 0 {
				return err
			}
			v, err := in.TryRecv()
			if errors.Is(err, coir.ErrWouldBlock) {
				continue
			}
			if err != nil {
				return in.end(err)
			}
			newest[0] = v
			if !push(newest[:]) {
				return nil
			}
		}
	})
}

// Latch passes on the newest element each time the consumer asks, and repeats it if there is no newer one. It waits
// only for the first element. The stages before it run in a fiber of their own, and never wait for the consumer. Use it
// for a consumer with its own pace. Make it the last boundary of a stream: a boundary after it, such as [Zip], asks
// ahead of time, and passes on the element that was the newest then.
//
//	         a-----b---c-|
//	Latch    a-a-a-b-b-c-|   a consumer that asks every second
func Latch[T any](s Stream[T]) Stream[T] {
	p := apart(describe(coir.Conflated), "Latch", s.plan)
	return boundary(p, func(ctx context.Context, n *home, _ *demand, push func([]T) bool) error {
		in := open(n, n.called("latch"), s, 1, coir.Conflated)
		var newest [1]T
		v, err := in.Recv(ctx)
		for {
			switch {
			case err == nil:
				newest[0] = v
			case !errors.Is(err, coir.ErrWouldBlock):
				return in.end(err)
			}
			if !push(newest[:]) {
				return nil
			}
			if err := coir.Yield(ctx); err != nil {
				return err
			}
			v, err = in.TryRecv()
		}
	})
}

// Timeout fails with an error that matches [coir.ErrTimeout] if the consumer has to wait longer than limit for an
// element. The stages before it run in a fiber of their own, one element ahead.
//
//	               a-b-------c-|
//	Timeout(3s)    a-b---X
func Timeout[T any](s Stream[T], limit time.Duration) Stream[T] {
	p := apart(describe(0), fmt.Sprintf("Timeout(%v)", limit), s.plan)
	return boundary(p, func(ctx context.Context, n *home, _ *demand, push func([]T) bool) error {
		in := open(n, n.called("timeout"), s, 1, 0)
		var buf [1]T
		for {
			var err error
			if buf[0], err = in.RecvTimeout(ctx, limit); err != nil {
				return in.end(err)
			}
			if !push(buf[:]) {
				return nil
			}
		}
	})
}

// Until ends the stream when ctx ends, even while a stage before it waits for input. The stages before it run in a
// scope that ends then; those after it get all elements that came out of it, and go on. So to stop a program without
// loss, write Until directly behind the source, and run the stream in another context:
//
//	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
//	defer stop()
//	work, cancel := coir.WithGrace(ctx, 10*time.Second)
//	defer cancel()
//	orders := stream.Until(ctx, stream.FromFunc(next))
//	err := stream.ForEach(work, stream.Parallel(orders, 8, price), store)
//
// Elements that are still in the channel of a [From] stay there; to get them too, close the channel instead. A stage
// with functions that wait, or with fibers, drops the elements that it has when ctx ends, as at any cancel: write it
// behind Until. An error that the stages before Until return after that is dropped, because it may be that of the
// cancel. [Lines] ends only after its read.
//
//	         a-b-c-d-e-|
//	ctx      -----!
//	Until    a-b-c|
func Until[T any](ctx context.Context, s Stream[T]) Stream[T] {
	stop := ctx
	return stage(fused(s.plan, "Until"), func(ctx context.Context, d *demand, push func([]T) bool) error {
		in, cancel := coir.WithCancel(ctx)
		defer cancel()
		var w coir.Watch
		if w.Start(stop, cutter(cancel)) != nil { // it has ended
			return coir.Ended(ctx)
		}
		defer w.Stop()
		err := s.start(in, d, push)
		if err != nil && stop.Err() != nil {
			return cutShort(ctx, err)
		}
		return err
	})
}

// cutter calls a function when the context of a coir.Watch ends.
type cutter func()

// Ended implements coir.Watcher.
func (f cutter) Ended(error) { f() }
