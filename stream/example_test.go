package stream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
	"github.com/coir-go/coir/stream"
)

// onVirtualTime runs fn in a simulation, so that the examples take no time.
func onVirtualTime(fn func(ctx context.Context, n *coir.Nursery) error) {
	sim.Explore(func(ctx context.Context, s *sim.Sim) {
		if err := coir.Run(ctx, fn); err != nil {
			s.Errorf("%v", err)
		}
	}, sim.WithSchedules(1))
}

// show prints the elements of a stream, and its error.
func show[T any](ctx context.Context, s stream.Stream[T]) {
	for v, err := range s.All(ctx) {
		if err != nil {
			fmt.Println("error:", err)
			return
		}
		fmt.Print(v, " ")
	}
	fmt.Println("|")
}

// clicks returns a stream whose elements come at the given times, in tenths of a second; each element is its time.
func clicks(times ...int) stream.Stream[int] {
	return stream.FlatMap(stream.FromSlice([][]int{times}), func(left []int) stream.Stream[int] {
		var began time.Duration
		return stream.FromFunc(func(ctx context.Context) (int, error) {
			if len(left) == len(times) {
				began = coir.Now(ctx)
			}
			if len(left) == 0 {
				return 0, io.EOF
			}
			at := left[0]
			left = left[1:]
			return at, coir.Sleep(ctx, began+time.Duration(at)*time.Second/10-coir.Now(ctx))
		})
	})
}

const tenth = time.Second / 10

// A pipeline, from its source to its sink.
func Example() {
	ctx := context.Background()
	words := stream.FlatMap(stream.Lines(strings.NewReader("go with\nthe flow\n")), func(line string) stream.Stream[string] {
		return stream.FromSeq(strings.FieldsSeq(line))
	})
	long := stream.Filter(words, func(w string) bool { return len(w) > 2 })
	loud := stream.Parallel(long, 8, func(_ context.Context, w string) (string, error) { return strings.ToUpper(w), nil })
	err := stream.ForEach(ctx, loud, func(_ context.Context, w string) error {
		fmt.Println(w)
		return nil
	})
	fmt.Println(err)
	// Output:
	// WITH
	// THE
	// FLOW
	// <nil>
}

// The orders that were in flight when a stream failed are found again.
func Example_inFlight() {
	orders := coir.NewChan[int](9)
	for id := range orders.Cap() {
		_ = orders.TrySend(id)
	}
	orders.Close()

	var inFlight sync.Map // by id
	taken := stream.Map(stream.From(orders), func(id int) int {
		inFlight.Store(id, id)
		return id
	})
	priced := stream.Parallel(taken, 2, func(ctx context.Context, id int) (int, error) {
		return id, coir.Sleep(ctx, time.Millisecond)
	})
	stored := 0
	err := stream.ForEach(context.Background(), priced, func(_ context.Context, id int) error {
		if id == 3 {
			return errors.New("the disk is full")
		}
		stored++
		inFlight.Delete(id) // only now
		return nil
	})

	// All fibers of the stream have ended.
	kept := 0
	inFlight.Range(func(_, _ any) bool {
		kept++
		return true
	})
	fmt.Println(err)
	fmt.Println("lost:", orders.Cap()-stored-kept-orders.Len())
	// Output:
	// the disk is full
	// lost: 0
}

func ExampleStream_All() {
	numbers := stream.FromSlice([]int{1, 2, 3, 4})
	for v, err := range numbers.All(context.Background()) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if v == 3 {
			break // all stages end here
		}
		fmt.Println(v)
	}
	// Output:
	// 1
	// 2
}

func ExampleStream_Explain() {
	s := stream.Map(stream.FromSlice([]int{1, 2, 3}), func(v int) int { return v * v })
	s = stream.Buffer(stream.Filter(s, func(v int) bool { return v > 1 }), 16)
	s = stream.Parallel(stream.Skip(s, 1), 4, func(_ context.Context, v int) (int, error) { return -v, nil })
	fmt.Print(s.Explain())
	// Output:
	// loop 1: FromSlice, Map, Filter
	//   boundary: channel of 16
	// loop 2: Buffer, Skip(1)
	//   boundary: 4 workers, at most 16 elements
	// loop 3: Parallel
}

func ExampleStream_Named() {
	prices := stream.Parallel(stream.FromSlice([]int{1, 2, 3}), 4, func(_ context.Context, v int) (int, error) {
		return 100 * v, nil
	}).Named("price")
	fmt.Print(prices.Explain())
	// Output:
	// loop 1: FromSlice
	//   boundary: 4 workers, at most 16 elements
	// loop 2: Parallel "price"
}

func ExampleFromSlice() {
	show(context.Background(), stream.FromSlice([]string{"a", "b"}))
	// Output: a b |
}

func ExampleFromSeq() {
	show(context.Background(), stream.FromSeq(maps.Keys(map[string]int{"a": 1})))
	// Output: a |
}

func ExampleFromSeq2() {
	rows := func(yield func(string, error) bool) {
		_ = yield("a", nil) && yield("", errors.New("the connection is lost"))
	}
	show(context.Background(), stream.FromSeq2(rows))
	// Output: a error: the connection is lost
}

func ExampleFrom() {
	orders := coir.NewChan[string](2)
	_, _ = orders.TrySend("tea"), orders.TrySend("cake")
	orders.Close()
	show(context.Background(), stream.From(orders))
	// Output: tea cake |
}

func ExampleFromFunc() {
	i := 0
	show(context.Background(), stream.FromFunc(func(context.Context) (int, error) {
		if i++; i > 3 {
			return 0, io.EOF
		}
		return i, nil
	}))
	// Output: 1 2 3 |
}

func ExampleTicks() {
	onVirtualTime(func(ctx context.Context, _ *coir.Nursery) error {
		return stream.ForEach(ctx, stream.Take(stream.Ticks(time.Second), 2), func(ctx context.Context, _ int) error {
			fmt.Println(coir.Now(ctx))
			return nil
		})
	})
	// Output:
	// 1s
	// 2s
}

func ExampleLines() {
	show(context.Background(), stream.Lines(strings.NewReader("one\ntwo\n")))
	// Output: one two |
}

// Each run opens the file and closes it.
func ExampleUsing() {
	lines := stream.Using(
		func(context.Context) (io.ReadCloser, error) {
			return io.NopCloser(strings.NewReader("one\ntwo\n")), nil
		},
		func(r io.ReadCloser) stream.Stream[string] { return stream.Lines(r) })
	show(context.Background(), lines)
	show(context.Background(), stream.Take(lines, 1))
	// Output:
	// one two |
	// one |
}

func ExampleForEach() {
	full := errors.New("the disk is full")
	err := stream.ForEach(context.Background(), stream.FromSlice([]int{1, 2, 3}), func(_ context.Context, v int) error {
		if v == 2 {
			return full
		}
		fmt.Println(v)
		return nil
	})
	fmt.Println(err)
	// Output:
	// 1
	// the disk is full
}

func ExampleReduce() {
	fmt.Println(stream.Reduce(context.Background(), stream.FromSlice([]int{3, 9, 4}), 0, func(a, v int) int { return max(a, v) }))
	// Output: 9 <nil>
}

func ExampleCount() {
	fmt.Println(stream.Count(context.Background(), stream.Lines(strings.NewReader("one\ntwo\n"))))
	// Output: 2 <nil>
}

func ExampleToSlice() {
	fmt.Println(stream.ToSlice(context.Background(), stream.Take(stream.FromSeq(count), 3)))
	// Output: [0 1 2] <nil>
}

func ExampleFirst() {
	large := stream.Filter(stream.FromSeq(count), func(v int) bool { return v*v > 50 })
	fmt.Println(stream.First(context.Background(), large))
	// Output: 8 <nil>
}

func ExampleTo() {
	onVirtualTime(func(ctx context.Context, n *coir.Nursery) error {
		out := coir.NewChan[int](0)
		n.Go("numbers", func(ctx context.Context) error {
			return stream.To(ctx, stream.FromSlice([]int{1, 2}), out) // and closes it
		})
		show(ctx, stream.From(out))
		return nil
	})
	// Output: 1 2 |
}

func ExampleMap() {
	show(context.Background(), stream.Map(stream.FromSlice([]int{1, 2, 3}), func(v int) int { return v * 10 }))
	// Output: 10 20 30 |
}

func ExampleMapErr() {
	show(context.Background(), stream.MapErr(stream.FromSlice([]int{4, 2, 0}), func(_ context.Context, v int) (int, error) {
		if v == 0 {
			return 0, errors.New("division by zero")
		}
		return 8 / v, nil
	}))
	// Output: 2 4 error: division by zero
}

func ExampleFilter() {
	show(context.Background(), stream.Filter(stream.FromSlice([]int{1, 2, 3, 4}), func(v int) bool { return v%2 == 0 }))
	// Output: 2 4 |
}

func ExampleFlatMap() {
	batches := stream.FromSlice([][]int{{1, 2}, {}, {3}})
	show(context.Background(), stream.FlatMap(batches, stream.FromSlice))
	// Output: 1 2 3 |
}

func ExampleScan() {
	show(context.Background(), stream.Scan(stream.FromSlice([]int{1, 2, 3}), 0, func(a, v int) int { return a + v }))
	// Output: 1 3 6 |
}

func ExampleEnumerate() {
	show(context.Background(), stream.Enumerate(stream.FromSlice([]string{"a", "b"}), func(i int, v string) string {
		return fmt.Sprint(i, v)
	}))
	// Output: 0a 1b |
}

func ExampleTake() {
	show(context.Background(), stream.Take(stream.FromSeq(count), 3))
	// Output: 0 1 2 |
}

func ExampleSkip() {
	show(context.Background(), stream.Skip(stream.FromSlice([]int{1, 2, 3}), 2))
	// Output: 3 |
}

func ExampleTakeWhile() {
	show(context.Background(), stream.TakeWhile(stream.FromSlice([]int{1, 2, 3, 1}), func(v int) bool { return v < 3 }))
	// Output: 1 2 |
}

func ExampleDistinct() {
	show(context.Background(), stream.Distinct(stream.FromSlice([]int{1, 2, 1, 3, 2})))
	// Output: 1 2 3 |
}

func ExampleCompact() {
	show(context.Background(), stream.Compact(stream.FromSlice([]int{1, 1, 2, 2, 1})))
	// Output: 1 2 1 |
}

func ExampleConcat() {
	show(context.Background(), stream.Concat(stream.FromSlice([]int{1, 2}), stream.FromSlice([]int{3})))
	// Output: 1 2 3 |
}

// A consumer that takes a second for each element gets the newest one.
func ExampleBuffer() {
	onVirtualTime(func(ctx context.Context, _ *coir.Nursery) error {
		newest := stream.Buffer(clicks(0, 1, 2, 3, 12, 13), coir.Conflated)
		return stream.ForEach(ctx, newest, func(ctx context.Context, v int) error {
			fmt.Println(v)
			return coir.Sleep(ctx, time.Second)
		})
	})
	// Output:
	// 0
	// 3
	// 13
}

func ExampleBatch() {
	onVirtualTime(func(ctx context.Context, _ *coir.Nursery) error {
		show(ctx, stream.Batch(clicks(0, 1, 2, 3, 20, 21), 3, time.Second))
		return nil
	})
	// Output: [0 1 2] [3] [20 21] |
}

func ExampleThrottle() {
	onVirtualTime(func(ctx context.Context, _ *coir.Nursery) error {
		calls := stream.Throttle(stream.FromSlice([]string{"a", "b", "c"}), time.Second, 1)
		return stream.ForEach(ctx, calls, func(ctx context.Context, v string) error {
			fmt.Println(v, "at", coir.Now(ctx))
			return nil
		})
	})
	// Output:
	// a at 0s
	// b at 1s
	// c at 2s
}

func ExampleDebounce() {
	onVirtualTime(func(ctx context.Context, _ *coir.Nursery) error {
		show(ctx, stream.Debounce(clicks(0, 1, 2, 10, 20, 21), 5*tenth))
		return nil
	})
	// Output: 2 10 21 |
}

func ExampleSample() {
	onVirtualTime(func(ctx context.Context, _ *coir.Nursery) error {
		show(ctx, stream.Sample(clicks(1, 2, 12, 13, 31), time.Second))
		return nil
	})
	// Output: 2 13 31 |
}

// Each second, the consumer gets the last temperature that was measured.
func ExampleLatch() {
	onVirtualTime(func(ctx context.Context, _ *coir.Nursery) error {
		measured := stream.Concat(clicks(1, 15), stream.From(coir.NewChan[int](0))) // stays open
		newest := stream.Take(stream.Latch(measured), 4)
		return stream.ForEach(ctx, newest, func(ctx context.Context, degrees int) error {
			fmt.Println(degrees)
			return coir.Sleep(ctx, time.Second)
		})
	})
	// Output:
	// 1
	// 1
	// 15
	// 15
}

func ExampleTimeout() {
	onVirtualTime(func(ctx context.Context, _ *coir.Nursery) error {
		got, err := stream.ToSlice(ctx, stream.Timeout(clicks(0, 1, 30), time.Second))
		fmt.Println(got, errors.Is(err, coir.ErrTimeout))
		return nil
	})
	// Output: [0 1] true
}

func ExampleUntil() {
	onVirtualTime(func(ctx context.Context, n *coir.Nursery) error {
		open, stop := coir.WithCancel(ctx)
		n.Go("operator", func(ctx context.Context) error {
			defer stop()
			return coir.Sleep(ctx, 2500*time.Millisecond)
		})
		show(ctx, stream.Until(open, stream.Ticks(time.Second)))
		return nil
	})
	// Output: 1 1 |
}

// At a stop, the source ends, and the pipeline finishes what it has, for at most 10 s. In a program, the first context
// is that of signal.NotifyContext.
func ExampleUntil_withoutLoss() {
	onVirtualTime(func(ctx context.Context, n *coir.Nursery) error {
		ctx, stop := coir.WithCancel(ctx)
		defer stop()
		n.Go("signal", func(context.Context) error {
			defer stop()
			return coir.Sleep(ctx, 2500*time.Millisecond)
		})
		work, cancel := coir.WithGrace(ctx, 10*time.Second)
		defer cancel()
		orders := stream.Until(ctx, stream.Enumerate(stream.Ticks(time.Second), func(i, _ int) int { return i }))
		priced := stream.Parallel(orders, 8, func(ctx context.Context, order int) (string, error) {
			return fmt.Sprint("order ", order), coir.Sleep(ctx, 4*time.Second)
		})
		return stream.ForEach(work, priced, func(ctx context.Context, order string) error {
			fmt.Println(order, "is stored", coir.Now(ctx))
			return nil
		})
	})
	// Output:
	// order 0 is stored 5s
	// order 1 is stored 6s
}

func ExampleMerge() {
	onVirtualTime(func(ctx context.Context, _ *coir.Nursery) error {
		show(ctx, stream.Merge(clicks(1, 4, 5), clicks(2, 3, 6)))
		return nil
	})
	// Output: 1 2 3 4 5 6 |
}

// While the consumer was busy, both streams had an element.
func ExampleMergePriority() {
	onVirtualTime(func(ctx context.Context, _ *coir.Nursery) error {
		urgent, usual := clicks(2), clicks(0, 1, 3)
		return stream.ForEach(ctx, stream.MergePriority(urgent, usual), func(ctx context.Context, v int) error {
			fmt.Println(v)
			return coir.Sleep(ctx, time.Second)
		})
	})
	// Output:
	// 0
	// 2
	// 1
	// 3
}

func ExampleZip() {
	names, ages := stream.FromSlice([]string{"Ann", "Bob", "Cem"}), stream.FromSlice([]int{31, 42})
	show(context.Background(), stream.Zip(names, ages, func(name string, age int) string { return fmt.Sprint(name, age) }))
	// Output: Ann31 Bob42 |
}

func ExampleCombineLatest() {
	onVirtualTime(func(ctx context.Context, _ *coir.Nursery) error {
		show(ctx, stream.CombineLatest(clicks(0, 5), clicks(1, 2, 8), func(a, b int) string { return fmt.Sprintf("%d+%d", a, b) }))
		return nil
	})
	// Output: 0+1 0+2 5+2 5+8 |
}

func ExampleCatch() {
	broken := stream.FromSeq2(func(yield func(int, error) bool) { _ = yield(1, nil) && yield(0, io.ErrUnexpectedEOF) })
	show(context.Background(), stream.Catch(broken, func(err error) (stream.Stream[int], error) {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return stream.FromSlice([]int{-1}), nil
		}
		return stream.Stream[int]{}, err
	}))
	// Output: 1 -1 |
}

func ExampleRetry() {
	onVirtualTime(func(ctx context.Context, _ *coir.Nursery) error {
		tries := 0
		connect := stream.FlatMap(stream.FromSlice([]string{"db"}), func(string) stream.Stream[int] {
			return stream.FromFunc(func(context.Context) (int, error) {
				if tries++; tries < 3 {
					return 0, errors.New("refused")
				}
				return tries, io.EOF
			})
		})
		_, err := stream.Count(ctx, stream.Retry(connect, 5, time.Second, time.Minute))
		fmt.Println(tries, err)
		return nil
	})
	// Output: 3 <nil>
}

// slowest takes v tenths of a second.
func slowest(ctx context.Context, v int) (int, error) {
	return v, coir.Sleep(ctx, time.Duration(v)*tenth)
}

func ExampleParallel() {
	onVirtualTime(func(ctx context.Context, _ *coir.Nursery) error {
		show(ctx, stream.Parallel(stream.FromSlice([]int{9, 1, 5}), 3, slowest))
		return nil
	})
	// Output: 9 1 5 |
}

func ExampleParallelUnordered() {
	onVirtualTime(func(ctx context.Context, _ *coir.Nursery) error {
		show(ctx, stream.ParallelUnordered(stream.FromSlice([]int{9, 1, 5}), 3, slowest))
		return nil
	})
	// Output: 1 5 9 |
}

func ExampleParallelPerKey() {
	onVirtualTime(func(ctx context.Context, _ *coir.Nursery) error {
		odd := func(v int) bool { return v%2 == 1 }
		show(ctx, stream.ParallelPerKey(stream.FromSlice([]int{9, 1, 4, 2}), 3, odd, slowest))
		return nil
	})
	// Output: 4 2 9 1 |
}

func ExampleGroupBy() {
	words := stream.FromSlice([]string{"tea", "cake", "milk", "egg"})
	byLength := stream.GroupBy(words, 100, func(w string) int { return len(w) },
		func(ctx context.Context, n int, group stream.Stream[string]) (string, error) {
			all, err := stream.ToSlice(ctx, group)
			return fmt.Sprint(n, all), err
		})
	groups, err := stream.ToSlice(context.Background(), byLength)
	slices.Sort(groups)
	fmt.Println(groups, err)
	// Output: [3 [tea egg] 4 [cake milk]] <nil>
}

// The workers of this stage each have a connection of their own.
func ExampleStage() {
	double := func(ctx context.Context, in stream.Stream[int], emit func(ctx context.Context, v int) error) error {
		worker := func(ctx context.Context, in stream.Stream[int]) error {
			connection := func(v int) int { return 2 * v } // opened once for each worker
			return stream.ForEach(ctx, stream.Map(in, connection), emit)
		}
		return stream.FanOut(ctx, in, worker, worker)
	}
	sum, err := stream.Reduce(context.Background(), stream.Stage(stream.FromSlice([]int{1, 2, 3}), double), 0,
		func(a, v int) int { return a + v })
	fmt.Println(sum, err)
	// Output: 12 <nil>
}

// This stage waits for its input and for time. It repeats the last element each second until the next one comes.
func ExampleStage_select() {
	repeat := func(ctx context.Context, in stream.Stream[int], emit func(ctx context.Context, v int) error) error {
		return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			next := stream.Downstream(n, "next", in, 0) // a channel, for Select
			last, err := next.Recv(ctx)
			for err == nil {
				if err := emit(ctx, last); err != nil {
					return err
				}
				_, err = coir.Select(ctx, next.RecvCase(&last), coir.After(time.Second))
			}
			if errors.Is(err, coir.ErrClosed) {
				return nil // the input has ended
			}
			return err
		})
	}
	onVirtualTime(func(ctx context.Context, _ *coir.Nursery) error {
		show(ctx, stream.Stage(clicks(0, 25, 30), repeat))
		return nil
	})
	// Output: 0 0 0 25 30 |
}

func ExampleMonitor() {
	onVirtualTime(func(ctx context.Context, _ *coir.Nursery) error {
		var m stream.Meter
		err := stream.ForEach(ctx, stream.Monitor(clicks(0, 10, 20), &m), func(ctx context.Context, _ int) error {
			return coir.Sleep(ctx, 5*tenth)
		})
		now, s := coir.Now(ctx), m.Stats()
		fmt.Printf("%d elements, %.1f a second, waited %v for them and %v for the consumer\n",
			s.Elements, s.Rate(now), s.Input, s.Output)
		return err
	})
	// Output: 3 elements, 1.2 a second, waited 1s for them and 1.5s for the consumer
}

func ExampleTee() {
	var sum, n int
	err := stream.Tee(context.Background(), stream.FromSlice([]int{1, 2, 3}), 1,
		func(ctx context.Context, s stream.Stream[int]) (err error) {
			sum, err = stream.Reduce(ctx, s, 0, func(a, v int) int { return a + v })
			return err
		},
		func(ctx context.Context, s stream.Stream[int]) (err error) {
			n, err = stream.Count(ctx, s)
			return err
		})
	fmt.Println(sum, n, err)
	// Output: 6 3 <nil>
}

func ExampleFanOut() {
	var n [2]int
	worker := func(i int) stream.Consumer[int] {
		return func(ctx context.Context, s stream.Stream[int]) (err error) {
			n[i], err = stream.Count(ctx, s)
			return err
		}
	}
	err := stream.FanOut(context.Background(), stream.FromSlice([]int{1, 2, 3}), worker(0), worker(1))
	fmt.Println(n[0]+n[1], err)
	// Output: 3 <nil>
}

func ExamplePartition() {
	var small, large []int
	into := func(all *[]int) stream.Consumer[int] {
		return func(ctx context.Context, s stream.Stream[int]) (err error) {
			*all, err = stream.ToSlice(ctx, s)
			return err
		}
	}
	err := stream.Partition(context.Background(), stream.FromSlice([]int{1, 20, 3}), 1, func(v int) int { return v / 20 },
		into(&small), into(&large))
	fmt.Println(small, large, err)
	// Output: [1 3] [20] <nil>
}

func ExampleDownstream() {
	onVirtualTime(func(ctx context.Context, n *coir.Nursery) error {
		numbers := stream.Downstream(n, "numbers", stream.FromSeq(count), 0)
		defer numbers.Close() // ends the stream
		for range 2 {
			fmt.Println(numbers.Recv(ctx))
		}
		return nil
	})
	// Output:
	// 0 <nil>
	// 1 <nil>
}

func upper(s stream.Stream[string]) stream.Stream[string] { return stream.Map(s, strings.ToUpper) }

func ExampleUpstream() {
	onVirtualTime(func(ctx context.Context, n *coir.Nursery) error {
		out := coir.NewChan[string](2)
		in := stream.Upstream(n, "upper", out, 0, upper)
		_, err := in.SendMany(ctx, []string{"a", "b"})
		in.Close()
		show(ctx, stream.From(out))
		return err
	})
	// Output: A B |
}

func ExampleTwoEnded() {
	onVirtualTime(func(ctx context.Context, n *coir.Nursery) error {
		in, out := stream.TwoEnded(n, "upper", 1, upper)
		err := in.Send(ctx, "a")
		in.Close()
		show(ctx, stream.From(out))
		return err
	})
	// Output: A |
}
