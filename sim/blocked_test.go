package sim

import (
	"context"
	"fmt"
	"iter"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// line returns the place of the caller, or some lines below it, as in a report.
func line(below int) string {
	_, file, n, _ := runtime.Caller(1)
	return place(file, n+below)
}

// beside runs fn as a fiber, while another fiber performs operations.
func beside(ctx context.Context, fn func(ctx context.Context)) {
	c := coir.NewChan[int](0, coir.WithName("c"))
	_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
		n.Go("stuck", func(ctx context.Context) error { fn(ctx); return nil })
		n.Go("other", func(ctx context.Context) error { return c.SendTimeout(ctx, 1, time.Second) })
		_, err := c.Recv(ctx)
		return err
	})
}

// If a fiber waits outside coir, the schedule soon ends, and the report says where the fiber waits and what to write
// instead. If sim can end the wait, no goroutine is left behind. If it cannot, no goroutine is left once the wait has
// ended, long after that.
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
		}, []string{"to receive from a native channel", "in place of <-ctx.Done(), use coir.WaitCancel(ctx)"}},
		{"the same in the first fiber", func() (program, string, func()) {
			at := line(1)
			return func(ctx context.Context, _ *Sim) { <-ctx.Done() }, at, nil
		}, []string{"fiber main waits outside of coir", "in place of <-ctx.Done(), use coir.WaitCancel(ctx)"}},
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

// A fiber holds the lock of a Cond across an operation, and other code locks it: the end of a wait, or the method Ended
// of a Watcher, which sim itself calls when it moves the clock or ends the schedule. sim reports that, and does not
// hang. Once the lock is free, no goroutine is left.
func TestAHeldCondIsTold(t *testing.T) {
	const (
		inFiber = "fiber stuck waits outside of coir, for a native mutex"
		inEnded = "the method Ended of a coir.Watcher waits outside of coir, for a native mutex"
	)
	type shared struct {
		coir.Cond
		watch        coir.Watch
		first, alarm coir.Alarm
		touched      bool
	}
	touch := func(c *shared) whenEnded { return func() { c.Lock(); c.touched = true; c.Unlock() } }
	hold := func(ctx context.Context, c *shared, d time.Duration) { c.Lock(); _ = coir.Sleep(ctx, d) }
	for name, tt := range map[string]struct {
		fn   func(ctx context.Context, n *coir.Nursery, c *shared)
		want string
	}{
		"lock": {func(_ context.Context, n *coir.Nursery, c *shared) {
			n.Go("holds", func(ctx context.Context) error { hold(ctx, c, time.Hour); return nil })
			n.Go("stuck", func(context.Context) error { touch(c)(); return nil })
		}, inFiber},
		"end of a Wait": {func(_ context.Context, n *coir.Nursery, c *shared) {
			n.Go("holds", func(ctx context.Context) error {
				_ = coir.Sleep(ctx, time.Second)
				c.Lock()
				c.Signal()
				c.Unlock()
				hold(ctx, c, time.Hour)
				return nil
			})
			n.Go("stuck", func(ctx context.Context) error {
				c.Lock()
				defer c.Unlock()
				return c.Wait(ctx)
			})
		}, inFiber},
		"end of a Wait by a cancel": {func(ctx context.Context, n *coir.Nursery, c *shared) {
			sc, cancel := coir.WithTimeout(ctx, 2*time.Second)
			_ = cancel // sc ends with ctx
			n.Go("holds", func(ctx context.Context) error {
				_ = coir.Sleep(ctx, time.Second)
				hold(ctx, c, time.Hour)
				return nil
			})
			n.Go("stuck", func(context.Context) error {
				c.Lock()
				defer c.Unlock()
				return c.Wait(sc)
			})
		}, inFiber},
		"select of a WaitCase": {func(_ context.Context, n *coir.Nursery, c *shared) {
			c.Lock()
			signal := c.WaitCase()
			c.Unlock()
			n.Go("holds", func(ctx context.Context) error { hold(ctx, c, time.Hour); return nil })
			n.Go("stuck", func(ctx context.Context) error {
				_ = coir.Sleep(ctx, time.Second)
				_, err := coir.Select(ctx, signal, coir.After(time.Second))
				return err
			})
		}, inFiber},
		"end of a select": {func(_ context.Context, n *coir.Nursery, c *shared) {
			c.Lock()
			signal := c.WaitCase()
			c.Unlock()
			n.Go("holds", func(ctx context.Context) error {
				_ = coir.Sleep(ctx, time.Second)
				hold(ctx, c, time.Hour)
				return nil
			})
			n.Go("stuck", func(ctx context.Context) error {
				_, err := coir.Select(ctx, signal, coir.After(2*time.Second))
				return err
			})
		}, inFiber},
		"Watch, when the schedule is ended": {func(ctx context.Context, n *coir.Nursery, c *shared) {
			_ = c.watch.Start(ctx, touch(c))
			n.Go("holds", func(ctx context.Context) error { hold(ctx, c, time.Hour); return nil })
			n.Go("stuck", func(ctx context.Context) error {
				_ = coir.Sleep(ctx, time.Second)
				touch(c)()
				return nil
			})
		}, inFiber},
		"fiber that goes on when the schedule is ended": {func(_ context.Context, n *coir.Nursery, c *shared) {
			n.Go("holds", func(ctx context.Context) error { hold(coir.Shield(ctx), c, time.Hour); return nil })
			n.Go("stuck", func(ctx context.Context) error {
				_ = coir.Sleep(ctx, time.Second)
				<-ctx.Done()
				touch(c)()
				return nil
			})
		}, inFiber},
		"Watch in a deadlock": {func(ctx context.Context, n *coir.Nursery, c *shared) {
			_ = c.watch.Start(ctx, touch(c))
			n.Go("holds", func(ctx context.Context) error {
				c.Lock()
				return coir.WaitCancel(ctx)
			})
		}, inEnded},
		"Watch of a context that a fiber cancels": {func(ctx context.Context, n *coir.Nursery, c *shared) {
			sc, cancel := coir.WithCancel(ctx)
			_ = c.watch.Start(sc, touch(c))
			n.Go("holds", func(ctx context.Context) error { hold(ctx, c, time.Hour); return nil })
			n.Go("cancels", func(ctx context.Context) error {
				_ = coir.Sleep(ctx, time.Second)
				cancel()
				return nil
			})
		}, inEnded},
		"Watch of a context whose time is up": {func(ctx context.Context, n *coir.Nursery, c *shared) {
			sc, cancel := coir.WithTimeout(ctx, time.Second)
			_ = cancel // sc ends with ctx
			_ = c.watch.Start(sc, touch(c))
			n.Go("holds", func(ctx context.Context) error { hold(ctx, c, time.Hour); return nil })
		}, inEnded},
		"Alarm": {func(ctx context.Context, n *coir.Nursery, c *shared) {
			c.alarm.Start(ctx, touch(c), time.Second)
			n.Go("holds", func(ctx context.Context) error { hold(ctx, c, time.Hour); return nil })
		}, inEnded},
		"Alarm after another one": {func(ctx context.Context, n *coir.Nursery, c *shared) {
			c.first.Start(ctx, whenEnded(func() {}), time.Second)
			c.alarm.Start(ctx, touch(c), 2*time.Second)
			n.Go("holds", func(ctx context.Context) error { hold(ctx, c, time.Hour); return nil })
		}, inEnded},
		"Alarm after the end of a fiber": {func(ctx context.Context, n *coir.Nursery, c *shared) {
			c.alarm.Start(ctx, touch(c), 2*time.Second)
			n.Go("holds", func(ctx context.Context) error { hold(ctx, c, time.Hour); return nil })
			n.Go("ends", func(ctx context.Context) error { return coir.Sleep(ctx, time.Second) })
		}, inEnded},
	} {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			var last atomic.Pointer[shared]
			res := Explore(func(ctx context.Context, _ *Sim) {
				c := new(shared)
				last.Store(c)
				c.Init(coir.WithName("c"))
				_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error { tt.fn(ctx, n, c); return nil })
				c.watch.Stop()
			})
			last.Load().Unlock()
			if res.Failure == nil || res.Failure.Kind != KindBlocked {
				t.Fatalf("after %d schedules: %v", res.Schedules, res.Failure)
			}
			says(t, res.Failure, tt.want, ", at sim/blocked_test.go:", "holds it across an operation of coir")
			for until := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
				if time.Now().After(until) {
					t.Fatalf("%d goroutines, and %d before:\n%s", runtime.NumGoroutine(), before, stacks())
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

// A fiber that computes for a long time, or whose wait ends in time, is not stopped.
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

// sim watches a fiber that computes for a long time. The goroutine that watches ends with the schedules, even if no
// other fiber has run since.
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

// A fiber that has switched to another waits in the switch. That native wait does not count as one of the program.
func TestASwitchIsNoNativeWait(t *testing.T) {
	seen := 0
	Test(t, func(ctx context.Context, s *Sim) {
		c := coir.NewChan[int](0)
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("parked", func(ctx context.Context) error {
				_, err := c.Recv(ctx)
				return err
			})
			n.Go("looks", func(ctx context.Context) error {
				for one := range strings.SplitSeq(string(stacks()), "\n\n") {
					if strings.Contains(one, library+".(*Chan[...]).recv(") {
						seen++
						if what, _ := nativeWait(one); what != "" {
							s.Errorf("it %s\n%s", what, one)
						}
					}
				}
				return c.Send(ctx, 1)
			})
			return nil
		})
		if err != nil {
			s.Errorf("%v", err)
		}
	}, WithSchedules(20))
	if seen == 0 {
		t.Error("no schedule looks at a fiber that is parked")
	}
}
