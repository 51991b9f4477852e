package coir_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/invariant"
	"github.com/coir-go/coir/sim"
)

// The number of waits that end without an error is the number of calls of Signal that returned true, even with
// concurrent cancellations and deadlines. The waits are made by fibers, goroutines and selects.
//
// The Cond's own lock guards the counts.
func TestCondContractUnderSimulation(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		c := coir.NewCond(coir.WithName("change"))
		signalled, ended := 0, 0
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			for i := range 3 {
				n.Go("waiter", func(ctx context.Context) error {
					in, cancel := coir.WithTimeout(ctx, 5)
					defer cancel()
					c.Lock()
					defer c.Unlock()
					if c.Wait(in) == nil {
						ended++
					}
					return nil
				}, coir.WithIndex(i))
			}
			n.Go("signaller", func(ctx context.Context) error {
				for range 2 {
					if err := coir.Sleep(ctx, 5); err != nil {
						return err
					}
					c.Lock()
					if c.Signal() {
						signalled++
					}
					c.Unlock()
				}
				return nil
			})
			return nil
		})
		if signalled != ended {
			s.Errorf("%d signals, %d waits ended by one", signalled, ended)
		}
		c.Lock()
		defer c.Unlock()
		if n := c.Len(); n != 0 {
			s.Errorf("%d still wait", n)
		}
	}, sim.WithSchedules(2500), sim.WithClock(sim.ClockRacing))
}

// A buffer of one on a Cond: nothing is lost or doubled, also if a reader selects.
func TestCondBufferUnderSimulation(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		const values = 3
		var c coir.Cond
		full, value, closed := false, 0, false
		stop := coir.NewEvent(coir.WithName("stop"))
		got := make([]int, values)
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			take := func() {
				got[value]++
				full = false
				c.Broadcast()
			}
			n.Go("waits", func(ctx context.Context) error {
				c.Lock()
				defer c.Unlock()
				for {
					for !full && !closed {
						if err := c.Wait(ctx); err != nil {
							return err
						}
					}
					if !full {
						return nil
					}
					take()
				}
			})
			n.Go("selects", func(ctx context.Context) error {
				for {
					c.Lock()
					if full {
						take()
					}
					change := c.WaitCase()
					c.Unlock()
					if i, err := coir.Select(ctx, change, stop.DoneCase()); i != 0 {
						return err
					}
				}
			})
			n.Go("writes", func(ctx context.Context) error {
				defer stop.Set()
				c.Lock()
				defer c.Unlock()
				for i := range values {
					for full {
						if err := c.Wait(ctx); err != nil {
							return err
						}
					}
					full, value = true, i
					c.Broadcast()
				}
				for full {
					if err := c.Wait(ctx); err != nil {
						return err
					}
				}
				closed = true
				c.Broadcast()
				return nil
			})
			return nil
		})
		for i, n := range got {
			if n != 1 {
				s.Errorf("value %d was taken %d times", i, n)
			}
		}
	}, sim.WithSchedules(2500))
}

// A signal goes to the first waiter. A Broadcast ends all waits, and counts them.
func TestCondOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c coir.Cond
		var order []int
		err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
			for i := range 5 {
				n.Go("waiter", func(ctx context.Context) error {
					c.Lock()
					defer c.Unlock()
					err := c.Wait(ctx)
					order = append(order, i)
					return err
				}, coir.WithIndex(i))
				blocking(ctx, synctest.Wait) // there may be one worker
			}
			for range 2 {
				c.Lock()
				if !c.Signal() {
					t.Error("Signal found no waiter")
				}
				c.Unlock()
				blocking(ctx, synctest.Wait) // there may be one worker
			}
			c.Lock()
			if n := c.Broadcast(); n != 3 {
				t.Errorf("Broadcast ended %d waits, want 3", n)
			}
			if c.Signal() || c.Broadcast() != 0 {
				t.Error("there is still a waiter")
			}
			c.Unlock()
			return nil
		})
		if err != nil || len(order) != 5 || order[0] != 0 || order[1] != 1 {
			t.Errorf("order %v, %v", order, err)
		}
	})
}

// Goroutines and fibers wait at the same Cond, and a context that has ended is found before and during a wait. In each
// case the caller has the lock when Wait returns.
func TestCondEndsOfContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c coir.Cond
		for _, fiber := range []bool{false, true} {
			body := func(ctx context.Context) {
				ctx, cancel := context.WithCancel(ctx)
				var wg sync.WaitGroup
				wg.Go(func() {
					synctest.Wait()
					cancel()
				})
				for range 2 { // during the wait, and before it
					c.Lock()
					if err := c.Wait(ctx); !errors.Is(err, context.Canceled) {
						t.Errorf("fiber %v: %v", fiber, err)
					}
					c.Unlock()
				}
				wg.Wait()
			}
			if !fiber {
				body(t.Context())
				continue
			}
			err := coir.Run(t.Context(), func(ctx context.Context, _ *coir.Nursery) error {
				body(ctx)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
		c.Lock()
		if c.Len() != 0 {
			t.Error("a waiter is left")
		}
		c.Unlock()
	})
}

func TestCondString(t *testing.T) {
	if got, want := coir.NewCond(coir.WithName("change")).String(), "coir.Cond(change, 0 waiting)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSelectorRefusesCond(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	coir.NewSelector().Add(new(coir.Cond).WaitCase())
}

func TestCondAllocatesNothing(t *testing.T) {
	if invariant.Enabled || raceEnabled {
		t.Skip("these builds allocate")
	}
	if hidesNothing() {
		t.Skip("in this build to find out who waits allocates")
	}
	_ = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		const rounds = 100
		var c coir.Cond
		turn, stop := 0, false
		n.Go("peer", func(ctx context.Context) error {
			c.Lock()
			defer c.Unlock()
			for !stop {
				for turn%2 == 0 && !stop {
					if err := c.Wait(ctx); err != nil {
						return err
					}
				}
				turn++
				c.Signal()
			}
			return nil
		})
		allocs := testing.AllocsPerRun(rounds, func() {
			c.Lock()
			for turn%2 != 0 {
				_ = c.Wait(ctx)
			}
			turn++
			c.Signal()
			c.Unlock()
		})
		c.Lock()
		stop = true
		c.Broadcast()
		c.Unlock()
		if allocs != 0 {
			t.Errorf("%v allocations", allocs)
		}
		return nil
	})
}

// locker is a Watcher that locks a Cond.
type locker struct{ *coir.Cond }

func (l locker) Ended(error) {
	l.Lock()
	l.Broadcast()
	l.Unlock()
}

// A Watcher may lock a Cond whose waiters wait under the same context, or one derived from it: Wait does not call it
// with the lock held.
func TestCondWithAWatcherThatLocksIt(t *testing.T) {
	type key struct{}
	for name, derive := range map[string]func(context.Context) (context.Context, context.CancelFunc){
		"itself":             func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} },
		"coir.WithCancel":    coir.WithCancel,
		"context.WithCancel": context.WithCancel,
		"context.WithTimeout": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Hour)
		},
		"context.WithValue": func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithValue(ctx, key{}, 1), func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			for range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				c := coir.NewCond()
				err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
					var w coir.Watch
					if err := w.Start(ctx, locker{c}); err != nil {
						return err
					}
					defer w.Stop()
					in, stop := derive(ctx)
					defer stop()
					c.Lock()
					defer c.Unlock()
					cancel()
					return c.Wait(in)
				})
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Fatal(err)
				}
			}
		})
	}
}

// ownContext is a context with a Done channel and an Err of its own. Package context starts no goroutine for it.
type ownContext struct {
	context.Context
	done chan struct{}
	err  func() error
}

func (c *ownContext) Done() <-chan struct{}        { return c.done }
func (c *ownContext) Err() error                   { return c.err() }
func (c *ownContext) AfterFunc(func()) func() bool { return func() bool { return true } }
func (c *ownContext) Deadline() (time.Time, bool)  { return time.Time{}, false }
func (c *ownContext) ended() (closed bool) {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// If a method of the context panics or exits, the lock is held, so the caller's deferred Unlock finds it so.
func TestCondIsLockedAfterAPanic(t *testing.T) {
	for name, leave := range map[string]func(){"panic": func() { panic("broken") }, "Goexit": runtime.Goexit} {
		for _, inFiber := range []bool{false, true} {
			t.Run(fmt.Sprint(name, inFiber), func(t *testing.T) {
				c := coir.NewCond()
				outer := &ownContext{Context: context.Background(), done: make(chan struct{})}
				outer.err = func() error {
					if outer.ended() {
						leave()
					}
					return nil
				}
				wait := func(context.Context, *coir.Nursery) error {
					in, stop := coir.WithCancel(outer)
					_ = stop
					defer func() { _ = recover() }()
					c.Lock()
					defer c.Unlock()
					close(outer.done)
					return c.Wait(in)
				}
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					if inFiber {
						_ = coir.Run(context.Background(), wait)
					} else {
						_ = wait(nil, nil)
					}
				}()
				<-ended
				if !c.TryLock() || c.Len() != 0 {
					t.Errorf("the lock is held, or somebody waits: %v", c.Len())
				}
			})
		}
	}
}

// A fiber waits in a scope inside a context that has not ended, although it has the values of a scope that has.
func TestCondInADetachedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := coir.NewCond()
	_ = coir.Run(ctx, func(ctx context.Context, _ *coir.Nursery) error {
		outer := &ownContext{Context: ctx, done: make(chan struct{}), err: func() error { return nil }}
		in, stop := coir.WithCancel(outer)
		defer stop()
		cancel()
		var signalled sync.WaitGroup
		defer signalled.Wait()
		signalled.Go(func() {
			for n := 0; n == 0; runtime.Gosched() {
				c.Lock()
				n = c.Broadcast()
				c.Unlock()
			}
		})
		c.Lock()
		defer c.Unlock()
		if err := c.Wait(in); err != nil {
			t.Error(err)
		}
		return nil
	})
}

// Signal and Len count a waiter that looks at its context, and its signal is not lost if the context has ended, or if a
// method of it panics.
func TestCondSignalsAWaiterThatIsAway(t *testing.T) {
	for _, how := range []string{"waits", "ended", "panics"} {
		t.Run(how, func(t *testing.T) {
			c := coir.NewCond()
			other := make(chan error, 1)
			ctx := &ownContext{Context: context.Background(), done: make(chan struct{})}
			asked := false
			ctx.err = func() error {
				if asked { // context.Cause asks again
					return context.Canceled
				}
				asked = true
				c.Lock()
				if n := c.Len(); n != 1 || !c.Signal() || c.Len() != 0 || c.Signal() {
					t.Errorf("%d wait, then %d", n, c.Len())
				}
				c.Unlock()
				switch how {
				case "ended":
					return context.Canceled
				case "panics":
					go func() {
						c.Lock()
						other <- c.Wait(context.Background())
						c.Unlock()
					}()
					for !strings.Contains(c.String(), ", 1 waiting") {
						runtime.Gosched()
					}
					panic("broken")
				}
				return nil
			}
			defer func() {
				_ = recover()
				if how == "panics" {
					if err := <-other; err != nil {
						t.Error(err)
					}
				}
				if !c.TryLock() || c.Len() != 0 || c.Broadcast() != 0 {
					t.Error("the lock is held, or somebody waits")
				}
			}()
			c.Lock()
			defer c.Unlock()
			if err := c.Wait(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}
