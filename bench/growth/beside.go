package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/bench/internal/timing"
	"github.com/coir-go/coir/netio"
)

// This file measures the cost of idle fibers with timers, and of idle connections. A process with nothing else should
// use no processor time: no worker spins or polls, and the timer wheel does not tick.

// idle measures the processor time of the process while n things are idle. It sleeps natively, so that coir's clock is
// not used.
func idle(setUp func(n int) (stop func())) func(n int) subject {
	return func(n int) subject {
		return subject{workers: runtime.NumCPU(), cost: func(round time.Duration) float64 {
			defer setUp(n)()
			debug.FreeOSMemory()
			time.Sleep(100 * time.Millisecond) // lets all fibers park
			began := timing.Now(false)
			used := timing.Of(true, func() { time.Sleep(round) }).Time
			return 10_000 * float64(used) / float64(timing.Now(false)-began)
		}}
	}
}

var errStop = errors.New("the measurement is over")

// parked starts n fibers that wait for an event in a scope whose deadline is an hour away. It returns when all of them
// are about to park. The returned function ends them.
func parked(n int) (stop func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	var gate coir.Event
	var up atomic.Int64
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- coir.Run(ctx, func(_ context.Context, nur *coir.Nursery) error {
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
		if err := <-ended; !errors.Is(err, context.Canceled) {
			must(err)
		}
	}
}

// connected accepts n connections of another process, and returns when all of them wait. The returned function ends
// that process, and with it the connections.
func connected(n int) (stop func()) {
	l, err := netio.Listen("tcp", "127.0.0.1:0")
	must(err)
	self, err := os.Executable()
	must(err)
	cmd := exec.Command(self, "-dial", l.Addr().String(), "-largest", strconv.Itoa(n))
	input, err := cmd.StdinPipe()
	must(err)
	must(cmd.Start())
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() {
		ended <- coir.Run(context.Background(), func(ctx context.Context, nur *coir.Nursery) error {
			var left atomic.Int64
			left.Store(int64(n))
			var allClosed coir.Event // the nursery must stay open while OnReadable has functions to call
			for i := range n {
				c, err := l.Accept()
				if err != nil {
					return err
				}
				read := func(context.Context) error {
					_, _ = c.Read(make([]byte, 1))
					if left.Add(-1) == 0 {
						allClosed.Set()
					}
					return c.Close()
				}
				if i%2 == 0 {
					nur.Go("read", read)
				} else if err := c.(*netio.Conn).OnReadable(func() { nur.Go("end", read) }); err != nil {
					return err
				}
			}
			close(ready)
			return errors.Join(l.Close(), allClosed.Wait(ctx))
		})
	}()
	<-ready
	return func() {
		must(input.Close())
		must(cmd.Wait())
		must(<-ended)
	}
}

// connect is the main function of the other process.
func connect(address string, n int) {
	for range n {
		c, err := net.Dial("tcp", address)
		must(err)
		defer c.Close()
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	must(err)
}

// connOps has a fiber that echoes what it receives.
func connOps(n int) subject {
	stop := connected(n)
	l, err := netio.Listen("tcp", "127.0.0.1:0")
	must(err)
	var ours net.Conn
	var b [1]byte
	return onFiber(work{
		setUp: func(_ context.Context, nur *coir.Nursery) {
			nur.Go("echo", func(context.Context) error {
				c, err := l.Accept()
				if err != nil {
					return err
				}
				_, err = io.Copy(c, c)
				return errors.Join(err, c.Close(), l.Close())
			})
			var err error
			ours, err = netio.Dial("tcp", l.Addr().String())
			must(err)
		},
		op: func(context.Context, int) error {
			if _, err := ours.Write(b[:]); err != nil {
				return err
			}
			_, err := ours.Read(b[:])
			return err
		},
		end: func() {
			must(ours.Close())
			stop()
		},
		inDefault: true,
	})
}
