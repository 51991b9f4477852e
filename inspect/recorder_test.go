package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/trace"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"
	"unsafe"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/snapshot"
)

// chrome is a file in the trace event format of Chrome.
type chrome struct {
	TraceEvents []struct {
		Ph, Name, Cat, Bp string
		Pid, Tid          *int
		At                *float64 `json:"ts"`
		ID                uint64
		Args              map[string]any
	}
	OtherData struct{ From time.Time }
}

// slice is a slice that the file shows.
type slice struct {
	fiber, name string
	from, to    float64 // microseconds
	failed      bool
}

// seen is what a viewer shows.
type seen struct {
	slices []slice
	arrows [][2]slice // between slices whose ends are not set
}

func (s *seen) has(fiber, name string) bool {
	return slices.ContainsFunc(s.slices, func(x slice) bool {
		return strings.HasPrefix(x.fiber, fiber) && strings.HasPrefix(x.name, name)
	})
}

// arrow reports whether there is an arrow from one fiber to another.
func (s *seen) arrow(from, does, to string) bool {
	return slices.ContainsFunc(s.arrows, func(x [2]slice) bool {
		return strings.HasPrefix(x[0].fiber, from) && strings.HasPrefix(x[0].name, does) &&
			strings.HasPrefix(x[1].fiber, to)
	})
}

// readTrace reads a file as a viewer does, and checks the rules of the format. Each event has its fields. The slices of
// a thread nest and are closed, and its times do not go back. Each arrow has a beginning and then an end, both on an
// open slice. Each thread has a name.
func readTrace(text []byte) (*seen, error) {
	var file chrome
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	if !utf8.Valid(text) {
		return nil, errors.New("it is not UTF-8")
	}
	var all seen
	names, times := map[int]string{}, map[int]float64{}
	open, arrows := map[int][]slice{}, map[uint64]*slice{}
	for i, e := range file.TraceEvents {
		fault := func(format string, args ...any) (*seen, error) {
			return nil, fmt.Errorf("event %d, %+v: %s", i, e, fmt.Sprintf(format, args...))
		}
		if e.Pid == nil || e.Tid == nil {
			return fault("it has no process or thread")
		}
		tid := *e.Tid
		if e.Ph == "M" {
			name, _ := e.Args["name"].(string)
			if _, ok := names[tid]; ok || name == "" || e.Name != "thread_name" && e.Name != "process_name" {
				return fault("a name is missing, or is there twice")
			}
			names[tid] = name
			continue
		}
		switch {
		case e.At == nil || *e.At < 0 || *e.At < times[tid]:
			return fault("time goes back, from %f", times[tid])
		case names[tid] == "" || tid == 0:
			return fault("the thread has no name")
		}
		times[tid] = *e.At
		stack := open[tid]
		switch e.Ph {
		case "B":
			if e.Name == "" {
				return fault("a slice has no name")
			}
			open[tid] = append(stack, slice{fiber: names[tid], name: e.Name, from: *e.At})
		case "E":
			if len(stack) == 0 {
				return fault("a slice ends that has not begun")
			}
			x := stack[len(stack)-1]
			x.to = *e.At
			_, x.failed = e.Args["failed"]
			open[tid] = stack[:len(stack)-1]
			all.slices = append(all.slices, x)
		case "s", "f":
			if len(stack) == 0 || e.Name != "wake" || e.Cat != "coir" || e.ID == 0 || (e.Ph == "f") != (e.Bp == "e") {
				return fault("an arrow is not on a slice, or lacks something")
			}
			from, ok := arrows[e.ID]
			if ok != (e.Ph == "f") || ok && from == nil {
				return fault("an arrow has no beginning, or two, or two ends")
			}
			if !ok {
				arrows[e.ID] = &stack[len(stack)-1]
				continue
			}
			all.arrows = append(all.arrows, [2]slice{*from, stack[len(stack)-1]})
			arrows[e.ID] = nil
		default:
			return fault("it is of an unknown kind")
		}
	}
	for tid, stack := range open {
		if len(stack) > 0 {
			return nil, fmt.Errorf("%s: %+v does not end", names[tid], stack)
		}
	}
	for id, from := range arrows {
		if from != nil {
			return nil, fmt.Errorf("arrow %d does not end", id)
		}
	}
	return &all, nil
}

// traceOf returns the trace that a recorder writes.
func traceOf(t *testing.T, r *Recorder, last time.Duration) *seen {
	t.Helper()
	var b bytes.Buffer
	if err := r.WriteTrace(&b, last); err != nil {
		t.Fatal(err)
	}
	s, err := readTrace(b.Bytes())
	if err != nil {
		t.Fatalf("%v\n%.5000s", err, b.Bytes())
	}
	return s
}

// recorded returns a runtime with a recorder.
func recorded(t testing.TB, events int, opts ...coir.RuntimeOption) (*coir.Runtime, *Recorder) {
	r := NewRecorder(events)
	rt := coir.NewRuntime(append(opts, coir.WithObserver(r))...)
	t.Cleanup(func() {
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return rt, r
}

func TestATraceShowsWhoWakesWhom(t *testing.T) {
	rt, r := recorded(t, 0, coir.WithWorkers(1))
	err := rt.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
		orders := coir.NewChan[int](0, coir.WithName("orders"))
		n.Go("packer", func(ctx context.Context) error {
			for range 3 {
				if _, err := orders.Recv(ctx); err != nil {
					return err
				}
			}
			return nil
		}, coir.WithIndex(1))
		n.Go("shop", func(ctx context.Context) error {
			for i := range 3 {
				if err := orders.Send(ctx, i); err != nil {
					return err
				}
			}
			return nil
		})
		n.Go("exits", func(context.Context) error { runtime.Goexit(); return nil })
		n.Go("native", func(ctx context.Context) error { return coir.Yield(ctx) }, coir.WithGoroutine())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s := traceOf(t, r, 0)
	for _, x := range [][2]string{
		{"main #", "active"}, {"main #", "waits for its children to end"}, {"packer[1] #", "waits to receive from orders"},
		{"packer[1] #", "active"}, {"shop #", "active"}, {"shop #", "ends the wait of packer[1] #"},
		{"main #", "starts packer[1] #"}, {"exits #", "active"}, {"native #", "active"},
	} {
		if !s.has(x[0], x[1]) {
			t.Errorf("%s does not show %q", x[0], x[1])
		}
	}
	for _, x := range [][3]string{
		{"main #", "starts packer[1] #", "packer[1] #"}, {"main #", "starts shop #", "shop #"},
		{"shop #", "ends the wait of packer[1] #", "packer[1] #"}, {"main #", "starts native #", "native #"},
	} {
		if !s.arrow(x[0], x[1], x[2]) {
			t.Errorf("there is no arrow of %q, which %q, to %q: %+v", x[0], x[1], x[2], s.arrows)
		}
	}
	for _, x := range s.slices {
		if x.failed != strings.HasPrefix(x.fiber, "exits") {
			t.Errorf("%+v: failed is %v", x, x.failed)
		}
	}
}

// busy starts fibers that do all kinds of things until ctx ends: they wait, wake, panic, exit, are cancelled and time
// out, also on goroutines.
func busy(ctx context.Context, rt *coir.Runtime, names ...string) error {
	return rt.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
		c := coir.NewChan[int](1, coir.WithName(names[0]))
		lock := locks.NewMutex(coir.WithName(names[len(names)-1]))
		for i := 0; coir.Ended(ctx) == nil; i++ {
			_ = unpanicked(ctx, func(ctx context.Context, n *coir.Nursery) error {
				ctx, cancel := coir.WithTimeout(ctx, time.Millisecond)
				defer cancel()
				for k := range 8 {
					n.Go(names[(i+k)%len(names)], func(ctx context.Context) error {
						switch k {
						case 0:
							panic("thrown")
						case 1:
							runtime.Goexit()
						case 2, 3:
							if err := lock.Lock(ctx); err != nil {
								return err
							}
							defer lock.Unlock()
							return coir.Yield(ctx)
						case 4:
							_, err := coir.Select(ctx, c.SendCase(1), coir.After(time.Microsecond))
							return err
						}
						return c.Send(ctx, k)
					}, coir.WithIsolatedFailure(), coir.WithIndex(k))
				}
				n.Go("native", func(ctx context.Context) error { return c.Send(ctx, 9) }, coir.WithGoroutine())
				for range 4 {
					if _, err := c.Recv(ctx); err != nil {
						return err
					}
				}
				n.Cancel(nil)
				return nil
			})
		}
		return nil
	})
}

// unpanicked is coir.Run, but recovers a panic.
func unpanicked(ctx context.Context, fn func(context.Context, *coir.Nursery) error) error {
	defer func() { _ = recover() }()
	return coir.Run(ctx, fn)
}

// Traces are valid at any time, while fibers continue, for any size of the ring and any length of time.
func TestTracesAreValid(t *testing.T) {
	for _, size := range []int{1, 2, 3, 100, 3000} {
		rt, r := recorded(t, size, coir.WithWorkers(2), coir.OnStall(0, nil))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		for range cap(done) {
			go func() { done <- busy(ctx, rt, "a", "b", "c") }()
		}
		rounds := 30
		if testing.Short() {
			rounds = 3
		}
		for range rounds {
			for before := r.last.Load(); r.last.Load() < before+200; {
				runtime.Gosched()
			}
			traceOf(t, r, 0)
			traceOf(t, r, time.Duration(rand.Int64N(int64(time.Millisecond))))
		}
		cancel()
		for range cap(done) {
			<-done
		}
		s := traceOf(t, r, 0)
		for _, x := range s.slices {
			if x.to < x.from {
				t.Errorf("%+v ends before it begins", x)
			}
		}
	}
}

// A trace does not show what a fiber did before it begins, but shows what the fiber does at its beginning.
func TestATraceOfTheLastTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt, r := recorded(t, 0)
		err := rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
			n.Go("over", func(context.Context) error { return nil })
			n.Go("sleeper", func(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) })
			if err := coir.Sleep(ctx, 50*time.Minute); err != nil {
				return err
			}
			synctest.Wait()
			s := traceOf(t, r, 10*time.Minute)
			if s.has("over", "") || s.has("main", "starts") {
				t.Errorf("the trace shows what was before: %+v", s.slices)
			}
			want := float64(10 * time.Minute / time.Microsecond)
			if !slices.ContainsFunc(s.slices, func(x slice) bool {
				return strings.HasPrefix(x.fiber, "sleeper") && x.name == "waits for time to pass" && x.from == 0 && x.to == want
			}) {
				t.Errorf("the sleeper is not shown to wait: %+v", s.slices)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// A fiber of a runtime that is not recorded is shown only where it ends a wait.
func TestFibersOfOtherRuntimes(t *testing.T) {
	rt, r := recorded(t, 0)
	other := coir.NewRuntime()
	defer other.Close(context.Background())
	c := coir.NewChan[int](0)
	done := make(chan error, 1)
	parks := make(chan struct{})
	go func() {
		done <- rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
			f := n.Go("receiver", func(ctx context.Context) error { _, err := c.Recv(ctx); return err })
			for f.State() != coir.StateWaiting {
				if err := coir.Yield(ctx); err != nil {
					return err
				}
			}
			close(parks)
			return f.Wait(ctx)
		})
	}()
	<-parks
	for waits := false; !waits; { // until it has parked, so that it is known which fiber wakes it
		waits = slices.ContainsFunc(rt.Snapshot(snapshot.Options{}).Fibers, func(f snapshot.Fiber) bool {
			return f.Name == "receiver" && f.State == snapshot.StateWaiting
		})
	}
	if err := other.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		return n.Go("stranger", func(ctx context.Context) error { return c.Send(ctx, 1) }).Wait(ctx)
	}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	s := traceOf(t, r, 0)
	if !s.arrow("stranger #", "ends the wait of receiver #", "receiver #") || s.has("stranger", active) {
		t.Errorf("the trace is %+v; want an arrow from the goroutine, which has no slice", s)
	}
}

// Names may contain anything. They are cut, and the trace is valid.
func TestTracesOfHostileNames(t *testing.T) {
	for _, bad := range []string{
		`"},{"ph":"B"`, "</script><script>", "\\", "a\nb\x00\x1b\u2028", "\xff\xfe\xc3", "", "[", "\u202e",
		strings.Repeat("ä", 1<<16), "x" + strings.Repeat("ä", 60), strings.Repeat("\x1b", 300),
	} {
		rt, r := recorded(t, 1000, coir.WithWorkers(2))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- busy(ctx, rt, bad, bad+"2") }()
		for r.last.Load() < 500 {
			runtime.Gosched()
		}
		cancel()
		<-done
		var b bytes.Buffer
		if err := r.WriteTrace(&b, 0); err != nil {
			t.Fatal(err)
		}
		if _, err := readTrace(b.Bytes()); err != nil {
			t.Fatalf("%.20q: %v", bad, err)
		}
		if bytes.ContainsAny(b.Bytes(), "<>\x1b") || b.Len() > 3<<20 {
			t.Errorf("%.20q: the trace is not cut, or has %d bytes", bad, b.Len())
		}
	}
}

// A recorder needs no memory other than the ring, which has no pointers.
func TestTheMemoryOfARecorder(t *testing.T) {
	if n := unsafe.Sizeof(event{}); n != 192 {
		t.Errorf("an event has %d bytes, and the documentation says 192", n)
	}
	rt, r := recorded(t, 100)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- busy(ctx, rt, "a", "b") }()
	for r.last.Load() < 20_000 {
		runtime.Gosched()
	}
	cancel()
	<-done
	if r.tasks.all != nil || len(r.ring) != 100 {
		t.Errorf("the recorder has %d tasks and %d events", len(r.tasks.all), len(r.ring))
	}
}

type failing struct{ left int }

func (f *failing) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, io.ErrShortWrite
	}
	return len(b), nil
}

func TestATraceThatCannotBeWritten(t *testing.T) {
	rt, r := recorded(t, 1000)
	if err := rt.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
		for range 200 {
			n.Go("fiber", func(ctx context.Context) error { return coir.Yield(ctx) })
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for left := range 20 {
		if err := r.WriteTrace(&failing{left * 500}, 0); !errors.Is(err, io.ErrShortWrite) {
			t.Fatalf("WriteTrace returns %v", err)
		}
	}
}

// The handler serves a trace, keeps few of them, and says what is missing.
func TestTheHandlerServesATrace(t *testing.T) {
	rt, r := recorded(t, 100)
	if err := rt.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("worker", func(ctx context.Context) error { return coir.Yield(ctx) })
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	h := newHandler(&settings{of: []Source{rt}, recorder: r})
	for _, path := range []string{"/trace.json", "/trace.json?seconds=3600", "/debug/coir/trace.json"} {
		w := ask(h, "GET", "http://localhost"+path)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" {
			t.Fatalf("%s: %d %s", path, w.Code, w.Body)
		}
		if s, err := readTrace(w.Body.Bytes()); err != nil || !s.has("worker #", active) {
			t.Errorf("%s: %v", path, err)
		}
	}
	for i := range 100 {
		ask(h, "GET", fmt.Sprintf("http://localhost/trace.json?seconds=%d", i))
	}
	h.cache.mu.Lock()
	n := len(h.cache.last)
	h.cache.mu.Unlock()
	if n > 1 {
		t.Errorf("the handler keeps %d traces", n)
	}
	for _, bad := range []string{"-1", "x", "1e9", "99999999999999999999"} {
		if w := ask(h, "GET", "http://localhost/trace.json?seconds="+bad); w.Code != http.StatusBadRequest {
			t.Errorf("seconds=%s: %d", bad, w.Code)
		}
	}
	w := ask(Handler(WithSource(rt), WithRecorder(NewRecorder(10))), "GET", "http://localhost/trace.json")
	if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "call coir.Configure(coir.WithObserver(recorder))") {
		t.Errorf("without a runtime that uses the recorder: %d %s", w.Code, w.Body)
	}
	w = ask(handlerOf(rt), "GET", "http://localhost/trace.json")
	if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "inspect.WithRecorder") {
		t.Errorf("without a recorder: %d %s", w.Code, w.Body)
	}
}

// parsed returns the events of an execution trace, as the Go command prints them.
func parsed(t *testing.T, execution []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "trace.out")
	if err := os.WriteFile(file, execution, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("go", "tool", "trace", "-d=parsed", file).CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("there is no go command")
	}
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// tracing is locked by tests that start a trace of the process.
var tracing sync.Mutex

// While an execution trace runs, fibers are tasks in it, including fibers that began before it, and waits are logs.
func TestExecutionTracesNameFibers(t *testing.T) {
	tracing.Lock()
	defer tracing.Unlock()
	rt, r := recorded(t, 0, coir.WithWorkers(1))
	var execution bytes.Buffer
	for round := range 2 { // the second trace does not know the first
		execution.Reset()
		err := rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
			orders := coir.NewChan[int](0, coir.WithName("orders"))
			old := n.Go("old", func(ctx context.Context) error {
				for {
					if v, err := orders.Recv(ctx); err != nil || v == 0 {
						return err
					}
				}
			})
			if err := orders.Send(ctx, 1); err != nil { // it has begun
				return err
			}
			if err := trace.Start(&execution); err != nil {
				return err
			}
			defer trace.Stop()
			_ = n.Go("worker", func(ctx context.Context) error {
				defer n.Go("late", func(ctx context.Context) error { return coir.Yield(ctx) })
				for i := range 3 {
					if err := orders.Send(ctx, 2-i); err != nil {
						return err
					}
				}
				runtime.Goexit()
				return nil
			}, coir.WithIndex(4)).Wait(ctx)
			return old.Wait(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
		text := parsed(t, execution.Bytes())
		for _, want := range []string{
			`TaskBegin .*Type="worker"`, `TaskBegin .*Type="late"`, `TaskBegin .*Type="old"`, `TaskEnd `,
			`Log .*Category="fiber" Message="worker\[4\] #\d+"`,
			`Log .*Category="wait" Message="old #\d+ waits to receive from orders"`,
			`Log .*Category="wait" Message="main #\d+ waits for worker #\d+ to end"`,
		} {
			if !regexp.MustCompile(want).MatchString(text) {
				t.Errorf("round %d: the trace has no %s:\n%s", round, want, grep(text, "Task|Log"))
			}
		}
		if err := rt.Run(t.Context(), func(context.Context, *coir.Nursery) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if r.tasks.all != nil || r.tasks.some.Load() {
			t.Errorf("the recorder keeps %d tasks after the trace", len(r.tasks.all))
		}
	}
}

// grep returns the lines of a text that match a pattern.
func grep(text, pattern string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if regexp.MustCompile(pattern).MatchString(line) {
			b.WriteString(line)
		}
	}
	return b.String()
}

// A recorder forgets a task that has ended, even while a trace runs for a long time.
func TestTasksAreForgotten(t *testing.T) {
	tracing.Lock()
	defer tracing.Unlock()
	flight := trace.NewFlightRecorder(trace.FlightRecorderConfig{})
	if err := flight.Start(); err != nil {
		t.Fatal(err)
	}
	defer flight.Stop()
	rt, r := recorded(t, 0, coir.OnStall(0, nil))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- busy(ctx, rt, "a", "b", "c") }()
	for r.last.Load() < 5000 {
		runtime.Gosched()
	}
	cancel()
	<-done
	r.tasks.mu.Lock()
	defer r.tasks.mu.Unlock()
	if n := len(r.tasks.all); n != 0 {
		t.Errorf("there are %d tasks of fibers that have ended", n)
	}
}

// BenchmarkRecorder measures the cost of a recorder. It measures two fibers that hand over a value, and the start and
// the end of a fiber: without an observer, with one that does nothing, and with a recorder.
func BenchmarkRecorder(b *testing.B) {
	for _, c := range []struct {
		name string
		opts []coir.RuntimeOption
	}{
		{"off", nil}, {"empty", []coir.RuntimeOption{coir.WithObserver(idler{})}},
		{"on", []coir.RuntimeOption{coir.WithObserver(NewRecorder(0))}},
	} {
		rt := coir.NewRuntime(append(c.opts, coir.WithWorkers(1))...)
		b.Run("handover/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			if err := rt.Run(b.Context(), func(ctx context.Context, n *coir.Nursery) error {
				values := coir.NewChan[int](0, coir.WithName("values"))
				n.Go("receiver", func(ctx context.Context) error {
					for {
						if _, err := values.Recv(ctx); err != nil {
							return nil // closed
						}
					}
				})
				for b.Loop() {
					if err := values.Send(ctx, 1); err != nil {
						return err
					}
				}
				values.Close()
				return nil
			}); err != nil {
				b.Error(err)
			}
		})
		b.Run("start/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			if err := rt.Run(b.Context(), func(ctx context.Context, n *coir.Nursery) error {
				for b.Loop() {
					if err := n.Go("child", func(context.Context) error { return nil }).Wait(ctx); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				b.Error(err)
			}
		})
		if err := rt.Close(b.Context()); err != nil {
			b.Error(err)
		}
	}
}

// idler is an Observer that does nothing.
type idler struct{}

func (idler) FiberStarted(*coir.Fiber)      {}
func (idler) FiberParked(*coir.Fiber)       {}
func (idler) FiberReady(_, _ *coir.Fiber)   {}
func (idler) FiberEnded(*coir.Fiber, error) {}
func (idler) FiberStalled(coir.Stall)       {}

// BenchmarkWriteTrace measures the trace of a full ring.
func BenchmarkWriteTrace(b *testing.B) {
	rt, r := recorded(b, 0)
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- busy(ctx, rt, "a", "b", "c") }()
	for r.last.Load() < uint64(len(r.ring)) {
		runtime.Gosched()
	}
	cancel()
	<-done
	b.ReportAllocs()
	for b.Loop() {
		n := &counting{}
		if err := r.WriteTrace(n, 0); err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(n.n), "bytes")
	}
}

type counting struct{ n int }

func (c *counting) Write(b []byte) (int, error) {
	c.n += len(b)
	return len(b), nil
}
