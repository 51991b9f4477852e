package verify

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/stream"
	"pgregory.net/rapid"
)

// The laws of package stream. Each is checked on random elements, in a random pipeline. Its stages change only where
// the work is done, so that the law is tested across every kind of boundary.

// elsewhere draws stages that pass on the elements unchanged.
func elsewhere(t *rapid.T, s stream.Stream[int]) stream.Stream[int] {
	same := func(_ context.Context, v int) (int, error) { return v, nil }
	for range rapid.IntRange(0, 3).Draw(t, "stages") {
		size := rapid.IntRange(1, 5).Draw(t, "size")
		switch rapid.IntRange(0, 9).Draw(t, "stage") {
		case 0:
			s = stream.Buffer(s, size)
		case 1:
			s = stream.Parallel(s, size, same)
		case 2:
			s = stream.FlatMap(stream.Batch(s, size, 0), stream.FromSlice)
		case 3:
			s = stream.FlatMap(stream.Batch(s, size, time.Second), stream.FromSlice)
		case 4:
			s = stream.Merge(s)
		case 5:
			s = stream.Until(context.Background(), s)
		case 6:
			s = stream.Zip(s, stream.FromSeq(endless), func(v, _ int) int { return v })
		case 7:
			s = stream.ParallelPerKey(s, size, func(int) int { return 0 }, same) // one key, so one element at a time
		case 8:
			s = stream.Timeout(stream.Monitor(s, new(stream.Meter)), time.Hour)
		case 9:
			s = stream.Stage(s, func(ctx context.Context, s stream.Stream[int], emit func(context.Context, int) error) error {
				return stream.ForEach(ctx, s, emit)
			})
		}
	}
	return s
}

func endless(yield func(int) bool) {
	for i := 0; yield(i); i++ {
	}
}

// laws runs a law in a fiber, with random elements.
func laws(t *testing.T, law func(t *rapid.T, ctx context.Context, in []int)) {
	t.Helper()
	rt := coir.NewRuntime(coir.WithWorkers(2))
	defer closeSoon(t, rt)
	rapid.Check(t, func(t *rapid.T) {
		in := rapid.SliceOfN(rapid.IntRange(-20, 20), 0, 600).Draw(t, "in")
		var failure any
		err := rt.Run(context.Background(), func(ctx context.Context, _ *coir.Nursery) error {
			defer func() { failure = recover() }() // rapid ends a test with a panic
			law(t, ctx, in)
			return nil
		})
		if failure != nil {
			panic(failure)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

// same fails the test unless both streams have the same elements.
func same(ctx context.Context, t *rapid.T, a, b stream.Stream[int]) {
	x, err1 := stream.ToSlice(ctx, a)
	y, err2 := stream.ToSlice(ctx, b)
	if !slices.Equal(x, y) || err1 != nil || err2 != nil {
		t.Fatalf("%v, error %v, and %v, error %v:\n%s\n%s", x, err1, y, err2, a.Explain(), b.Explain())
	}
}

func double(v int) int { return 2 * v }
func less(v int) int   { return v - 7 }
func odd(v int) bool   { return v&1 == 1 }
func small(v int) bool { return v < 5 }

// TestStreamMapFusion checks that two maps equal one map of both functions.
func TestStreamMapFusion(t *testing.T) {
	laws(t, func(t *rapid.T, ctx context.Context, in []int) {
		s := elsewhere(t, stream.FromSlice(in))
		same(ctx, t, stream.Map(elsewhere(t, stream.Map(s, double)), less), stream.Map(s, func(v int) int { return less(double(v)) }))
	})
}

// TestStreamFilterLaws checks that two filters equal one with both conditions, in any order.
func TestStreamFilterLaws(t *testing.T) {
	laws(t, func(t *rapid.T, ctx context.Context, in []int) {
		s := elsewhere(t, stream.FromSlice(in))
		both := stream.Filter(s, func(v int) bool { return odd(v) && small(v) })
		same(ctx, t, stream.Filter(elsewhere(t, stream.Filter(s, odd)), small), both)
		same(ctx, t, stream.Filter(elsewhere(t, stream.Filter(s, small)), odd), both)
	})
}

// TestStreamTakeLaws checks that Take of Take is the smaller Take, that Take and Skip divide a stream, and that Map and
// Take commute.
func TestStreamTakeLaws(t *testing.T) {
	laws(t, func(t *rapid.T, ctx context.Context, in []int) {
		a, b := rapid.IntRange(0, 700).Draw(t, "a"), rapid.IntRange(0, 700).Draw(t, "b")
		s := elsewhere(t, stream.FromSlice(in))
		same(ctx, t, stream.Take(elsewhere(t, stream.Take(s, a)), b), stream.Take(s, min(a, b)))
		same(ctx, t, stream.Concat(elsewhere(t, stream.Take(s, a)), stream.Skip(s, a)), s)
		same(ctx, t, stream.Skip(elsewhere(t, stream.Skip(s, a)), b), stream.Skip(s, a+b))
		same(ctx, t, stream.Map(stream.Take(s, a), double), stream.Take(elsewhere(t, stream.Map(s, double)), a))
	})
}

// TestStreamMergeLosesNothing checks that Merge keeps the order of each input, and loses and adds nothing.
func TestStreamMergeLosesNothing(t *testing.T) {
	laws(t, func(t *rapid.T, ctx context.Context, in []int) {
		k := rapid.IntRange(1, 4).Draw(t, "inputs")
		inputs, parts := make([]stream.Stream[int], k), make([][]int, k)
		for i, v := range in {
			parts[i%k] = append(parts[i%k], k*v+i%k+k*1000) // the remainder shows the input
		}
		for i := range inputs {
			inputs[i] = elsewhere(t, stream.FromSlice(parts[i]))
		}
		merged := stream.Merge(inputs...)
		if rapid.Bool().Draw(t, "priority") {
			merged = stream.MergePriority(inputs...)
		}
		got := make([][]int, k)
		err := stream.ForEach(ctx, elsewhere(t, merged), func(_ context.Context, v int) error {
			got[v%k] = append(got[v%k], v)
			return nil
		})
		for i := range got {
			if !slices.Equal(got[i], parts[i]) || err != nil {
				t.Fatalf("input %d: %v, want %v, error %v", i, got[i], parts[i], err)
			}
		}
	})
}

// TestStreamParallelIsMap checks that Parallel equals Map, that ParallelUnordered has the same elements, and that
// ParallelPerKey keeps the order of each key.
//
// Spec: ST-07 (an ordered stage keeps the order of inputs)
func TestStreamParallelIsMap(t *testing.T) {
	laws(t, func(t *rapid.T, ctx context.Context, in []int) {
		n := rapid.IntRange(1, 9).Draw(t, "n")
		f := func(ctx context.Context, v int) (int, error) {
			if v%3 == 0 {
				return double(v), coir.Yield(ctx)
			}
			return double(v), nil
		}
		s := elsewhere(t, stream.FromSlice(in))
		plain := stream.Map(s, double)
		same(ctx, t, stream.Parallel(s, n, f), plain)
		got, err := stream.ToSlice(ctx, stream.ParallelUnordered(s, n, f))
		want, _ := stream.ToSlice(ctx, plain)
		slices.Sort(got)
		slices.Sort(want)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("unordered: %v, want %v, error %v", got, want, err)
		}
		type numbered struct{ i, v int }
		last := map[int]int{}
		keyed := stream.ParallelPerKey(stream.Enumerate(s, func(i, v int) numbered { return numbered{i, v} }), n,
			func(e numbered) int { return e.v }, func(ctx context.Context, e numbered) (numbered, error) {
				_, err := f(ctx, e.v)
				return e, err
			})
		seen := 0
		err = stream.ForEach(ctx, keyed, func(_ context.Context, e numbered) error {
			if before, ok := last[e.v]; ok && before > e.i {
				t.Fatalf("key %d: element %d after %d", e.v, e.i, before)
			}
			last[e.v] = e.i
			seen++
			return nil
		})
		if err != nil || seen != len(in) {
			t.Fatalf("by key: %d of %d elements, error %v", seen, len(in), err)
		}
	})
}

// TestStreamBatchesAreTheInput checks that the batches together are the input, and that none is empty or too large.
func TestStreamBatchesAreTheInput(t *testing.T) {
	laws(t, func(t *rapid.T, ctx context.Context, in []int) {
		size := rapid.IntRange(1, 300).Draw(t, "size")
		linger := time.Duration(rapid.IntRange(0, 1).Draw(t, "linger")) * 100 * time.Microsecond
		s := elsewhere(t, stream.FromSlice(in))
		batches := stream.Map(stream.Batch(s, size, linger), func(b []int) []int {
			if len(b) == 0 || len(b) > size {
				t.Fatalf("a batch of %d", len(b))
			}
			return b
		})
		same(ctx, t, stream.FlatMap(batches, stream.FromSlice), stream.FromSlice(in))
	})
}

// TestStreamEndsAtAnyElement cancels, fails or panics, or stops the consumer, at any element of a random pipeline. The
// elements before it are in order, the end is reported once, and no fiber is left.
func TestStreamEndsAtAnyElement(t *testing.T) {
	boom := errors.New("boom")
	laws(t, func(t *rapid.T, ctx context.Context, in []int) {
		in = append(in, 1)
		at := rapid.IntRange(0, len(in)-1).Draw(t, "at")
		how := rapid.SampledFrom([]string{"cancel", "fail", "panic", "leave"}).Draw(t, "how")
		var meter stream.Meter
		var got []int
		caught, err := any(nil), error(nil)
		func() {
			defer func() { caught = recover() }()
			_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				s := stream.Enumerate(stream.FromSlice(in), func(i, v int) int { return i })
				s = stream.MapErr(stream.Monitor(s, &meter), func(ctx context.Context, i int) (int, error) {
					switch {
					case i != at:
					case how == "cancel":
						n.Cancel(boom)
					case how == "fail":
						return i, boom
					case how == "panic":
						panic("boom")
					}
					return i, nil
				})
				for v, e := range elsewhere(t, s).All(ctx) {
					err = e
					if e == nil {
						got = append(got, v)
					}
					if how == "leave" && v == at {
						break
					}
				}
				return nil
			})
		}()
		for i, v := range got {
			if i != v {
				t.Fatalf("got %v", got)
			}
		}
		ok := true
		switch how {
		case "cancel":
			ok = errors.Is(err, context.Canceled) && caught == nil
		case "fail":
			ok = err == boom && caught == nil && len(got) == at
		case "panic":
			pe, wrapped := caught.(*coir.PanicError)
			ok = caught == "boom" || wrapped && pe.Value == "boom" && pe.Also == nil
		case "leave":
			ok = err == nil && caught == nil && len(got) == at+1
		}
		if !ok || meter.Stats().Running != 0 {
			t.Fatalf("%s at %d: error %v, panic %v, %d elements, %+v", how, at, err, caught, len(got), meter.Stats())
		}
	})
}
