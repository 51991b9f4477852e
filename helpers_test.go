package coir_test

// Helpers that several test files share: checks of errors, runtimes that are closed at the end, ways to wait for
// something, and crews of fibers and goroutines. The helpers of the conformance suite are in conform_test.go.

import (
	"context"
	"errors"
	"iter"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/soak"
)

// isCancelFor reports whether err says that an operation was cancelled for cause, and nothing else: it is
// context.Canceled, it shows the cause, and it matches neither the cause nor any other way in which an operation can
// end.
func isCancelFor(err, cause error) bool {
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "cancelled: "+cause.Error()) {
		return false
	}
	for _, other := range []error{cause, coir.ErrClosed, coir.ErrTimeout, coir.ErrWouldBlock, context.DeadlineExceeded} {
		if errors.Is(err, other) {
			return false
		}
	}
	return true
}

// isCancelIn is isCancelFor for an operation under ctx, which has the cause.
func isCancelIn(ctx context.Context, err, cause error) bool {
	//nolint:errorlint // the API promises this exact value
	return isCancelFor(err, cause) && ctx.Err() == context.Canceled && context.Cause(ctx) == cause
}

// cancelFor is an expected error, one for which isCancelFor holds. isWanted knows it.
type cancelFor struct{ cause error }

func (c cancelFor) Error() string { return "a cancel for " + c.cause.Error() }

// isWanted reports whether err is want, which may be nil, or a cancelFor.
func isWanted(err, want error) bool {
	if c, ok := want.(cancelFor); ok { //nolint:errorlint // it is never wrapped
		return isCancelFor(err, c.cause)
	}
	return errors.Is(err, want)
}

// hooked is an Observer that calls the functions that are set.
type hooked struct {
	onReady   func(*coir.Fiber)
	onParked  func(*coir.Fiber)
	onStalled func(coir.Stall)
}

func (w *hooked) FiberStarted(*coir.Fiber) {}

func (w *hooked) FiberEnded(*coir.Fiber, error) {}

func (w *hooked) FiberParked(f *coir.Fiber) {
	if w.onParked != nil {
		w.onParked(f)
	}
}

func (w *hooked) FiberReady(f, _ *coir.Fiber) {
	if w.onReady != nil {
		w.onReady(f)
	}
}

func (w *hooked) FiberStalled(s coir.Stall) {
	if w.onStalled != nil {
		w.onStalled(s)
	}
}

var errStop = errors.New("stop")

var errWhy = errors.New("because")

// newRuntime makes a runtime that is closed when the test ends.
func newRuntime(t *testing.T, opts ...coir.RuntimeOption) *coir.Runtime {
	t.Helper()
	rt := coir.NewRuntime(opts...)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second) // after a failure it may never end
		defer cancel()
		if err := rt.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return rt
}

// undisturbed runs a test on a runtime with one worker, whose fibers must take turns. On a busy machine the worker may
// be kept from running for so long that the monitor finds it held up and gives its queue away. Then the turns differ:
// undisturbed runs a failed test again.
func undisturbed(t *testing.T, runtime func(*testing.T) *coir.Runtime, do func(rt *coir.Runtime) error) {
	t.Helper()
	var err error
	for range 20 {
		rt := runtime(t)
		if err = do(rt); err == nil {
			return
		}
		if rt.Stats().Replaced == 0 {
			t.Fatal(err)
		}
	}
	t.Skipf("the worker is held up each time: this machine is too busy to tell (%v)", err)
}

func nothing(context.Context, *coir.Nursery) error { return nil }

// sized returns how much a test does: with -short, ordinarily, or under make soak. A race build does a tenth, and so
// does one without assembly.
func sized(short, ordinary, full int) int {
	n := ordinary
	switch {
	case soak.On():
		n = full
	case testing.Short():
		n = short
	}
	if raceEnabled || !coro.Assembly {
		n = max(1, n/10)
	}
	return n
}

// waited returns a channel that is closed when all have ended.
func waited(all *sync.WaitGroup) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		all.Wait()
		close(done)
	}()
	return done
}

// within fails the test, with all stacks, if the event does not happen in time.
func within(t *testing.T, d time.Duration, what string, happened <-chan struct{}) {
	t.Helper()
	limit := time.NewTimer(d)
	defer limit.Stop()
	select {
	case <-happened:
	case <-limit.C:
		t.Fatalf("not within %v: %s\n%s", d, what, stacks())
	}
}

// noGoroutinesAbove waits until there are no more goroutines than base. Those of the default runtime and of earlier
// tests may still be ending; they only make the test wait. A base of 0 means: until the number has not changed for a
// while.
func noGoroutinesAbove(t *testing.T, base int) {
	t.Helper()
	limit := time.Now().Add(20 * time.Second)
	last, since := 0, time.Now()
	for {
		n := runtime.NumGoroutine()
		if base > 0 && n <= base {
			return
		}
		if n != last {
			last, since = n, time.Now()
		}
		if base == 0 && time.Since(since) > 200*time.Millisecond {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("%d goroutines; there were %d\n%s", n, base, stacks())
		}
		<-time.After(time.Millisecond)
	}
}

// goroutineCount returns the number of goroutines. One reading may be too low, while goroutines of an earlier test end.
func goroutineCount() (n int) {
	for range 5 {
		n = max(n, runtime.NumGoroutine())
		runtime.Gosched()
	}
	return n
}

func stacks() []byte {
	buf := make([]byte, 1<<16)
	return buf[:runtime.Stack(buf, true)]
}

var errA, errB, errC = errors.New("error a"), errors.New("error b"), errors.New("error c")

// one returns a runtime with one worker, which is never replaced. When the test ends the runtime is closed, and none of
// its goroutines may be left.
func one(t *testing.T) *coir.Runtime { return on(t, coir.WithWorkers(1), coir.WithMaxWorkers(1)) }

func on(t *testing.T, opts ...coir.RuntimeOption) *coir.Runtime {
	t.Helper()
	left := goroutines(t)
	rt := coir.NewRuntime(opts...)
	t.Cleanup(func() {
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
		left()
	})
	return rt
}

// onOne runs fn on such a runtime, and checks that Run returns want; nil means no error, a cancelFor a cancellation for
// that cause.
func onOne(t *testing.T, fn func(ctx context.Context, n *coir.Nursery) error, want error) {
	t.Helper()
	if err := one(t).Run(context.Background(), fn); !isWanted(err, want) {
		t.Errorf("Run returned %v, want %v", err, want)
	}
}

// goroutines counts the goroutines now; the function that it returns fails the test if there are more later. A released
// goroutine needs a moment to end.
func goroutines(t *testing.T) (left func()) {
	t.Helper()
	before := goroutineCount()
	return func() {
		t.Helper()
		for end := time.Now().Add(patience); runtime.NumGoroutine() > before; runtime.Gosched() {
			if time.Now().After(end) {
				buf := make([]byte, 1<<16)
				t.Errorf("%d goroutines are left, there were %d:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
				return
			}
		}
	}
}

// patience is how long something may take that takes no time on an idle machine.
const patience = 20 * time.Second

// eventually waits, in a goroutine, for a condition that has no signal.
func eventually(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !happened(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Errorf("never: %s", what)
			return
		}
	}
}

// yieldUntil is eventually for a fiber.
func yieldUntil(ctx context.Context, t *testing.T, what string, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !happened(); {
		if coir.Yield(ctx) != nil || time.Now().After(end) {
			t.Errorf("never: %s", what)
			return
		}
	}
}

// parkAt parks until the gate is opened, that is, cancelled without a cause.
func parkAt(gate context.Context) error {
	if err := coir.Sleep(gate, time.Hour); err != context.Canceled { //nolint:errorlint // the API promises this exact value
		return err
	}
	return nil
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// goes runs f in a goroutine.
func goes(f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return done
}

// blocking is coir.Blocking of a function that returns nothing.
func blocking(ctx context.Context, fn func()) {
	_, _ = coir.Blocking(ctx, func() (struct{}, error) {
		fn()
		return struct{}{}, nil
	})
}

// native receives in a fiber from an ordinary channel.
func native[T any](ctx context.Context, c <-chan T) T {
	v, _ := coir.Blocking(ctx, func() (T, error) { return <-c, nil })
	return v
}

// goroutine runs f in a goroutine and waits for it, in a fiber. Others may run meanwhile.
func goroutine(ctx context.Context, f func()) {
	done := goes(f)
	for !closed(done) {
		if coir.Yield(ctx) != nil {
			native(ctx, done)
			return
		}
	}
}

// crew starts the participants of a test: as fibers, as goroutines, or alternating.
type crew struct {
	t     *testing.T
	n     *coir.Nursery   // for the fibers
	ctx   context.Context // for the goroutines
	fiber func(i int64) bool
	count atomic.Int64
	all   sync.WaitGroup
}

// crews runs a test with each sort of crew.
func crews(t *testing.T, test func(t *testing.T, c *crew)) {
	t.Helper()
	for _, k := range []struct {
		name  string
		fiber func(i int64) bool
	}{
		{"fibers", func(int64) bool { return true }},
		{"goroutines", func(int64) bool { return false }},
		{"fiber first", func(i int64) bool { return i%2 == 0 }},
		{"goroutine first", func(i int64) bool { return i%2 == 1 }},
	} {
		t.Run(k.name, func(t *testing.T) { test(t, newCrew(t, k.fiber)) })
	}
}

// newCrew makes a crew. When the test ends every member must end, and no goroutine may be left.
func newCrew(t *testing.T, fiber func(i int64) bool) *crew {
	t.Helper()
	before := goroutineCount()
	ctx, cancel := context.WithCancel(context.Background())
	c := &crew{t: t, ctx: ctx, fiber: fiber}
	rt := coir.NewRuntime()
	begun, result := make(chan context.CancelCauseFunc, 1), make(chan error, 1)
	go func() {
		result <- rt.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			gate, open := coir.WithCancelCause(ctx)
			c.n = n
			begun <- open
			return parkAt(gate)
		})
	}()
	open := <-begun
	t.Cleanup(func() {
		if t.Failed() {
			cancel() // a member that still waits would wait forever
		}
		c.wait()
		open(nil)
		if err := <-result; err != nil && !t.Failed() {
			t.Error(err)
		}
		if err := rt.Close(context.Background()); err != nil {
			t.Error(err)
		}
		cancel()
		noGoroutinesAbove(t, before)
	})
	return c
}

// do starts a member.
func (c *crew) do(fn func(ctx context.Context)) {
	c.all.Add(1)
	if !c.fiber(c.count.Add(1) - 1) {
		go func() {
			defer c.all.Done()
			fn(c.ctx)
		}()
		return
	}
	c.n.Go("crew", func(ctx context.Context) error {
		defer c.all.Done()
		fn(ctx)
		return nil
	})
}

// did starts a member and waits until it has ended.
func (c *crew) did(fn func(ctx context.Context)) {
	c.t.Helper()
	done := make(chan struct{})
	c.do(func(ctx context.Context) {
		defer close(done)
		fn(ctx)
	})
	within(c.t, limit(), "one of the crew has ended", done)
}

// wait waits until every member has ended.
func (c *crew) wait() {
	c.t.Helper()
	within(c.t, limit(), "the crew has ended", waited(&c.all))
}

// breathe lets others run, fibers and goroutines.
func breathe(ctx context.Context) {
	_ = coir.Yield(ctx)
	runtime.Gosched()
}

// limit is how long anything may take before the test gives up on it.
func limit() time.Duration {
	if soak.On() {
		return 20 * time.Minute
	}
	return time.Minute
}

// outcome is the result of a select.
type outcome struct {
	index int
	err   error
}

// selects makes a member select.
func (c *crew) selects(cases ...coir.Case) <-chan outcome {
	out := make(chan outcome, 1)
	c.do(func(ctx context.Context) {
		i, err := coir.Select(ctx, cases...)
		out <- outcome{i, err}
	})
	return out
}

// outcome waits for the result of a select.
func (c *crew) outcome(out <-chan outcome) (o outcome) {
	c.t.Helper()
	within(c.t, limit(), "the select has ended", goes(func() { o = <-out }))
	return o
}

// waitFor waits until that many operations wait on each side of a channel.
func waitFor[T any](t *testing.T, ch *coir.Chan[T], send, recv int) {
	t.Helper()
	for end := time.Now().Add(patience); ; runtime.Gosched() {
		s := ch.Stats()
		if s.Send.Waiting == send && s.Recv.Waiting == recv {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d send and %d receive; never %d and %d\n%s", s.Send.Waiting, s.Recv.Waiting, send, recv, stacks())
		}
	}
}

// itself returns a command that runs this test binary, under the same emulator (see .ci/arm64).
func itself(ctx context.Context, args ...string) *exec.Cmd {
	if emulator := os.Getenv("COIR_EMULATOR"); emulator != "" {
		return exec.CommandContext(ctx, emulator, append([]string{os.Args[0]}, args...)...)
	}
	return exec.CommandContext(ctx, os.Args[0], args...)
}

// containsAll reports whether text contains each of the parts.
func containsAll(text string, parts ...string) bool {
	return !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(text, p) })
}

// collect returns the values of an iterator that ends with an error, and the error.
func collect[T any](seq iter.Seq2[T, error]) (values []T, err error) {
	for v, err := range seq {
		if err != nil {
			return values, err
		}
		values = append(values, v)
	}
	return values, nil
}
