package coir_test

// Contexts. A fiber's context is an ordinary context.Context that can be passed around: a fiber or a goroutine that
// calls an operation with it waits as what it is. Contexts derived from it, by the standard library or by coir, park
// the fiber and start no goroutine. Scopes: timeouts, cancels with a cause, shields, grace.
//
// The runtimes here have only one worker. So if anything runs while a fiber waits, the fiber was parked and did not
// block its worker.

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
)

// Spec: FB-20 (an operation blocks a goroutine as one)
// Spec: FB-21 (the caller's identity is checked)
func TestFiberContextInAGoroutineWhileTheFiberRuns(t *testing.T) {
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		var spins atomic.Int64
		quick := n.Go("quick", func(context.Context) error { return nil })
		done := make(chan struct{})
		go func() {
			defer close(done)
			usesAsGoroutine(ctx, t, quick)
			before := spins.Load()
			if err := coir.Sleep(ctx, 2*time.Millisecond); err != nil {
				t.Error(err)
			}
			eventually(t, "the fiber goes on while the goroutine uses its context", func() bool { return spins.Load() > before })
		}()
		for !closed(done) { // the fiber runs all the time
			spins.Add(1)
			if err := coir.Yield(ctx); err != nil {
				break
			}
		}
		<-done
		return nil
	}, nil)
}

// usesAsGoroutine calls every operation in a goroutine, with a context that belongs to a fiber.
func usesAsGoroutine(ctx context.Context, t *testing.T, quick *coir.Fiber) {
	t.Helper()
	if f := coir.Self(ctx); f != nil {
		t.Errorf("a goroutine is taken for fiber %s", f.Name())
	}
	if err := quick.Wait(ctx); err != nil {
		t.Errorf("Wait returned %v, want no error", err)
	}
	ran := false
	blocking(ctx, func() { ran = true })
	if !ran {
		t.Error("Blocking did not call its function")
	}
}

// Spec: FB-20 (an operation blocks a goroutine as one)
// Spec: FB-21 (the caller's identity is checked)
// Spec: FB-23 (a fiber's context ends with its nursery)
func TestFiberContextInAGoroutineWhileTheFiberIsParked(t *testing.T) {
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		gate, open := coir.WithCancelCause(ctx)
		theirs := make(chan context.Context, 1)
		parked := n.Go("parked", func(ctx context.Context) error {
			theirs <- ctx
			if err := coir.Sleep(gate, time.Hour); !isCancelIn(gate, err, errA) {
				t.Errorf("the parked fiber was woken with %v", err)
			}
			return nil
		})
		slow := n.Go("slow", func(context.Context) error { return coir.Sleep(gate, time.Hour) })
		yieldUntil(ctx, t, "both wait", func() bool {
			return parked.State() == coir.StateWaiting && slow.State() == coir.StateWaiting
		})
		fctx := <-theirs
		goroutine(ctx, func() {
			if coir.Self(fctx) != nil {
				t.Error("a goroutine is taken for the fiber whose context it has")
			}
			if err := coir.Sleep(fctx, time.Millisecond); err != nil {
				t.Error(err)
			}
			if err := coir.Yield(fctx); err != nil {
				t.Error(err)
			}
			short, cancel := coir.WithTimeout(fctx, time.Millisecond)
			defer cancel()
			if err := slow.Wait(short); !errors.Is(err, coir.ErrTimeout) {
				t.Errorf("Wait returned %v, want ErrTimeout", err)
			}
			if s := parked.State(); s != coir.StateWaiting {
				t.Errorf("the goroutine's waits changed the fiber's: it is %v", s)
			}
		})
		open(errA)
		return nil
	}, cancelFor{errA})
}

// Spec: FB-20 (an operation blocks a goroutine as one)
func TestFiberContextAfterTheFiberHasEnded(t *testing.T) {
	var kept context.Context
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		theirs := make(chan context.Context, 1)
		_ = n.Go("short", func(ctx context.Context) error {
			theirs <- ctx
			return nil
		}).Wait(ctx)
		fctx := <-theirs
		kept = fctx
		goroutine(ctx, func() {
			if fctx.Err() != nil || coir.Self(fctx) != nil {
				t.Errorf("err %v, self %v", fctx.Err(), coir.Self(fctx))
			}
			if err := coir.Sleep(fctx, time.Millisecond); err != nil {
				t.Errorf("the nursery still runs, and Sleep gives %v", err)
			}
		})
		if coir.Self(fctx) != coir.Self(ctx) {
			t.Error("in a fiber, the context of one that has ended means the caller")
		}
		return coir.Sleep(fctx, time.Millisecond)
	}, nil)
	if err := coir.Sleep(kept, time.Hour); !errors.Is(err, context.Canceled) {
		t.Fatalf("the nursery has ended, and Sleep gives %v", err)
	}
}

// A goroutine that waits under a fiber's context is cancelled with the fiber's nursery, for the same cause.
//
// Spec: FB-23 (a fiber's context ends with its nursery)
// Spec: NU-06 (cancel wakes every parked child)
func TestGoroutineIsCancelledWithTheFiber(t *testing.T) {
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		asleep, result := make(chan struct{}), make(chan error, 1)
		never := n.Go("never", func(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) })
		yieldUntil(ctx, t, "it waits", func() bool { return never.State() == coir.StateWaiting })
		go func() {
			close(asleep)
			result <- never.Wait(ctx)
		}()
		blocking(ctx, func() { <-asleep })
		n.Cancel(errA)
		if err := native(ctx, result); !isCancelIn(ctx, err, errA) {
			t.Error(err)
		}
		return nil
	}, cancelFor{errA})
}

// Spec: FB-19 (an operation parks the fiber, not the worker)
// Spec: FB-21 (the caller's identity is checked)
func TestFiberContextInAnotherFiber(t *testing.T) {
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		theirs := make(chan context.Context, 1)
		gate, open := coir.WithCancelCause(ctx)
		n.Go("owner", func(ctx context.Context) error {
			theirs <- ctx
			return parkAt(gate)
		})
		yieldUntil(ctx, t, "the owner has begun", func() bool { return len(theirs) > 0 })
		other := <-theirs
		user := n.Go("user", func(ctx context.Context) error {
			if coir.Self(other) != coir.Self(ctx) {
				t.Error("Self by another fiber's context is not the caller")
			}
			later := n.Go("later", func(context.Context) error { return nil })
			if err := later.Wait(other); err != nil { // ends only if this fiber is parked and not its worker blocked
				t.Error(err)
			}
			if err := coir.Sleep(other, time.Millisecond); err != nil {
				t.Error(err)
			}
			return coir.Yield(other)
		})
		if err := user.Wait(ctx); err != nil {
			t.Error(err)
		}
		open(nil)
		return nil
	}, nil)
}

// A fiber that waits with the context of a fiber of another nursery is woken when that nursery is cancelled, and not
// when its own is.
//
// Spec: FB-21 (the caller's identity is checked)
// Spec: FB-23 (a fiber's context ends with its nursery)
// Spec: NU-09 (cancel goes down the tree only)
func TestForeignFiberContextCancels(t *testing.T) {
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		theirs := make(chan context.Context, 1)
		inner := n.Go("inner", func(ctx context.Context) error {
			_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				theirs <- ctx
				for len(theirs) > 0 {
					_ = coir.Yield(ctx)
				}
				_ = coir.Yield(ctx)
				n.Cancel(errB)
				return nil
			})
			return nil
		})
		yieldUntil(ctx, t, "it has begun", func() bool { return len(theirs) > 0 })
		theirCtx := <-theirs
		err := coir.Sleep(theirCtx, time.Hour)
		if !isCancelIn(theirCtx, err, errB) {
			t.Errorf("got %v, want a cancel for %v", err, errB)
		}
		if ctx.Err() != nil {
			t.Error("the cancel went up")
		}
		return inner.Wait(ctx)
	}, nil)
}

// Spec: FB-19 (an operation parks the fiber, not the worker)
func TestBackgroundInAFiberParksTheFiber(t *testing.T) {
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		bg := context.Background()
		if coir.Self(bg) != coir.Self(ctx) {
			t.Error("Self by context.Background is not the caller")
		}
		ran := false
		if err := n.Go("later", func(context.Context) error { ran = true; return nil }).Wait(bg); err != nil || !ran {
			t.Error(err)
		}
		if err := coir.Sleep(bg, time.Millisecond); err != nil {
			t.Error(err)
		}
		// Run nests on this fiber's runtime, outside the nursery's cancellation.
		return coir.Run(bg, func(inner context.Context, _ *coir.Nursery) error {
			if coir.Self(inner) != coir.Self(ctx) {
				t.Error("the body of a nested Run is another fiber")
			}
			n.Cancel(errA)
			if inner.Err() != nil {
				t.Error("cancelled through context.Background")
			}
			return nil
		})
	}, nil)
}

type key string

// derivations are the ways in which the standard library makes a context from another.
var derivations = map[string]func(context.Context) (context.Context, context.CancelFunc){
	"WithCancel": context.WithCancel,
	"WithCancelCause": func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancelCause(ctx)
		return ctx, func() { cancel(nil) }
	},
	"WithTimeout": func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, time.Hour)
	},
	"WithDeadline": func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithDeadline(ctx, time.Now().Add(time.Hour))
	},
	"WithValue": func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithValue(ctx, key("k"), "v"), func() {}
	},
	"WithValue, WithCancel": func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithCancel(context.WithValue(ctx, key("k"), "v"))
	},
	"WithCancel, WithValue, WithTimeout": func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		ctx, cancel2 := context.WithTimeout(context.WithValue(ctx, key("k"), "v"), time.Hour)
		return ctx, func() { cancel2(); cancel() }
	},
}

// Spec: FB-19 (an operation parks the fiber, not the worker)
// Spec: FB-22 (a derived context still parks the fiber)
// Spec: FB-23 (a fiber's context ends with its nursery)
func TestDerivedContextParksTheFiber(t *testing.T) {
	for name, derive := range derivations {
		t.Run(name, func(t *testing.T) {
			onOne(t, func(ctx context.Context, n *coir.Nursery) error {
				var last atomic.Bool
				waits := n.Go("waits", func(ctx context.Context) error {
					d, cancel := derive(ctx)
					defer cancel()
					if coir.Self(d) != coir.Self(ctx) {
						t.Error("Self is not the fiber")
					}
					if err := n.Go("later", func(context.Context) error { return nil }).Wait(d); err != nil {
						t.Error(err)
					}
					if err := coir.Sleep(d, time.Millisecond); err != nil {
						t.Error(err)
					}
					last.Store(true)
					return coir.Sleep(d, time.Hour)
				})
				yieldUntil(ctx, t, "it waits", func() bool { return last.Load() && waits.State() == coir.StateWaiting })
				n.Cancel(errA)
				if err := waits.Wait(context.Background()); !isCancelFor(err, errA) {
					t.Errorf("it ended with %v, want the nursery's cause", err)
				}
				return nil
			}, cancelFor{errA})
		})
	}
}

// A derived context that is cancelled by its own cancel ends the wait, and the nursery continues.
//
// Spec: FB-22 (a derived context still parks the fiber)
// Spec: NU-20 (a join cut short leaves the fiber running)
func TestDerivedContextIsCancelled(t *testing.T) {
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		never := n.Go("never", func(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) })
		d, cancel := context.WithCancelCause(context.WithValue(ctx, key("k"), "v"))
		n.Go("canceller", func(context.Context) error { cancel(errB); return nil })
		if err := never.Wait(d); !isCancelIn(d, err, errB) {
			t.Errorf("Wait returned %v, want a cancel for %v", err, errB)
		}
		short, stop := context.WithTimeout(ctx, time.Millisecond)
		defer stop()
		if err := coir.Sleep(short, time.Hour); !errors.Is(err, coir.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Sleep returned %v, want ErrTimeout", err)
		}
		if never.State() == coir.StateEnded || ctx.Err() != nil {
			t.Error("a wait that was given up ended what it waited for")
		}
		n.Cancel(nil)
		return nil
	}, nil)
}

// startedByContext counts the goroutines that package context started to watch a parent. Other goroutines of the
// process come and go.
func startedByContext() int {
	buf := make([]byte, 4<<20)
	return strings.Count(string(buf[:runtime.Stack(buf, true)]), "created by context.")
}

// Spec: FB-22 (a derived context still parks the fiber)
func TestDerivedContextStartsNoGoroutine(t *testing.T) {
	for name, derive := range derivations {
		t.Run(name, func(t *testing.T) {
			onOne(t, func(ctx context.Context, n *coir.Nursery) error {
				for what, ctx := range contextsOf(ctx, n) {
					var cancels []context.CancelFunc
					for range 1000 {
						_, cancel := derive(ctx)
						cancels = append(cancels, cancel)
					}
					if started := startedByContext(); started > 0 {
						t.Errorf("from %s: package context started %d goroutines for 1,000 contexts", what, started)
					}
					for _, cancel := range cancels {
						cancel()
					}
				}
				return nil
			}, nil)
		})
	}
}

// contextsOf are the contexts that coir gives to a fiber: its own, its nursery's, and scopes in it.
func contextsOf(ctx context.Context, n *coir.Nursery) map[string]context.Context {
	theirs := make(chan context.Context, 1)
	_ = n.Go("fiber", func(ctx context.Context) error { theirs <- ctx; return nil }).Wait(ctx)
	cancelled, _ := coir.WithCancelCause(ctx)
	timed, _ := coir.WithTimeout(ctx, time.Hour)
	grace, _ := coir.WithGrace(ctx, time.Hour)
	return map[string]context.Context{
		"a fiber's": <-theirs, "Run's": ctx, "WithCancel's": cancelled, "WithTimeout's": timed, "Shield's": coir.Shield(ctx),
		"WithGrace's": grace,
	}
}

// What package context promises for any Context.
//
// Spec: FB-23 (a fiber's context ends with its nursery)
func TestContextContract(t *testing.T) {
	at := time.Now().Add(time.Hour)
	parent, cancel := context.WithDeadline(context.WithValue(context.Background(), key("k"), "v"), at)
	defer cancel()
	rt := one(t)
	var kept map[string]context.Context
	if err := rt.Run(parent, func(ctx context.Context, n *coir.Nursery) error {
		kept = contextsOf(ctx, n)
		for name, c := range kept {
			if c.Value(key("k")) != "v" || c.Value(key("none")) != nil {
				t.Errorf("%s: values do not come through", name)
			}
			deadline, ok := c.Deadline()
			if ok == shielded(name) || ok && deadline.After(at) {
				t.Errorf("%s: deadline %v, %v", name, deadline, ok)
			}
			if c.Err() != nil || closed(c.Done()) {
				t.Errorf("%s: over before its time: %v", name, c.Err())
			}
			if first := c.Done(); first != c.Done() {
				t.Errorf("%s: Done is another channel each time", name)
			}
			if text := fmt.Sprint(c); len(text) > 100 {
				t.Errorf("%s: printing it walks into it: %.200s", name, text)
			}
		}
		n.Cancel(errA)
		for name, c := range kept {
			if shielded(name) {
				continue
			}
			if c.Err() != context.Canceled || !closed(c.Done()) { //nolint:errorlint // the very value is promised
				t.Errorf("%s: cancelled, and Err is %v", name, c.Err())
			}
			if cause := context.Cause(c); !errors.Is(cause, errA) {
				t.Errorf("%s: the cause is %v, want %v", name, cause, errA)
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	for name, c := range kept {
		if shielded(name) && c.Err() != nil {
			t.Errorf("%s was cancelled: %v", name, c.Err())
		}
	}
}

// shielded reports whether a context of contextsOf is not cancelled with the one around it.
func shielded(name string) bool { return name == "Shield's" || name == "WithGrace's" }

// Spec: NU-10 (the first cause of a cancel stays)
func TestWithCancel(t *testing.T) {
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		sc, cancel := coir.WithCancelCause(ctx)
		n.Go("canceller", func(context.Context) error { cancel(errA); cancel(errB); return nil })
		err := coir.Sleep(sc, time.Hour)
		if !isCancelIn(sc, err, errA) || strings.Contains(err.Error(), errB.Error()) {
			t.Errorf("got %v: want the first cause", err)
		}
		if ctx.Err() != nil {
			t.Error("the cancel of a scope went up")
		}
		plain, stop := coir.WithCancelCause(ctx)
		stop(nil)
		if err := coir.Yield(plain); err != context.Canceled { //nolint:errorlint // the very value is promised
			t.Errorf("Yield returned %v, want Canceled", err)
		}
		return coir.Yield(ctx)
	}, nil)
}

func TestWithTimeout(t *testing.T) {
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		start := time.Now()
		sc, cancel := coir.WithTimeout(ctx, 2*time.Millisecond)
		defer cancel()
		err := coir.Sleep(sc, time.Hour)
		if took := time.Since(start); took < 2*time.Millisecond {
			t.Errorf("timed out after %v", took)
		}
		var timeout interface{ Timeout() bool }
		if !errors.Is(err, coir.ErrTimeout) || !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
			!errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("Sleep returned %v, want ErrTimeout", err)
		}
		if sc.Err() != context.DeadlineExceeded { //nolint:errorlint // the very value is promised
			t.Errorf("Err returned %v, want DeadlineExceeded", sc.Err())
		}
		if ctx.Err() != nil {
			t.Error("the timeout went up")
		}
		early, cancelEarly := coir.WithTimeout(ctx, time.Hour)
		cancelEarly()
		cancelEarly()
		if err := coir.Yield(early); err != context.Canceled { //nolint:errorlint // the very value is promised
			t.Errorf("cancelled before its time: %v", err)
		}
		if n.Go("after", func(ctx context.Context) error { return coir.Yield(ctx) }).Wait(ctx) != nil {
			t.Error("the nursery suffered")
		}
		return nil
	}, nil)
}

// A scope whose time is too long to be represented does not end immediately; one whose time has passed does.
func TestWithTimeoutOfAnyLength(t *testing.T) {
	onOne(t, func(ctx context.Context, _ *coir.Nursery) error {
		for _, d := range []time.Duration{math.MaxInt64, math.MaxInt64 / 2} {
			sc, cancel := coir.WithTimeout(ctx, d)
			if err := coir.Sleep(sc, time.Millisecond); err != nil {
				t.Errorf("%v: %v", d, err)
			}
			cancel()
		}
		for _, d := range []time.Duration{0, -1, math.MinInt64} {
			sc, cancel := coir.WithTimeout(ctx, d)
			if err := coir.Yield(sc); !errors.Is(err, coir.ErrTimeout) {
				t.Errorf("%v: %v: the deadline has passed when the scope is made", d, err)
			}
			cancel()
		}
		return nil
	}, nil)
}

// Of two deadlines the earlier counts, whichever is inside.
func TestNestedDeadlines(t *testing.T) {
	onOne(t, func(ctx context.Context, _ *coir.Nursery) error {
		early, late := time.Now().Add(2*time.Millisecond), time.Now().Add(time.Hour)
		for _, c := range []struct{ outer, inner time.Time }{{early, late}, {late, early}} {
			outer, cancelOuter := coir.WithDeadline(ctx, c.outer)
			inner, cancelInner := coir.WithDeadline(outer, c.inner)
			if at, ok := inner.Deadline(); !ok || !at.Equal(early) {
				t.Errorf("deadline %v, want %v", at, early)
			}
			if err := coir.Sleep(inner, time.Hour); !errors.Is(err, coir.ErrTimeout) {
				t.Errorf("Sleep returned %v, want ErrTimeout", err)
			}
			if over := outer.Err() != nil; over != (c.outer == early) {
				t.Errorf("outer ends at %v: %v", c.outer, outer.Err())
			}
			cancelInner()
			cancelOuter()
		}
		// A standard deadline of the parent counts as well.
		outer, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		inner, cancelInner := coir.WithTimeout(outer, time.Hour)
		defer cancelInner()
		if err := coir.Sleep(inner, time.Hour); !errors.Is(err, coir.ErrTimeout) {
			t.Errorf("Sleep returned %v, want ErrTimeout", err)
		}
		return nil
	}, nil)
}

// A cancellation reaches scopes and nurseries of every kind below it, and none above.
//
// Spec: NU-09 (cancel goes down the tree only)
func TestNestedScopes(t *testing.T) {
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		outer, cancel := coir.WithCancelCause(ctx)
		middle, stop := coir.WithTimeout(outer, time.Hour)
		defer stop()
		derived, cancelDerived := context.WithCancel(middle)
		defer cancelDerived()
		inner, end := coir.WithCancelCause(derived)
		defer end(nil)
		n.Go("canceller", func(context.Context) error { cancel(errA); return nil })
		err := coir.Run(inner, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("leaf", func(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) })
			return coir.Sleep(ctx, time.Hour)
		})
		if !isCancelIn(inner, err, errA) {
			t.Errorf("got %v, want the cause %v", err, errA)
		}
		return coir.Yield(ctx)
	}, nil)
}

// Spec: NU-21 (a shield delays a cancel)
func TestShield(t *testing.T) {
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		n.Go("careful", func(ctx context.Context) error {
			err := coir.Sleep(ctx, time.Hour)
			safe, cancel := coir.WithTimeout(coir.Shield(ctx), time.Hour)
			defer cancel()
			if err := coir.Sleep(safe, time.Millisecond); err != nil {
				t.Errorf("shielded: %v", err)
			}
			if err := coir.Run(coir.Shield(ctx), func(ctx context.Context, n *coir.Nursery) error {
				return n.Go("helper", func(ctx context.Context) error { return coir.Sleep(ctx, time.Millisecond) }).Wait(ctx)
			}); err != nil {
				t.Errorf("a nursery under a shield: %v", err)
			}
			short, stop := coir.WithTimeout(coir.Shield(ctx), time.Millisecond)
			defer stop()
			if err := coir.Sleep(short, time.Hour); !errors.Is(err, coir.ErrTimeout) {
				t.Errorf("a deadline on a shield: %v", err)
			}
			if err := coir.Yield(ctx); !isCancelIn(ctx, err, errA) {
				t.Errorf("outside the shield: %v", err)
			}
			return err
		})
		_ = coir.Yield(ctx)
		n.Cancel(errA)
		return nil
	}, cancelFor{errA})
}

// What AfterFunc promises: f runs once, in its own goroutine, if the context ends; stop reports whether it prevented
// that.
func TestAfterFunc(t *testing.T) {
	onOne(t, func(ctx context.Context, n *coir.Nursery) error {
		theirs := contextsOf(ctx, n)
		maps.DeleteFunc(theirs, func(name string, _ context.Context) bool { return shielded(name) })
		var calls atomic.Int64
		var stops []func() bool
		for range theirs {
			for _, c := range theirs {
				context.AfterFunc(c, func() { calls.Add(1) })
				stops = append(stops, context.AfterFunc(c, func() { t.Error("called after it was stopped") }))
			}
		}
		for _, stop := range stops {
			if !stop() {
				t.Error("stopped in time, and it says not")
			}
			if stop() {
				t.Error("stopped a second time")
			}
		}
		if calls.Load() != 0 {
			t.Error("called before the context has ended")
		}
		n.Cancel(errA)
		want := int64(len(theirs) * len(theirs))
		native(ctx, goes(func() {
			eventually(t, "each is called", func() bool { return calls.Load() >= want })
		}))
		for name, c := range theirs { // it has ended already
			called := make(chan struct{})
			stop := context.AfterFunc(c, func() { close(called) })
			blocking(ctx, func() { <-called })
			if stop() {
				t.Errorf("%s: stopped what has run", name)
			}
			// The method itself, as package context calls it.
			again := make(chan struct{})
			direct, ok := c.(interface{ AfterFunc(func()) func() bool })
			if !ok {
				t.Errorf("%s has no AfterFunc", name)
				continue
			}
			stop = direct.AfterFunc(func() { close(again) })
			blocking(ctx, func() { <-again })
			if stop() {
				t.Errorf("%s: stopped what has run", name)
			}
		}
		if calls.Load() != want {
			t.Errorf("%d calls, want %d", calls.Load(), want)
		}
		return nil
	}, nil)
}

// In a scope that has ended, every operation fails before it does anything, whatever the caller.
//
// Spec: NU-07 (a running child sees the cancel at its next operation)
func TestOperationsInACancelledScope(t *testing.T) {
	operations := map[string]func(ctx context.Context, ended *coir.Fiber) error{
		"Yield":       func(ctx context.Context, _ *coir.Fiber) error { return coir.Yield(ctx) },
		"Sleep(0)":    func(ctx context.Context, _ *coir.Fiber) error { return coir.Sleep(ctx, 0) },
		"Sleep(-1)":   func(ctx context.Context, _ *coir.Fiber) error { return coir.Sleep(ctx, -1) },
		"Sleep(hour)": func(ctx context.Context, _ *coir.Fiber) error { return coir.Sleep(ctx, time.Hour) },
		"Wait, ended": func(ctx context.Context, ended *coir.Fiber) error { return ended.Wait(ctx) },
		"Yield in Run": func(ctx context.Context, _ *coir.Fiber) error {
			return coir.Run(ctx, func(ctx context.Context, _ *coir.Nursery) error { return coir.Yield(ctx) })
		},
		"Yield in scope": func(ctx context.Context, _ *coir.Fiber) error {
			c, end := coir.WithCancelCause(ctx)
			defer end(nil)
			return coir.Yield(c)
		},
		"Yield in time": func(ctx context.Context, _ *coir.Fiber) error {
			c, end := coir.WithTimeout(ctx, time.Hour)
			defer end()
			return coir.Yield(c)
		},
	}
	scopes := map[string]func(ctx context.Context) (over context.Context, want error){
		"WithCancel": func(ctx context.Context) (context.Context, error) {
			c, cancel := coir.WithCancelCause(ctx)
			cancel(errA)
			return c, cancelFor{errA}
		},
		"WithTimeout": func(ctx context.Context) (context.Context, error) {
			c, _ := coir.WithTimeout(ctx, time.Nanosecond)
			_ = coir.Sleep(c, time.Hour)
			return c, coir.ErrTimeout
		},
		"context.WithCancelCause": func(ctx context.Context) (context.Context, error) {
			c, cancel := context.WithCancelCause(ctx)
			cancel(errA)
			return c, cancelFor{errA}
		},
		"context.WithTimeout": func(ctx context.Context) (context.Context, error) {
			c, cancel := context.WithTimeout(ctx, 0)
			cancel()
			return c, coir.ErrTimeout
		},
		"a nursery that has ended": func(ctx context.Context) (over context.Context, _ error) {
			_ = coir.Run(ctx, func(ctx context.Context, _ *coir.Nursery) error { over = ctx; return nil })
			return over, context.Canceled
		},
		"a nursery that was cancelled": func(ctx context.Context) (over context.Context, _ error) {
			_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error { over = ctx; n.Cancel(errA); return nil })
			return over, cancelFor{errA}
		},
	}
	for scopeName, makeScope := range scopes {
		for name, op := range operations {
			check := func(t *testing.T, ctx context.Context, ended *coir.Fiber) {
				over, want := makeScope(ctx)
				if err := op(over, ended); !isWanted(err, want) {
					t.Errorf("got %v, want %v", err, want)
				}
			}
			t.Run(scopeName+"/"+name, func(t *testing.T) {
				onOne(t, func(ctx context.Context, n *coir.Nursery) error {
					ended := n.Go("ended", func(context.Context) error { return nil })
					_ = ended.Wait(ctx)
					check(t, ctx, ended)                                    // a fiber
					goroutine(ctx, func() { check(t, ctx, ended) })         // a goroutine with a fiber's context
					goroutine(ctx, func() { check(t, t.Context(), ended) }) // a goroutine with its own context
					return nil
				}, nil)
			})
		}
	}
}

// A standard context that ends while a fiber waits under Run, WithCancel or directly.
//
// Spec: FB-23 (a fiber's context ends with its nursery)
// Spec: NU-06 (cancel wakes every parked child)
func TestStandardContextOutside(t *testing.T) {
	for _, c := range []struct {
		name string
		make func() (context.Context, func())
		want error
	}{
		{"cause", func() (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(context.Background())
			return ctx, func() { cancel(errA) }
		}, cancelFor{errA}},
		{"cancel", func() (context.Context, func()) {
			ctx, cancel := context.WithCancel(context.Background())
			return ctx, cancel
		}, context.Canceled},
		{"deadline", func() (context.Context, func()) {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Millisecond)
			return ctx, func() { _ = cancel }
		}, coir.ErrTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, end := c.make()
			var asleep *coir.Fiber
			err := one(t).Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				asleep = n.Go("asleep", func(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) })
				yieldUntil(context.WithoutCancel(ctx), t, "it waits", func() bool { return asleep.State() >= coir.StateWaiting })
				end()
				return coir.Sleep(ctx, time.Hour)
			})
			if !isWanted(err, c.want) {
				t.Errorf("Run gives %v, want %v", err, c.want)
			}
			if err := asleep.Wait(context.Background()); !isWanted(err, c.want) {
				t.Errorf("the fiber ended with %v, want %v", err, c.want)
			}
		})
	}
}

// A goroutine's own scopes: without a fiber anywhere.
//
// Spec: FB-20 (an operation blocks a goroutine as one)
// Spec: TM-09 (timers fire while workers sleep)
func TestScopesInAGoroutine(t *testing.T) {
	left := goroutines(t)
	ctx, cancel := coir.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	if err := coir.Sleep(ctx, time.Hour); !errors.Is(err, coir.ErrTimeout) {
		t.Error(err)
	}
	sc, stop := coir.WithCancelCause(context.Background())
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			if err := coir.Sleep(sc, time.Hour); !isCancelIn(sc, err, errA) {
				t.Error(err)
			}
		})
	}
	stop(errA)
	all.Wait()
	if err := coir.Sleep(coir.Shield(sc), time.Millisecond); err != nil {
		t.Error(err)
	}
	left()
}

func TestWaitCancel(t *testing.T) {
	stopped := errors.New("stopped")
	err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		in, cancel := coir.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if err := coir.WaitCancel(in); !errors.Is(err, coir.ErrTimeout) {
			t.Errorf("after the time it returned %v", err)
		}
		if err := coir.WaitCancel(in); !errors.Is(err, coir.ErrTimeout) {
			t.Errorf("in a context that has ended it returned %v", err)
		}
		std, stop := context.WithCancel(ctx)
		f := n.Go("under a context of package context", func(context.Context) error { return coir.WaitCancel(std) })
		g := n.Go("under its own", func(ctx context.Context) error { return coir.WaitCancel(ctx) })
		done := make(chan error, 1)
		go func() { done <- coir.WaitCancel(ctx) }()
		stop()
		if err := f.Wait(coir.Shield(ctx)); !errors.Is(err, context.Canceled) {
			t.Errorf("a fiber returned %v", err)
		}
		n.Cancel(stopped)
		if err := g.Wait(coir.Shield(ctx)); !errors.Is(err, context.Canceled) {
			t.Errorf("a fiber returned %v", err)
		}
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("a goroutine returned %v", err)
		}
		return nil
	})
	if !errors.Is(err, stopped) && !errors.Is(err, context.Canceled) {
		t.Errorf("Run returned %v", err)
	}
}

// A fiber that waits for a cancellation uses no clock: where nothing else is left that is a deadlock, and the report
// says so.
func TestWaitCancelIsNoTimer(t *testing.T) {
	f := sim.Run(1, func(ctx context.Context, s *sim.Sim) { _ = coir.WaitCancel(ctx) })
	if f == nil || f.Kind != sim.KindDeadlock || !strings.Contains(f.Error(), "waits for a cancel, at ") {
		t.Errorf("the simulation ended with %v, want a deadlock that waits for a cancel", f)
	}
}
