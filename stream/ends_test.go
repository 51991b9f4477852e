package stream_test

// How streams end in unusual cases: a stage, its functions and its consumers may end in different ways.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
	"github.com/coir-go/coir/stream"
)

var errBroken = errors.New("the source is broken")

func identity(_ context.Context, v int) (int, error) { return v, nil }

// TestUnhashableKey checks that a key whose dynamic type has no hash makes the sink panic, as with a map.
func TestUnhashableKey(t *testing.T) {
	s := stream.ParallelPerKey(stream.FromSlice([]int{1, 2}), 2, func(v int) any { return []int{v} }, identity)
	defer func() {
		var p *coir.PanicError
		if err, ok := recover().(error); !ok || !errors.As(err, &p) {
			t.Errorf("the sink panicked with %v, want a *coir.PanicError", err)
		}
	}()
	_, _ = stream.Count(t.Context(), s)
	t.Error("the sink has returned")
}

// TestParallelLooksAtItsContext checks that available results are not passed on after a cancellation.
func TestParallelLooksAtItsContext(t *testing.T) {
	items := stream.FromSlice(make([]int, 100))
	for name, s := range map[string]stream.Stream[int]{
		"Parallel":          stream.Parallel(items, 25, identity),
		"ParallelUnordered": stream.ParallelUnordered(items, 25, identity),
		"ParallelPerKey":    stream.ParallelPerKey(items, 25, func(v int) int { return v }, identity),
	} {
		t.Run(name, func(t *testing.T) {
			simulated(t, func(ctx context.Context, _ *sim.Sim) error {
				ctx, cancel := coir.WithCancel(ctx)
				defer cancel()
				n := 0
				err := stream.ForEach(ctx, s, func(context.Context, int) error {
					n++
					cancel()
					return nil
				})
				if n != 1 || !errors.Is(err, context.Canceled) {
					return fmt.Errorf("%d elements and the error %w, want one element and that of the cancel", n, err)
				}
				return nil
			})
		})
	}
}

// TestSplitEndsConsumersOfTheirOwnContext checks that a consumer that the nursery cannot cancel still ends, with an
// error, when the source panics or calls Goexit.
func TestSplitEndsConsumersOfTheirOwnContext(t *testing.T) {
	for way, leave := range map[string]func(){"panic": func() { panic("lost") }, "Goexit": runtime.Goexit} {
		source := stream.Map(stream.FromSlice([]int{1, 2}), func(v int) int {
			if v == 2 {
				leave()
			}
			return v
		})
		var ended error
		consume := func(ctx context.Context, s stream.Stream[int]) error {
			_, ended = stream.Count(coir.Shield(ctx), s)
			return ended
		}
		for name, run := range map[string]func(context.Context) error{
			"Tee":    func(ctx context.Context) error { return stream.Tee(ctx, source, 0, consume) },
			"FanOut": func(ctx context.Context) error { return stream.FanOut(ctx, source, consume) },
			"Partition": func(ctx context.Context) error {
				return stream.Partition(ctx, source, 0, func(int) int { return 0 }, consume)
			},
		} {
			t.Run(name+"/"+way, func(t *testing.T) {
				ended = nil
				done := make(chan any)
				go func() { // Goexit ends this goroutine
					defer func() { done <- recover() }()
					_ = run(context.Background())
				}()
				if v := <-done; way == "panic" && v == nil {
					t.Error("the panic is lost")
				}
				if !errors.Is(ended, coir.ErrGoexit) {
					t.Errorf("the consumer's stream ended with %v, want %v", ended, coir.ErrGoexit)
				}
			})
		}
	}
}

// TestClosedReaderIsNoFailure checks that a stream does not fail if it returns an error of its own when it is cancelled
// because its reader was closed.
func TestClosedReaderIsNoFailure(t *testing.T) {
	simulated(t, func(ctx context.Context, _ *sim.Sim) error {
		source := stream.FromFunc(func(ctx context.Context) (int, error) {
			_ = coir.Sleep(ctx, time.Hour)
			return 0, errBroken
		})
		return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			r := stream.Downstream(n, "bytes", source, 0)
			if err := coir.Sleep(ctx, time.Second); err != nil {
				return err
			}
			r.Close()
			return nil
		})
	})
}

// TestMergePriorityPassesWhatCameBefore checks that an element that was offered before another stream failed is passed
// on.
func TestMergePriorityPassesWhatCameBefore(t *testing.T) {
	simulated(t, func(ctx context.Context, _ *sim.Sim) error {
		fails := stream.FromFunc(func(ctx context.Context) (int, error) {
			if err := coir.Sleep(ctx, time.Second); err != nil {
				return 0, err
			}
			return 0, errBroken
		})
		var got []int
		err := stream.ForEach(ctx, stream.MergePriority(fails, stream.FromSlice([]int{1, 2})),
			func(ctx context.Context, v int) error {
				got = append(got, v)
				return coir.Sleep(ctx, 2*time.Second)
			})
		if !errors.Is(err, errBroken) || !slices.Equal(got, []int{1, 2}) {
			return fmt.Errorf("%v and %w, want 1, 2 and that the first stream is broken", got, err)
		}
		return nil
	})
}

// TestRetryDoesNotOverflow checks that a wait that cannot be doubled stays at its maximum.
func TestRetryDoesNotOverflow(t *testing.T) {
	f := sim.Run(1, func(ctx context.Context, s *sim.Sim) {
		var at []time.Duration
		source := stream.FromFunc(func(context.Context) (int, error) {
			at = append(at, s.Now())
			return 0, errBroken
		})
		_, _ = stream.Count(ctx, stream.Retry(source, 3, 1<<60, math.MaxInt64))
		for i := 1; i < len(at); i++ {
			if at[i] == at[i-1] {
				s.Errorf("a retry came without a wait: %v", at)
			}
		}
	})
	if f != nil {
		t.Error(f)
	}
}

// TestStageEnds checks how a Stage ends when its function does not end as it should.
func TestStageEnds(t *testing.T) {
	two := stream.FromSlice([]int{1, 2})
	fails := stream.Concat(two, stream.FromFunc(func(context.Context) (int, error) { return 0, errBroken }))
	waits := stream.Concat(two, stream.From(coir.NewChan[int](0)))
	for name, test := range map[string]struct {
		in   stream.Stream[int]
		f    func(ctx context.Context, in stream.Stream[int], emit emitter) error
		got  []int
		want error
	}{
		"it returns before its input has ended": {
			waits, func(ctx context.Context, in stream.Stream[int], emit emitter) error {
				return stream.ForEach(ctx, stream.Take(in, 1), emit)
			}, []int{1}, nil,
		},
		"it never uses its input": {
			waits, func(ctx context.Context, _ stream.Stream[int], emit emitter) error { return emit(ctx, 7) }, []int{7}, nil,
		},
		"it drops the error of its input": {
			fails, func(ctx context.Context, in stream.Stream[int], emit emitter) error {
				_ = stream.ForEach(ctx, in, emit)
				return nil
			}, []int{1, 2}, nil,
		},
		"it fails": {
			two, func(ctx context.Context, in stream.Stream[int], emit emitter) error {
				return cmp.Or(stream.ForEach(ctx, in, emit), errBroken)
			}, []int{1, 2}, errBroken,
		},
		"it calls Goexit": {
			two, func(ctx context.Context, in stream.Stream[int], emit emitter) error {
				_ = stream.ForEach(ctx, in, emit)
				runtime.Goexit()
				return nil
			}, []int{1, 2}, coir.ErrGoexit,
		},
	} {
		t.Run(name, func(t *testing.T) {
			simulated(t, func(ctx context.Context, _ *sim.Sim) error {
				got, err := stream.ToSlice(ctx, stream.Stage(test.in, test.f))
				if !slices.Equal(got, test.got) || !errors.Is(err, test.want) {
					return fmt.Errorf("%v and the error %w, want %v and %w", got, err, test.got, test.want)
				}
				return nil
			})
		})
	}
}

// TestStageIgnoresTheEnd checks that the sink of a Stage returns the error of a cancel that the function has dropped,
// and that emit in a context of its own fails when the consumer has left, and after the end.
func TestStageIgnoresTheEnd(t *testing.T) {
	simulated(t, func(ctx context.Context, _ *sim.Sim) error {
		inner, cancel := coir.WithCancel(ctx)
		defer cancel()
		never := stream.From(coir.NewChan[int](0))
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("cancel", func(context.Context) error { cancel(); return nil })
			_, err := stream.Count(inner, stream.Stage(never,
				func(ctx context.Context, in stream.Stream[int], emit emitter) error {
					_ = stream.ForEach(ctx, in, emit)
					return nil
				}))
			return err
		})
		if !errors.Is(err, context.Canceled) {
			return fmt.Errorf("the cancel is lost: %w", err)
		}
		var late emitter
		var emitted error
		_, err = stream.First(ctx, stream.Stage(stream.FromSlice([]int{1, 2}),
			func(ctx context.Context, in stream.Stream[int], emit emitter) error {
				late = emit
				emitted = stream.ForEach(coir.Shield(ctx), in, emit)
				return emitted
			}))
		if err != nil || !errors.Is(emitted, coir.ErrClosed) || !errors.Is(late(ctx, 3), coir.ErrClosed) {
			return fmt.Errorf("emit without a consumer: %w; the sink: %w", emitted, err)
		}
		return nil
	})
}
