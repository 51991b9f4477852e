package coir_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// endingErrs are the errors that say how an operation ended.
var endingErrs = []error{coir.ErrClosed, coir.ErrTimeout, coir.ErrWouldBlock, context.Canceled, context.DeadlineExceeded}

// wantEnding checks an error against the table in the package documentation: it is exactly those errors.
func wantEnding(t *testing.T, what string, err error, text string, is ...error) {
	t.Helper()
	for _, e := range endingErrs {
		if errors.Is(err, e) != slices.Contains(is, e) {
			t.Errorf("%s: %q; errors.Is(err, %v) is %v", what, err, e, errors.Is(err, e))
		}
	}
	for _, e := range is {
		if !errors.Is(err, e) {
			t.Errorf("%s: %q is not %v", what, err, e)
		}
	}
	if err == nil || err.Error() != text {
		t.Errorf("%s: the text is %q, want %q", what, fmt.Sprint(err), text)
	}
	var ne net.Error
	timeout := slices.Contains(is, coir.ErrTimeout)
	if got := errors.As(err, &ne) && ne.Timeout(); got != timeout {
		t.Errorf("%s: %q is a net.Error with a timeout: %v", what, err, got)
	}
	if os.IsTimeout(err) != timeout {
		t.Errorf("%s: os.IsTimeout(%q) is %v", what, err, !timeout)
	}
}

// Each way in which an operation can end, for sends and receives, with and without a name, by a fiber in its own
// context, by a fiber in another's and by a goroutine: the error is what the package documentation says.
func TestHowAnOperationEnds(t *testing.T) {
	why := errors.New("why")
	for _, name := range []string{"", "jobs"} {
		for _, side := range []string{"send", "receive"} {
			by := "coir: "
			if name != "" {
				by += map[string]string{"send": "send on ", "receive": "receive from "}[side] + name + ": "
			}
			channel := func() *coir.Chan[int] { return coir.NewChan[int](0, coir.WithName(name)) }
			do := func(ctx context.Context, c *coir.Chan[int]) error {
				if side == "send" {
					return c.Send(ctx, 1)
				}
				_, err := c.Recv(ctx)
				return err
			}
			doFor := func(ctx context.Context, c *coir.Chan[int]) error {
				if side == "send" {
					return c.SendTimeout(ctx, 1, time.Nanosecond)
				}
				_, err := c.RecvTimeout(ctx, time.Nanosecond)
				return err
			}
			cancelled := func(cause error, text string) string {
				if name == "" && cause == nil {
					return "context canceled"
				}
				return by + "cancelled" + text
			}
			each := func(ctx context.Context, who string) {
				at := fmt.Sprintf("%s by %s on %q, ", side, who, name)

				c := channel()
				c.Close()
				wantEnding(t, at+"closed", do(ctx, c), by+"channel is closed", coir.ErrClosed)
				c.Abort(why)
				wantEnding(t, at+"closed and aborted", do(ctx, c), by+"channel was aborted: why", coir.ErrClosed, why)
				for _, e := range endingErrs {
					c = channel()
					c.Abort(fmt.Errorf("because: %w", e))
					wantEnding(t, at+"aborted for an ending", do(ctx, c), by+"channel was aborted: because: "+e.Error(), coir.ErrClosed)
				}
				c = channel()
				c.Abort(nil)
				wantEnding(t, at+"aborted for nothing", do(ctx, c), by+"channel was aborted", coir.ErrClosed)

				c = channel()
				wantEnding(t, at+"own limit", doFor(ctx, c), by+"timed out", coir.ErrTimeout, context.DeadlineExceeded)
				short, stop := coir.WithTimeout(ctx, time.Nanosecond)
				wantEnding(t, at+"scope's deadline", do(short, c), by+"timed out", coir.ErrTimeout, context.DeadlineExceeded)
				wantEnding(t, at+"scope's deadline has passed", do(short, c), by+"timed out", coir.ErrTimeout, context.DeadlineExceeded)
				stop()
				std, stop := context.WithTimeoutCause(ctx, time.Nanosecond, why)
				wantEnding(t, at+"deadline with a cause", do(std, c), by+"timed out: why", coir.ErrTimeout, context.DeadlineExceeded)
				stop()

				for _, cause := range append(endingErrs, why, nil) {
					text := ""
					if cause == context.Canceled {
						cause = nil // it adds nothing
					} else if cause != nil {
						text = ": " + cause.Error()
					}
					ours, cancel := coir.WithCancelCause(ctx)
					cancel(cause)
					wantEnding(t, at+"cancelled", do(ours, c), cancelled(cause, text), context.Canceled)
					std, cancel := context.WithCancelCause(ctx)
					cancel(cause)
					wantEnding(t, at+"cancelled by package context", do(std, c), cancelled(cause, text), context.Canceled)
				}

				try := c.TrySend(1)
				if side == "receive" {
					_, try = c.TryRecv()
				}
				wantEnding(t, at+"try", try, by+"would block", coir.ErrWouldBlock)
			}
			each(context.Background(), "a goroutine")
			err := coir.Run(context.Background(), func(outer context.Context, n *coir.Nursery) error {
				n.Go("fiber", func(ctx context.Context) error {
					each(ctx, "a fiber")
					each(outer, "a fiber elsewhere")
					return nil
				})
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
}

// Errors that are returned repeatedly are made once.
func TestErrorsOfANamedChannelAllocateNothing(t *testing.T) {
	if testing.AllocsPerRun(10, func() { _ = coir.Self(context.Background()) }) > 0 {
		t.Skip("without assembly, finding out who calls allocates")
	}
	c := coir.NewChan[int](0, coir.WithName("jobs"))
	full := coir.NewChan[int](1, coir.WithName("full"), coir.WithOverflow(coir.OverflowFail))
	_ = full.TrySend(1)
	closed := coir.NewChan[int](0, coir.WithName("closed"))
	closed.Close()
	ctx := context.Background()
	allocs := testing.AllocsPerRun(100, func() {
		_ = c.TrySend(1)
		_, _ = c.TryRecv()
		_, _ = c.RecvTimeout(ctx, 0)
		_ = full.Send(ctx, 2)
		_, _ = closed.Recv(ctx)
		_ = closed.Send(ctx, 1)
	})
	if allocs > 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// A loop that takes ErrClosed for the end of the data, like the one of the README, does not mistake a cancellation for
// it: not if a sibling failed with the ErrClosed of another channel, nor if the runtime is being closed.
func TestCancelIsNotTakenForTheEndOfData(t *testing.T) {
	other := coir.NewChan[int](0)
	other.Close()
	jobs := coir.NewChan[int](0, coir.WithName("jobs"))
	var seen error
	err := coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("worker", func(ctx context.Context) error { _, seen = jobs.Recv(ctx); return nil })
		n.Go("fails", func(ctx context.Context) error { return other.Send(ctx, 1) })
		return nil
	})
	if !errors.Is(err, coir.ErrClosed) {
		t.Errorf("Run returned %v, want the error of the fiber that failed", err)
	}
	wantEnding(t, "a sibling failed", seen, "coir: receive from jobs: cancelled: coir: channel is closed", context.Canceled)

	rt := coir.NewRuntime()
	begun := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- rt.Run(context.Background(), func(ctx context.Context, _ *coir.Nursery) error {
			close(begun)
			_, seen = jobs.Recv(ctx)
			return nil
		})
	}()
	<-begun
	if err := rt.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if errors.Is(seen, coir.ErrClosed) || !errors.Is(seen, context.Canceled) {
		t.Errorf("while the runtime was closed: %v", seen)
	}
}

// recovered calls fn, and returns the *PanicError that it panicked with, or nil.
func recovered(t *testing.T, fn func()) (pe *coir.PanicError) {
	t.Helper()
	defer func() {
		if v := recover(); v != nil {
			var ok bool
			if pe, ok = v.(*coir.PanicError); !ok || pe == nil {
				t.Errorf("panicked with a %T: %v", v, v)
			}
		}
	}()
	fn()
	return nil
}

// nested calls fn in a goroutine and in a fiber: Run must behave the same.
func nested(t *testing.T, fn func(t *testing.T, ctx context.Context)) {
	t.Run("goroutine", func(t *testing.T) { fn(t, context.Background()) })
	t.Run("fiber", func(t *testing.T) {
		err := coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
			n.Go("outer", func(ctx context.Context) error { fn(t, ctx); return nil })
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// Failures beside a panic are not lost, and the value of a panic does not depend on the caller of Run.
//
// Spec: NU-12 (Run returns every child's error)
// Spec: NU-13 (a child's panic is raised from Run)
// Spec: FB-24 (a panic is recovered in its fiber)
func TestNothingIsLostBesideAPanic(t *testing.T) {
	type body = func(ctx context.Context, n *coir.Nursery) error
	sleep := func(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) }
	fails := func(err error) func(context.Context) error {
		return func(ctx context.Context) error { _ = sleep(ctx); return err } // after the cancellation
	}
	panics := func(v any) func(context.Context) error {
		return func(ctx context.Context) error { panic(v) }
	}
	late := func(v any) func(context.Context) error {
		return func(ctx context.Context) error { _ = sleep(ctx); panic(v) }
	}
	for name, test := range map[string]struct {
		body  body
		value any
		also  []error
		texts []string
	}{
		"body alone":                {func(context.Context, *coir.Nursery) error { panic("body") }, "body", nil, nil},
		"body, with an error value": {func(context.Context, *coir.Nursery) error { panic(errA) }, errA, []error{errA}, nil},
		"child beside errors": {func(_ context.Context, n *coir.Nursery) error {
			n.Go("fails", fails(errA))
			n.Go("panics", panics("child"))
			return errB
		}, "child", []error{errA, errB}, nil},
		"body beside a child's error": {func(ctx context.Context, n *coir.Nursery) error {
			n.Go("fails", fails(errA))
			panic("body")
		}, "body", []error{errA}, nil},
		"body beside a child's panic": {func(ctx context.Context, n *coir.Nursery) error {
			n.Go("panics", late("child"))
			panic("body")
		}, "body", nil, []string{"panic in fiber panics: child"}},
		"two children": {func(ctx context.Context, n *coir.Nursery) error {
			n.Go("late", late("second"))
			n.Go("panics", panics("first"))
			return nil
		}, "first", nil, []string{"panic in fiber late: second"}},
		"a nil *PanicError": {func(ctx context.Context, n *coir.Nursery) error {
			n.Go("panics", panics((*coir.PanicError)(nil)))
			return nil
		}, (*coir.PanicError)(nil), nil, nil},
		"a nil *PanicError of the body": {func(context.Context, *coir.Nursery) error {
			panic((*coir.PanicError)(nil))
		}, (*coir.PanicError)(nil), nil, nil},
		"from a nursery inside": {func(ctx context.Context, n *coir.Nursery) error {
			n.Go("fails", fails(errB))
			return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				n.Go("fails", fails(errA))
				panic("inner")
			})
		}, "inner", []error{errA, errB}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			nested(t, func(t *testing.T, ctx context.Context) {
				pe := recovered(t, func() { t.Errorf("returned %v", coir.Run(ctx, test.body)) })
				if pe == nil {
					return
				}
				if pe.Value != test.value {
					t.Errorf("the value is %v, want %v", pe.Value, test.value)
				}
				if len(pe.Stack) == 0 || !strings.Contains(string(pe.Stack), "errors_test.go") {
					t.Errorf("the stack does not have the place:\n%s", pe.Stack)
				}
				for _, err := range test.also {
					if !errors.Is(pe, err) || !strings.Contains(pe.Error(), err.Error()) {
						t.Errorf("%v is lost in: %v", err, pe)
					}
				}
				for _, text := range test.texts {
					if !strings.Contains(pe.Error(), text) {
						t.Errorf("%q is lost in: %v", text, pe)
					}
				}
				if len(test.also) == 0 && len(test.texts) == 0 && pe.Also != nil {
					t.Errorf("also: %v", pe.Also)
				}
			})
		})
	}
}

// If a child panics, Run panics even if the body calls Goexit. An error of a nursery whose body calls Goexit is
// returned by the Run around it.
//
// Spec: FB-25 (Goexit ends one fiber alone)
func TestNothingIsLostBesideAGoexit(t *testing.T) {
	left := func(fn func()) (exited bool) { // in a separate goroutine, which Goexit may end
		done := make(chan struct{})
		go func() {
			defer close(done)
			exited = true
			fn()
			exited = false
		}()
		<-done
		return exited
	}
	var pe *coir.PanicError
	left(func() {
		pe = recovered(t, func() {
			_ = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
				n.Go("panics", func(ctx context.Context) error { _ = coir.Sleep(ctx, time.Hour); panic("child") })
				runtime.Goexit()
				return nil
			})
		})
	})
	if pe == nil || pe.Value != "child" {
		t.Errorf("the child's panic is lost: %v", pe)
	}
	if !left(func() {
		_ = coir.Run(context.Background(), func(context.Context, *coir.Nursery) error { runtime.Goexit(); return nil })
	}) {
		t.Error("the Goexit of the body did not go on")
	}
	var waited error
	err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		f := n.Go("outer", func(ctx context.Context) error {
			return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				n.Go("fails", func(ctx context.Context) error { _ = coir.Sleep(ctx, time.Hour); return errA })
				runtime.Goexit()
				return nil
			})
		})
		waited = f.Wait(coir.Shield(ctx))
		return nil
	})
	if !errors.Is(err, errA) || !errors.Is(waited, errA) || !errors.Is(waited, coir.ErrGoexit) {
		t.Errorf("Run returned %v, Wait %v; want the inner error", err, waited)
	}
	// A child that exits beside one that fails.
	err = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("exits", func(ctx context.Context) error { runtime.Goexit(); return nil })
		n.Go("fails", func(ctx context.Context) error { return errA })
		return nil
	})
	if err != errA {
		t.Errorf("Run returned %v, want the error of the one that failed", err)
	}
}

// The Goexit of a body cancels its nursery, and children that return that cancellation have not failed. So the fiber
// ended only by Goexit, which is no failure.
func TestGoexitOfABodyFailsNobody(t *testing.T) {
	nested(t, func(t *testing.T, ctx context.Context) {
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			f := n.Go("exits", func(ctx context.Context) error {
				return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
					n.Go("waits", func(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) })
					runtime.Goexit()
					return nil
				})
			})
			if err := f.Wait(ctx); err != coir.ErrGoexit {
				t.Errorf("Wait returned %v", err)
			}
			return ctx.Err()
		})
		if err != nil {
			t.Errorf("Run returned %v", err)
		}
	})
}

// If a function returns ErrGoexit, because it waited for a fiber that exited, that is an error like any other.
func TestErrGoexitReturned(t *testing.T) {
	err := coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		exits := n.Go("exits", func(context.Context) error { runtime.Goexit(); return nil })
		n.Go("waits", exits.Wait)
		return nil
	})
	if err != coir.ErrGoexit {
		t.Errorf("Run returned %v", err)
	}
}

// A *PanicError that a function returns is an error, even beside a Goexit.
func TestPanicErrorReturnedBesideAGoexit(t *testing.T) {
	pe := &coir.PanicError{Fiber: "long ago", Value: "once"}
	err := coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("exits", func(ctx context.Context) error {
			return coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
				n.Go("returns it", func(context.Context) error { return pe })
				runtime.Goexit()
				return nil
			})
		})
		return nil
	})
	if !errors.Is(err, pe) || !errors.Is(err, coir.ErrGoexit) {
		t.Errorf("Run returned %v", err)
	}
}

// Failures on another runtime, in a nursery whose body called Goexit, are reported by the fiber that opened it.
func TestErrorsBesideAGoexitOnAnotherRuntime(t *testing.T) {
	rt := coir.NewRuntime()
	defer func() { _ = rt.Close(context.Background()) }()
	err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("exits", func(ctx context.Context) error {
			return rt.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
				n.Go("fails", func(context.Context) error { return errA })
				runtime.Goexit()
				return nil
			})
		})
		return nil
	})
	if !errors.Is(err, errA) || !errors.Is(err, coir.ErrGoexit) {
		t.Errorf("Run returned %v", err)
	}
}

// A panic with a nil *PanicError can be inspected like any other.
func TestChainOfAPanicWithANilPanicError(t *testing.T) {
	defer func() {
		pe, ok := recover().(*coir.PanicError)
		if !ok || pe == nil || !errors.Is(pe, errA) || errors.Is(pe, errB) {
			t.Errorf("Run panicked with %v", pe)
		}
	}()
	_ = coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("panics", func(context.Context) error { panic((*coir.PanicError)(nil)) })
		return errA
	})
}

// A panic in a deferred function during a Goexit ends the fiber as a panic, and its goroutine is reused.
//
// Spec: FB-24 (a panic is recovered in its fiber)
func TestPanicDuringGoexit(t *testing.T) {
	for round := range 50 {
		pe := recovered(t, func() {
			_ = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
				for range 4 {
					n.Go("exits", func(ctx context.Context) error {
						defer func() { panic("deferred") }()
						if round%2 == 0 {
							_ = coir.Yield(ctx)
						}
						runtime.Goexit()
						return nil
					})
				}
				return nil
			})
		})
		if pe == nil || pe.Value != "deferred" {
			t.Fatalf("round %d: %v", round, pe)
		}
	}
	if err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for range 100 {
			n.Go("after", coir.Yield)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// Cancel(nil) stops a nursery on purpose: errors that only report that cancellation are no failure, and all others are.
//
// Spec: NU-12 (Run returns every child's error)
func TestStoppedOnPurpose(t *testing.T) {
	sleep := func(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) }
	run := func(t *testing.T, ctx context.Context, body func(ctx context.Context, n *coir.Nursery) error) error {
		t.Helper()
		return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("sleeps", sleep)
			n.Go("in a scope", func(ctx context.Context) error {
				ctx, cancel := coir.WithTimeout(ctx, time.Hour)
				defer cancel()
				return fmt.Errorf("in a scope: %w", sleep(ctx))
			})
			n.Go("in a nursery inside", func(ctx context.Context) error {
				err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
					n.Go("sleeps", sleep)
					return nil
				})
				if !errors.Is(err, context.Canceled) {
					t.Errorf("the nursery inside was not stopped on purpose; its Run returned %v", err)
				}
				return err
			})
			n.Go("returns ctx.Err", func(ctx context.Context) error { _ = sleep(ctx); return ctx.Err() })
			return body(ctx, n)
		})
	}
	nested(t, func(t *testing.T, ctx context.Context) {
		if err := run(t, ctx, func(ctx context.Context, n *coir.Nursery) error { n.Cancel(nil); return nil }); err != nil {
			t.Errorf("stopped on purpose: %v", err)
		}
		if err := run(t, ctx, func(ctx context.Context, n *coir.Nursery) error { n.Cancel(nil); return sleep(ctx) }); err != nil {
			t.Errorf("stopped on purpose, the body too: %v", err)
		}
		if err := run(t, ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("fails", func(ctx context.Context) error { _ = sleep(ctx); return errA })
			n.Cancel(nil)
			return nil
		}); err != errA {
			t.Errorf("one failed on its way out: %v", err)
		}
		if err := run(t, ctx, func(ctx context.Context, n *coir.Nursery) error { n.Cancel(errA); return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled for a cause: %v", err)
		}
		above, cancel := coir.WithCancelCause(ctx)
		if err := run(t, above, func(context.Context, *coir.Nursery) error { cancel(nil); return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled from above: %v", err)
		}
	})
}

// many is an error with parts, like those of some packages.
type many struct {
	text  string
	parts []error
}

func (m many) Error() string   { return m.text }
func (m many) Unwrap() []error { return m.parts }

// An error without parts is a failure; the error that package net returns for a cancellation is not.
func TestWhatOnlySaysThatTheNurseryWasCancelled(t *testing.T) {
	stopped := func(late error) error {
		return coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
			n.Go("child", func(ctx context.Context) error { _ = coir.Sleep(ctx, time.Hour); return late })
			n.Cancel(nil)
			return nil
		})
	}
	full := many{text: "disk full"}
	if err := stopped(full); err == nil || err.Error() != "disk full" {
		t.Errorf("Run returned %v, want the error of the child", err)
	}
	if err := stopped(many{text: "two", parts: []error{context.Canceled, errA}}); !errors.Is(err, errA) {
		t.Errorf("Run returned %v, want the error of the child", err)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := (&net.Dialer{}).DialContext(cancelled, "tcp", "127.0.0.1:9")
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := stopped(err); err != nil {
		t.Errorf("Run returned %v, which only says that it was stopped", err)
	}
}

// A panic of a deferred function during a Goexit hides nothing of the nursery that the Goexit ended.
//
// Spec: NU-13 (a child's panic is raised from Run)
func TestPanicDuringGoexitHidesNothing(t *testing.T) {
	pe := recovered(t, func() {
		_ = coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
			n.Go("outer", func(ctx context.Context) error {
				defer func() { panic("late") }()
				return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
					n.Go("fails", func(ctx context.Context) error { _ = coir.Sleep(ctx, time.Hour); return errA })
					n.Go("panics", func(ctx context.Context) error { _ = coir.Sleep(ctx, time.Hour); panic("child") })
					runtime.Goexit()
					return nil
				})
			})
			return nil
		})
	})
	if pe == nil || pe.Value != "late" || !errors.Is(pe, errA) || !strings.Contains(pe.Error(), "panic in fiber panics: child") {
		t.Errorf("something is lost in: %v", pe)
	}
}

// A wait for an event or a promise tells its name, to fibers and goroutines, whether it had to wait or not.
func TestWaitsTellTheName(t *testing.T) {
	waits := func(ctx context.Context, what string) {
		late, stop := coir.WithTimeout(ctx, time.Millisecond)
		defer stop()
		gone, cancel := coir.WithCancelCause(ctx)
		cancel(errors.New("why"))
		for _, name := range []string{"ready", ""} {
			e, p := coir.NewEvent(coir.WithName(name)), coir.NewPromise[int](coir.WithName(name))
			for op, wait := range map[string]func(context.Context) error{
				"wait for the event ":   e.Wait,
				"wait for the promise ": func(ctx context.Context) error { _, err := p.Wait(ctx); return err },
			} {
				if op += name + ": "; name == "" {
					op = ""
				}
				wantEnding(t, what, wait(late), "coir: "+op+"timed out", coir.ErrTimeout, context.DeadlineExceeded)
				wantEnding(t, what, wait(gone), "coir: "+op+"cancelled: why", context.Canceled)
			}
		}
	}
	waits(t.Context(), "a goroutine")
	err := coir.Run(t.Context(), func(ctx context.Context, _ *coir.Nursery) error {
		waits(ctx, "a fiber")
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
