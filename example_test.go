package coir_test

// Examples: short programs, each with its output.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/coir-go/coir"
)

func Example() {
	prices := make([]int, 3)
	err := coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		for i := range prices {
			n.Go("price", func(ctx context.Context) error {
				prices[i] = 10 * (i + 1)
				return coir.Sleep(ctx, time.Millisecond)
			}, coir.Index(i))
		}
		return nil
	})
	fmt.Println(prices, err) // every fiber has ended
	// Output: [10 20 30] <nil>
}

// The first error cancels the others, and Run returns it when all have ended.
func ExampleRun() {
	broken := errors.New("broken pipe")
	err := coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("waits", func(ctx context.Context) error {
			err := coir.Sleep(ctx, time.Hour)
			fmt.Println("waits:", err)
			return err
		})
		n.Go("fails", func(context.Context) error { return broken })
		return nil
	})
	fmt.Println("Run:", err)
	// Output:
	// waits: coir: cancelled: broken pipe
	// Run: broken pipe
}

// If a fiber panics, Run panics when the other fibers have ended.
func ExamplePanicError() {
	defer func() {
		var pe *coir.PanicError
		if err, ok := recover().(error); ok && errors.As(err, &pe) {
			fmt.Println(pe.Fiber, "panicked with:", pe.Value) // pe.Error() has the stack as well
		}
	}()
	_ = coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("parser", func(context.Context) error { panic("unexpected comma") })
		return nil
	})
	// Output: parser panicked with: unexpected comma
}

func ExampleNursery_Go() {
	_ = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		f := n.Go("greet", func(context.Context) error {
			fmt.Println("hello")
			return nil
		}, coir.Index(7))
		err := f.Wait(ctx)
		fmt.Println(f.Name(), f.State(), err)
		return nil
	})
	// Output:
	// hello
	// greet[7] ended <nil>
}

// At most two tasks run at the same time. A task that waits for another gives up its place meanwhile, so tasks may
// start others under the same limit and wait for them.
func ExampleNursery_Limit() {
	_ = coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Limit(2)
		for i := range 10 {
			n.Go("task", func(ctx context.Context) error {
				part := n.Go("part", func(context.Context) error { return nil })
				return part.Wait(ctx)
			}, coir.Index(i))
		}
		return nil
	})
	fmt.Println("all done")
	// Output: all done
}

// The error of a cancel shows the cause, and is context.Canceled whatever the cause. context.Cause returns the cause.
func ExampleNursery_Cancel() {
	full := errors.New("the disk is full")
	err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("background", func(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) })
		n.Cancel(full)
		fmt.Println(context.Cause(ctx) == full)
		return nil
	})
	fmt.Println(err)
	fmt.Println(errors.Is(err, context.Canceled), errors.Is(err, full))
	// Output:
	// true
	// coir: cancelled: the disk is full
	// true false
}

// A nursery that is stopped on purpose has not failed.
func ExampleNursery_Cancel_onPurpose() {
	err := coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("background", func(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) })
		n.Cancel(nil) // the work is done
		return nil
	})
	fmt.Println(err)
	// Output: <nil>
}

// Wait returns what the fiber's function returned.
func ExampleFiber_Wait() {
	_ = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		answer := 0
		f := n.Go("compute", func(context.Context) error {
			answer = 42
			return nil
		})
		if err := f.Wait(ctx); err != nil {
			return err
		}
		fmt.Println(answer)
		return nil
	})
	// Output: 42
}

// An operation in a fiber parks the fiber; in a goroutine the same operation blocks the goroutine.
func ExampleSelf() {
	fmt.Println(coir.Self(context.Background()) == nil)
	_ = coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("me", func(ctx context.Context) error {
			fmt.Println(coir.Self(ctx).Name())
			return nil
		})
		return nil
	})
	// Output:
	// true
	// me
}

// Ten thousand fibers sleep at the same time, on a few workers.
func ExampleSleep() {
	err := coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		for range 10_000 {
			n.Go("sleeper", func(ctx context.Context) error { return coir.Sleep(ctx, time.Millisecond) })
		}
		return nil
	})
	fmt.Println(err)
	// Output: <nil>
}

// Fibers leave their worker only where they wait or yield.
func ExampleYield() {
	rt := coir.NewRuntime(coir.Workers(1))
	defer func() { _ = rt.Close(context.Background()) }()
	_ = rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("other", func(context.Context) error {
			fmt.Println("other")
			return nil
		})
		fmt.Println("before")
		err := coir.Yield(ctx)
		fmt.Println("after")
		return err
	})
	// Output:
	// before
	// other
	// after
}

func ExampleWithTimeout() {
	_ = coir.Run(context.Background(), func(ctx context.Context, _ *coir.Nursery) error {
		ctx, cancel := coir.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		err := coir.Sleep(ctx, time.Hour)
		fmt.Println(err)
		fmt.Println(errors.Is(err, coir.ErrTimeout), errors.Is(err, context.DeadlineExceeded))
		return nil
	})
	// Output:
	// coir: timed out
	// true true
}

func ExampleWithCancel() {
	_ = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		scope, cancel := coir.WithCancel(ctx)
		n.Go("impatient", func(context.Context) error {
			cancel(errors.New("took too long"))
			return nil
		})
		fmt.Println(coir.Sleep(scope, time.Hour)) // ends early
		fmt.Println(coir.Sleep(ctx, time.Millisecond))
		return nil
	})
	// Output:
	// coir: cancelled: took too long
	// <nil>
}

// Work that must be finished goes on under a shield, with its own deadline.
func ExampleShield() {
	_ = coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("session", func(ctx context.Context) error {
			err := coir.Sleep(ctx, time.Hour)
			ctx, cancel := coir.WithTimeout(coir.Shield(ctx), time.Minute)
			defer cancel()
			fmt.Println("saying goodbye:", coir.Sleep(ctx, time.Millisecond))
			return err
		})
		n.Cancel(nil)
		return nil
	})
	// Output: saying goodbye: <nil>
}

// Code that blocks natively goes into Blocking, so that other fibers can run meanwhile.
func ExampleBlocking() {
	lines := make(chan string)
	go func() { lines <- "from a goroutine" }()
	_ = coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("reader", func(ctx context.Context) error {
			var line string
			coir.Blocking(ctx, func() { line = <-lines })
			fmt.Println(line)
			return nil
		})
		return nil
	})
	// Output: from a goroutine
}

func ExampleNewRuntime() {
	rt := coir.NewRuntime(coir.Workers(4))
	defer func() { _ = rt.Close(context.Background()) }()
	err := rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("on rt", func(ctx context.Context) error { return coir.Yield(ctx) })
		return nil
	})
	fmt.Println(err)
	// Output: <nil>
}

// Close cancels what still runs, waits for it to end, and leaves no goroutine.
func ExampleRuntime_Close() {
	rt := coir.NewRuntime()
	begun, ended := make(chan struct{}), make(chan error)
	go func() {
		ended <- rt.Run(context.Background(), func(ctx context.Context, _ *coir.Nursery) error {
			close(begun)
			return coir.Sleep(ctx, time.Hour)
		})
	}()
	<-begun
	go func() { _ = rt.Close(context.Background()) }()
	fmt.Println(<-ended)
	err := rt.Run(context.Background(), nil)
	fmt.Println(errors.Is(err, coir.ErrClosed))
	// Output:
	// coir: cancelled: coir: the runtime is being closed
	// true
}

// OnStall reports a fiber that computes for long, or blocks without Blocking.
func ExampleOnStall() {
	noticed := make(chan struct{})
	rt := coir.NewRuntime(coir.OnStall(500*time.Millisecond, func(s coir.Stall) {
		fmt.Fprintln(os.Stdout, s.Fiber.Name(), "does not let go")
		close(noticed)
	}))
	defer func() { _ = rt.Close(context.Background()) }()
	_ = rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("greedy", func(context.Context) error {
			<-noticed // blocks natively, until the stall is reported
			return nil
		})
		return nil
	})
	// Output: greedy does not let go
}
