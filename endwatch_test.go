package coir_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
)

// calls counts what a Watch or an Alarm calls.
type calls struct {
	n   atomic.Int32
	err error
	all *sync.WaitGroup // if not nil, it is done after each call
}

func (e *calls) Ended(err error) {
	e.err = err
	e.n.Add(1)
	if e.all != nil {
		e.all.Done()
	}
}

// contextsToWatch are kinds of contexts, each with what ends it.
var contextsToWatch = map[string]func(ctx context.Context) (context.Context, func()){
	"scope": func(ctx context.Context) (context.Context, func()) {
		c, cancel := coir.WithCancel(ctx)
		return c, cancel
	},
	"scope in package context": func(ctx context.Context) (context.Context, func()) {
		c, cancel := context.WithCancel(ctx)
		in, _ := coir.WithCancel(c)
		return in, cancel
	},
	"package context": func(ctx context.Context) (context.Context, func()) {
		c, cancel := context.WithCancel(ctx)
		return c, cancel
	},
	"value": func(ctx context.Context) (context.Context, func()) {
		c, cancel := coir.WithCancel(ctx)
		return context.WithValue(c, calls{}, 1), cancel
	},
}

func TestWatchCallsWhenItsContextEnds(t *testing.T) {
	for name, c := range contextsToWatch {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := c(t.Context())
				var called, stopped calls
				var w, s coir.Watch
				for _, err := range []error{w.Start(ctx, &called), s.Start(ctx, &stopped)} {
					if err != nil {
						t.Fatal(err)
					}
				}
				if !w.Covers(ctx) {
					t.Error("it does not cover its own context")
				}
				if w.Covers(t.Context()) || w.Covers(context.Background()) {
					t.Error("it covers another context")
				}
				if !s.Stop() {
					t.Error("Stop of a watch that was on")
				}
				end()
				synctest.Wait()
				if called.n.Load() != 1 || !errors.Is(called.err, context.Canceled) || stopped.n.Load() != 0 {
					t.Errorf("called %d times with %v; the stopped one %d times", called.n.Load(), called.err, stopped.n.Load())
				}
				if w.Covers(ctx) {
					t.Error("it covers a context that has ended")
				}
				if w.Stop() {
					t.Error("Stop of a watch that has called Ended")
				}
				if err := s.Start(ctx, &stopped); !errors.Is(err, context.Canceled) {
					t.Errorf("Start in a context that has ended: %v", err)
				}
				if err := s.Start(context.Background(), &stopped); err != nil || !s.Covers(context.Background()) || !s.Stop() {
					t.Errorf("a watch of a context that never ends: %v", err)
				}
			})
		})
	}
}

// A watch ends by Stop or by Ended, and not by both, whichever way a cancellation and a Stop meet.
func TestWatchEndsOnce(t *testing.T) {
	for name, c := range contextsToWatch {
		t.Run(name, func(t *testing.T) {
			for range sized(200, 2_000, 20_000) {
				ctx, end := c(t.Context())
				var e [3]calls
				var w [3]coir.Watch
				var all sync.WaitGroup
				for i := range w {
					all.Add(1)
					e[i].all = &all
					if err := w[i].Start(ctx, &e[i]); err != nil {
						t.Fatal(err)
					}
				}
				all.Go(end)
				for i := range w {
					all.Go(func() {
						if w[i].Stop() {
							e[i].Ended(nil)
						}
					})
				}
				all.Wait()
				for i := range e {
					if n := e[i].n.Load(); n != 1 {
						t.Fatalf("watch %d has ended %d times", i, n)
					}
				}
			}
		})
	}
}

func TestAlarmCallsAtItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var called, stopped calls
		var a, s, never coir.Alarm
		a.Start(t.Context(), &called, time.Second)
		s.Start(t.Context(), &stopped, time.Second)
		if !s.Stop() || s.Stop() || never.Stop() {
			t.Error("Stop returns true once, for an alarm that was started")
		}
		time.Sleep(time.Second - 1)
		if called.n.Load() != 0 {
			t.Error("too early")
		}
		time.Sleep(time.Second)
		if called.n.Load() != 1 || !errors.Is(called.err, coir.ErrTimeout) || stopped.n.Load() != 0 {
			t.Errorf("called %d times with %v; the stopped one %d times", called.n.Load(), called.err, stopped.n.Load())
		}
		if a.Stop() {
			t.Error("Stop of an alarm that has rung")
		}
	})
}

// teller does in Ended what such types do, and more: operations that do not wait.
type teller struct {
	p    *coir.Promise[int]
	ev   *coir.Event
	c    *coir.Chan[int]
	cond *coir.Cond
}

func (e teller) Ended(err error) {
	e.cond.Lock()
	e.cond.Broadcast()
	e.cond.Unlock()
	e.p.Reject(err)
	e.ev.Set()
	_ = e.c.TrySend(1)
}

// Under sim, what Ended does is a part of the cancellation, of the end of a nursery, or of the clock's move: no
// goroutine is reported, and all waiters continue.
func TestEndedInASimulation(t *testing.T) {
	for name, start := range map[string]func(ctx context.Context, e coir.Watcher) (func(), error){
		"cancel": func(ctx context.Context, e coir.Watcher) (func(), error) {
			in, cancel := coir.WithCancel(ctx)
			return cancel, new(coir.Watch).Start(in, e)
		},
		"package context": func(ctx context.Context, e coir.Watcher) (func(), error) {
			in, cancel := context.WithCancel(ctx)
			return cancel, new(coir.Watch).Start(in, e)
		},
		"time of a scope": func(ctx context.Context, e coir.Watcher) (func(), error) {
			in, cancel := coir.WithTimeout(ctx, time.Second)
			return func() { _ = coir.Sleep(ctx, time.Minute); cancel() }, new(coir.Watch).Start(in, e)
		},
		"nursery": func(ctx context.Context, e coir.Watcher) (func(), error) {
			return func() {}, coir.Run(ctx, func(ctx context.Context, _ *coir.Nursery) error {
				return new(coir.Watch).Start(ctx, e)
			})
		},
		"alarm": func(ctx context.Context, e coir.Watcher) (func(), error) {
			new(coir.Alarm).Start(ctx, e, time.Second)
			return func() {}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			for mode, opts := range map[string][]sim.Option{
				"idle":   {sim.WithClock(sim.ClockIdle)},
				"racing": {sim.WithClock(sim.ClockRacing)},
				"dpor":   {sim.WithStrategy(func(uint64) sim.Strategy { return sim.DPOR() })},
			} {
				res := sim.Explore(func(ctx context.Context, s *sim.Sim) {
					e := teller{coir.NewPromise[int](), coir.NewEvent(), coir.NewChan[int](1), coir.NewCond()}
					var ok atomic.Int32
					err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
						n.Go("promise", func(ctx context.Context) error {
							_, err := e.p.Wait(ctx)
							if errors.Is(err, context.Canceled) || errors.Is(err, coir.ErrTimeout) {
								ok.Add(1)
								return nil
							}
							return err
						})
						n.Go("event", func(ctx context.Context) error { ok.Add(1); return e.ev.Wait(ctx) })
						n.Go("channel", func(ctx context.Context) error {
							ok.Add(1)
							_, err := e.c.Recv(ctx)
							return err
						})
						n.Go("starter", func(ctx context.Context) error {
							end, err := start(ctx, e)
							end()
							return err
						})
						return nil
					})
					if err != nil || ok.Load() != 3 {
						s.Errorf("%d, %v", ok.Load(), err)
					}
				}, append(opts, sim.WithSchedules(undersim()))...)
				if res.Failure != nil {
					t.Fatalf("%s: %v", mode, res.Failure)
				}
			}
		})
	}
}

func undersim() int { return sized(100, 500, 20_000) }
