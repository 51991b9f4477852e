package coir_test

// Examples: short programs, each with its output.

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"slices"
	"strings"
	"sync/atomic"
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
			}, coir.WithIndex(i))
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
		}, coir.WithIndex(7))
		err := f.Wait(ctx)
		fmt.Println(f.Name(), f.State(), err)
		return nil
	})
	// Output:
	// hello
	// greet[7] ended <nil>
}

// At most two tasks run at the same time. A task that waits for another gives up its place while it waits, so tasks may
// start others under the same limit and wait for them.
func ExampleNursery_Limit() {
	_ = coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Limit(2)
		for i := range 10 {
			n.Go("task", func(ctx context.Context) error {
				part := n.Go("part", func(context.Context) error { return nil })
				return part.Wait(ctx)
			}, coir.WithIndex(i))
		}
		return nil
	})
	fmt.Println("all done")
	// Output: all done
}

// The error of a cancellation shows the cause, and is context.Canceled whatever the cause. context.Cause returns the
// cause.
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

// A nursery that the program stops on purpose has not failed.
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
	rt := coir.NewRuntime(coir.WithWorkers(1))
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

// A scope is cancelled without the context that it was made in.
func ExampleWithCancel() {
	_ = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		scope, cancel := coir.WithCancel(ctx)
		defer cancel()
		n.Go("stopper", func(context.Context) error {
			cancel()
			return nil
		})
		err := coir.Sleep(scope, time.Hour) // ends early
		fmt.Println(errors.Is(err, context.Canceled), ctx.Err())
		return nil
	})
	// Output: true <nil>
}

// A fiber that only has to clean up when it is stopped waits for the cancellation, without a timer.
func ExampleWaitCancel() {
	err := coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("listener", func(ctx context.Context) error {
			err := coir.WaitCancel(ctx)
			fmt.Println("closing the listener:", err)
			return err
		})
		n.Cancel(nil)
		return nil
	})
	fmt.Println(err)
	// Output:
	// closing the listener: context canceled
	// <nil>
}

// Workers wait until the configuration has been loaded.
func ExampleEvent() {
	_ = coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		var loaded coir.Event
		var config string
		n.Go("worker", func(ctx context.Context) error {
			if err := loaded.Wait(ctx); err != nil {
				return err
			}
			fmt.Println("works with", config)
			return nil
		})
		n.Go("loader", func(context.Context) error {
			config = "the new settings" // ordered before what follows the wait
			fmt.Println(loaded.Set(), loaded.Set())
			return nil
		})
		return nil
	})
	// Unordered output:
	// true false
	// works with the new settings
}

// An event is a case of a select, here with a time limit.
func ExampleEvent_DoneCase() {
	ready := coir.NewEvent(coir.WithName("ready"))
	which, err := coir.Select(context.Background(), ready.DoneCase(), coir.After(time.Millisecond))
	fmt.Println(which, err)
	ready.Set()
	which, err = coir.Select(context.Background(), ready.DoneCase(), coir.After(time.Hour))
	fmt.Println(which, err)
	fmt.Println(ready)
	// Output:
	// 1 <nil>
	// 0 <nil>
	// coir.Event(ready, set)
}

// One fiber asks, and another answers. Any number of callers may wait for the answer, and only the first result counts.
func ExamplePromise() {
	_ = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		var answer coir.Promise[int]
		n.Go("thinker", func(context.Context) error {
			answer.Resolve(42)
			fmt.Println("rejected:", answer.Reject(errors.New("too late")))
			return nil
		})
		v, err := answer.Wait(ctx)
		fmt.Println(v, err)
		return nil
	})
	// Unordered output:
	// rejected: false
	// 42 <nil>
}

func ExamplePromise_Reject() {
	page := coir.NewPromise[string](coir.WithName("page"))
	page.Reject(errors.New("not found"))
	_, err := page.Wait(context.Background())
	fmt.Println(err)
	// Output: not found
}

// The first of two answers wins.
func ExamplePromise_DoneCase() {
	var east, west coir.Promise[string]
	west.Resolve("from the west")
	var v string
	var err error
	which, _ := coir.Select(context.Background(), east.DoneCase(&v, &err), west.DoneCase(&v, &err))
	fmt.Println(which, v, err)
	// Output: 1 from the west <nil>
}

func ExamplePromise_OnDone() {
	var size coir.Promise[int]
	size.OnDone(func(n int, err error) { fmt.Println("size:", n, err) })
	size.Resolve(7)
	// Output: size: 7 <nil>
}

func ExampleWithCancelCause() {
	_ = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		scope, cancel := coir.WithCancelCause(ctx)
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

// Work that must be finished runs under a shield, with its own deadline.
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

// Work that has been accepted may be finished, for some time after the signal.
func ExampleWithGrace() {
	_ = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		work, cancel := coir.WithGrace(ctx, 100*time.Millisecond)
		defer cancel()
		n.Cancel(nil)
		fmt.Println("outside:", coir.Yield(ctx))
		fmt.Println("request 1:", coir.Sleep(work, time.Millisecond))
		fmt.Println("request 2:", coir.Sleep(work, time.Hour))
		return nil
	})
	// Output:
	// outside: context canceled
	// request 1: <nil>
	// request 2: coir: timed out
}

// Code that blocks natively goes into Blocking, so that other fibers can run meanwhile.
func ExampleBlocking() {
	lines := make(chan string)
	go func() { lines <- "from a goroutine" }()
	_ = coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("reader", func(ctx context.Context) error {
			line, err := coir.Blocking(ctx, func() (string, error) { return <-lines, nil })
			fmt.Println(line)
			return err
		})
		return nil
	})
	// Output: from a goroutine
}

// A child that blocks outside of coir most of the time runs on a goroutine of its own.
func ExampleWithGoroutine() {
	lines := coir.NewChan[string](0)
	err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Go("read", func(ctx context.Context) error {
			defer lines.Close()
			in := bufio.NewScanner(strings.NewReader("one\ntwo")) // or os.Stdin: Scan blocks
			for in.Scan() {
				if err := lines.Send(ctx, in.Text()); err != nil {
					return err
				}
			}
			return in.Err()
		}, coir.WithGoroutine())
		for line, err := range lines.All(ctx) {
			if err != nil {
				return err
			}
			fmt.Println(line)
		}
		return nil
	})
	fmt.Println(err)
	// Output:
	// one
	// two
	// <nil>
}

// A task is a fiber with a value.
func ExampleStart() {
	err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		price := coir.Start(n, "price", func(context.Context) (int, error) { return 40, nil })
		tax := coir.Start(n, "tax", func(context.Context) (int, error) { return 2, nil })
		p, err := price.Wait(ctx)
		if err != nil {
			return err
		}
		t, err := tax.Wait(ctx)
		fmt.Println(p + t)
		return err
	})
	fmt.Println(err)
	// Output:
	// 42
	// <nil>
}

func ExampleTask_DoneCase() {
	err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		answer := coir.Start(n, "answer", func(ctx context.Context) (string, error) { return "yes", coir.Yield(ctx) })
		var v string
		i, err := coir.Select(ctx, answer.DoneCase(&v, nil), coir.After(time.Minute))
		fmt.Println(i, v)
		return err
	})
	fmt.Println(err)
	// Output:
	// 0 yes
	// <nil>
}

// Every job runs to its end, and Run returns what failed.
func ExampleWithIsolatedFailure() {
	err := coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		for i := range 3 {
			n.Go("job", func(ctx context.Context) error {
				if i == 0 {
					return errors.New("job 0 failed")
				}
				return coir.Yield(ctx) // not cancelled
			}, coir.WithIndex(i), coir.WithIsolatedFailure())
		}
		return nil
	})
	fmt.Println(err)
	// Output: job 0 failed
}

// The second server is asked if the first has not answered in time. The slower of the two is cancelled.
func ExampleRace() {
	ask := func(after, takes time.Duration, server string) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			if err := coir.Sleep(ctx, after); err != nil {
				return "", err
			}
			return "answer of " + server, coir.Sleep(ctx, takes)
		}
	}
	v, err := coir.Race(context.Background(),
		ask(0, time.Hour, "a"),
		ask(time.Millisecond, time.Millisecond, "b"))
	fmt.Println(v, err)
	// Output: answer of b <nil>
}

func ExampleMap() {
	words := []string{"one", "three", "fifteen"}
	lengths, err := coir.Map(context.Background(), 2, slices.Values(words), func(ctx context.Context, w string) (int, error) {
		return len(w), coir.Yield(ctx)
	})
	fmt.Println(lengths, err)
	// Output: [3 5 7] <nil>
}

func ExampleForEach() {
	var sum atomic.Int64
	err := coir.ForEach(context.Background(), 2, slices.Values([]int64{1, 2, 3}), func(_ context.Context, i int64) error {
		sum.Add(i)
		return nil
	})
	fmt.Println(sum.Load(), err)
	// Output: 6 <nil>
}

func ExampleNewRuntime() {
	rt := coir.NewRuntime(coir.WithWorkers(4))
	defer func() { _ = rt.Close(context.Background()) }()
	err := rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("on rt", func(ctx context.Context) error { return coir.Yield(ctx) })
		return nil
	})
	fmt.Println(err)
	// Output: <nil>
}

// Default is the runtime that Run uses.
func ExampleDefault() {
	before := coir.Default().Stats().Spawned
	_ = coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("a", func(ctx context.Context) error { return nil })
		n.Go("b", func(ctx context.Context) error { return nil })
		return nil
	})
	fmt.Println(coir.Default().Stats().Spawned-before, "fibers: two, and the function of Run")
	// Output: 3 fibers: two, and the function of Run
}

// Configure belongs at the start of main.
func ExampleConfigure() {
	err := coir.Configure(
		coir.WithMaxWorkers(500),
		coir.OnStall(5*time.Second, func(s coir.Stall) { fmt.Fprintln(os.Stderr, s.Fiber, s.Stack) }),
	)
	if err != nil { // the default runtime has been used already
		panic(err)
	}
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
	err := rt.Run(context.Background(), func(context.Context, *coir.Nursery) error { return nil })
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

// With labels, profiles and tracebacks say which fiber a goroutine runs.
func ExampleWithLabels() {
	rt := coir.NewRuntime(coir.WithLabels()) // or coir.Configure(coir.WithLabels()), for the default runtime
	defer rt.Close(context.Background())
	_ = rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("worker", func(ctx context.Context) error {
			pprof.ForLabels(ctx, func(key, value string) bool {
				fmt.Println(key, value)
				return true
			})
			return nil
		}, coir.WithIndex(3))
		return nil
	})
	// Output:
	// fiber worker[3]
	// nursery main
}
