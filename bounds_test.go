package coir_test

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/desk"
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/pace"
	"github.com/coir-go/coir/pubsub"
	"github.com/coir-go/coir/sim"
	"github.com/coir-go/coir/stream"
	"github.com/coir-go/coir/supervise"
)

// bounds has the functions that take a bound, with a call of each and its least allowed value.
var bounds = map[string]struct {
	use   func(ctx context.Context, n *coir.Nursery, bound int)
	least int
}{
	"coir.ForEach": {func(ctx context.Context, _ *coir.Nursery, b int) {
		_ = coir.ForEach(ctx, b, slices.Values([]int{1}), func(context.Context, int) error { return nil })
	}, 1},
	"coir.Map": {func(ctx context.Context, _ *coir.Nursery, b int) {
		_, _ = coir.Map(ctx, b, slices.Values([]int{1}), func(context.Context, int) (int, error) { return 0, nil })
	}, 1},
	"coir.NewChan": {func(_ context.Context, _ *coir.Nursery, b int) { coir.NewChan[int](b) }, 0},
	"coir.Pipe":    {func(_ context.Context, _ *coir.Nursery, b int) { coir.Pipe[int](b) }, 0},
	"coir.FromChan": {func(_ context.Context, n *coir.Nursery, b int) {
		in := make(chan int)
		close(in)
		coir.FromChan(n, in, b)
	}, 0},
	"coir.NewOrdered": {func(_ context.Context, _ *coir.Nursery, b int) { coir.NewOrdered[int](b) }, 0},
	"coir.NewPool": {func(_ context.Context, _ *coir.Nursery, b int) {
		coir.NewPool(b, func(context.Context) (int, error) { return 1, nil }, nil)
	}, 1},
	"coir.Nursery.Limit": {func(ctx context.Context, _ *coir.Nursery, b int) {
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error { n.Limit(b); return nil })
	}, 1},
	"coir.WithIndex":      {func(_ context.Context, _ *coir.Nursery, b int) { coir.WithIndex(b) }, 0},
	"coir.WithWorkers":    {func(_ context.Context, _ *coir.Nursery, b int) { coir.WithWorkers(b) }, 1},
	"coir.WithMaxWorkers": {func(_ context.Context, _ *coir.Nursery, b int) { coir.WithMaxWorkers(b) }, 1},
	"desk.WithLimit":      {func(_ context.Context, _ *coir.Nursery, b int) { desk.WithLimit(b) }, 1},
	"locks.NewBarrier":    {func(_ context.Context, _ *coir.Nursery, b int) { locks.NewBarrier(b) }, 1},
	"locks.NewSemaphore":  {func(_ context.Context, _ *coir.Nursery, b int) { locks.NewSemaphore(b) }, 0},
	"locks.Semaphore.Acquire": {func(ctx context.Context, _ *coir.Nursery, b int) {
		_ = locks.NewSemaphore(9).Acquire(ctx, b)
	}, 1},
	"locks.Semaphore.AcquireCase": {func(_ context.Context, _ *coir.Nursery, b int) { locks.NewSemaphore(9).AcquireCase(b) }, 1},
	"locks.Semaphore.TryAcquire":  {func(_ context.Context, _ *coir.Nursery, b int) { locks.NewSemaphore(9).TryAcquire(b) }, 1},
	"locks.Semaphore.Release": {func(_ context.Context, _ *coir.Nursery, b int) {
		s := locks.NewSemaphore(9)
		s.TryAcquire(9)
		s.Release(b)
	}, 1},
	"pace.NewLimiter":       {func(_ context.Context, _ *coir.Nursery, b int) { pace.NewLimiter(time.Second, b) }, 1},
	"pace.Limiter.TryWaitN": {func(_ context.Context, _ *coir.Nursery, b int) { pace.NewLimiter(time.Second, 9).TryWaitN(b) }, 0},
	"pace.Limiter.WaitN": {func(ctx context.Context, _ *coir.Nursery, b int) {
		_ = pace.NewLimiter(time.Second, 9).WaitN(ctx, b)
	}, 0},
	"pace.Retry": {func(ctx context.Context, _ *coir.Nursery, b int) {
		_ = pace.Retry(ctx, b, 0, 0, func(context.Context) error { return nil })
	}, 0},
	"pubsub.Broadcast.Subscribe": {func(_ context.Context, _ *coir.Nursery, b int) {
		pubsub.NewBroadcast[int](coir.WithName("b")).Subscribe(b)
	}, 0},
	"sim.PCT":           {func(_ context.Context, _ *coir.Nursery, b int) { sim.PCT(1, b) }, 1},
	"sim.WithSchedules": {func(_ context.Context, _ *coir.Nursery, b int) { sim.WithSchedules(b) }, 1},
	"sim.WithSteps":     {func(_ context.Context, _ *coir.Nursery, b int) { sim.WithSteps(b) }, 1},
	"stream.Batch":      {func(_ context.Context, _ *coir.Nursery, b int) { stream.Batch(few, b, 0) }, 1},
	"stream.Buffer":     {func(_ context.Context, _ *coir.Nursery, b int) { stream.Buffer(few, b) }, 0},
	"stream.Downstream": {func(_ context.Context, n *coir.Nursery, b int) { stream.Downstream(n, "d", few, b).Close() }, 0},
	"stream.GroupBy":    {func(_ context.Context, _ *coir.Nursery, b int) { stream.GroupBy(few, b, same, group) }, 1},
	"stream.Parallel":   {func(_ context.Context, _ *coir.Nursery, b int) { stream.Parallel(few, b, unchanged) }, 1},
	"stream.ParallelUnordered": {func(_ context.Context, _ *coir.Nursery, b int) {
		stream.ParallelUnordered(few, b, unchanged)
	}, 1},
	"stream.ParallelPerKey": {func(_ context.Context, _ *coir.Nursery, b int) {
		stream.ParallelPerKey(few, b, same, unchanged)
	}, 1},
	"stream.Partition": {func(ctx context.Context, _ *coir.Nursery, b int) {
		_ = stream.Partition(ctx, few, b, same, leaves)
	}, 0},
	"stream.Retry":    {func(_ context.Context, _ *coir.Nursery, b int) { stream.Retry(few, b, 0, 0) }, 0},
	"stream.Skip":     {func(_ context.Context, _ *coir.Nursery, b int) { stream.Skip(few, b) }, 0},
	"stream.Take":     {func(_ context.Context, _ *coir.Nursery, b int) { stream.Take(few, b) }, 0},
	"stream.Tee":      {func(ctx context.Context, _ *coir.Nursery, b int) { _ = stream.Tee(ctx, few, b, leaves) }, 0},
	"stream.Throttle": {func(_ context.Context, _ *coir.Nursery, b int) { stream.Throttle(few, time.Second, b) }, 1},
	"stream.TwoEnded": {func(_ context.Context, n *coir.Nursery, b int) {
		w, r := stream.TwoEnded(n, "t", b, func(s stream.Stream[int]) stream.Stream[int] { return s })
		w.Close()
		r.Close()
	}, 0},
	"stream.Upstream": {func(_ context.Context, n *coir.Nursery, b int) {
		out, r := coir.Pipe[int](0)
		r.Close()
		stream.Upstream(n, "u", out, b, func(s stream.Stream[int]) stream.Stream[int] { return s }).Close()
	}, 0},
	"supervise.WithIntensity": {func(_ context.Context, _ *coir.Nursery, b int) { supervise.WithIntensity(b, time.Second) }, 0},
}

var few = stream.FromSlice([]int{0})

func same(int) int                                                { return 0 }
func unchanged(_ context.Context, v int) (int, error)             { return v, nil }
func group(context.Context, int, stream.Stream[int]) (int, error) { return 0, nil }
func leaves(context.Context, stream.Stream[int]) error            { return nil }

// notBounds are the other functions that take an int, and what that is.
var notBounds = map[string]string{
	"coir.Queue.Put":       "what the Resource is given",
	"coir.Queue.Take":      "what the Resource is given",
	"coir.Queue.TakeCase":  "what the Resource is given",
	"coir.Queue.TryTake":   "what the Resource is given",
	"coir.Timer.TryWait":   "what the Schedule is given",
	"coir.Timer.Wait":      "what the Schedule is given",
	"coir.Selector.Remove": "a number that Add has returned",
	"coir.Simulation.Intn": "positive, as for rand.Intn",
	"sim.Sim.Intn":         "positive, as for rand.Intn",
	"sim.Exhaustive":       "negative: no bound, as its comment says",
	"sim.Fork.Fiber":       "a way",
}

// A bound that is too small is refused with a sentence that names it, where it is passed. Capacities that are computed
// from lengths are never Unbounded or Conflated.
//
// Spec: CH-01 (one channel type, four kinds)
func TestBoundsAreChecked(t *testing.T) {
	refused := func(name string, bound int) (text string, panicked bool) {
		err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
			defer func() {
				if v := recover(); v != nil {
					panicked = true
					if pe, ok := v.(*coir.PanicError); ok {
						v = pe.Value
					}
					text, _ = v.(string)
				}
			}()
			bounds[name].use(ctx, n, bound)
			return nil
		})
		if err != nil {
			t.Errorf("%s with %d: %v", name, bound, err)
		}
		return text, panicked
	}
	for _, name := range slices.Sorted(maps.Keys(bounds)) {
		least := bounds[name].least
		for _, bound := range []int{least - 1, least - 2, -1, -2, -3, math.MinInt32, math.MinInt} {
			text, panicked := refused(name, bound)
			prefix := name[:strings.Index(name, ".")] + ": "
			if !panicked || !strings.HasPrefix(text, prefix) && !strings.HasPrefix(text, "coir: ") && !strings.HasPrefix(text, "pace: ") {
				t.Errorf("%s with %d: panicked is %v, with %q", name, bound, panicked, text)
			}
			if !strings.Contains(text, fmt.Sprint(bound)) {
				t.Errorf("%s: the sentence %q does not name %d", name, text, bound)
			}
		}
		if text, panicked := refused(name, least); panicked {
			t.Errorf("%s with %d panics: %s", name, least, text)
		}
	}
}

// Each exported function that takes an int is in one of the lists above.
func TestBoundsAreListed(t *testing.T) {
	found := map[string]bool{}
	for _, dir := range []string{".", "desk", "locks", "pace", "pubsub", "sim", "stream", "supervise"} {
		files, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			name := file.Name()
			if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "_go127.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), dir+"/"+name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range f.Decls {
				if fn, ok := d.(*ast.FuncDecl); ok && fn.Name.IsExported() && takesInt(fn) {
					if of, exported := receiver(fn); exported {
						found[f.Name.Name+"."+of+fn.Name.Name] = true
					}
				}
			}
		}
	}
	listed := map[string]bool{}
	for name := range bounds {
		listed[name] = true
	}
	for name := range notBounds {
		listed[name] = true
	}
	if !maps.Equal(found, listed) {
		for name := range found {
			if !listed[name] {
				t.Errorf("%s takes an int, and is in no list", name)
			}
		}
		for name := range listed {
			if !found[name] {
				t.Errorf("%s is listed, and takes no int", name)
			}
		}
	}
}

func takesInt(fn *ast.FuncDecl) bool {
	return slices.ContainsFunc(fn.Type.Params.List, func(p *ast.Field) bool {
		id, ok := p.Type.(*ast.Ident)
		return ok && id.Name == "int"
	})
}

// receiver returns the type of a method and a dot, and whether it is exported. A function has none.
func receiver(fn *ast.FuncDecl) (name string, exported bool) {
	if fn.Recv == nil {
		return "", true
	}
	t := fn.Recv.List[0].Type
	if p, ok := t.(*ast.StarExpr); ok {
		t = p.X
	}
	switch x := t.(type) {
	case *ast.IndexExpr:
		t = x.X
	case *ast.IndexListExpr:
		t = x.X
	}
	id := t.(*ast.Ident)
	return id.Name + ".", id.IsExported()
}

// A limit that is far too large for memory is as good as none for ForEach. A pool, which makes its places in advance,
// refuses it.
func TestHugeBounds(t *testing.T) {
	called := false
	err := coir.ForEach(t.Context(), math.MaxInt-1, slices.Values([]int{1}), func(context.Context, int) error {
		called = true
		return nil
	})
	if !called || err != nil {
		t.Error(called, err)
	}
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "at most 16777216 places") {
			t.Errorf("NewPool panics with %q", text)
		}
	}()
	coir.NewPool(math.MaxInt-1, func(context.Context) (int, error) { return 1, nil }, nil)
}
