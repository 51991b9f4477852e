package coir_test

// How a runtime handles the user code that it calls outside of fibers: an observer, and the function of OnStall.

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// clumsy is an observer that panics in one of its methods, and counts those calls.
type clumsy struct {
	at string

	mu   sync.Mutex
	told map[string]int
}

func (o *clumsy) note(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.told[what]++
	if what == o.at {
		explodesDeepInside("observer bug: " + what)
	}
}

func (o *clumsy) FiberStarted(*coir.Fiber)      { o.note("started") }
func (o *clumsy) FiberParked(*coir.Fiber)       { o.note("parked") }
func (o *clumsy) FiberReady(_, _ *coir.Fiber)   { o.note("ready") }
func (o *clumsy) FiberEnded(*coir.Fiber, error) { o.note("ended") }
func (o *clumsy) FiberStalled(coir.Stall)       { o.note("stalled") }

// The panic of an observer, wherever it is called, and of the function of OnStall, goes to standard error with its
// stack. The program continues, and the observer is not called again.
//
// It runs in a separate process, whose standard error it reads.
func TestPanicOfAnObserverIsReported(t *testing.T) {
	const child = "COIR_TEST_CLUMSY_OBSERVER"
	if os.Getenv(child) == "" {
		cmd := itself(t.Context(), "-test.run=^"+t.Name()+"$", "-test.timeout=5m")
		cmd.Env = append(os.Environ(), child+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	var out report
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	os.Stderr = w // before there is a runtime, and forever
	go func() { _, _ = io.Copy(&out, r) }()
	for _, at := range []string{"started", "parked", "ready", "ended", "stalled"} {
		for _, workers := range []int{1, 2} {
			o := &clumsy{at: at, told: map[string]int{}}
			var stalled atomic.Pointer[chan struct{}]
			rt := on(t, coir.WithWorkers(workers), coir.WithObserver(o), coir.OnStall(20*time.Millisecond, func(s coir.Stall) {
				if s.Fiber.Name() == "blocks" {
					close(*stalled.Load())
				}
				panic("handler bug: " + s.Fiber.Name())
			}))
			run := func() {
				seen := make(chan struct{})
				stalled.Store(&seen)
				within(t, time.Minute, at+": the program ends", goes(func() {
					if err := rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
						c := coir.NewChan[int](0)
						n.Go("sends", func(ctx context.Context) error { return c.Send(ctx, 1) })
						n.Go("receives", func(ctx context.Context) error { _, err := c.Recv(ctx); return err })
						n.Go("blocks", func(context.Context) error { <-seen; return nil })
						return coir.Sleep(ctx, time.Millisecond)
					}); err != nil {
						t.Errorf("%s: %v", at, err)
					}
				}))
			}
			run()
			for _, part := range []string{"observer bug: " + at, "handler bug: blocks", "explodesDeepInside"} {
				eventually(t, fmt.Sprintf("%s: %q is written", at, part), func() bool { return out.has(part) })
			}
			told := func() int {
				o.mu.Lock()
				defer o.mu.Unlock()
				return o.told[at]
			}
			first := told() // more than one if several workers were inside
			run()
			if again := told(); again != first {
				t.Errorf("%s: the observer has panicked, and was called %d times more", at, again-first)
			}
			out.clear()
		}
	}
}

// report returns what was written to standard error.
type report struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (r *report) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.b.Write(p)
}

func (r *report) has(part string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Contains(r.b.String(), part)
}

func (r *report) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.b.Reset()
}

// A runtime whose number of workers was not set follows GOMAXPROCS up and down while it runs, and after it was idle. A
// runtime whose number was set does not.
//
// Spec: SC-01 (workers are goroutines, GOMAXPROCS of them)
func TestWorkersFollowGOMAXPROCS(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2))
	follows, fixed := on(t), on(t, coir.WithWorkers(2))
	// busy runs fibers that yield, on rt, until f returns.
	busy := func(rt *coir.Runtime, f func()) {
		t.Helper()
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() {
			ended <- rt.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
				for range 16 {
					n.Go("busy", func(ctx context.Context) error {
						for coir.Yield(ctx) == nil {
							for range 1000 { // long enough to make waking a worker worthwhile
								runtime.KeepAlive(n)
							}
						}
						return nil
					})
				}
				return nil
			})
		}()
		f()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	active := func(rt *coir.Runtime, want int) {
		t.Helper()
		eventually(t, "the number of active workers", func() bool { return rt.Stats().Active == want })
	}
	busy(follows, func() {
		active(follows, 2)
		for _, n := range []int{4, 1, 3} {
			runtime.GOMAXPROCS(n)
			active(follows, n)
		}
	})
	runtime.GOMAXPROCS(1) // while nothing runs
	busy(follows, func() { active(follows, 1) })
	runtime.GOMAXPROCS(4)
	busy(follows, func() { active(follows, 4) })
	busy(fixed, func() {
		active(fixed, 2)
		busy(follows, func() { active(follows, 4) }) // at least one tick of its own passes meanwhile
		active(fixed, 2)
	})
}
