package coir_test

// Go's own tools show the names of fibers: as labels of the profiler.

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
)

// labelsAre reports an error if the calling fiber does not have the labels.
func labelsAre(t *testing.T, want string) {
	t.Helper()
	if got := labelsHere(); got != want {
		t.Errorf("the labels are %s, want %s", got, want)
	}
}

// Spec: FB-34 (labels are inherited and not left behind)
func TestFibersHaveLabels(t *testing.T) {
	rt := newRuntime(t, coir.WithLabels(), coir.WithWorkers(2))
	err := rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		labelsAre(t, `{"fiber":"main", "nursery":"main"}`)
		worker := func(ctx context.Context) error {
			labelsAre(t, `{"fiber":"worker[3]", "nursery":"main"}`)
			err := coir.Yield(ctx)
			labelsAre(t, `{"fiber":"worker[3]", "nursery":"main"}`)
			// What the program sets is added, and set back.
			pprof.Do(ctx, pprof.Labels("tenant", "a"), func(ctx context.Context) {
				labelsAre(t, `{"fiber":"worker[3]", "nursery":"main", "tenant":"a"}`)
				n.Go("heir", func(context.Context) error {
					labelsAre(t, `{"fiber":"heir", "nursery":"main", "tenant":"a"}`)
					return nil
				})
				n.Go("native", func(ctx context.Context) error {
					labelsAre(t, `{"fiber":"native", "nursery":"main", "tenant":"a"}`)
					if name, ok := pprof.Label(ctx, "fiber"); !ok || name != "native" {
						t.Errorf("the context of native has the label %q", name)
					}
					return nil
				}, coir.WithGoroutine())
				var started sync.WaitGroup
				started.Go(func() { labelsAre(t, `{"fiber":"worker[3]", "nursery":"main", "tenant":"a"}`) })
				started.Wait()
			})
			labelsAre(t, `{"fiber":"worker[3]", "nursery":"main"}`)
			// In a nursery inside, and in contexts derived from that of the fiber.
			return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				ctx, cancel := coir.WithTimeout(context.WithValue(ctx, errA, errB), time.Hour)
				defer cancel()
				if name, _ := pprof.Label(ctx, "fiber"); name != "worker[3]" || ctx.Value(errA) != errB {
					t.Errorf("a context in worker[3] has the label %q", name)
				}
				n.Go("inner", func(context.Context) error {
					labelsAre(t, `{"fiber":"inner", "nursery":"worker[3]"}`)
					return nil
				})
				pprof.Do(ctx, pprof.Labels("fiber", "other"), func(context.Context) {
					labelsAre(t, `{"fiber":"other", "nursery":"main"}`)
				})
				return err
			})
		}
		return n.Go("worker", worker, coir.WithIndex(3)).Wait(ctx)
	})
	if err != nil {
		t.Error(err)
	}
	// The labels of a goroutine that calls Run.
	pprof.Do(t.Context(), pprof.Labels("tenant", "b"), func(ctx context.Context) {
		err := rt.Run(ctx, func(context.Context, *coir.Nursery) error {
			labelsAre(t, `{"fiber":"main", "nursery":"main", "tenant":"b"}`)
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		labelsAre(t, `{"tenant":"b"}`)
	})
}

// Without the option, neither fibers nor their contexts have labels.
func TestFibersHaveNoLabels(t *testing.T) {
	err := newRuntime(t).Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
		return n.Go("worker", func(ctx context.Context) error {
			labelsAre(t, "")
			if name, ok := pprof.Label(ctx, "fiber"); ok {
				t.Errorf("the context has the label %q", name)
			}
			return nil
		}).Wait(ctx)
	})
	if err != nil {
		t.Error(err)
	}
}

// Fibers run one after the other on a coroutine. None has the name of an earlier one, however that ended, and a
// coroutine without a fiber has none.
//
// Spec: FB-34 (labels are inherited and not left behind)
func TestCoroutinesDoNotKeepLabels(t *testing.T) {
	rt := newRuntime(t, coir.WithLabels(), coir.WithWorkers(1))
	err := rt.Run(t.Context(), func(ctx context.Context, _ *coir.Nursery) error {
		for i := range 30 {
			name := fmt.Sprintf("fiber-%d", i)
			child := func(ctx context.Context) {
				labelsAre(t, fmt.Sprintf(`{"fiber":%q, "nursery":"main"}`, name))
				pprof.SetGoroutineLabels(pprof.WithLabels(ctx, pprof.Labels("tenant", "left")))
				switch i % 3 {
				case 0:
					panic("over")
				case 1:
					runtime.Goexit()
				}
			}
			if v := panicValue(func() {
				_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
					n.Go(name, func(ctx context.Context) error { child(ctx); return nil })
					return nil
				})
			}); (v != nil) != (i%3 == 0) {
				t.Errorf("%s: %v", name, v)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if made := rt.Stats().Coroutines; !raceEnabled && made > 25 {
		t.Errorf("there were %d coroutines: they are not used again, and the test shows nothing", made)
	}
	// A goroutine that a Goexit ends may still be on its way out when Run has returned.
	for begin := time.Now(); ; runtime.Gosched() {
		var profile strings.Builder
		if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(profile.String(), `"fiber-`) && !strings.Contains(profile.String(), `"left"`) {
			break
		}
		if time.Since(begin) > 10*time.Second {
			t.Fatalf("a goroutine has the labels of a fiber that has ended:\n%s", profile.String())
		}
	}
}

// The goroutine profile names the fibers that wait, in each of its forms.
func TestGoroutineProfileNamesFibers(t *testing.T) {
	t.Setenv("GODEBUG", "tracebacklabels=1")
	rt := newRuntime(t, coir.WithLabels())
	end := inBackground(rt, func(_ context.Context, n *coir.Nursery) error {
		for i := range 3 {
			n.Go("sleeper", func(ctx context.Context) error { return coir.WaitCancel(ctx) }, coir.WithIndex(i))
		}
		n.Go("native", coir.WaitCancel, coir.WithGoroutine())
		return nil
	})
	snapshotWhen(t, rt, "all fibers wait", waiting("sleeper[0]", "sleeper[1]", "sleeper[2]"))
	names := []string{"sleeper[0]", "sleeper[1]", "sleeper[2]"}
	var packed, text, stacks bytes.Buffer
	for debug, to := range []*bytes.Buffer{&packed, &text, &stacks} {
		if err := pprof.Lookup("goroutine").WriteTo(to, debug); err != nil {
			t.Fatal(err)
		}
	}
	z, err := gzip.NewReader(&packed)
	if err != nil {
		t.Fatal(err)
	}
	proto, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if label := fmt.Sprintf(`# labels: {"fiber":%q, "nursery":"main"}`, name); !strings.Contains(text.String(), label) {
			t.Errorf("the profile has no %s:\n%s", label, text.String())
		}
		if !bytes.Contains(proto, []byte(name)) {
			t.Errorf("the profile in its binary form has no %s", name)
		}
		if !strings.Contains(stacks.String(), name) {
			t.Errorf("the profile with all stacks has no %s", name)
		}
	}
	if err := end(); err == nil {
		t.Error("the run was not cancelled")
	}
}

// A crash prints the names of the fibers that wait, and a PanicError that of the fiber that has panicked.
//
// The test runs itself again, and that crashes.
func TestTracebacksNameFibers(t *testing.T) {
	const env = "COIR_TEST_CRASH"
	if os.Getenv(env) != "" {
		rt := coir.NewRuntime(coir.WithLabels())
		inBackground(rt, func(_ context.Context, n *coir.Nursery) error {
			n.Go("sleeper", coir.WaitCancel, coir.WithIndex(7))
			n.Go("synctest bubble 3, locked to thread", coir.WaitCancel)
			return nil
		})
		snapshotWhen(t, rt, "it waits", waiting("sleeper[7]"))
		defer func() { panic(recover()) }()
		_ = rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
			n.Go("thrower", func(context.Context) error { panic("thrown") })
			return nil
		})
	}
	cmd := itself(t.Context(), "-test.run=^TestTracebacksNameFibers$")
	cmd.Env = append(os.Environ(), env+"=1", "GODEBUG=tracebacklabels=1", "GOTRACEBACK=all")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatal("the process did not crash")
	}
	for _, name := range []string{"sleeper[7]", "thrower", "synctest bubble 3, locked to thread"} {
		found := false
		for line := range strings.Lines(string(out)) {
			found = found || strings.Contains(line, "goroutine ") && strings.Contains(line, name)
		}
		if !found {
			t.Errorf("no goroutine has the label %s:\n%s", name, out)
		}
	}
}

// Names that are also marks in the header of a traceback, which coir reads, mean nothing there.
func TestNamesLikeMarksOfTracebacks(t *testing.T) {
	t.Setenv("GODEBUG", "tracebacklabels=1")
	run := func(t *testing.T) {
		rt := newRuntime(t, coir.WithLabels(), coir.WithWorkers(2))
		err := rt.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
			for _, name := range []string{
				"synctest bubble 99", "locked to thread", "]:\n\ngoroutine 1 [running]:\n", "\x00\xff{}",
			} {
				c := coir.NewChan[int](0)
				n.Go(name, func(ctx context.Context) error {
					runtime.LockOSThread()
					defer runtime.UnlockOSThread()
					return c.Send(ctx, 1)
				})
				n.Go(name, func(ctx context.Context) error {
					if err := coir.Sleep(ctx, time.Millisecond); err != nil {
						return err
					}
					_, err := c.Recv(ctx)
					return err
				})
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	run(t)
	synctest.Test(t, run)
}

// Labels change nothing in a runtime that a policy or a virtual clock decides for, and none is left behind by a bubble.
func TestLabelsInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := newRuntime(t, coir.WithLabels())
		begin := time.Now()
		err := rt.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
			n.Go("sleeper", func(ctx context.Context) error {
				labelsAre(t, `{"fiber":"sleeper", "nursery":"main"}`)
				err := coir.Sleep(ctx, time.Hour)
				labelsAre(t, `{"fiber":"sleeper", "nursery":"main"}`)
				return err
			})
			return nil
		})
		if err != nil || time.Since(begin) != time.Hour {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

// BenchmarkLabels measures a start and an end of a fiber, without labels and with them.
func BenchmarkLabels(b *testing.B) {
	for _, c := range []struct {
		name string
		opts []coir.RuntimeOption
	}{{"off", nil}, {"on", []coir.RuntimeOption{coir.WithLabels()}}} {
		b.Run(c.name, func(b *testing.B) {
			rt := coir.NewRuntime(append(c.opts, coir.WithWorkers(1))...)
			b.ReportAllocs()
			err := rt.Run(b.Context(), func(ctx context.Context, n *coir.Nursery) error {
				for b.Loop() {
					if err := n.Go("child", func(context.Context) error { return nil }).Wait(ctx); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				b.Error(err)
			}
			if err := rt.Close(b.Context()); err != nil {
				b.Error(err)
			}
		})
	}
}
