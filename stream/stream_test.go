package stream_test

// Properties of single stages. How the stages end is tested in table_test.go.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
	"github.com/coir-go/coir/stream"
)

// simulated runs fn under schedules of package sim. If fn returns an error, the test fails.
func simulated(t *testing.T, fn func(ctx context.Context, s *sim.Sim) error) {
	t.Helper()
	n := 1000
	if testing.Short() {
		n = 100
	}
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		if err := fn(ctx, s); err != nil {
			s.Errorf("%v", err)
		}
	}, sim.WithSchedules(n))
}

// gauge counts what is running.
type gauge struct{ now, most atomic.Int64 }

func (g *gauge) enter() int64 {
	now := g.now.Add(1)
	for most := g.most.Load(); now > most && !g.most.CompareAndSwap(most, now); most = g.most.Load() {
	}
	return now
}

func (g *gauge) leave() { g.now.Add(-1) }

func ints(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// timed returns a stream of letters, each of which takes a tenth of a second; a dash is a tenth of a second without an
// element. A bar at the end ends the stream, and an X fails it. This is the notation of the marble diagrams.
func timed(marbles string) stream.Stream[string] {
	return stream.FlatMap(stream.FromSlice([]string{marbles}), func(m string) stream.Stream[string] {
		i := -1
		return stream.FromFunc(func(ctx context.Context) (string, error) {
			for {
				i++
				switch {
				case i == len(m) || m[i] == '|':
					return "", io.EOF
				case m[i] == 'X':
					return "", errBoom
				}
				if i > 0 {
					if err := coir.Sleep(ctx, time.Second/10); err != nil {
						return "", err
					}
				}
				if m[i] != '-' {
					return m[i : i+1], nil
				}
			}
		})
	})
}

// drawn runs s and draws when its elements came, in the notation of timed. Elements that come at the same time are in
// brackets.
func drawn(ctx context.Context, s stream.Stream[string]) (string, error) {
	var b strings.Builder
	began, last := coir.Now(ctx), -1
	for v, err := range s.All(ctx) {
		now := int((coir.Now(ctx) - began + time.Second/20) / (time.Second / 10))
		for ; last < now-1; last++ {
			b.WriteByte('-')
		}
		last = now
		if err != nil {
			b.WriteByte('X')
			return b.String(), err
		}
		b.WriteString(v)
	}
	return b.String() + "|", nil
}

// TestTime checks that stages that depend on time pass elements at the times of their diagrams.
func TestTime(t *testing.T) {
	const tenth = time.Second / 10
	join := func(s stream.Stream[[]string]) stream.Stream[string] {
		return stream.Map(s, func(batch []string) string { return "(" + strings.Join(batch, "") + ")" })
	}
	for _, test := range []struct {
		name, want string
		s          stream.Stream[string]
		err        error
	}{
		{name: "Batch", want: "----(abc)-------(d)(e)|", s: join(stream.Batch(timed("a-b-c-d------e|"), 3, 5*tenth+tenth/2))},
		{name: "Throttle", want: "a---b---c---d|", s: stream.Throttle(timed("abc-d|"), 4*tenth, 1)},
		{name: "Throttle burst", want: "ab--c---d|", s: stream.Throttle(timed("abc-d|"), 4*tenth, 2)},
		{name: "Debounce", want: "-------c-----d-e|", s: stream.Debounce(timed("a-b-c-----d---ee|"), 2*tenth+tenth/2)},
		{name: "Sample", want: "---b--c----d|", s: stream.Sample(timed("a-b-c------d|"), 3*tenth+tenth/10)},
		{name: "Timeout", want: "a-b--X", s: stream.Timeout(timed("a-b------c|"), 3*tenth+tenth/10), err: coir.ErrTimeout},
		{name: "Timeout not", want: "a-b--c|", s: stream.Timeout(timed("a-b--c|"), 4*tenth)},
	} {
		t.Run(test.name, func(t *testing.T) {
			simulated(t, func(ctx context.Context, _ *sim.Sim) error {
				got, err := drawn(ctx, test.s)
				if got != test.want || !errors.Is(err, test.err) {
					return fmt.Errorf("%s, error %w; want %s", got, err, test.want)
				}
				return nil
			})
		})
	}
}

// TestLatchRepeats checks that a consumer with its own pace gets the newest element each time.
func TestLatchRepeats(t *testing.T) {
	simulated(t, func(ctx context.Context, _ *sim.Sim) error {
		got := ""
		prices := stream.Latch(timed("a-----b---c-------|"))
		err := stream.ForEach(ctx, prices, func(ctx context.Context, p string) error {
			got += p
			return coir.Sleep(ctx, 3*time.Second/10+time.Second/100)
		})
		if err != nil || got != "aabbcc" {
			return fmt.Errorf("%q, error %w", got, err)
		}
		return nil
	})
}

// TestUntilLosesNothing checks that each element that the source has made reaches the sink, whenever the stop comes and
// whatever the stages behind Until are, and that the source then makes no more.
func TestUntilLosesNothing(t *testing.T) {
	for name, behind := range map[string]func(stream.Stream[int]) stream.Stream[int]{
		"nothing":  func(s stream.Stream[int]) stream.Stream[int] { return s },
		"Map":      func(s stream.Stream[int]) stream.Stream[int] { return stream.Map(s, func(v int) int { return v }) },
		"Buffer":   func(s stream.Stream[int]) stream.Stream[int] { return stream.Buffer(s, 2) },
		"Batch":    func(s stream.Stream[int]) stream.Stream[int] { return flat(stream.Batch(s, 3, 5*time.Millisecond)) },
		"Throttle": func(s stream.Stream[int]) stream.Stream[int] { return stream.Throttle(s, time.Millisecond, 1) },
		"Parallel": func(s stream.Stream[int]) stream.Stream[int] {
			return stream.Parallel(s, 2, func(ctx context.Context, v int) (int, error) {
				return v, coir.Sleep(ctx, time.Duration(3-v%3)*time.Millisecond)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			simulated(t, func(ctx context.Context, s *sim.Sim) error {
				made, after := 0, 0
				open, stop := coir.WithCancel(ctx)
				defer stop()
				source := stream.FromFunc(func(ctx context.Context) (int, error) {
					if err := coir.Sleep(ctx, time.Duration(1+s.Intn(2))*time.Millisecond); err != nil {
						return 0, err
					}
					if open.Err() != nil {
						after++
					}
					made++
					return made, nil
				})
				return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
					n.Go("stop", func(ctx context.Context) error {
						defer stop()
						return coir.Sleep(ctx, time.Duration(s.Intn(8))*time.Millisecond)
					})
					got, err := stream.ToSlice(ctx, behind(stream.Until(open, source)))
					if !slices.Equal(got, ints(made + 1)[1:]) || after > 1 || open.Err() == nil {
						return fmt.Errorf("%d elements were made, %d of them after the stop, and %v came: %w", made, after, got, err)
					}
					s.Sometimes(made == 0, "no element")
					s.Sometimes(made > 3, "several elements")
					return err
				})
			})
		})
	}
}

// TestUntilEndsInput checks how Until ends a source that waits forever, for each kind of context, and that a channel
// keeps what the stream has not taken.
func TestUntilEndsInput(t *testing.T) {
	for name, scope := range map[string]func(ctx context.Context) (context.Context, context.CancelFunc){
		"WithCancel":      coir.WithCancel,
		"package context": context.WithCancel,
		"value": func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := coir.WithCancel(ctx)
			return context.WithValue(ctx, anyKey{}, 1), cancel
		},
		"WithTimeout": func(ctx context.Context) (context.Context, context.CancelFunc) {
			in, cancel := coir.WithTimeout(ctx, time.Second)
			return in, func() { defer cancel(); _ = coir.Sleep(ctx, time.Minute) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			simulated(t, func(ctx context.Context, s *sim.Sim) error {
				open, stop := scope(ctx)
				defer stop()
				c := coir.NewChan[int](coir.Unbounded)
				return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
					n.Go("send", func(ctx context.Context) error {
						_, err := c.SendMany(ctx, ints(3))
						return ignoreClosed(err)
					})
					n.Go("stop", func(context.Context) error { stop(); return nil })
					st := stream.Until(open, stream.From(c))
					got, err := stream.ToSlice(ctx, st)
					again, errAgain := stream.ToSlice(ctx, st) // the context has ended
					s.Sometimes(len(got) == 0 || name == "WithTimeout", "nothing came")
					s.Sometimes(len(got) == 3, "all came")
					if len(again) > 0 || errAgain != nil || !slices.Equal(got, ints(len(got))) {
						return fmt.Errorf("%v, then %v, %w", got, again, errAgain)
					}
					n.Go("rest", func(ctx context.Context) error {
						c.Close()
						rest, err := stream.ToSlice(ctx, stream.From(c))
						if all := append(got, rest...); !slices.Equal(all, ints(len(all))) {
							return fmt.Errorf("%v, and %v in the channel", got, rest)
						}
						return err
					})
					return err
				})
			})
		})
	}
}

type anyKey struct{}

func ignoreClosed(err error) error {
	if errors.Is(err, coir.ErrClosed) {
		return nil
	}
	return err
}

// TestUntilAndErrors checks which error the sink returns: that of its own context, that of the source before the stop,
// and none of the source after the stop.
func TestUntilAndErrors(t *testing.T) {
	simulated(t, func(ctx context.Context, s *sim.Sim) error {
		open, stop := coir.WithCancel(ctx)
		defer stop()
		own, leave := coir.WithCancel(ctx)
		defer leave()
		late := stream.FromFunc(func(ctx context.Context) (int, error) {
			_ = coir.WaitCancel(ctx)
			return 0, errBoom
		})
		if _, err := stream.Count(ctx, stream.Until(open, stream.FromFunc(func(context.Context) (int, error) { return 0, errBoom }))); !errors.Is(err, errBoom) {
			return fmt.Errorf("an error before the stop: %w", err)
		}
		return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("both", func(ctx context.Context) error {
				if _, err := stream.Count(own, stream.Until(own, late)); !errors.Is(err, context.Canceled) {
					return fmt.Errorf("the stop is the cancel of the sink: %w", err)
				}
				return nil
			})
			n.Go("leave", func(context.Context) error { leave(); return nil })
			n.Go("stop", func(context.Context) error { stop(); return nil })
			if _, err := stream.Count(ctx, stream.Until(open, late)); err != nil {
				return fmt.Errorf("an error after the stop: %w", err)
			}
			return nil
		})
	})
}

// TestUntilIsInTheLoop checks that Until needs no fiber, and passes on what the functions of stages do unchanged.
func TestUntilIsInTheLoop(t *testing.T) {
	ctx, stop := coir.WithCancel(context.Background())
	defer stop()
	s := stream.Until(ctx, stream.FromSlice(ints(3)))
	if got := s.Explain(); got != "loop 1: FromSlice, Until\n" {
		t.Errorf("it runs as\n%s", got)
	}
	defer func() {
		if v := recover(); v != "boom" {
			t.Errorf("the panic is %v", v)
		}
		if got, err := stream.ToSlice(context.Background(), s); err != nil || !slices.Equal(got, ints(3)) {
			t.Errorf("after a panic: %v, %v", got, err)
		}
	}()
	_, _ = stream.Count(context.Background(), stream.Map(s, func(int) int { panic("boom") }))
}

// TestMergeKeepsTheOrderOfEachInput checks that no element is lost, that the elements of each input stay in order, and
// that inputs take turns.
func TestMergeKeepsTheOrderOfEachInput(t *testing.T) {
	simulated(t, func(ctx context.Context, s *sim.Sim) error {
		merged := stream.Merge(stream.FromSlice([]int{1, 2, 3}), stream.FromSlice([]int{11, 12, 13}), stream.Stream[int]{})
		got, err := stream.ToSlice(ctx, merged)
		var small, large []int
		for _, v := range got {
			if v < 10 {
				small = append(small, v)
			} else {
				large = append(large, v)
			}
		}
		if !slices.Equal(small, []int{1, 2, 3}) || !slices.Equal(large, []int{11, 12, 13}) {
			return fmt.Errorf("%v, error %w", got, err)
		}
		s.Sometimes(got[0] == 11, "the second input is first")
		s.Sometimes(got[1] > 10 && got[0] < 10 && got[2] < 10, "they take turns")
		return err
	})
}

// TestMergePriority checks that if both inputs have an element when the consumer asks, it gets that of the first input.
func TestMergePriority(t *testing.T) {
	simulated(t, func(ctx context.Context, _ *sim.Sim) error {
		order := ""
		err := stream.ForEach(ctx, stream.MergePriority(timed("-ab|"), timed("cde|")), func(ctx context.Context, v string) error {
			order += v
			return coir.Sleep(ctx, time.Second)
		})
		if err != nil || order != "cabde" {
			return fmt.Errorf("%s, error %w", order, err)
		}
		return nil
	})
}

// TestZipEndsWithTheShorter checks that Zip ends with the shorter stream, even if the other waits forever.
func TestZipEndsWithTheShorter(t *testing.T) {
	simulated(t, func(ctx context.Context, _ *sim.Sim) error {
		pair := func(a, b int) int { return 10*a + b }
		for _, s := range []stream.Stream[int]{
			stream.Zip(stream.FromSlice([]int{1, 2}), stream.FromSeq(count), pair),
			stream.Zip(stream.FromSlice([]int{1, 2, 3}), stream.FromSlice([]int{0, 1}), pair),
		} {
			got, err := stream.ToSlice(ctx, s)
			if err != nil || !slices.Equal(got, []int{10, 21}) {
				return fmt.Errorf("%v, error %w", got, err)
			}
		}
		return nil
	})
}

// TestCombineLatest checks that each new element makes a combination, once both streams have one.
func TestCombineLatest(t *testing.T) {
	simulated(t, func(ctx context.Context, _ *sim.Sim) error {
		both := stream.CombineLatest(timed("a-----b-----|"), timed("--1-2-----3-|"), func(a, b string) string { return "(" + a + b + ")" })
		got, err := drawn(ctx, both)
		if want := "--(a1)-(a2)-(b2)---(b3)|"; err != nil || got != want {
			return fmt.Errorf("%s, error %w; want %s", got, err, want)
		}
		return nil
	})
}

// TestParallelKeepsTheOrder checks that results are in order whatever order the calls end in, and that at most n calls
// run at a time.
//
// Spec: ST-07 (an ordered stage keeps the order of inputs)
func TestParallelKeepsTheOrder(t *testing.T) {
	simulated(t, func(ctx context.Context, s *sim.Sim) error {
		var calls gauge
		got, err := stream.ToSlice(ctx, stream.Parallel(stream.FromSlice(ints(14)), 3, func(ctx context.Context, v int) (int, error) {
			calls.enter()
			defer calls.leave()
			if v == 0 {
				return v, coir.Sleep(ctx, time.Second) // later results must wait
			}
			return v, coir.Yield(ctx)
		}))
		most := calls.most.Load()
		if !slices.Equal(got, ints(14)) || most > 3 {
			return fmt.Errorf("%v, %d at a time, error %w", got, most, err)
		}
		s.Sometimes(most == 3, "three calls at a time")
		return err
	})
}

// TestParallelPerKey checks that the elements of one key are processed one after another, and those of different keys
// at the same time.
func TestParallelPerKey(t *testing.T) {
	simulated(t, func(ctx context.Context, s *sim.Sim) error {
		var (
			calls gauge
			ofKey [3]gauge
			got   [3][]int
		)
		err := stream.ForEach(ctx, stream.ParallelPerKey(stream.FromSlice(ints(12)), 2, func(v int) int { return v % 3 },
			func(ctx context.Context, v int) (int, error) {
				calls.enter()
				defer calls.leave()
				if ofKey[v%3].enter() > 1 {
					s.Errorf("two calls for key %d", v%3)
				}
				defer ofKey[v%3].leave()
				return v, coir.Yield(ctx)
			}), func(_ context.Context, v int) error {
			got[v%3] = append(got[v%3], v)
			return nil
		})
		for k := range got {
			if len(got[k]) != 4 || !slices.IsSorted(got[k]) {
				return fmt.Errorf("key %d: %v", k, got[k])
			}
		}
		s.Sometimes(calls.most.Load() == 2, "two keys at a time")
		return err
	})
}

// TestParallelFails checks that the results before a failure come first, that the failure is returned once, and that
// Parallel waits for running calls.
//
// Spec: ST-08 (an ordered stage waits for started work)
func TestParallelFails(t *testing.T) {
	simulated(t, func(ctx context.Context, _ *sim.Sim) error {
		var calls gauge
		got, err := stream.ToSlice(ctx, stream.Parallel(stream.FromSeq(count), 3, func(ctx context.Context, v int) (int, error) {
			calls.enter()
			defer calls.leave()
			if v == 4 {
				return 0, errBoom
			}
			return v, coir.Yield(ctx)
		}))
		running := calls.now.Load()
		if !slices.Equal(got, ints(4)) || err != errBoom || running != 0 { //nolint:errorlint // not wrapped
			return fmt.Errorf("%v, %d calls run, error %w", got, running, err)
		}
		return nil
	})
}

// TestLargeSizes checks that a size is only a limit, and takes no memory until there are that many elements.
func TestLargeSizes(t *testing.T) {
	same := func(_ context.Context, v int) (int, error) { return v, nil }
	id := func(v int) int { return v }
	for _, size := range []int{math.MaxInt/4 + 1, math.MaxInt / 2, math.MaxInt} {
		for name, build := range map[string]func(s stream.Stream[int]) stream.Stream[int]{
			"Parallel":          func(s stream.Stream[int]) stream.Stream[int] { return stream.Parallel(s, size, same) },
			"ParallelUnordered": func(s stream.Stream[int]) stream.Stream[int] { return stream.ParallelUnordered(s, size, same) },
			"ParallelPerKey":    func(s stream.Stream[int]) stream.Stream[int] { return stream.ParallelPerKey(s, size, id, same) },
			"Batch by size":     func(s stream.Stream[int]) stream.Stream[int] { return flat(stream.Batch(s, size, 0)) },
			"Batch by time":     func(s stream.Stream[int]) stream.Stream[int] { return flat(stream.Batch(s, size, time.Hour)) },
			"Buffer":            func(s stream.Stream[int]) stream.Stream[int] { return stream.Buffer(s, size) },
			"GroupBy": func(s stream.Stream[int]) stream.Stream[int] {
				return stream.GroupBy(s, size, id, func(ctx context.Context, _ int, g stream.Stream[int]) (int, error) {
					return stream.First(ctx, g)
				})
			},
		} {
			got, err := stream.ToSlice(context.Background(), build(stream.FromSlice(ints(3000))))
			slices.Sort(got)
			if !slices.Equal(got, ints(3000)) || err != nil {
				t.Errorf("%s(%d): %d elements, error %v", name, size, len(got), err)
			}
		}
		err := stream.Tee(context.Background(), stream.FromSlice(ints(3)), size,
			func(ctx context.Context, s stream.Stream[int]) error {
				if n, err := stream.Count(ctx, s); n != 3 {
					return fmt.Errorf("%d elements, error %w", n, err)
				}
				return nil
			})
		if err != nil {
			t.Errorf("Tee(%d): %v", size, err)
		}
	}
}

// TestLargeBatches checks that batches larger than their first capacity become full, or end at their time.
func TestLargeBatches(t *testing.T) {
	for _, linger := range []time.Duration{0, time.Hour} {
		batches, err := stream.ToSlice(context.Background(), stream.Batch(stream.FromSlice(ints(7000)), 3000, linger))
		if err != nil || len(batches) != 3 || !slices.Equal(slices.Concat(batches...), ints(7000)) {
			t.Errorf("linger %v: %d batches, error %v", linger, len(batches), err)
			continue
		}
		for i, want := range []int{3000, 3000, 1000} {
			if len(batches[i]) != want {
				t.Errorf("linger %v: batch %d has %d elements", linger, i, len(batches[i]))
			}
		}
	}
	simulated(t, func(ctx context.Context, _ *sim.Sim) error {
		batches, err := stream.ToSlice(ctx, stream.Batch(timed("a-b-c-d-------e-|"), 2000, 450*time.Millisecond))
		got := make([]string, len(batches))
		for i, b := range batches {
			got[i] = strings.Join(b, "")
		}
		if !slices.Equal(got, []string{"abc", "d", "e"}) || err != nil {
			return fmt.Errorf("%q, error %w", got, err)
		}
		return nil
	})
}

// TestParallelGrows grows the window while elements are in progress, in all orders.
func TestParallelGrows(t *testing.T) {
	all := ints(1000)
	for _, s := range []stream.Stream[int]{
		stream.Parallel(stream.FromSlice(all), 200, func(ctx context.Context, v int) (int, error) {
			return v, coir.Sleep(ctx, time.Duration(v*7%13)*time.Millisecond)
		}),
		stream.ParallelPerKey(stream.FromSlice(all), 200, func(int) int { return 1 },
			func(ctx context.Context, v int) (int, error) { return v, coir.Yield(ctx) }),
	} {
		sim.Test(t, func(ctx context.Context, sm *sim.Sim) {
			if got, err := stream.ToSlice(ctx, s); !slices.Equal(got, all) || err != nil {
				sm.Errorf("%v, error %v", got, err)
			}
		}, sim.WithSchedules(3))
	}
}

// TestGoexitInAWorker checks that a Goexit ends the stream with an error, and that nothing hangs.
func TestGoexitInAWorker(t *testing.T) {
	for _, s := range []stream.Stream[int]{
		stream.Parallel(stream.FromSlice(ints(5)), 2, func(_ context.Context, v int) (int, error) {
			if v == 3 {
				runtime.Goexit()
			}
			return v, nil
		}),
		stream.Buffer(stream.Map(stream.FromSlice(ints(5)), func(v int) int {
			if v == 3 {
				runtime.Goexit()
			}
			return v
		}), 1),
	} {
		simulated(t, func(ctx context.Context, _ *sim.Sim) error {
			got, err := stream.ToSlice(ctx, s)
			if !slices.Equal(got, ints(3)) || !errors.Is(err, coir.ErrGoexit) {
				return fmt.Errorf("%v, error %w", got, err)
			}
			return nil
		})
	}
}

// TestGoexitInGroupBy checks that a Goexit in the input or in the key function closes the open groups.
func TestGoexitInGroupBy(t *testing.T) {
	exit := func(v int) int {
		if v == 3 {
			runtime.Goexit()
		}
		return v
	}
	sum := func(ctx context.Context, _ int, group stream.Stream[int]) (int, error) {
		return stream.Count(ctx, group)
	}
	same := func(v int) int { return v }
	for name, s := range map[string]stream.Stream[int]{
		"input": stream.GroupBy(stream.Map(stream.FromSlice(ints(9)), exit), 8, same, sum),
		"key":   stream.GroupBy(stream.FromSlice(ints(9)), 8, exit, sum),
		"bound": stream.GroupBy(stream.FromSlice(ints(9)), 1, exit, sum),
	} {
		t.Run(name, func(t *testing.T) {
			simulated(t, func(ctx context.Context, _ *sim.Sim) error {
				if _, err := stream.Count(ctx, s); !errors.Is(err, coir.ErrGoexit) {
					return fmt.Errorf("got %w", err)
				}
				return nil
			})
			if _, err := stream.Count(context.Background(), s); !errors.Is(err, coir.ErrGoexit) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestGroupByUnderItsBound checks that no more groups are open than the bound, and that each element is in a group of
// its key.
func TestGroupByUnderItsBound(t *testing.T) {
	simulated(t, func(ctx context.Context, s *sim.Sim) error {
		var open gauge
		sum, groups := 0, 0
		err := stream.ForEach(ctx, stream.GroupBy(stream.FromSlice([]int{1, 2, 1, 3, 1, 2, 2, 3}), 2, func(v int) int { return v },
			func(ctx context.Context, k int, group stream.Stream[int]) (int, error) {
				open.enter()
				defer open.leave()
				return stream.Reduce(ctx, group, 0, func(a, v int) int {
					if v != k {
						s.Errorf("%d in the group of %d", v, k)
					}
					return a + v
				})
			}), func(_ context.Context, v int) error {
			sum += v
			groups++
			return nil
		})
		most := open.most.Load()
		if err != nil || sum != 15 || most > 2 || groups < 4 {
			return fmt.Errorf("sum %d of %d groups, %d open, error %w", sum, groups, most, err)
		}
		s.Sometimes(most == 2, "two groups are open")
		return nil
	})
}

// TestRetry checks that each failure is retried, after longer and longer waits, and that an element resets the count.
func TestRetry(t *testing.T) {
	simulated(t, func(ctx context.Context, _ *sim.Sim) error {
		runs := 0
		flaky := stream.FromFunc(func(context.Context) (int, error) {
			runs++
			if runs == 3 {
				return runs, nil
			}
			return 0, errBoom
		})
		began := coir.Now(ctx)
		got, err := stream.ToSlice(ctx, stream.Retry(flaky, 2, time.Second, 2*time.Second))
		took := coir.Now(ctx) - began
		if !slices.Equal(got, []int{3}) || err != errBoom || runs != 6 || took < 3*time.Second || took > 6*time.Second { //nolint:errorlint // not wrapped
			return fmt.Errorf("%v in %d runs, %v, error %w", got, runs, took, err)
		}
		return nil
	})
}

// If a stage would continue after a failure, and does not because its context has ended, it returns the error of the
// context. If the failure is that error with more detail, the stage returns the failure.
func TestNoMoreAfterTheContext(t *testing.T) {
	other := func(error) (stream.Stream[int], error) { return stream.FromSlice(ints(1)), nil }
	for name, stage := range map[string]func(stream.Stream[int]) stream.Stream[int]{
		"Retry": func(s stream.Stream[int]) stream.Stream[int] { return stream.Retry(s, math.MaxInt, 0, 0) },
		"Retry with waits": func(s stream.Stream[int]) stream.Stream[int] {
			return stream.Retry(s, math.MaxInt, time.Millisecond, time.Second)
		},
		"Retry behind a buffer": func(s stream.Stream[int]) stream.Stream[int] {
			return stream.Buffer(stream.Retry(s, math.MaxInt, 0, 0), 1)
		},
		"Catch": func(s stream.Stream[int]) stream.Stream[int] { return stream.Catch(s, other) },
		"Retry of Catch": func(s stream.Stream[int]) stream.Stream[int] {
			return stream.Retry(stream.Catch(s, func(err error) (stream.Stream[int], error) { return s, nil }), 9, 0, 0)
		},
	} {
		for _, words := range []string{"", "while cancelled"} {
			ctx, cancel := coir.WithCancel(t.Context())
			runs := 0
			s := stream.FromFunc(func(ctx context.Context) (int, error) {
				if runs++; runs == 3 || name == "Catch" {
					cancel()
				}
				if words != "" && ctx.Err() != nil {
					return 0, fmt.Errorf("%s: %w", words, ctx.Err())
				}
				return 0, errBoom
			})
			_, err := stream.Count(ctx, stage(s))
			if !errors.Is(err, context.Canceled) || errors.Is(err, errBoom) {
				t.Errorf("%s: %v", name, err)
			}
			if name != "Retry behind a buffer" && !strings.Contains(fmt.Sprint(err), words) {
				t.Errorf("%s: %v, without %q", name, err, words)
			}
		}
	}
}

// TestCatch checks that Catch continues with the other stream after a failure, and that a cancellation is not a
// failure.
func TestCatch(t *testing.T) {
	simulated(t, func(ctx context.Context, _ *sim.Sim) error {
		got, err := drawn(ctx, stream.Catch(timed("a-bX"), func(err error) (stream.Stream[string], error) {
			return timed("c-d|"), nil
		}))
		if err != nil || got != "a-c-d|" && got != "a-bc-d|" {
			return fmt.Errorf("%s, error %w", got, err)
		}
		_, err = stream.Count(ctx, stream.Catch(timed("aX"), func(err error) (stream.Stream[string], error) {
			return stream.Stream[string]{}, fmt.Errorf("seen: %w", err)
		}))
		if err == nil || err.Error() != "seen: boom" {
			return fmt.Errorf("error %w", err)
		}
		return nil
	})
}

// TestTakeAsksForNoMore checks that a source makes only as many elements as are taken.
func TestTakeAsksForNoMore(t *testing.T) {
	ctx := context.Background()
	made := 0
	s := stream.Map(stream.FromSlice(ints(1000)), func(v int) int { made++; return v })
	for _, n := range []int{0, 1, 5, 300} {
		made = 0
		got, err := stream.ToSlice(ctx, stream.Take(s, n))
		if err != nil || len(got) != n || made != n {
			t.Errorf("Take(%d): %d elements, %d made, error %v", n, len(got), made, err)
		}
	}
	made = 0
	if v, err := stream.First(ctx, s); v != 0 || err != nil || made != 1 {
		t.Errorf("First: %d, %d made, error %v", v, made, err)
	}
	if _, err := stream.First(ctx, stream.Take(s, 0)); !errors.Is(err, stream.ErrEmpty) {
		t.Errorf("First of nothing: %v", err)
	}
}

// TestWrappedEOF checks that only io.EOF itself is the end.
func TestWrappedEOF(t *testing.T) {
	wrapped := fmt.Errorf("header: %w", io.EOF)
	_, err := stream.Count(context.Background(), stream.FromFunc(func(context.Context) (int, error) { return 0, wrapped }))
	if err != wrapped { //nolint:errorlint // must be returned unchanged
		t.Errorf("error %v", err)
	}
}

// TestGroupByNaN checks that a key that is not equal to itself opens a new group each time, within the bound.
func TestGroupByNaN(t *testing.T) {
	groups := stream.GroupBy(stream.FromSlice(ints(20)), 3, func(int) float64 { return math.NaN() },
		func(ctx context.Context, _ float64, group stream.Stream[int]) (int, error) {
			return stream.Count(ctx, group)
		})
	if n, err := stream.Count(context.Background(), groups); n != 20 || err != nil {
		t.Errorf("%d groups, error %v", n, err)
	}
}

// TestMonitor checks the counts and the measured times.
func TestMonitor(t *testing.T) {
	simulated(t, func(ctx context.Context, _ *sim.Sim) error {
		var m stream.Meter
		began := coir.Now(ctx)
		err := stream.ForEach(ctx, stream.Monitor(timed("--a-b-----c-|"), &m), func(ctx context.Context, _ string) error {
			return coir.Sleep(ctx, time.Second)
		})
		st, now := m.Stats(), coir.Now(ctx)
		if err != nil || st.Elements != 3 || st.Running != 0 || st.Failures != 0 || st.Since != began || st.Output != 3*time.Second ||
			st.Input != time.Second || st.Rate(now) != 3/(now-began).Seconds() || st.Lag(now) != time.Second+time.Second/10 {
			return fmt.Errorf("%+v, rate %v, lag %v, error %w", st, st.Rate(now), st.Lag(now), err)
		}
		return nil
	})
}

// TestExplain checks the text of a plan.
func TestExplain(t *testing.T) {
	squares := stream.Map(stream.FromSlice(ints(3)), func(v int) int { return v * v })
	s := stream.Merge(stream.Take(squares, 5), stream.Buffer(stream.Filter(squares, func(int) bool { return true }), 16))
	s = stream.Skip(stream.Parallel(s, 4, func(_ context.Context, v int) (int, error) { return v, nil }), 1)
	s = stream.Map(stream.Concat(s, stream.Stream[int]{}), func(v int) int { return v })
	s = stream.Stage(s, func(ctx context.Context, s stream.Stream[int], emit emitter) error {
		return stream.ForEach(ctx, s, emit)
	})
	want := `loop 1: FromSlice, Map, Take(5)
loop 2: FromSlice, Map, Filter
  boundary: channel of 16
loop 3: Buffer
  boundary: channel of 0, from loops 1, 3
loop 4: Merge
  boundary: 4 workers, at most 16 elements
loop 5: Parallel, Skip(1)
loop 6: Empty
  one after the other: loops 5, 6
loop 7: Concat, Map
  boundary: a fiber that runs the function, channel of 0
loop 8: Stage
`
	if got := s.Explain(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestNoFiberInALoop checks that stages that need no concurrency run in the caller and start no fibers.
func TestNoFiberInALoop(t *testing.T) {
	err := coir.Run(context.Background(), func(ctx context.Context, _ *coir.Nursery) error {
		self := coir.Self(ctx)
		before := coir.Default().Stats().Spawned
		s := stream.MapErr(stream.FromSlice(ints(10)), func(ctx context.Context, v int) (int, error) {
			if coir.Self(ctx) != self {
				t.Error("another fiber")
			}
			return v, nil
		})
		s = flat(stream.Batch(stream.Distinct(stream.Skip(s, 1)), 3, 0))
		n, err := stream.Count(ctx, stream.Concat(s, stream.Take(s, 2)))
		if spawned := coir.Default().Stats().Spawned - before; n != 11 || spawned != 0 {
			t.Errorf("%d elements, %d fibers", n, spawned)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestSpawnForms checks that stages with pipes at their ends compose, and end from either side.
//
// Spec: ST-05 (combinators compose)
// Spec: ST-09 (a combinator runs here or in its own fiber)
func TestSpawnForms(t *testing.T) {
	double := func(s stream.Stream[int]) stream.Stream[int] { return stream.Map(s, func(v int) int { return 2 * v }) }
	simulated(t, func(ctx context.Context, _ *sim.Sim) error {
		return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			out := coir.NewChan[int](1)
			w := stream.Upstream(n, "up", out, 0, double)
			in, r := stream.TwoEnded(n, "both", 1, double)
			n.Go("middle", func(ctx context.Context) error { return stream.To(ctx, stream.From(r), w) })
			down := stream.Downstream(n, "down", double(stream.FromSlice(ints(4))), 1)
			n.Go("first", func(ctx context.Context) error { return stream.To(ctx, stream.From(down), in) })
			got, err := stream.ToSlice(ctx, stream.From(out))
			if !slices.Equal(got, []int{0, 8, 16, 24}) {
				return fmt.Errorf("%v, error %w", got, err)
			}
			return err
		})
	})
	// The reader leaves while the source waits forever. All fibers must end, or Run would not return.
	simulated(t, func(ctx context.Context, _ *sim.Sim) error {
		return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			never := coir.NewChan[int](0)
			r := stream.Downstream(n, "down", double(stream.Concat(stream.FromSlice([]int{1}), stream.From(never))), 0)
			v, err := r.Recv(ctx)
			r.Close()
			in, r := stream.TwoEnded(n, "both", 0, double)
			r.Close()
			sent := in.Send(ctx, 1)
			if sent == nil {
				sent = in.Send(ctx, 2) // may be received before the stages stop
			}
			if sent != nil && !errors.Is(sent, coir.ErrClosed) {
				return fmt.Errorf("send after the reader left: %w", sent)
			}
			in.Close()
			if v != 2 {
				return fmt.Errorf("received %d, want 2", v)
			}
			return err
		})
	})
}

// TestStagesThatDoNotReturn checks that if the function that makes the stages exits or panics, both ends are closed.
func TestStagesThatDoNotReturn(t *testing.T) {
	type stages = func(stream.Stream[int]) stream.Stream[int]
	exit := func(stream.Stream[int]) stream.Stream[int] {
		runtime.Goexit()
		return stream.Stream[int]{}
	}
	boom := func(stream.Stream[int]) stream.Stream[int] { panic("boom") }
	for name, start := range map[string]func(n *coir.Nursery, f stages) (*coir.Writer[int], stream.Source[int]){
		"Upstream": func(n *coir.Nursery, f stages) (*coir.Writer[int], stream.Source[int]) {
			out := coir.NewChan[int](0)
			return stream.Upstream(n, "up", out, 0, f), out
		},
		"TwoEnded": func(n *coir.Nursery, f stages) (*coir.Writer[int], stream.Source[int]) {
			in, out := stream.TwoEnded(n, "both", 0, f)
			return in, out
		},
	} {
		t.Run(name, func(t *testing.T) {
			simulated(t, func(ctx context.Context, _ *sim.Sim) error {
				var sent, received error
				err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
					in, out := start(n, exit)
					// These waits are in the outer context, so the nursery does not cancel them.
					_, received = stream.ToSlice(ctx, stream.From(out))
					sent = in.Send(ctx, 1)
					return nil
				})
				if received != nil || !errors.Is(sent, coir.ErrClosed) || err != nil { // only its fiber ends
					return fmt.Errorf("received %v, sent %v, run %v", received, sent, err)
				}
				return nil
			})
			var caught any
			func() {
				defer func() { caught = recover() }()
				_ = coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
					_, out := start(n, boom)
					_, err := stream.ToSlice(context.Background(), stream.From(out))
					return err
				})
			}()
			if _, ok := caught.(*coir.PanicError); !ok {
				t.Errorf("panic %v", caught)
			}
		})
	}
}

// TestConsumersThatLeave checks that the other consumers continue, and that the source is cancelled when all have left.
func TestConsumersThatLeave(t *testing.T) {
	simulated(t, func(ctx context.Context, _ *sim.Sim) error {
		var first, second int
		source := stream.Concat(stream.FromSlice(ints(5)), stream.From(coir.NewChan[int](0)))
		take := func(n int, to *int) stream.Consumer[int] {
			return func(ctx context.Context, s stream.Stream[int]) (err error) {
				*to, err = stream.Count(ctx, stream.Take(s, n))
				return err
			}
		}
		if err := stream.Tee(ctx, source, 0, take(1, &first), take(4, &second)); err != nil || first != 1 || second != 4 {
			return fmt.Errorf("tee: %d and %d, error %w", first, second, err)
		}
		if err := stream.FanOut(ctx, source, take(1, &first), take(4, &second)); err != nil || first != 1 || second != 4 {
			return fmt.Errorf("fan-out: %d and %d, error %w", first, second, err)
		}
		which := func(v int) int { return v%3 - 1 } // 0 and 3 to no consumer, 1 and 4 to the first, 2 to the second
		if err := stream.Partition(ctx, source, 0, which, take(2, &first), take(1, &second)); err != nil || first != 2 || second != 1 {
			return fmt.Errorf("partition: %d and %d, error %w", first, second, err)
		}
		err := stream.Tee(ctx, source, 0, take(9, &first), func(context.Context, stream.Stream[int]) error { return errBoom })
		if err != errBoom { //nolint:errorlint // once, and not wrapped
			return fmt.Errorf("a consumer that fails: %w", err)
		}
		return nil
	})
}

// TestBufferHandsOver checks that OnUndelivered gets every element that the consumer does not get: when the consumer
// stops, when the context ends, and when the buffer is full.
func TestBufferHandsOver(t *testing.T) {
	simulated(t, func(ctx context.Context, _ *sim.Sim) error {
		made, got := 0, 0
		var undelivered atomic.Int64 // two fibers may hand over at the same time
		s := stream.Buffer(stream.Map(stream.FromSlice(ints(10)), func(v int) int { made++; return v }), 3,
			coir.OnUndelivered(func(int) { undelivered.Add(1) }))
		for range s.All(ctx) {
			got++
			if got == 2 {
				break
			}
		}
		if made != got+int(undelivered.Load()) {
			return fmt.Errorf("the consumer stops: %d made, %d delivered, %d handed over", made, got, undelivered.Load())
		}

		made, got = 0, 0
		undelivered.Store(0)
		within, cancel := coir.WithTimeout(ctx, 3*time.Second/2)
		defer cancel()
		err := stream.ForEach(within, s, func(ctx context.Context, _ int) error {
			got++
			return coir.Sleep(ctx, time.Second)
		})
		if !errors.Is(err, coir.ErrTimeout) || made != got+int(undelivered.Load()) {
			return fmt.Errorf("the context ends: %d made, %d delivered, %d handed over, %w", made, got, undelivered.Load(), err)
		}

		var refused []int
		full := stream.Buffer(stream.FromSlice(ints(10)), 1, coir.WithOverflow(coir.OverflowFail),
			coir.OnUndelivered(func(v int) { refused = append(refused, v) }))
		got = 0
		err = stream.ForEach(ctx, full, func(ctx context.Context, _ int) error {
			got++
			return coir.Sleep(ctx, time.Second)
		})
		if !errors.Is(err, coir.ErrWouldBlock) || !slices.Equal(refused, []int{got}) {
			return fmt.Errorf("OverflowFail: %d delivered, %v handed over, %w", got, refused, err)
		}
		return nil
	})
}

// TestLines tests lines with and without a line end, and a reader that fails.
func TestLines(t *testing.T) {
	got, err := stream.ToSlice(context.Background(), stream.Lines(strings.NewReader("a\n\nb\r\nc")))
	if err != nil || !slices.Equal(got, []string{"a", "", "b", "c"}) {
		t.Errorf("%q, error %v", got, err)
	}
	got, err = stream.ToSlice(context.Background(), stream.Lines(io.MultiReader(strings.NewReader("a\nb"), failing{})))
	if !errors.Is(err, errBoom) || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%q, error %v", got, err)
	}
}

// TestLongLines tests lines that are longer than a read, and one that is too long. Small reads make no difference.
func TestLongLines(t *testing.T) {
	long := strings.Repeat("x", 150_000)
	text := "a\n" + long + "\r\n\nb"
	for _, r := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text)), iotest.DataErrReader(strings.NewReader(text))} {
		got, err := stream.ToSlice(context.Background(), stream.Lines(r))
		if err != nil || !slices.Equal(got, []string{"a", long, "", "b"}) {
			t.Errorf("%d lines, error %v", len(got), err)
		}
	}
	n, err := stream.Count(context.Background(), stream.Lines(strings.NewReader("a\n"+strings.Repeat(long, 8))))
	if n != 1 || !errors.Is(err, bufio.ErrTooLong) {
		t.Errorf("%d lines, error %v", n, err)
	}
}

// TestLongestLine checks that a line of 1 MiB passes, with any line end, and that one more byte is too long.
func TestLongestLine(t *testing.T) {
	for _, before := range []string{"", "a\n"} {
		for _, end := range []string{"", "\n", "\r\n", "\nb", "\r\nb\n"} {
			for _, extra := range []int{-1, 0, 1, 2, 3} {
				line := strings.Repeat("x", 1<<20+extra)
				got, err := stream.ToSlice(context.Background(), stream.Lines(strings.NewReader(before+line+end)))
				want := strings.Fields(before)
				if extra <= 0 {
					want = append(want, line)
					want = append(want, strings.Fields(end)...)
				}
				if !slices.Equal(got, want) || errors.Is(err, bufio.ErrTooLong) != (extra > 0) {
					t.Errorf("%q, 1 MiB%+d, %q: %d lines, error %v", before, extra, end, len(got), err)
				}
				if err != nil && strings.Contains(err.Error(), "bufio") {
					t.Errorf("error %v", err)
				}
			}
		}
	}
}

// TestUsing checks that the resource is closed, however the stream ends.
func TestUsing(t *testing.T) {
	var closed int
	use := func(end, failed error) stream.Stream[int] {
		return stream.Using(func(context.Context) (closer, error) { return func() error { closed++; return failed }, nil },
			func(closer) stream.Stream[int] {
				return stream.FromSeq2(func(yield func(int, error) bool) { _ = yield(1, nil) && yield(2, end) })
			})
	}
	ctx := context.Background()
	for i, test := range []struct {
		s       stream.Stream[int]
		n, want int
		err     error
	}{
		{use(nil, nil), 2, 9, nil},
		{use(errBoom, io.ErrClosedPipe), 1, 9, errBoom},
		{use(nil, io.ErrClosedPipe), 2, 9, io.ErrClosedPipe},
		{use(errBoom, io.ErrClosedPipe), 1, 1, nil},
		{use(nil, io.ErrClosedPipe), 2, 2, nil}, // the consumer has left, so the error of Close is dropped
	} {
		n, err := stream.Count(ctx, stream.Take(test.s, test.want))
		if n != test.n || err != test.err || closed != i+1 { //nolint:errorlint // not wrapped
			t.Errorf("%d: %d elements, closed %d times, error %v", i, n, closed, err)
		}
	}
	refused := stream.Using(func(context.Context) (closer, error) { return nil, errBoom }, func(closer) stream.Stream[int] { panic("used") })
	if _, err := stream.Count(ctx, refused); !errors.Is(err, errBoom) {
		t.Errorf("error %v", err)
	}
}

type closer func() error

func (c closer) Close() error { return c() }

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errBoom }

// TestWrongUse checks that invalid arguments panic when the stream is made.
func TestWrongUse(t *testing.T) {
	s := stream.FromSlice(ints(1))
	for name, f := range map[string]func(){
		"Batch":     func() { stream.Batch(s, 0, 0) },
		"Parallel":  func() { stream.Parallel(s, 0, func(_ context.Context, v int) (int, error) { return v, nil }) },
		"Throttle":  func() { stream.Throttle(s, 0, 1) },
		"Sample":    func() { stream.Sample(s, 0) },
		"Ticks":     func() { stream.Ticks(0) },
		"Tee":       func() { _ = stream.Tee(context.Background(), s, 0) },
		"Partition": func() { _ = stream.Partition(context.Background(), s, 0, func(int) int { return 1 }, none) },
		"GroupBy": func() {
			stream.GroupBy(s, 0, func(v int) int { return v }, func(_ context.Context, v int, _ stream.Stream[int]) (int, error) { return v, nil })
		},
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not panic", name)
				}
			}()
			f()
		}()
	}
}

func none(ctx context.Context, s stream.Stream[int]) error {
	_, err := stream.Count(ctx, s)
	return err
}

// TestSinksInAnEndedContext checks that each sink returns the error of the context, runs nothing, and closes what it
// must close.
func TestSinksInAnEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	source := stream.FromSeq(func(yield func(int) bool) {
		t.Error("the source runs")
		yield(1)
	})
	consume := func(context.Context, stream.Stream[int]) error {
		t.Error("a consumer runs")
		return context.Cause(ctx)
	}
	out := coir.NewChan[int](1)
	w, r := coir.Pipe[int](1)
	defer r.Close()
	for name, sink := range map[string]func(s stream.Stream[int]) error{
		"ForEach": func(s stream.Stream[int]) error {
			return stream.ForEach(ctx, s, func(context.Context, int) error { return nil })
		},
		"Reduce": func(s stream.Stream[int]) error {
			_, err := stream.Reduce(ctx, s, 0, func(a, v int) int { return a + v })
			return err
		},
		"Count":     func(s stream.Stream[int]) error { _, err := stream.Count(ctx, s); return err },
		"ToSlice":   func(s stream.Stream[int]) error { _, err := stream.ToSlice(ctx, s); return err },
		"First":     func(s stream.Stream[int]) error { _, err := stream.First(ctx, s); return err },
		"To":        func(s stream.Stream[int]) error { return stream.To(ctx, s, out) },
		"To a pipe": func(s stream.Stream[int]) error { return stream.To(ctx, s, w) },
		"All": func(s stream.Stream[int]) error {
			return take(ctx, s, func(context.Context, int) bool { return false })
		},
		"Tee":    func(s stream.Stream[int]) error { return stream.Tee(ctx, s, 1, consume) },
		"FanOut": func(s stream.Stream[int]) error { return stream.FanOut(ctx, s, consume) },
		"Partition": func(s stream.Stream[int]) error {
			return stream.Partition(ctx, s, 1, func(int) int { return 0 }, consume)
		},
	} {
		for what, s := range map[string]stream.Stream[int]{
			"source": source, "Take(1)": stream.Take(source, 1), "Take(0)": stream.Take(source, 0),
			"Concat()": stream.Concat[int](), "zero": {},
		} {
			if err := sink(s); !errors.Is(err, context.Canceled) {
				t.Errorf("%s of %s: error %v", name, what, err)
			}
		}
	}
	for name, c := range map[string]stream.Source[int]{"channel": out, "pipe": r} {
		if got, err := stream.ToSlice(context.Background(), stream.From(c)); len(got) > 0 || err != nil {
			t.Errorf("%s: got %v, error %v", name, got, err) // the output is closed, or this would wait
		}
	}
}

// TestCancelOfALoop checks that a loop that never waits ends when it is cancelled.
func TestCancelOfALoop(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	var seen atomic.Int64
	_, err := stream.Count(ctx, stream.Map(stream.FromSeq(count), func(v int) int {
		if seen.Add(1) == 10_000 {
			cancel()
		}
		return v
	}))
	if !errors.Is(err, context.Canceled) || seen.Load() > 10_001 {
		t.Errorf("%d elements, error %v", seen.Load(), err)
	}
}
