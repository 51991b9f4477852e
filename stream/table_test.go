package stream_test

// Every stage is tested in each situation in which a pipeline can end. A stage is a row of a table; the situations are
// the same for all rows. Each combination is run under schedules of package sim, on a virtual clock, and once on the
// real runtime. The guide has a table of the observed behaviour, which this test writes and checks.

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/document"
	"github.com/coir-go/coir/sim"
	"github.com/coir-go/coir/stream"
)

var errBoom = errors.New("boom")

// row is a stage to test.
type row struct {
	name string
	// run runs the stage on in, calls hook in the user's function if it has one, and yields the results. It stops when
	// yield returns false.
	run func(ctx context.Context, in stream.Stream[int], hook func(int), yield yielder) error

	want    func(in []int) []int // the expected output; nil means the input
	loses   bool                 // it may drop or repeat elements: only the order is checked
	mixes   bool                 // the output may be in another order than the input
	ends    bool                 // it ends by itself, before its input
	mends   bool                 // a failure of the input does not make it fail
	cuts    bool                 // a failure of the input may overtake elements in progress
	noHook  bool                 // it has no function of the user; the stage before it panics
	slow    bool                 // its consumer always takes a second for each element
	ahead   int                  // how many elements the source may be ahead of the consumer
	forever bool                 // a slow consumer does not slow down the source
	skips   bool                 // it drops its first elements, so its lead cannot be measured
	panics  int                  // the element at which the user's function panics; 0 means 2
}

// yielder takes an element of the output. It reports whether it wants more.
type yielder = func(ctx context.Context, v int) bool

// through returns the run of a row for a stage that makes a stream.
func through(build func(in stream.Stream[int], hook func(int)) stream.Stream[int]) func(context.Context, stream.Stream[int], func(int), yielder) error {
	return func(ctx context.Context, in stream.Stream[int], hook func(int), yield yielder) error {
		return take(ctx, build(in, hook), yield)
	}
}

// take yields the elements of a stream.
func take(ctx context.Context, s stream.Stream[int], yield yielder) error {
	for v, err := range s.All(ctx) {
		if err != nil {
			return err
		}
		if !yield(ctx, v) {
			break
		}
	}
	return nil
}

func flat(s stream.Stream[[]int]) stream.Stream[int] { return stream.FlatMap(s, stream.FromSlice) }

func hooked(hook func(int)) func(context.Context, int) (int, error) {
	return func(_ context.Context, v int) (int, error) {
		hook(v)
		return v, nil
	}
}

func consumer(hook func(int), yield yielder) stream.Consumer[int] {
	return func(ctx context.Context, s stream.Stream[int]) error {
		return take(ctx, stream.Map(s, func(v int) int { hook(v); return v }), yield)
	}
}

// emitter passes on a result of a Stage.
type emitter = func(ctx context.Context, v int) error

// pass emits the elements unchanged.
func pass(ctx context.Context, s stream.Stream[int], hook func(int), emit emitter) error {
	return stream.ForEach(ctx, s, func(ctx context.Context, v int) error {
		hook(v)
		return emit(ctx, v)
	})
}

func rows() []row {
	type S = stream.Stream[int]
	type hook = func(int)
	return []row{
		{name: "Map", run: through(func(in S, h hook) S { return stream.Map(in, func(v int) int { h(v); return v }) })},
		{name: "MapErr", run: through(func(in S, h hook) S { return stream.MapErr(in, hooked(h)) })},
		{
			name: "Filter", ahead: 1, want: func(in []int) []int { return slices.DeleteFunc(slices.Clone(in), func(v int) bool { return v%2 == 0 }) },
			run: through(func(in S, h hook) S { return stream.Filter(in, func(v int) bool { h(v); return v%2 == 1 }) }),
		},
		{
			name: "FlatMap", want: func(in []int) (out []int) {
				for _, v := range in {
					out = append(out, v, v)
				}
				return out
			},
			run: through(func(in S, h hook) S {
				return stream.FlatMap(in, func(v int) S { h(v); return stream.FromSlice([]int{v, v}) })
			}),
		},
		{
			name: "Scan",
			run:  through(func(in S, h hook) S { return stream.Scan(in, 0, func(a, v int) int { h(v); return max(a, v) }) }),
		},
		{name: "Enumerate", run: through(func(in S, h hook) S { return stream.Enumerate(in, func(i, v int) int { h(v); return i }) })},
		{
			name: "Take", noHook: true, ends: true, want: func(in []int) []int { return in[:min(4, len(in))] },
			run: through(func(in S, _ hook) S { return stream.Take(in, 4) }),
		},
		{
			name: "Skip", noHook: true, ahead: 1, want: func(in []int) []int { return in[1:] },
			run: through(func(in S, _ hook) S { return stream.Skip(in, 1) }),
		},
		{
			name: "TakeWhile", ends: true, want: func(in []int) []int { return in[:min(4, len(in))] },
			run: through(func(in S, h hook) S { return stream.TakeWhile(in, func(v int) bool { h(v); return v < 4 }) }),
		},
		{name: "Distinct", noHook: true, run: through(func(in S, _ hook) S { return stream.Distinct(in) })},
		{name: "Compact", noHook: true, run: through(func(in S, _ hook) S { return stream.Compact(in) })},
		{
			name: "Concat", noHook: true, want: func(in []int) []int { return append([]int{-1}, in...) },
			run: through(func(in S, _ hook) S { return stream.Concat(stream.FromSlice([]int{-1}), in) }),
		},
		{name: "Buffer", noHook: true, ahead: 3, run: through(func(in S, _ hook) S { return stream.Buffer(in, 2) })},
		{
			name: "Buffer that drops", noHook: true, loses: true, forever: true,
			run: through(func(in S, _ hook) S { return stream.Buffer(in, 1, coir.WithOverflow(coir.OverflowDropOldest)) }),
		},
		{name: "Batch by size", noHook: true, ahead: 1, run: through(func(in S, _ hook) S { return flat(stream.Batch(in, 2, 0)) })},
		{name: "Batch by time", noHook: true, ahead: 4, run: through(func(in S, _ hook) S { return flat(stream.Batch(in, 2, time.Millisecond)) })},
		{name: "Throttle", noHook: true, run: through(func(in S, _ hook) S { return stream.Throttle(in, time.Millisecond, 1) })},
		{name: "Debounce", noHook: true, loses: true, forever: true, run: through(func(in S, _ hook) S { return stream.Debounce(in, time.Millisecond) })},
		{name: "Sample", noHook: true, loses: true, forever: true, run: through(func(in S, _ hook) S { return stream.Sample(in, time.Millisecond) })},
		{name: "Latch", noHook: true, loses: true, forever: true, slow: true, run: through(func(in S, _ hook) S { return stream.Latch(in) })},
		{name: "Timeout", noHook: true, ahead: 1, run: through(func(in S, _ hook) S { return stream.Timeout(in, time.Hour) })},
		{name: "Until", noHook: true, run: through(func(in S, _ hook) S { return stream.Until(context.Background(), in) })},
		{name: "Merge", noHook: true, ahead: 1, run: through(func(in S, _ hook) S { return stream.Merge(in, stream.Stream[int]{}) })},
		{
			name: "MergePriority", noHook: true, ahead: 1,
			run: through(func(in S, _ hook) S { return stream.MergePriority(stream.Stream[int]{}, in) }),
		},
		{
			name: "Zip, first", run: through(func(in S, h hook) S {
				return stream.Zip(in, stream.FromSeq(count), func(a, _ int) int { h(a); return a })
			}),
		},
		{
			name: "Zip, second", ahead: 1, run: through(func(in S, h hook) S {
				return stream.Zip(stream.FromSeq(count), in, func(_, b int) int { h(b); return b })
			}),
		},
		{
			name: "CombineLatest", loses: true, panics: 5, skips: true, run: through(func(in S, h hook) S {
				return stream.CombineLatest(in, stream.FromSlice([]int{-1}), func(a, _ int) int { h(a); return a })
			}),
		},
		{
			name: "Catch", mends: true, run: through(func(in S, h hook) S {
				in = stream.Map(in, func(v int) int { h(v); return v })
				return stream.Catch(in, func(error) (S, error) { return stream.FromSlice([]int{-1}), nil })
			}),
		},
		{
			name: "Retry", noHook: true, run: through(func(in S, _ hook) S { return stream.Retry(in, 0, time.Second, time.Minute) }),
		},
		{name: "Parallel", ahead: 9, run: through(func(in S, h hook) S { return stream.Parallel(in, 2, hooked(h)) })},
		{name: "ParallelUnordered", mixes: true, ahead: 9, run: through(func(in S, h hook) S { return stream.ParallelUnordered(in, 2, hooked(h)) })},
		{name: "ParallelPerKey", mixes: true, ahead: 9, run: through(func(in S, h hook) S {
			return stream.ParallelPerKey(in, 2, func(v int) int { return v % 3 }, hooked(h))
		})},
		{name: "GroupBy", mixes: true, ahead: 4, run: through(func(in S, h hook) S {
			return stream.GroupBy(in, 2, func(v int) int { return v }, func(ctx context.Context, k int, g S) (int, error) {
				h(k)
				return stream.First(ctx, g)
			})
		})},
		{name: "Stage", ahead: 1, run: through(func(in S, h hook) S {
			return stream.Stage(in, func(ctx context.Context, in S, emit emitter) error { return pass(ctx, in, h, emit) })
		})},
		{name: "Stage with a FanOut", mixes: true, cuts: true, ahead: 3, run: through(func(in S, h hook) S {
			return stream.Stage(in, func(ctx context.Context, in S, emit emitter) error {
				worker := func(ctx context.Context, in S) error { return pass(ctx, in, h, emit) }
				return stream.FanOut(ctx, in, worker, worker)
			})
		})},
		{name: "Monitor", noHook: true, run: through(func(in S, _ hook) S { return stream.Monitor(in, new(stream.Meter)) })},
		{
			name: "Tee", mixes: true, ahead: 2, want: func(in []int) []int { return append(slices.Clone(in), in...) },
			run: func(ctx context.Context, in S, h func(int), yield yielder) error {
				return stream.Tee(ctx, in, 1, consumer(h, yield), consumer(func(int) {}, yield))
			},
		},
		{
			name: "FanOut", mixes: true, ahead: 2,
			run: func(ctx context.Context, in S, h func(int), yield yielder) error {
				return stream.FanOut(ctx, in, consumer(h, yield), consumer(h, yield))
			},
		},
		{
			name: "Partition", mixes: true, ahead: 4,
			run: func(ctx context.Context, in S, h func(int), yield yielder) error {
				return stream.Partition(ctx, in, 1, func(v int) int { return v % 2 }, consumer(h, yield), consumer(h, yield))
			},
		},
		{name: "Downstream", noHook: true, cuts: true, ahead: 2, run: func(ctx context.Context, in S, _ func(int), yield yielder) error {
			return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				r := stream.Downstream(n, "down", in, 1)
				defer r.Close()
				return take(ctx, stream.From(r), yield)
			})
		}},
		{name: "TwoEnded", cuts: true, ahead: 2, run: func(ctx context.Context, in S, h func(int), yield yielder) error {
			return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				w, r := stream.TwoEnded(n, "both", 0, func(s S) S { return stream.MapErr(s, hooked(h)) })
				defer r.Close()
				n.Go("sender", func(ctx context.Context) error { return stream.To(ctx, in, w) })
				return take(ctx, stream.From(r), yield)
			})
		}},
	}
}

func count(yield func(int) bool) {
	for i := 0; yield(i); i++ {
	}
}

// situation is a way in which a pipeline ends.
type situation struct {
	name string
	// The source gives elements, and then ends, fails or waits to be cancelled.
	elements int
	then     func(ctx context.Context) error
	panics   bool // the user's function panics
	cancel   bool
	leave    bool // the consumer leaves after the first element
	slow     bool
}

func situations() []situation {
	hang := func(ctx context.Context) error { return coir.WaitCancel(ctx) }
	end := func(context.Context) error { return io.EOF }
	return []situation{
		{name: "ends", elements: 6, then: end},
		{name: "consumer leaves", elements: 6, then: hang, leave: true},
		{name: "source fails", elements: 3, then: func(context.Context) error { return errBoom }},
		{name: "function panics", elements: 6, then: hang, panics: true},
		{name: "cancel", elements: 6, then: hang, cancel: true},
		{name: "slow consumer", elements: 40, then: end, slow: true},
	}
}

// trial is one run of a row in a situation, with what was observed.
type trial struct {
	mu      sync.Mutex
	last    int // the greatest element in the output
	got     []int
	made    int
	ahead   int
	err     error
	stopped error // the error of the consumer's wait
	panic   any
	meter   stream.Meter
}

func (t *trial) run(ctx context.Context, r row, s situation) {
	in := stream.Monitor(stream.FromFunc(func(ctx context.Context) (int, error) {
		t.mu.Lock()
		i := t.made
		if i < s.elements {
			t.made++
			t.ahead = max(t.ahead, i-t.last)
		}
		t.mu.Unlock()
		if i < s.elements {
			return i, nil
		}
		return 0, s.then(ctx)
	}), &t.meter)
	hook := func(v int) {
		if s.panics && v == max(r.panics, 2) {
			panic("boom")
		}
	}
	if r.noHook {
		in = stream.Map(in, func(v int) int { hook(v); return v })
	}
	defer func() { t.panic = recover() }()
	pause := time.Duration(0)
	if s.slow || r.slow {
		pause = 2 * time.Millisecond
	}
	err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		if s.cancel {
			n.Go("cancel", func(context.Context) error { n.Cancel(errBoom); return nil })
		}
		t.err = r.run(ctx, in, hook, func(ctx context.Context, v int) bool {
			var err error
			if pause > 0 {
				err = coir.Sleep(ctx, pause)
			}
			t.mu.Lock()
			defer t.mu.Unlock()
			if err != nil {
				t.stopped = err
				return false
			}
			t.got = append(t.got, v)
			t.last = max(t.last, v)
			return !s.leave
		})
		return nil
	})
	t.err = cmp.Or(t.err, t.stopped, err)
}

// check returns a description of what is wrong, or "".
func (t *trial) check(r row, s situation) (wrong string) {
	want := make([]int, s.elements)
	for i := range want {
		want[i] = i
	}
	if r.want != nil {
		want = r.want(want)
	}
	got := slices.Clone(t.got)
	if r.mixes {
		slices.Sort(got)
		slices.Sort(want)
	}
	st := t.meter.Stats()
	if st.Running != 0 {
		return "the source still runs"
	}
	if t.panic != nil && !s.panics {
		return "it panicked"
	}
	if s.leave || s.cancel || r.loses || r.cuts && s.name == "source fails" {
		for i, v := range got {
			if !r.mixes && i > 0 && v < got[i-1] {
				return "the order is wrong"
			}
		}
	} else if !s.panics && !(r.mends && s.then(context.Background()) == errBoom) && !slices.Equal(got, want) {
		return "other elements"
	}
	switch {
	case s.panics:
		if r.ends && t.panic == nil {
			return "no panic"
		}
		if pe, ok := t.panic.(*coir.PanicError); ok {
			if pe.Value != "boom" || pe.Also != nil {
				return "a panic that is not the function's, or more than one"
			}
		} else if t.panic != "boom" {
			return "no panic of the function"
		}
	case s.cancel:
		if !errors.Is(t.err, context.Canceled) && !(r.ends && t.err == nil) {
			return "no error of the cancel"
		}
	case s.name == "source fails" && !r.mends:
		if t.err != errBoom { //nolint:errorlint // once, and not wrapped
			return "not the error of the source"
		}
	default:
		if t.err != nil {
			return "an error"
		}
	}
	switch {
	case !s.slow || r.skips:
	case r.forever && t.ahead < s.elements/2:
		return "the source is held back"
	case !r.forever && t.ahead > r.ahead+1:
		return "the source runs ahead"
	}
	return ""
}

func (r row) soaked() int {
	if testing.Short() {
		return 25
	}
	return 200
}

// Spec: ST-02 (a combinator ends with its input)
// Spec: ST-03 (a combinator ends with its reader)
// Spec: ST-04 (backpressure passes through)
// Spec: ST-06 (a torn-down pipeline leaves no fiber)
func TestEveryStageInEverySituation(t *testing.T) {
	for _, r := range rows() {
		t.Run(r.name, func(t *testing.T) {
			for _, s := range situations() {
				t.Run(s.name, func(t *testing.T) {
					sim.Test(t, func(ctx context.Context, sm *sim.Sim) {
						tr := &trial{last: -1}
						tr.run(ctx, r, s)
						if wrong := tr.check(r, s); wrong != "" {
							sm.Errorf("%s: got %v, error %v, panic %v, %d ahead", wrong, tr.got, tr.err, tr.panic, tr.ahead)
						}
					}, sim.WithSchedules(r.soaked()))
					tr := &trial{last: -1}
					tr.run(context.Background(), r, s)
					if wrong := tr.check(r, s); wrong != "" {
						t.Errorf("on the real runtime: %s: got %v, error %v, panic %v, %d ahead", wrong, tr.got, tr.err, tr.panic, tr.ahead)
					}
				})
			}
		})
	}
}

var update = flag.Bool("update", false, "write the table of docs/guide/streams.md")

// words describes what the tests check for a row in a situation.
func (r row) words(s situation) string {
	switch {
	case s.leave:
		return "all end"
	case s.panics:
		return "panics"
	case s.cancel && r.ends:
		return "error of the cancel, if it has not ended"
	case s.cancel:
		return "error of the cancel"
	case s.slow && r.skips:
		return "not measured"
	case s.slow && r.forever:
		return "is not held back"
	case s.slow:
		return fmt.Sprintf("at most %d", r.ahead)
	case r.mends:
		return "goes on"
	case r.cuts:
		return "error, may overtake elements"
	case r.loses:
		return "error"
	default:
		return "error, after all elements"
	}
}

// TestGuideTable checks that the table in the guide agrees with TestEveryStageInEverySituation.
func TestGuideTable(t *testing.T) {
	var b strings.Builder
	b.WriteString("| | consumer leaves | source fails | function panics | cancel | slow consumer: elements made ahead |\n|---|---|---|---|---|---|\n")
	for _, r := range rows() {
		b.WriteString("| " + r.name)
		for _, s := range situations()[1:] {
			b.WriteString(" | " + r.words(s))
		}
		b.WriteString(" |\n")
	}
	same, err := document.Keep("../docs/guide/streams.md", "-update -->\n", "<!-- end of table -->\n", b.String(), *update)
	if err != nil {
		t.Fatal(err)
	}
	if !same {
		t.Fatal("the table in docs/guide/streams.md is stale: go test ./stream -run TestGuideTable -update")
	}
}
