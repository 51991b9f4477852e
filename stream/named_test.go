package stream_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
	"github.com/coir-go/coir/snapshot"
	"github.com/coir-go/coir/stream"
)

// boundaries has the stages with fibers, or with objects that a fiber can wait for.
var boundaries = map[string]func(s stream.Stream[int]) stream.Stream[int]{
	"Buffer": func(s stream.Stream[int]) stream.Stream[int] { return stream.Buffer(s, 1) },
	"Batch": func(s stream.Stream[int]) stream.Stream[int] {
		return lengths(stream.Batch(s, 2, time.Second).Named("price"))
	},
	"Debounce":      func(s stream.Stream[int]) stream.Stream[int] { return stream.Debounce(s, time.Second) },
	"Sample":        func(s stream.Stream[int]) stream.Stream[int] { return stream.Sample(s, time.Second) },
	"Latch":         stream.Latch[int],
	"Timeout":       func(s stream.Stream[int]) stream.Stream[int] { return stream.Timeout(s, time.Second) },
	"Merge":         func(s stream.Stream[int]) stream.Stream[int] { return stream.Merge(s, s) },
	"MergePriority": func(s stream.Stream[int]) stream.Stream[int] { return stream.MergePriority(s, s) },
	"Zip":           func(s stream.Stream[int]) stream.Stream[int] { return stream.Zip(ofOne(), s, plus) },
	"CombineLatest": func(s stream.Stream[int]) stream.Stream[int] { return stream.CombineLatest(s, s, plus) },
	"Parallel":      func(s stream.Stream[int]) stream.Stream[int] { return stream.Parallel(s, 2, same) },
	"ParallelUnordered": func(s stream.Stream[int]) stream.Stream[int] {
		return stream.ParallelUnordered(s, 2, same)
	},
	"ParallelPerKey": func(s stream.Stream[int]) stream.Stream[int] {
		return stream.ParallelPerKey(s, 2, func(v int) int { return v }, same)
	},
	"GroupBy": func(s stream.Stream[int]) stream.Stream[int] {
		return stream.GroupBy(s, 2, func(v int) int { return v },
			func(ctx context.Context, _ int, group stream.Stream[int]) (int, error) {
				return stream.First(ctx, group)
			})
	},
}

func lengths(s stream.Stream[[]int]) stream.Stream[int] {
	return stream.Map(s, func(batch []int) int { return len(batch) })
}

func ofOne() stream.Stream[int] { return stream.FromSlice(ints(1)) }

func plus(a, b int) int { return a + b }

func same(_ context.Context, v int) (int, error) { return v, nil }

// stuck returns the report of a deadlock: the source has one element, and the consumer of it does not return.
func stuck(t *testing.T, source string, of func(stream.Stream[int]) stream.Stream[int]) string {
	t.Helper()
	f := sim.Run(1, func(ctx context.Context, _ *sim.Sim) {
		never := coir.NewChan[int](0, coir.WithName("never"))
		var sent atomic.Bool
		in := stream.FromFunc(func(ctx context.Context) (int, error) {
			if sent.Swap(true) {
				return never.Recv(ctx)
			}
			return 1, nil
		}).Named(source)
		_ = stream.ForEach(ctx, of(in), func(ctx context.Context, _ int) error {
			_, err := never.Recv(ctx)
			return err
		})
	})
	if f == nil || f.Kind != sim.KindDeadlock {
		t.Fatalf("want a deadlock, got %v", f)
	}
	return f.Error()
}

// Words that only the default names of fibers and channels have.
var defaultName = regexp.MustCompile(`input of [^ #]+|\b(worker|work|results|groups?|elements and results|merge|combine|` +
	`buffer|batch|debounce|sample|latch|timeout|zip)\b( of price)?`)

// A name that a stage has been given is in the reports of package sim, in place of each default name.
func TestReportsShowTheNamesOfStages(t *testing.T) {
	for name, of := range boundaries {
		t.Run(name, func(t *testing.T) {
			named := func(s stream.Stream[int]) stream.Stream[int] {
				if name == "Batch" { // its name is inside
					return of(s)
				}
				return of(s).Named("price")
			}
			report := stuck(t, "", named)
			if !strings.Contains(report, "input of price") {
				t.Errorf("the input has no name:\n%s", report)
			}
			for _, found := range defaultName.FindAllString(report, -1) {
				if !strings.HasSuffix(found, " of price") {
					t.Errorf("the report has the default name %q:\n%s", found, report)
				}
			}
			if report := stuck(t, "orders", named); !strings.Contains(report, "orders") ||
				strings.Contains(report, "input of") {
				t.Errorf("the input does not have the name of its stage:\n%s", report)
			}
		})
	}
}

// A name is a stage's own: the stage without the name, and those before and after it, keep theirs.
func TestNameIsOfOneStage(t *testing.T) {
	plain := stream.Parallel(stream.FromSlice(ints(2)), 2, same)
	s := stream.Buffer(stream.Map(plain.Named("price"), func(v int) int { return v }), 1)
	const want = `loop 1: FromSlice
  boundary: 2 workers, at most 8 elements
loop 2: Parallel "price", Map
  boundary: channel of 1
loop 3: Buffer
`
	if got := s.Explain(); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if got := plain.Explain(); strings.Contains(got, "price") {
		t.Errorf("the stream that was named has changed:\n%s", got)
	}
	if got := (stream.Stream[int]{}).Named("none").Explain(); got != "loop 1: Empty \"none\"\n" {
		t.Errorf("the empty stream is %q", got)
	}
	got, err := stream.ToSlice(context.Background(), s.Named("store").Named("keep"))
	if err != nil || fmt.Sprint(got) != "[0 1]" {
		t.Errorf("got %v, %v", got, err)
	}
}

// A snapshot shows the names of stages, and those of the consumers of a stream.
func TestSnapshotsShowTheNamesOfStages(t *testing.T) {
	rt := coir.NewRuntime()
	defer func() { _ = rt.Close(context.Background()) }()
	var names, inTee string
	list := func() (all string) {
		for _, f := range rt.Snapshot(snapshot.Options{}).Fibers {
			all += f.Name + "\n"
		}
		return all
	}
	err := rt.Run(context.Background(), func(ctx context.Context, _ *coir.Nursery) error {
		lines := stream.FromSlice(ints(1)).Named("lines")
		s := stream.Parallel(stream.Buffer(lines, 1).Named("accepted"), 1, func(context.Context, int) (int, error) {
			names = list()
			return 0, nil
		}).Named("price")
		return stream.Tee(ctx, s, 0, func(ctx context.Context, s stream.Stream[int]) error {
			return stream.ForEach(ctx, s, func(context.Context, int) error {
				inTee = list()
				return nil
			})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(names, "worker of price\n") || !strings.Contains(inTee, "price consumer\n") {
		t.Errorf("the fibers are\n%s\nand\n%s", names, inTee)
	}
}

// The errors that a stage makes have its name; those of the program's functions are not changed.
func TestErrorsShowTheNamesOfStages(t *testing.T) {
	simulated(t, func(ctx context.Context, _ *sim.Sim) error {
		silent := stream.From(coir.NewChan[int](0))
		_, err := stream.First(ctx, stream.Timeout(silent, time.Second).Named("feed"))
		if !errors.Is(err, coir.ErrTimeout) || !strings.Contains(err.Error(), "feed") {
			return fmt.Errorf("Timeout: %w", err)
		}
		bug := errors.New("bug")
		_, err = stream.First(ctx, stream.Parallel(ofOne(), 1, func(context.Context, int) (int, error) { return 0, bug }).Named("price"))
		if err != bug { //nolint:errorlint // not wrapped
			return fmt.Errorf("Parallel: %w", err)
		}
		var told *coir.PanicError
		func() {
			defer func() { told, _ = recover().(*coir.PanicError) }()
			_, _ = stream.First(ctx, stream.Parallel(ofOne(), 1, func(context.Context, int) (int, error) { panic("bug") }).Named("price"))
		}()
		if told == nil || told.Fiber != "worker of price" {
			return fmt.Errorf("the panic is of %v", told)
		}
		return nil
	})
}

// The fiber of a Stage has the name of the stage, or else that of its input.
func TestStageHasTheNameOfItsInput(t *testing.T) {
	own := func(s stream.Stream[int]) stream.Stream[int] {
		return stream.Stage(s, func(ctx context.Context, s stream.Stream[int], emit emitter) error {
			return stream.ForEach(ctx, s, emit)
		})
	}
	named := func(s stream.Stream[int]) stream.Stream[int] { return own(s).Named("price") }
	for _, test := range []struct {
		of           func(stream.Stream[int]) stream.Stream[int]
		source, want string
	}{{own, "", "stage "}, {own, "orders", "orders "}, {named, "orders", "price "}} {
		if report := stuck(t, test.source, test.of); !strings.Contains(report, "\n  "+test.want) {
			t.Errorf("no fiber is called %q:\n%s", test.want, report)
		}
	}
}
