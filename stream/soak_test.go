package stream_test

// Memory does not grow with the number of elements or keys. An ordinary run does a small part: see make soak.

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/soak"
	"github.com/coir-go/coir/stream"
)

func sized(short, ordinary, full int) int {
	switch {
	case soak.On():
		return full
	case testing.Short():
		return short
	}
	return ordinary
}

// heap returns the number of bytes in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// watched passes the elements on, and checks ten times that the heap has not grown.
func watched[T any](t *testing.T, s stream.Stream[T], n int) stream.Stream[T] {
	t.Helper()
	var first uint64
	return stream.Enumerate(s, func(i int, v T) T {
		if i%max(n/10, 1) == n/20 {
			switch now := heap(); {
			case first == 0:
				first = now
			case now > first+1<<20:
				t.Errorf("after %d elements %d KiB are in use, and at first %d KiB", i, now>>10, first>>10)
			}
		}
		return v
	})
}

func numbers(n int) stream.Stream[int] {
	return stream.FromSeq(func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	})
}

func TestConstantMemory(t *testing.T) {
	work := func(_ context.Context, v int) (int, error) { return v, nil }
	for _, test := range []struct {
		name  string
		n     int
		build func(stream.Stream[int]) stream.Stream[int]
	}{
		{"fused", sized(100_000, 1_000_000, 100_000_000), func(s stream.Stream[int]) stream.Stream[int] {
			return stream.Filter(stream.Map(s, func(v int) int { return v + 1 }), func(v int) bool { return v > 0 })
		}},
		{"boundaries", sized(20_000, 100_000, 100_000_000), func(s stream.Stream[int]) stream.Stream[int] {
			return stream.Parallel(flat(stream.Batch(stream.Buffer(s, 64), 100, time.Second)), 4, work)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := coir.Run(context.Background(), func(ctx context.Context, _ *coir.Nursery) error {
				n, err := stream.Count(ctx, watched(t, test.build(numbers(test.n)), test.n))
				if n != test.n {
					t.Errorf("%d elements of %d", n, test.n)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// Keys that are not equal to themselves leave nothing in memory.
func TestConstantMemoryNaN(t *testing.T) {
	nan := func(int) float64 { return math.NaN() }
	keys := sized(30_000, 200_000, 10_000_000)
	for name, build := range map[string]func(stream.Stream[int]) stream.Stream[int]{
		"GroupBy": func(s stream.Stream[int]) stream.Stream[int] {
			return stream.GroupBy(s, 4, nan, func(ctx context.Context, _ float64, group stream.Stream[int]) (int, error) {
				return stream.Count(ctx, group)
			})
		},
		"ParallelPerKey": func(s stream.Stream[int]) stream.Stream[int] {
			return stream.ParallelPerKey(s, 2, nan, func(_ context.Context, v int) (int, error) { return v, nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			err := coir.Run(context.Background(), func(ctx context.Context, _ *coir.Nursery) error {
				n, err := stream.Count(ctx, watched(t, build(numbers(keys)), keys))
				if n != keys {
					t.Errorf("%d elements of %d", n, keys)
				}
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// A stream has a million keys, of which a thousand have open groups at a time.
func TestGroupByManyKeys(t *testing.T) {
	keys, bound := sized(5_000, 30_000, 1_000_000), 1000
	err := coir.Run(context.Background(), func(ctx context.Context, _ *coir.Nursery) error {
		s := stream.FlatMap(numbers(keys), func(k int) stream.Stream[int] { return stream.FromSlice([]int{k, k, k}) })
		groups := stream.GroupBy(s, bound, func(k int) int { return k },
			func(ctx context.Context, k int, group stream.Stream[int]) (int, error) {
				n, err := stream.Count(ctx, group)
				if n != 3 {
					return 0, fmt.Errorf("%d elements with key %d", n, k)
				}
				return k, err
			})
		n, err := stream.Count(ctx, watched(t, groups, keys))
		if n != keys {
			t.Errorf("%d groups of %d", n, keys)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
