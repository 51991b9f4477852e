package sim

import (
	"context"
	"fmt"
	"iter"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// line returns the place of the caller, or some lines below it, as in a report.
func line(below int) string {
	_, file, n, _ := runtime.Caller(1)
	return place(file, n+below)
}

// beside runs fn as a fiber, next to another one that does something.
func beside(ctx context.Context, fn func(ctx context.Context)) {
	c := coir.NewChan[int](0, coir.WithName("c"))
	_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
		n.Go("stuck", func(ctx context.Context) error { fn(ctx); return nil })
		n.Go("other", func(ctx context.Context) error { return c.SendTimeout(ctx, 1, time.Second) })
		_, err := c.Recv(ctx)
		return err
	})
}

// If a fiber waits outside of coir, the schedule soon ends, and the report says where the fiber waits and what to write
// instead. If sim can end the wait, no goroutine is left behind. If it cannot, none is left when the wait ends, long
// after.
func TestAWaitOutsideOfCoirIsTold(t *testing.T) {
	for _, c := range []struct {
		name string
		make func() (fn program, at string, free func()) // free ends the wait; nil: sim ends it
		want []string
	}{
		{"iter.Pull over a channel", func() (program, string, func()) {
			at := line(11)
			return func(ctx context.Context, _ *Sim) {
				c := coir.NewChan[int](0, coir.WithName("c"))
				_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
					n.Go("producer", func(ctx context.Context) error {
						defer c.Close()
						return c.Send(ctx, 1)
					})
					n.Go("stuck", func(ctx context.Context) error {
						next, stop := iter.Pull2(c.All(ctx))
						defer stop()
						for _, _, ok := next(); ok; _, _, ok = next() {
						}
						return nil
					})
					return nil
				})
			}, at, nil
		}, []string{"for a function of iter.Pull", "Range over the sequence, or receive with Recv"}},
		{"receive from a native channel", func() (program, string, func()) {
			c := make(chan int)
			at := line(2)
			return func(ctx context.Context, _ *Sim) {
				beside(ctx, func(context.Context) { <-c })
			}, at, func() { close(c) }
		}, []string{"to receive from a native channel", "Use a coir.Chan in place of a native channel", "is left behind"}},
		{"dial with package net", func() (program, string, func()) {
			end := make(chan int)
			d := net.Dialer{Resolver: &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
				<-end
				return nil, net.ErrClosed
			}}}
			at := line(2)
			return func(ctx context.Context, _ *Sim) {
				beside(ctx, func(context.Context) { _, _ = d.Dial("tcp", "peer.example.:80") })
			}, at, func() { close(end) }
		}, []string{"in package net", "that of package netio: dial and listen with it", "is left behind"}},
		{"send to a native channel", func() (program, string, func()) {
			c := make(chan int)
			at := line(2)
			return func(ctx context.Context, _ *Sim) {
				beside(ctx, func(context.Context) { c <- 1 })
			}, at, func() { <-c }
		}, []string{"to send to a native channel", "Use a coir.Chan in place of a native channel", "is left behind"}},
		{"native select", func() (program, string, func()) {
			c, d := make(chan int), make(chan int)
			at := line(3)
			return func(ctx context.Context, _ *Sim) {
				beside(ctx, func(context.Context) {
					select {
					case <-c:
					case <-d:
					}
				})
			}, at, func() { close(c) }
		}, []string{"in a native select", "Use a coir.Chan in place of a native channel", "is left behind"}},
		{"receive from Done", func() (program, string, func()) {
			at := line(2)
			return func(ctx context.Context, _ *Sim) {
				beside(ctx, func(ctx context.Context) { <-ctx.Done() })
			}, at, nil
		}, []string{"to receive from a native channel", "in place of <-ctx.Done(), coir.Sleep(ctx, d) for long"}},
		{"the same in the first fiber", func() (program, string, func()) {
			at := line(1)
			return func(ctx context.Context, _ *Sim) { <-ctx.Done() }, at, nil
		}, []string{"fiber main waits outside of coir", "in place of <-ctx.Done(), coir.Sleep(ctx, d) for long"}},
		{"mutex held across an operation", func() (program, string, func()) {
			var mu sync.Mutex
			freed := make(chan struct{})
			at := line(5)
			return func(ctx context.Context, _ *Sim) {
				_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
					for i := range 2 {
						n.Go("stuck", func(ctx context.Context) error {
							mu.Lock()
							select {
							case <-freed: // unlocked, though not by its holder
								return nil
							default:
							}
							_ = coir.Sleep(ctx, time.Second)
							select {
							case <-freed:
							default:
								mu.Unlock()
							}
							return nil
						}, coir.WithIndex(i))
					}
					return nil
				})
			}, at, func() { close(freed); mu.Unlock() }
		}, []string{"for a native mutex", "holds it across an operation of coir: unlock before the operation", "is left behind",
			" probably holds it: it is in sleep 1s, at sim/blocked_test.go:"}},
		{"group that is waited for", func() (program, string, func()) {
			var wg sync.WaitGroup
			wg.Add(1)
			at := line(2)
			return func(ctx context.Context, _ *Sim) {
				beside(ctx, func(context.Context) { wg.Wait() })
			}, at, wg.Done
		}, []string{"for a sync.WaitGroup", "Start fibers in a nursery", "is left behind"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			fn, at, free := c.make()
			began := time.Now()
			res := Explore(fn)
			took := time.Since(began)
			if free != nil {
				free()
			}
			if res.Failure == nil || res.Failure.Kind != KindBlocked {
				t.Fatalf("after %d schedules: %v", res.Schedules, res.Failure)
			}
			text := res.Failure.Error()
			for _, part := range append(c.want, "waits outside of coir, ", ", at "+at) {
				if !strings.Contains(text, part) {
					t.Errorf("it does not say %q:\n%s", part, text)
				}
			}
			if free == nil && strings.Contains(text, "left behind") {
				t.Error(text)
			}
			t.Logf("after %v: %s", took, text)
			if took > 10*time.Second { // half a second, on an idle machine
				t.Errorf("it took %v", took)
			}
			for until := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
				if time.Now().After(until) {
					buf := make([]byte, 1<<20)
					t.Fatalf("%d goroutines, and %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
				}
			}
		})
	}
}

// A function is in package net, or in a package whose name only resembles it.
func TestInNet(t *testing.T) {
	for line, want := range map[string]bool{
		"net.(*netFD).accept(0x1)":                  true,
		"net/http.(*Transport).getConn(0x1)":        true,
		"net.example.org/x.Wait(...)":               false,
		library + ".(*thunk).RunThunk(0x1)\nnet.F(": false,
	} {
		if got := inNet("goroutine 1 [select]:\nruntime.gopark(0x1)\n\tproc.go:1\n" + line + "\n"); got != want {
			t.Errorf("%q: %v", line, got)
		}
	}
}

// A fiber that computes for long, or waits for something that comes, is not ended.
func TestALongComputationIsNoWait(t *testing.T) {
	res := Explore(func(ctx context.Context, _ *Sim) {
		beside(ctx, func(ctx context.Context) {
			for until := time.Now().Add(2 * stallAfter); time.Now().Before(until); {
				_ = fmt.Sprint(until)
			}
		})
	}, WithSchedules(1))
	if res.Failure != nil {
		t.Error(res.Failure)
	}
}

// sim watches a fiber that computes for long. The goroutine that watches ends with the schedules, even if no other
// fiber has run since.
func TestTheWatcherOfALongComputationEnds(t *testing.T) {
	buf := make([]byte, 1<<20)
	watched := func() bool { return strings.Contains(string(buf[:runtime.Stack(buf, true)]), "(*world).watch(") }
	until := time.Now().Add(20 * time.Second)
	res := Explore(func(ctx context.Context, _ *Sim) {
		for !watched() && time.Now().Before(until) {
			runtime.Gosched()
		}
		_ = coir.Yield(ctx)
	}, WithSchedules(1))
	if res.Failure != nil {
		t.Fatal(res.Failure)
	}
	for ; watched(); runtime.Gosched() {
		if time.Now().After(until) {
			t.Fatal("the watcher is still there")
		}
	}
}
