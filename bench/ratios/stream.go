package main

import (
	"context"
	"sync"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/stream"
	"github.com/samber/lo"
	"github.com/samber/ro"
)

// The streams are: map, filter, map and sum over ints; calls in order, eight at a time; and batches by size and time.
// An operation is one element.
//
// The loop that a stream is compared with calls the same functions, as a stream does: the difference is the cost of the
// stages. A loop with the functions written into it takes about a quarter of that, because the compiler inlines them;
// see stream-fused-inline, which has no bound.

var (
	streamTriple = func(v int) int { return 3 * v }
	streamEven   = func(v int) bool { return v&1 == 0 }
	streamNext   = func(v int) int { return v + 1 }
	streamAdd    = func(a, v int) int { return a + v }
	streamInput  = func() []int {
		all := make([]int, 1<<16)
		for i := range all {
			all[i] = i
		}
		return all
	}()
)

// streamSink keeps the compiler from removing the measured code.
var streamSink int //nolint:unused // it is only written

// parts calls f with n elements in total, a slice at a time.
func parts(n int, f func(in []int) int) {
	for n > 0 {
		k := min(n, len(streamInput))
		streamSink += f(streamInput[:k])
		n -= k
	}
}

func streamFused() side {
	return onRuntime(func(ctx context.Context, _ *coir.Nursery, n int) error {
		parts(n, func(in []int) int {
			s := stream.Map(stream.Filter(stream.Map(stream.FromSlice(in), streamTriple), streamEven), streamNext)
			sum, err := stream.Reduce(ctx, s, 0, streamAdd)
			if err != nil {
				panic(err)
			}
			return sum
		})
		return nil
	})
}

func streamLoop() side {
	return side{loop: func(n int) {
		triple, even, next, add := streamTriple, streamEven, streamNext, streamAdd
		parts(n, func(in []int) int {
			sum := 0
			for _, v := range in {
				if v = triple(v); even(v) {
					sum = add(sum, next(v))
				}
			}
			return sum
		})
	}}
}

func streamInline() side {
	return side{loop: func(n int) {
		parts(n, func(in []int) int {
			sum := 0
			for _, v := range in {
				if v = 3 * v; v&1 == 0 {
					sum += v + 1
				}
			}
			return sum
		})
	}}
}

func streamChannels() side {
	return side{loop: func(n int) {
		parts(n, func(in []int) int {
			tripled, evens, nexts := make(chan int), make(chan int), make(chan int)
			go func() {
				defer close(tripled)
				for _, v := range in {
					tripled <- streamTriple(v)
				}
			}()
			go func() {
				defer close(evens)
				for v := range tripled {
					if streamEven(v) {
						evens <- v
					}
				}
			}()
			go func() {
				defer close(nexts)
				for v := range evens {
					nexts <- streamNext(v)
				}
			}()
			sum := 0
			for v := range nexts {
				sum = streamAdd(sum, v)
			}
			return sum
		})
	}}
}

func streamLo() side {
	return side{loop: func(n int) {
		parts(n, func(in []int) int {
			tripled := lo.Map(in, func(v, _ int) int { return streamTriple(v) })
			evens := lo.Filter(tripled, func(v, _ int) bool { return streamEven(v) })
			return lo.Sum(lo.Map(evens, func(v, _ int) int { return streamNext(v) }))
		})
	}}
}

func streamRo() side {
	return side{loop: func(n int) {
		parts(n, func(in []int) int {
			s := ro.Pipe4(ro.FromSlice(in), ro.Map(streamTriple), ro.Filter(streamEven), ro.Map(streamNext), ro.Sum[int]())
			sums, err := ro.Collect(s)
			if err != nil {
				panic(err)
			}
			return sums[0]
		})
	}}
}

// crewSize is the number of calls at a time.
const crewSize = 8

// microsecond works for about a microsecond, without reading the clock.
func microsecond(v int) int { return spin(v, spins) }

// spins is the number of steps that take microsecond about a microsecond.
var spins = func() int {
	const n = 1000
	best := time.Duration(1 << 62)
	for range 100 {
		began := time.Now()
		for i := range 10 {
			streamSink += spin(i, n)
		}
		best = min(best, time.Since(began)/10)
	}
	return max(1, int(n*time.Microsecond/best))
}()

//go:noinline
func spin(v, n int) int {
	x := uint64(v) | 1
	for range n {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return v + int(x&1)
}

func streamParallel() side {
	work := func(_ context.Context, v int) (int, error) { return microsecond(v), nil } //nolint:unparam // as Parallel asks
	return onRuntime(func(ctx context.Context, _ *coir.Nursery, n int) error {
		parts(n, func(in []int) int {
			sum, err := stream.Reduce(ctx, stream.Parallel(stream.FromSlice(in), crewSize, work), 0, streamAdd)
			if err != nil {
				panic(err)
			}
			return sum
		})
		return nil
	})
}

// streamPool is an ordered pool as it is usually written: workers take jobs, and
// each job has a channel for its result, which the consumer reads in order.
func streamPool() side {
	type job struct {
		v      int
		result chan int
	}
	return side{loop: func(n int) {
		parts(n, func(in []int) int {
			jobs, order := make(chan job), make(chan chan int, 4*crewSize)
			var wg sync.WaitGroup
			for range crewSize {
				wg.Go(func() {
					for j := range jobs {
						j.result <- microsecond(j.v)
					}
				})
			}
			go func() {
				defer close(order)
				defer close(jobs)
				for _, v := range in {
					result := make(chan int, 1)
					order <- result
					jobs <- job{v, result}
				}
			}()
			sum := 0
			for result := range order {
				sum = streamAdd(sum, <-result)
			}
			wg.Wait()
			return sum
		})
	}}
}

const (
	batchSize   = 100
	batchLinger = 10 * time.Millisecond
)

func streamBatch() side {
	return onRuntime(func(ctx context.Context, _ *coir.Nursery, n int) error {
		parts(n, func(in []int) int {
			sum := 0
			err := stream.ForEach(ctx, stream.Batch(stream.FromSlice(in), batchSize, batchLinger),
				func(_ context.Context, batch []int) error {
					sum += len(batch)
					return nil
				})
			if err != nil {
				panic(err)
			}
			return sum
		})
		return nil
	})
}

// streamBatcher is a batcher as it is usually written: a select over the input and a timer that runs while there is a
// batch.
func streamBatcher() side {
	return side{loop: func(n int) {
		parts(n, func(in []int) int {
			c := make(chan int, batchSize)
			go func() {
				defer close(c)
				for _, v := range in {
					c <- v
				}
			}()
			var (
				sum   int
				batch []int
				timer = time.NewTimer(batchLinger)
			)
			timer.Stop()
			flush := func() {
				sum += len(batch)
				batch = nil
				timer.Stop()
			}
			for {
				select {
				case v, ok := <-c:
					if !ok {
						flush()
						return sum
					}
					if batch == nil {
						batch = make([]int, 0, batchSize)
						timer.Reset(batchLinger)
					}
					if batch = append(batch, v); len(batch) == batchSize {
						flush()
					}
				case <-timer.C:
					flush()
				}
			}
		})
	}}
}
