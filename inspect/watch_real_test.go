package inspect_test

// These tests check what Watch logs about fibers that wait for each other. No explanation is about a fiber that package
// inspect has started, so they are outside of the package.

import (
	"context"
	"log/slog"
	"math/bits"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/inspect"
	"github.com/coir-go/coir/locks"
	"github.com/coir-go/coir/snapshot"
)

// told is a slog.Handler that keeps the records.
type told struct {
	slog.Handler
	mu  sync.Mutex
	all []slog.Record
}

func (h *told) Enabled(context.Context, slog.Level) bool { return true }

func (h *told) Handle(_ context.Context, r slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all = append(h.all, r)
	return nil
}

// take returns the records, and forgets them.
func (h *told) take() []slog.Record {
	h.mu.Lock()
	defer h.mu.Unlock()
	defer func() { h.all = nil }()
	return h.all
}

// watch starts a Watch, in a bubble. The returned function ends it.
func watch(t *testing.T, opts ...inspect.Option) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- inspect.Watch(ctx, opts...) }()
	return func() {
		t.Helper()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// deadlocked starts two fibers that lock two mutexes in different orders.
func deadlocked(n *coir.Nursery, a, b *locks.Mutex) {
	for i, order := range [][2]*locks.Mutex{{a, b}, {b, a}} {
		n.Go("transfer", func(ctx context.Context) error {
			if err := order[0].Lock(ctx); err != nil {
				return err
			}
			defer order[0].Unlock()
			if err := coir.Sleep(ctx, time.Second); err != nil {
				return err
			}
			if err := order[1].Lock(ctx); err != nil {
				return err
			}
			defer order[1].Unlock()
			return nil
		}, coir.WithIndex(i))
	}
}

// A fiber that calls Watch waits for the end of its context. It is not in a call that blocks, so Watch does not report
// it.
func TestWatchSaysNothingOfItsFiber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := coir.NewRuntime()
		var l told
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			done <- rt.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
				n.Go("watch", func(ctx context.Context) error {
					return inspect.Watch(ctx, inspect.WithSource(rt), inspect.WithLogger(slog.New(&l)))
				})
				return nil
			})
		}()
		time.Sleep(time.Hour) // on the virtual clock
		synctest.Wait()
		for _, r := range l.take() {
			r.Attrs(func(a slog.Attr) bool { t.Errorf("%s: %v", r.Message, a); return true })
		}
		for _, f := range rt.Snapshot(snapshot.Options{}).Fibers {
			if f.Name == "watch" && (f.State != snapshot.StateWaiting || f.Wait[0].Kind != snapshot.WaitCancel) {
				t.Errorf("its fiber is %s: %v", f.State, f.Wait)
			}
		}
		cancel()
		<-done
		if err := rt.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// If a source panics, Watch panics in its caller.
func TestWatchPanicsInItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		defer func() {
			if r := recover(); r != "broken" {
				t.Errorf("Watch panics with %v", r)
			}
		}()
		_ = inspect.Watch(t.Context(), inspect.WithSource(broken{}))
	})
}

// broken is a source that panics.
type broken struct{ inspect.Source }

func (broken) Snapshot(snapshot.Options) *snapshot.Snapshot { panic("broken") }

// The text of a deadlock has the lines where its fibers wait for locks.
var atItsLine = regexp.MustCompile(`waits to lock alice \(at inspect/watch_real_test\.go:\d+\)`)

// A deadlock is logged once as long as it lasts, and another deadlock is logged again.
func TestWatchLogsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := coir.NewRuntime()
		var l told
		defer watch(t, inspect.WithSource(rt), inspect.WithLogger(slog.New(&l)))()
		for round := range 2 {
			a, b := locks.NewMutex(coir.WithName("alice")), locks.NewMutex(coir.WithName("bob"))
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() {
				done <- rt.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
					deadlocked(n, a, b)
					return nil
				})
			}()
			time.Sleep(22 * time.Second)
			synctest.Wait()
			all := l.take()
			if len(all) != 1 {
				t.Fatalf("round %d: the log has %+v", round, all)
			}
			attrs := map[string]slog.Value{}
			all[0].Attrs(func(a slog.Attr) bool { attrs[a.Key] = a.Value; return true })
			if all[0].Level != slog.LevelError || all[0].Message != "inspect: deadlock" ||
				attrs["kind"].String() != "deadlock" || !attrs["certain"].Bool() ||
				len(attrs["fibers"].Any().([]string)) < 2 || len(attrs["objects"].Any().([]string)) != 2 ||
				!atItsLine.MatchString(attrs["text"].String()) || attrs["since"].Time().IsZero() {
				t.Errorf("round %d: the log has %s: %v", round, all[0].Message, attrs)
			}
			time.Sleep(time.Hour)
			synctest.Wait()
			if all := l.take(); len(all) != 0 {
				t.Errorf("round %d: it is logged again: %+v", round, all)
			}
			cancel()
			<-done
			time.Sleep(20 * time.Second)
		}
		if all := l.take(); len(all) != 0 {
			t.Errorf("after the end the log has %+v", all)
		}
		if err := rt.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// runDeadlock runs fibers that are in a deadlock after a second, until the client's timeout of five seconds.
func runDeadlock(t *testing.T, rt *coir.Runtime) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := rt.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
		deadlocked(n, locks.NewMutex(coir.WithName("alice")), locks.NewMutex(coir.WithName("bob")))
		return nil
	}); err == nil {
		t.Error("there was no deadlock")
	}
}

// A deadlock that lasts for four seconds, because the clients have a timeout, is logged if Watch looks meanwhile. No
// snapshot that is older than the deadlock shows it.
func TestWatchLogsAShortDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := coir.NewRuntime()
		var l told
		defer watch(t, inspect.WithSource(rt), inspect.WithLogger(slog.New(&l)))()
		time.Sleep(7 * time.Second)
		for round := range 3 { // Watch looks after 3 seconds of each
			runDeadlock(t, rt)
			if all := l.take(); len(all) != 1 || all[0].Message != "inspect: deadlock" {
				t.Errorf("round %d: the log has %+v", round, all)
			}
			time.Sleep(5 * time.Second)
		}
		if err := rt.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A lock is held for a minute, and clients that wait for it give up, so that no wait is in the snapshots of two looks,
// or none is a long one.
func TestWatchLogsAHeldLockWhoseWaitsTimeOut(t *testing.T) {
	const fiber = `holder, which holds it \(in each snapshot for [\d.]+s\), waits for time to pass`
	for _, test := range []struct {
		holder          string
		interval, limit time.Duration
		want            string
	}{
		{"fiber", 10 * time.Second, 4 * time.Second, fiber},
		{"fiber", time.Second, 3 * time.Second, fiber},
		{"goroutine", 10 * time.Second, 4 * time.Second,
			`\], which holds it \(in each snapshot for 10s\), waits in inspect_test\.`},
	} {
		t.Run(test.holder+" "+test.interval.String(), func(t *testing.T) {
			holder := test.holder
			if holder == "goroutine" && bits.UintSize == 32 {
				t.Skip("the goroutines that hold a lock are not known")
			}
			synctest.Test(t, func(t *testing.T) {
				rt := coir.NewRuntime()
				var l told
				defer watch(t, inspect.WithSource(rt), inspect.WithLogger(slog.New(&l)), inspect.WithInterval(test.interval))()
				stock, free := locks.NewMutex(coir.WithName("stock")), make(chan struct{})
				if holder == "goroutine" {
					go func() {
						_ = stock.Lock(context.Background()) // nobody else has locked it
						<-free
						stock.Unlock()
					}()
					synctest.Wait()
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_ = rt.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
					if holder == "fiber" {
						n.Go("holder", func(ctx context.Context) error {
							if err := stock.Lock(ctx); err != nil {
								return err
							}
							defer stock.Unlock()
							return coir.Sleep(ctx, time.Hour)
						})
					}
					for i := range 3 {
						n.Go("client", func(ctx context.Context) error {
							err := coir.Sleep(ctx, time.Duration(i+1)*time.Second)
							for err == nil {
								in, end := coir.WithTimeout(ctx, test.limit)
								_ = stock.Lock(in)
								end()
								err = coir.Ended(ctx)
							}
							return err
						}, coir.WithIndex(i))
					}
					return nil
				})
				all := l.take()
				if len(all) != 1 || all[0].Message != "inspect: lock-held" {
					t.Fatalf("the log has %+v", all)
				}
				text := ""
				all[0].Attrs(func(a slog.Attr) bool {
					if a.Key == "text" {
						text = a.Value.String()
					}
					return true
				})
				if !regexp.MustCompile(test.want).MatchString(text) {
					t.Errorf("the text is\n%s\nwithout\n%s", text, test.want)
				}
				close(free)
				if err := rt.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A text that is requested every five seconds shows such a deadlock, too, and so does a dump right after it.
func TestTheTextShowsAShortDeadlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := coir.NewRuntime()
		h := inspect.Handler(inspect.WithSource(rt))
		get := func(path string) string {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "http://localhost"+path, nil))
			return w.Body.String()
		}
		ask := func() string { return get("/text") }
		for round := range 3 {
			if text := ask(); strings.Contains(text, "deadlock") {
				t.Errorf("round %d: before the deadlock the text has\n%s", round, text)
			}
			time.Sleep(2 * time.Second)
			done := make(chan struct{})
			go func() {
				defer close(done)
				runDeadlock(t, rt)
			}()
			time.Sleep(3 * time.Second)
			if text := ask(); !strings.Contains(text, "[deadlock] transfer[") {
				t.Errorf("round %d: the text has\n%s", round, text)
			}
			for range 10 {
				time.Sleep(70 * time.Millisecond)
				if dump := get("/dump?stacks=1"); !strings.Contains(dump, `"deadlock"`) {
					t.Errorf("round %d: the dump has\n%s", round, dump)
				}
			}
			<-done
			time.Sleep(3 * time.Second)
		}
		if err := rt.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A call that blocks for less than a second is no problem, whenever Watch looks.
func TestWatchLogsNoShortCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := coir.NewRuntime()
		var l told
		defer watch(t, inspect.WithSource(rt), inspect.WithLogger(slog.New(&l)))()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_ = rt.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			for {
				call := n.Go("call", func(ctx context.Context) error {
					_, err := coir.Blocking(ctx, func() (struct{}, error) {
						time.Sleep(900 * time.Millisecond)
						return struct{}{}, nil
					})
					return err
				})
				if err := call.Wait(ctx); err != nil {
					return err
				}
			}
		})
		for _, r := range l.take() {
			r.Attrs(func(a slog.Attr) bool { t.Errorf("%s: %v", r.Message, a); return true })
		}
		if err := rt.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
