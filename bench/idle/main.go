// Command idle measures what coir costs while nothing happens.
//
// A process with 100,000 parked fibers and 100,000 armed timers that are an hour
// away should use no processor time: nobody spins, nobody polls, and the wheel
// does not tick. So the program sets that up, waits until all of it is parked,
// lets the collector finish and give memory back, and then compares the process's
// own account of processor time over a period of sleep. Each fiber waits for one
// gate fiber to end, within a scope whose deadline is an hour away; that makes
// one parked fiber and one armed timer each. The main goroutine sleeps natively,
// so it is not coir's clock that wakes it.
//
//	go run ./idle -d 10s -n 100000
//	go run ./idle -d 10s -conns 10000
//
// With -conns it is connections of netio that wait: half of them in fibers that
// read, half by OnReadable. Their peers are in another process.
//
// One line comes out, and the exit code is 1 if the process used more than 10 ms
// in 10 s.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/bench/internal/cputime"
)

const most = 0.001 // of one processor: 10 ms in 10 s

func main() {
	period := flag.Duration("d", 10*time.Second, "how long to look")
	n := flag.Int("n", 100_000, "parked fibers, and as many armed timers")
	conns := flag.Int("conns", 0, "idle connections of netio, in place of fibers and timers")
	dial := flag.String("dial", "", "for the command's own use: connect there, as often as -conns says")
	flag.Parse()
	if *dial != "" {
		connect(*dial, *conns)
		return
	}
	if *n < 1 || *period <= 0 {
		fmt.Fprintln(os.Stderr, "idle: -n and -d must be above zero")
		os.Exit(2)
	}

	what := fmt.Sprintf("fibers=%d timers=%d", *n, *n)
	var stop func()
	if *conns > 0 {
		what = fmt.Sprintf("conns=%d", *conns)
		stop = listen(*conns)
	} else {
		stop = park(*n)
	}
	runtime.GC()
	debug.FreeOSMemory()
	time.Sleep(100 * time.Millisecond) // what is still on its way to its park gets there

	used, took := watch(*period)
	stop()

	share := used.Seconds() / took.Seconds()
	fmt.Printf("idle %s used=%v over=%v share=%.5f%%\n", what, used, took.Round(time.Millisecond), 100*share)
	if share > most {
		fmt.Fprintf(os.Stderr, "idle: the process used more than %v of processor time in %v\n",
			time.Duration(most*float64(*period)), *period)
		os.Exit(1)
	}
}

// watch sleeps and returns the processor time that went by meanwhile, and the
// time on the wall.
func watch(period time.Duration) (used, took time.Duration) {
	began, from := time.Now(), cputime.Used()
	time.Sleep(period)
	return cputime.Used() - from, time.Since(began)
}

var errStop = errors.New("the measurement is over")

// park starts n fibers that wait for ever, returns when all of them are about to
// park, and returns a function that ends them.
func park(n int) (stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	ready := make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		var up atomic.Int64
		ended <- coir.Run(ctx, func(ctx context.Context, nur *coir.Nursery) error {
			gate := nur.Go("gate", func(ctx context.Context) error {
				return coir.Sleep(ctx, 2*time.Hour)
			})
			for range n {
				nur.Go("parked", func(ctx context.Context) error {
					ctx, cancel := coir.WithTimeout(ctx, time.Hour)
					defer cancel()
					if up.Add(1) == int64(n) {
						close(ready)
					}
					return gate.Wait(ctx)
				})
			}
			return nil
		})
	}()
	<-ready
	return func() {
		cancel(errStop)
		if err := <-ended; !errors.Is(err, context.Canceled) || context.Cause(ctx) != errStop {
			fmt.Fprintf(os.Stderr, "idle: the fibers ended with %v, not with the cancel\n", err)
			os.Exit(1)
		}
	}
}
