package coir

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/internal/invariant"
	"github.com/coir-go/coir/internal/stdctx"
)

// ownContext is a user's own implementation of context.Context.
type ownContext struct {
	context.Context
	done chan struct{}
}

func (c ownContext) Done() <-chan struct{} { return c.done }

func (c ownContext) Err() error {
	if stdctx.IsClosed(c.done) {
		return context.Canceled
	}
	return nil
}

// belowStandard lists the ways to make a context below one that the function cancel cancels. Each calls fn with the
// context.
var belowStandard = map[string]func(fn func(ctx context.Context)){
	"the body of Run": func(fn func(context.Context)) {
		ctx, cancel := context.WithCancel(context.Background())
		_ = Run(ctx, func(ctx context.Context, _ *Nursery) error { cancel(); fn(ctx); return nil })
	},
	"a child": func(fn func(context.Context)) {
		ctx, cancel := context.WithCancel(context.Background())
		_ = Run(ctx, func(_ context.Context, n *Nursery) error {
			n.Go("child", func(ctx context.Context) error { cancel(); fn(ctx); return nil })
			return nil
		})
	},
	"a nursery inside": func(fn func(context.Context)) {
		ctx, cancel := context.WithCancel(context.Background())
		_ = Run(ctx, func(ctx context.Context, _ *Nursery) error {
			return Run(ctx, func(ctx context.Context, _ *Nursery) error { cancel(); fn(ctx); return nil })
		})
	},
	"scopes of a goroutine": func(fn func(context.Context)) {
		ctx, cancel := context.WithCancel(context.Background())
		a, stopA := WithCancelCause(ctx)
		defer stopA(nil)
		b, stopB := WithTimeout(a, time.Hour)
		defer stopB()
		cancel()
		fn(b)
	},
	"one above, one between": func(fn func(context.Context)) {
		ctx, cancel := context.WithCancel(context.Background())
		_ = Run(ctx, func(ctx context.Context, _ *Nursery) error {
			std, stop := context.WithCancel(ctx)
			defer stop()
			return Run(std, func(ctx context.Context, _ *Nursery) error { cancel(); fn(ctx); return nil })
		})
	},
	"one above, derived again": func(fn func(context.Context)) {
		ctx, cancel := context.WithCancel(context.Background())
		_ = Run(ctx, func(ctx context.Context, _ *Nursery) error {
			std, stop := context.WithCancel(ctx)
			defer stop()
			cancel()
			fn(std)
			return nil
		})
	},
	"a context of the user's own": func(fn func(context.Context)) {
		done := make(chan struct{})
		_ = Run(ownContext{context.Background(), done}, func(ctx context.Context, _ *Nursery) error {
			close(done)
			fn(ctx)
			return nil
		})
	},
	"another goroutine cancels": func(fn func(context.Context)) {
		ctx, cancel := context.WithCancel(context.Background())
		_ = Run(ctx, func(ctx context.Context, _ *Nursery) error {
			cancelled := make(chan struct{})
			go func() { cancel(); close(cancelled) }()
			<-cancelled
			fn(ctx)
			return nil
		})
	},
}

// An operation that begins after cancel() has returned fails, however its context was derived, even if it need not
// wait.
func TestCancelOfAStandardParentIsSeenAtOnce(t *testing.T) {
	operations := map[string]func(ctx context.Context) error{
		"Send":        func(ctx context.Context) error { return NewChan[int](1).Send(ctx, 1) },
		"SendTimeout": func(ctx context.Context) error { return NewChan[int](1).SendTimeout(ctx, 1, time.Hour) },
		"SendMany":    func(ctx context.Context) error { _, err := NewChan[int](1).SendMany(ctx, []int{1}); return err },
		"Recv":        func(ctx context.Context) error { _, err := filled1().Recv(ctx); return err },
		"RecvTimeout": func(ctx context.Context) error { _, err := filled1().RecvTimeout(ctx, time.Hour); return err },
		"Yield":       Yield,
		"Sleep":       func(ctx context.Context) error { return Sleep(ctx, time.Nanosecond) },
		"Select": func(ctx context.Context) error {
			_, err := Select(ctx, filled1().RecvCase(nil))
			return err
		},
		"SelectPriority": func(ctx context.Context) error {
			_, err := SelectPriority(ctx, filled1().RecvCase(nil))
			return err
		},
		"Selector": func(ctx context.Context) error {
			s := NewSelector()
			defer s.Clear()
			s.Add(filled1().RecvCase(nil))
			_, err := s.Wait(ctx)
			return err
		},
		"Wait": func(ctx context.Context) error {
			var ended *Fiber
			_ = Run(Shield(ctx), func(_ context.Context, n *Nursery) error {
				ended = n.Go("ends", func(context.Context) error { return nil })
				return nil
			})
			return ended.Wait(ctx)
		},
		"ctx.Err": func(ctx context.Context) error { return ctx.Err() },
	}
	for place, below := range belowStandard {
		for name, op := range operations {
			if name == "ctx.Err" && place == "one above, derived again" {
				continue // package context's own, which learns of the cancellation later
			}
			for range 20 {
				var err error
				below(func(ctx context.Context) { err = op(ctx) })
				if !errors.Is(err, context.Canceled) {
					t.Errorf("%s, %s after cancel() has returned: %v", place, name, err)
					break
				}
			}
		}
	}
}

func filled1() *Chan[int] {
	c := NewChan[int](1)
	_ = c.TrySend(1)
	return c
}

// context.Cause returns the cause of a cancellation or a timeout of package context at every level. The text of the
// operation's error shows the cause, and the error does not wrap it.
func TestCauseOfAStandardContext(t *testing.T) {
	slow := errors.New("slow backend")
	for _, test := range []struct {
		name string
		make func() (context.Context, func())
		is   error
	}{
		{"WithTimeoutCause", func() (context.Context, func()) {
			ctx, cancel := context.WithTimeoutCause(context.Background(), time.Nanosecond, slow)
			return ctx, cancel
		}, ErrTimeout},
		{"WithCancelCause", func() (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(context.Background())
			cancel(slow)
			return ctx, func() {}
		}, context.Canceled},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, stop := test.make()
			defer stop()
			check := func(where string, ctx context.Context, err error) {
				t.Helper()
				if !errors.Is(err, test.is) || errors.Is(err, slow) || !strings.Contains(err.Error(), "slow backend") {
					t.Errorf("%s: %v; is the cause: %v", where, err, errors.Is(err, slow))
				}
				if ctx != nil && context.Cause(ctx) != slow {
					t.Errorf("%s: the cause is %v", where, context.Cause(ctx))
				}
			}
			err := Run(ctx, func(ctx context.Context, n *Nursery) error {
				check("body", ctx, Sleep(ctx, time.Hour))
				std, cancel := context.WithCancel(ctx)
				defer cancel()
				check("derived", std, Sleep(std, time.Hour))
				inner, cancelInner := WithTimeout(std, time.Hour)
				defer cancelInner()
				check("inner", inner, Sleep(inner, time.Hour))
				child := n.Go("child", func(ctx context.Context) error {
					check("child", ctx, Sleep(ctx, time.Hour))
					return Sleep(ctx, time.Hour)
				})
				_ = child.Wait(Shield(ctx))
				return Sleep(ctx, time.Hour)
			})
			check("Run", nil, err)
		})
	}
}

// WithTimeout uses the runtime's clock, whatever deadline a parent context has.
//
// Spec: TM-15 (time comes in through Clock alone)
func TestTimeoutKeepsTheClockBelowARealDeadline(t *testing.T) {
	clk := NewClock()
	rt := NewRuntime(WithClock(clk))
	defer func() { _ = rt.Close(context.Background()) }()
	std, stop := context.WithTimeout(context.Background(), time.Hour)
	defer stop()
	err := rt.Run(std, func(ctx context.Context, n *Nursery) error {
		n.Go("sleeper", func(ctx context.Context) error {
			ctx, cancel := WithTimeout(ctx, 2*time.Hour)
			defer cancel()
			if at, ok := ctx.Deadline(); !ok || time.Until(at) > time.Hour {
				t.Errorf("the deadline is %v, %v; want the earlier one", at, ok)
			}
			return Sleep(ctx, 100*time.Hour)
		})
		for clk.Len() < 2 { // the timeout and the sleep
			if err := Yield(ctx); err != nil {
				return err
			}
		}
		clk.Advance(3 * time.Hour)
		return nil
	})
	if !errors.Is(err, ErrTimeout) {
		t.Errorf("Run returned %v, want the timeout of the scope", err)
	}
}

// Fibers and goroutines wait under a scope that another fiber made. Its cancel, or its deadline, ends every wait. No
// goroutine is started for that, and waiters that leave earlier leave nothing behind.
//
// Spec: FB-16 (a cancelled fiber is woken by the ordinary claim)
func TestGuestsOfAScopeAreWoken(t *testing.T) {
	const each = 200
	for _, timeout := range []bool{false, true} {
		err := Run(context.Background(), func(ctx context.Context, n *Nursery) error {
			c := NewChan[int](0)
			var shared context.Context
			stop := func() {}
			if timeout {
				shared, _ = WithTimeout(ctx, 50*time.Millisecond)
			} else {
				x, cancel := WithCancelCause(ctx)
				shared, stop = x, func() { cancel(nil) }
			}
			var mu sync.Mutex
			var errs []error
			wait := func() {
				_, err := c.RecvTimeout(shared, time.Millisecond) // leaves early
				if !errors.Is(err, ErrTimeout) && !errors.Is(err, context.Canceled) {
					t.Errorf("a wait that leaves early: %v", err)
				}
				_, err = c.Recv(shared)
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
			sc := resolve(shared).sc
			waiting := func() int {
				sc.cold().scopeMu.Lock()
				defer sc.cold().scopeMu.Unlock()
				return sc.cold().guests.Len()
			}
			var goroutines sync.WaitGroup
			for range each {
				n.Go("guest", func(context.Context) error { wait(); return nil })
				goroutines.Go(wait)
			}
			for st := c.Stats().Recv; !timeout && (st.Waiting < 2*each || st.TimedOut < 2*each); st = c.Stats().Recv {
				if err := Yield(ctx); err != nil {
					return err
				}
			}
			if started := stackLines("context.AfterFunc"); started > 0 {
				t.Errorf("%d goroutines of package context", started)
			}
			stop()
			blocking(ctx, goroutines.Wait)
			for n.living() > 0 {
				if err := Yield(ctx); err != nil {
					return err
				}
			}
			want := context.Canceled
			if timeout {
				want = ErrTimeout
			}
			mu.Lock()
			defer mu.Unlock()
			if len(errs) != 2*each || slices.ContainsFunc(errs, func(err error) bool { return !errors.Is(err, want) }) {
				t.Errorf("%d waits ended, with %v", len(errs), errs)
			}
			if left := waiting(); left != 0 {
				t.Errorf("%d are left in the scope", left)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// living returns the number of children that have not ended.
func (n *Nursery) living() int {
	return n.live()
}

// stackLines counts the goroutines that have a function on their stack.
func stackLines(function string) int {
	buf := make([]byte, 8<<20)
	return strings.Count(string(buf[:runtime.Stack(buf, true)]), function)
}

// A wait under another fiber's scope does not allocate once it has been used.
func TestAGuestAllocatesNothing(t *testing.T) {
	if invariant.Enabled || testing.AllocsPerRun(10, func() { coro.G() }) > 0 {
		t.Skip("checked builds allocate, and without assembly so does finding out who calls")
	}
	err := Run(context.Background(), func(ctx context.Context, n *Nursery) error {
		shared, cancel := WithCancelCause(ctx)
		defer cancel(nil)
		c, back := NewChan[int](0), NewChan[int](0)
		n.Go("echo", func(context.Context) error {
			for {
				v, err := c.Recv(shared)
				if err != nil {
					return nil
				}
				if err := back.Send(shared, v); err != nil {
					return nil
				}
			}
		})
		allocs := testing.AllocsPerRun(1000, func() {
			_ = c.Send(ctx, 1)
			_, _ = back.Recv(ctx)
		})
		if allocs > 0 {
			t.Errorf("%v allocations a wait", allocs)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A second cancellation of a scope that is being cancelled returns when the scopes inside it are cancelled too, like
// that of package context.
func TestASecondCancelWaitsForTheScopesInside(t *testing.T) {
	for range 300 {
		outer, cancel := WithCancelCause(context.Background())
		var inner context.Context
		for range 100 { // the cancellation reaches the first one last
			in, stop := WithCancelCause(outer)
			defer stop(nil)
			if inner == nil {
				inner = in
			}
		}
		var start, done sync.WaitGroup
		start.Add(1)
		for range 2 {
			done.Go(func() {
				start.Wait()
				cancel(nil)
				if err := Yield(inner); err == nil {
					t.Error("cancel has returned, and an operation in a scope inside succeeds")
				}
			})
		}
		start.Done()
		done.Wait()
	}
}

// If a scope is closed by its owner while its parent is being cancelled, no waiter is left asleep.
func TestAScopeClosedWhileItIsCancelledWakesItsGuests(t *testing.T) {
	for range 500 {
		outer, cancel := WithCancelCause(context.Background())
		inner, stop := WithCancelCause(outer)
		c := NewChan[int](0)
		var done sync.WaitGroup
		for range 3 {
			done.Go(func() { _, _ = c.Recv(inner) })
		}
		for c.Stats().Recv.Waiting < 3 {
			runtime.Gosched()
		}
		done.Go(func() { cancel(nil) })
		done.Go(func() { stop(nil) })
		done.Wait()
	}
}

// A goroutine whose context package context derived from a fiber's uses the clock of that fiber's runtime.
//
// Spec: TM-15 (time comes in through Clock alone)
func TestTimeoutOfAGoroutineBelowAFiberKeepsTheClock(t *testing.T) {
	clk := NewClock()
	rt := NewRuntime(WithClock(clk))
	defer func() { _ = rt.Close(context.Background()) }()
	err := rt.Run(context.Background(), func(ctx context.Context, _ *Nursery) error {
		std, stop := context.WithCancel(ctx)
		defer stop()
		made := make(chan context.Context)
		go func() {
			timed, cancel := WithTimeout(std, time.Hour)
			context.AfterFunc(timed, cancel)
			made <- timed
		}()
		timed := <-made
		clk.Advance(2 * time.Hour)
		if !errors.Is(timed.Err(), context.DeadlineExceeded) {
			t.Errorf("after two hours its error is %v", timed.Err())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// The panics of many children take memory, and time, by their number, and that of the function comes first.
func TestPanicsOfManyChildren(t *testing.T) {
	const many = 4096
	n := newNursery()
	each := &PanicError{Fiber: "child"}
	if allocs := testing.AllocsPerRun(1, func() {
		n.coldPart().panics = nil
		for range many {
			n.addPanic(each, false)
		}
	}); allocs > many/16 {
		t.Errorf("%d panics took %v allocations", many, allocs)
	}
	own := &PanicError{Fiber: "main"}
	n.addPanic(own, true)
	panics := n.coldPart().panics
	if len(panics) != many+1 || panics[0] != error(own) || panics[many] != error(each) {
		t.Errorf("%d panics are kept, the first of fiber %s", len(panics), panics[0].(*PanicError).Fiber)
	}
}
