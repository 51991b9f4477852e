package coir_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
)

// The default runtime is the one that Run uses, and a bubble has its own.
func TestDefault(t *testing.T) {
	rt := coir.Default()
	if rt == nil || rt != coir.Default() {
		t.Fatal("there is not one default runtime")
	}
	before := rt.Stats().Spawned
	if err := coir.Run(context.Background(), nothing); err != nil || rt.Stats().Spawned == before {
		t.Errorf("Run used another, or returned %v", err)
	}
	err := coir.Run(context.Background(), func(context.Context, *coir.Nursery) error {
		if coir.Default() != rt {
			t.Error("a fiber has another default runtime")
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	synctest.Test(t, func(t *testing.T) {
		in := coir.Default()
		if err := coir.Run(t.Context(), nothing); err != nil || in == rt || in != coir.Default() || in.Stats().Spawned != 1 {
			t.Errorf("the bubble does not have its own, or Run returned %v", err)
		}
	})
}

const configureVar = "COIR_TEST_CONFIGURE"

// Options of the default runtime are set once, before its first use, and hold in bubbles too. Each case needs a process
// of its own.
func TestConfigure(t *testing.T) {
	var started atomic.Int32
	count := coir.WithObserver(&starts{n: &started})
	run := func() {
		if err := coir.Run(context.Background(), nothing); err != nil {
			t.Error(err)
		}
	}
	refused := func(err error) {
		if err == nil || !strings.Contains(err.Error(), "configured or used already: call Configure once, at the start of main") {
			t.Errorf("Configure returned %v", err)
		}
	}
	cases := map[string]func(){
		"before": func() {
			if err := coir.Configure(count); err != nil {
				t.Error(err)
			}
			refused(coir.Configure())
			if run(); started.Load() != 1 {
				t.Errorf("%d fibers were seen", started.Load())
			}
			synctest.Test(t, func(*testing.T) { run() })
			if started.Load() != 2 {
				t.Errorf("%d fibers were seen, also in a bubble", started.Load())
			}
		},
		"after Run":     func() { run(); refused(coir.Configure(count)) },
		"after Default": func() { coir.Default(); refused(coir.Configure(count)) },
		"after a timer": func() {
			_, cancel := coir.WithTimeout(context.Background(), time.Hour)
			cancel()
			refused(coir.Configure(count))
		},
		"after a bubble": func() {
			synctest.Test(t, func(*testing.T) { run() })
			refused(coir.Configure(count))
		},
		"by many": func() {
			var all sync.WaitGroup
			var first atomic.Int32
			for range 8 {
				all.Go(func() {
					if coir.Configure(count) == nil {
						first.Add(1)
					}
					run()
				})
			}
			if all.Wait(); first.Load() > 1 || started.Load() != 8*first.Load() {
				t.Errorf("%d have configured it, %d of 8 fibers were seen", first.Load(), started.Load())
			}
		},
	}
	if name := os.Getenv(configureVar); name != "" {
		cases[name]()
		return
	}
	for name := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := itself(ctx, "-test.run=^TestConfigure$")
			cmd.Env = append(os.Environ(), configureVar+"="+name)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// starts counts fibers that were started.
type starts struct {
	hooked
	n *atomic.Int32
}

func (s *starts) FiberStarted(*coir.Fiber) { s.n.Add(1) }

// logs is a slog.Handler that keeps the attributes of each record, by key, and the message under "msg".
type logs struct {
	slog.Handler
	mu  sync.Mutex
	got []map[string]string
}

func (l *logs) Enabled(context.Context, slog.Level) bool { return true }

func (l *logs) Handle(_ context.Context, r slog.Record) error {
	rec := map[string]string{"msg": r.Message, "level": r.Level.String()}
	r.Attrs(func(a slog.Attr) bool {
		rec[a.Key] = a.Value.String()
		return true
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	l.got = append(l.got, rec)
	return nil
}

func (l *logs) all() []map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.got
}

// logging makes the handler the default until the test ends.
func logging(t *testing.T) *logs {
	old := slog.Default()
	t.Cleanup(func() { slog.SetDefault(old) })
	l := &logs{Handler: old.Handler()}
	slog.SetDefault(slog.New(l))
	return l
}

// A fiber that blocks without saying so is logged, once for each place that starts such fibers, with what to write
// instead.
func TestStallsAreLogged(t *testing.T) {
	l := logging(t)
	rt := newRuntime(t, coir.WithWorkers(4))
	gate := make(chan struct{})
	blocks := func(context.Context) error { //nolint:unparam // as Go wants it
		<-gate
		return nil
	}
	ended := goes(func() {
		err := rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
			for i := range 3 {
				n.Go("many", blocks, coir.WithIndex(i))
			}
			n.Go("single", blocks)
			n.Go("declared", func(ctx context.Context) error {
				_, err := coir.Blocking(ctx, func() (struct{}, error) { return <-gate, nil })
				return err
			})
			n.Go("on a goroutine", blocks, coir.WithGoroutine())
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	eventually(t, "the stalls", func() bool { return rt.Stats().Stalls >= 4 && len(l.all()) >= 2 })
	close(gate)
	<-ended
	for _, rec := range l.all() {
		name, _, _ := strings.Cut(rec["fiber"], "[")
		if name != "many" && name != "single" || rec["level"] != "WARN" ||
			!strings.Contains(path.Base(rec["started"]), "default_test.go:") ||
			!strings.Contains(path.Base(rec["at"]), "default_test.go:") ||
			!containsAll(rec["msg"], "coir.Blocking", "coir.WithGoroutine()", "coir.Yield") || rec["for"] == "" {
			t.Errorf("logged %v", rec)
		}
	}
	if n := len(l.all()); n != 2 {
		t.Errorf("%d stalls were logged, from 2 places", n)
	}
}

// Getting the stack of a fiber stops all goroutines, the longer the more there are. With very many, a stall is logged
// without the stack.
func TestStallAmongManyGoroutines(t *testing.T) {
	l := logging(t)
	rt := newRuntime(t)
	gate := make(chan struct{})
	var wg sync.WaitGroup
	for range 10_001 {
		wg.Go(func() { <-gate })
	}
	wg.Go(func() {
		err := rt.Run(context.Background(), func(context.Context, *coir.Nursery) error {
			<-gate
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	eventually(t, "the stall is logged", func() bool { return len(l.all()) > 0 })
	close(gate)
	wg.Wait()
	if rec := l.all()[0]; rec["at"] != "" || rec["fiber"] == "" || rec["for"] == "" {
		t.Errorf("logged %v, want no place", rec)
	}
}

// OnStall replaces the log. TestWhichRuntimesLogStalls has the other ways not to log.
func TestStallsThatAreNotLogged(t *testing.T) {
	l := logging(t)
	for _, opt := range []coir.RuntimeOption{
		coir.OnStall(20*time.Millisecond, func(coir.Stall) {}),
		coir.OnStall(20*time.Millisecond, nil),
	} {
		rt := newRuntime(t, opt)
		err := rt.Run(context.Background(), func(context.Context, *coir.Nursery) error {
			eventually(t, "the stall", func() bool { return rt.Stats().Stalls > 0 })
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	if len(l.all()) > 0 {
		t.Errorf("logged %v", l.all())
	}
}

// WaitCancel in a goroutine, and under contexts that are none of coir's.
func TestWaitCancelElsewhere(t *testing.T) {
	for _, c := range []struct {
		name string
		make func(context.Context) (context.Context, func())
		want error
	}{
		{"context.WithCancel", func(ctx context.Context) (context.Context, func()) {
			return context.WithCancel(ctx)
		}, context.Canceled},
		{"context.WithCancelCause", func(ctx context.Context) (context.Context, func()) {
			in, cancel := context.WithCancelCause(ctx)
			return in, func() { cancel(errWhy) }
		}, cancelFor{errWhy}},
		{"context.WithTimeout", func(ctx context.Context) (context.Context, func()) {
			in, cancel := context.WithTimeout(ctx, time.Nanosecond)
			_ = cancel //nolint:govet // the time ends it
			return in, func() {}
		}, coir.ErrTimeout},
		{"coir.WithCancelCause", func(ctx context.Context) (context.Context, func()) {
			in, cancel := coir.WithCancelCause(ctx)
			return in, func() { cancel(errWhy) }
		}, cancelFor{errWhy}},
		{"context.WithValue", func(ctx context.Context) (context.Context, func()) {
			in, cancel := coir.WithCancelCause(ctx)
			return context.WithValue(in, key("a"), 1), func() { cancel(errWhy) }
		}, cancelFor{errWhy}},
	} {
		t.Run(c.name, func(t *testing.T) {
			crews(t, func(t *testing.T, crew *crew) {
				ctx, end := c.make(context.Background())
				got := make(chan error, 2)
				crew.do(func(context.Context) { got <- coir.WaitCancel(ctx) })
				crew.do(func(context.Context) { got <- coir.WaitCancel(ctx) })
				end()
				crew.wait()
				for range 2 {
					if err := <-got; !isWanted(err, c.want) {
						t.Errorf("it returned %v", err)
					}
				}
				if err := coir.WaitCancel(ctx); !isWanted(err, c.want) {
					t.Errorf("afterwards it returned %v", err)
				}
				if !errors.Is(ctx.Err(), context.Canceled) && !errors.Is(ctx.Err(), context.DeadlineExceeded) {
					t.Errorf("the context's error is %v", ctx.Err())
				}
			})
		})
	}
}
