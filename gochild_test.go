package coir_test

import (
	"context"
	"errors"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"runtime"
	"runtime/pprof"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/coro"
	"github.com/coir-go/coir/sim"
)

// reporter is the way in which a program of everywhere reports failures.
type reporter interface {
	Errorf(format string, args ...any)
}

// everywhere runs a program several times outside of bubbles, in a bubble of testing/synctest, and under simulation. It
// checks that no goroutines are left.
func everywhere(t *testing.T, program func(ctx context.Context, r reporter)) {
	t.Helper()
	t.Run("plain", func(t *testing.T) {
		left := goroutines(t)
		for range sized(10, 100, 1000) {
			program(t.Context(), t)
		}
		left()
	})
	t.Run("bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { program(t.Context(), t) })
	})
	t.Run("sim", func(t *testing.T) {
		h := fnv.New64a()
		_, _ = io.WriteString(h, t.Name())
		sim.Test(t, func(ctx context.Context, s *sim.Sim) { program(ctx, s) },
			sim.WithSeed(h.Sum64()), sim.WithSchedules(sized(250, 2_500, 50_000)))
	})
}

// A child on a goroutine has what every child has: a name, a site, a number, a context, an end.
//
// Spec: FB-35 (a child on a goroutine is a child like any other)
func TestChildOnGoroutine(t *testing.T) {
	everywhere(t, func(ctx context.Context, r reporter) {
		value := 0
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			f := n.Go("native", func(ctx context.Context) error {
				if self := coir.Self(ctx); self == nil || self.Name() != "native[3]" {
					r.Errorf("Self returned %v", self)
				}
				if self := coir.Self(context.Background()); self == nil || self.State() != coir.StateActive {
					r.Errorf("under another context Self returned %v", self)
				}
				value = 42
				return errA
			}, coir.WithGoroutine(), coir.WithIndex(3))
			if !strings.Contains(f.SpawnSite(), "gochild_test.go:") || f.ID() == 0 {
				r.Errorf("its site is %q, its number %d", f.SpawnSite(), f.ID())
			}
			shielded := coir.Shield(ctx)
			var end error
			if _, err := coir.Select(shielded, f.DoneCase(&end)); err != nil || !errors.Is(end, errA) {
				r.Errorf("a select returned %v, %v", end, err)
			}
			if err := f.Wait(shielded); !errors.Is(err, errA) || value != 42 || f.State() != coir.StateEnded {
				r.Errorf("Wait returned %v, the value is %d, the state %v", err, value, f.State())
			}
			return nil
		})
		if !errors.Is(err, errA) {
			r.Errorf("Run returned %v", err)
		}
	})
}

// The operations of a child on a goroutine end with its nursery, whatever context they are given.
//
// Spec: FB-35 (a child on a goroutine is a child like any other)
func TestCancelReachesGoroutineChildren(t *testing.T) {
	everywhere(t, func(ctx context.Context, r reporter) {
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			never := coir.NewChan[int](0)
			for i, wait := range []func(ctx context.Context) error{
				func(ctx context.Context) error { _, err := never.Recv(ctx); return err },
				func(ctx context.Context) error { return coir.WaitCancel(ctx) },
				func(ctx context.Context) error {
					in, cancel := coir.WithTimeout(ctx, time.Hour)
					defer cancel()
					_, err := never.Recv(in)
					return err
				},
				func(ctx context.Context) error {
					in, cancel := context.WithCancel(ctx)
					defer cancel()
					_, err := coir.Select(in, never.RecvCase(nil), coir.After(time.Hour))
					return err
				},
				func(ctx context.Context) error {
					return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
						n.Go("inner", func(ctx context.Context) error { return coir.Sleep(ctx, time.Hour) }, coir.WithGoroutine())
						return nil
					})
				},
			} {
				n.Go("waits", func(ctx context.Context) error {
					err := wait(ctx)
					if !isCancelFor(err, errStop) {
						r.Errorf("%d returned %v", i, err)
					}
					return err
				}, coir.WithGoroutine(), coir.WithIndex(i))
			}
			n.Go("fails", func(context.Context) error { return errStop }, coir.WithGoroutine())
			return nil
		})
		if err != errStop { //nolint:errorlint // the others only say that they were cancelled
			r.Errorf("Run returned %v", err)
		}
	})
}

// A panic or a Goexit on a goroutine ends as in a fiber.
//
// Spec: FB-35 (a child on a goroutine is a child like any other)
func TestPanicOfAGoroutineChild(t *testing.T) {
	everywhere(t, func(ctx context.Context, r reporter) {
		defer func() {
			pe, ok := recover().(*coir.PanicError)
			if !ok || pe.Fiber != "native" || pe.Value != "oops" || !strings.Contains(string(pe.Stack), "TestPanicOfAGoroutineChild") {
				r.Errorf("Run panicked with %v", pe)
			}
		}()
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("native", func(context.Context) error { panic("oops") }, coir.WithGoroutine())
			n.Go("sibling", func(ctx context.Context) error { return coir.WaitCancel(ctx) })
			return nil
		})
		r.Errorf("Run returned %v", err)
	})
}

// Spec: FB-35 (a child on a goroutine is a child like any other)
func TestGoexitOfAGoroutineChild(t *testing.T) {
	everywhere(t, func(ctx context.Context, r reporter) {
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			f := n.Go("native", func(context.Context) error {
				runtime.Goexit()
				return nil
			}, coir.WithGoroutine())
			if err := f.Wait(ctx); !errors.Is(err, coir.ErrGoexit) {
				r.Errorf("Wait returned %v", err)
			}
			return ctx.Err()
		})
		if err != nil {
			r.Errorf("Run returned %v", err)
		}
	})
}

// What fails in a nursery that a child's Goexit leaves comes out of the child's own nursery.
func TestGoexitInARunOfAGoroutineChild(t *testing.T) {
	everywhere(t, func(ctx context.Context, r reporter) {
		err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			f := n.Go("native", func(ctx context.Context) error {
				return coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
					_ = n.Go("fails", func(context.Context) error { return errA }).Wait(coir.Shield(ctx))
					runtime.Goexit()
					return nil
				})
			}, coir.WithGoroutine())
			if err := f.Wait(coir.Shield(ctx)); !errors.Is(err, coir.ErrGoexit) || !errors.Is(err, errA) {
				r.Errorf("Wait returned %v", err)
			}
			return nil
		})
		if !errors.Is(err, errA) {
			r.Errorf("Run returned %v", err)
		}
	})
}

// A panic in a deferred function, while a Goexit is under way, is a panic.
func TestPanicDuringGoexitOfAGoroutineChild(t *testing.T) {
	everywhere(t, func(ctx context.Context, r reporter) {
		defer func() {
			if pe, ok := recover().(*coir.PanicError); !ok || pe.Value != "late" {
				r.Errorf("Run panicked with %v", pe)
			}
		}()
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("native", func(context.Context) error {
				defer func() { panic("late") }()
				runtime.Goexit()
				return nil
			}, coir.WithGoroutine())
			return nil
		})
		r.Errorf("Run returned %v", err)
	})
}

// A limit counts fibers and goroutines alike, and a child gives up its place while it waits for another, however it
// waits.
//
// Spec: NU-14 (Limit bounds the children that run)
// Spec: NU-15 (a child that waits for children gives its place up)
func TestLimitOfGoroutineChildren(t *testing.T) {
	type child = func(context.Context) error
	for _, c := range []struct {
		name  string
		waits func(ctx context.Context, n *coir.Nursery, f child) error
	}{
		{"wait", func(ctx context.Context, n *coir.Nursery, f child) error {
			return n.Go("other", f, coir.WithGoroutine()).Wait(ctx)
		}},
		{"wait for a fiber", func(ctx context.Context, n *coir.Nursery, f child) error { return n.Go("other", f).Wait(ctx) }},
		{"scope", func(ctx context.Context, n *coir.Nursery, f child) error {
			in, cancel := coir.WithCancel(ctx)
			defer cancel()
			return n.Go("other", f, coir.WithGoroutine()).Wait(in)
		}},
		{"select", func(ctx context.Context, n *coir.Nursery, f child) error {
			var err error
			if _, sel := coir.Select(ctx, n.Go("other", f, coir.WithGoroutine()).DoneCase(&err)); sel != nil {
				return sel
			}
			return err
		}},
		{"selector", func(ctx context.Context, n *coir.Nursery, f child) error {
			s := coir.NewSelector()
			defer s.Clear()
			s.Add(n.Go("other", f, coir.WithGoroutine()).DoneCase(nil))
			_, err := s.Wait(ctx)
			return err
		}},
		{"nested run", func(ctx context.Context, n *coir.Nursery, f child) error {
			return coir.Run(ctx, func(_ context.Context, in *coir.Nursery) error {
				in.Go("inner", func(ctx context.Context) error { return n.Go("other", f).Wait(ctx) }, coir.WithGoroutine())
				return nil
			})
		}},
		{"nested body", func(ctx context.Context, n *coir.Nursery, f child) error {
			return coir.Run(ctx, func(ctx context.Context, _ *coir.Nursery) error {
				return n.Go("other", f, coir.WithGoroutine()).Wait(ctx)
			})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			everywhere(t, func(ctx context.Context, r reporter) {
				var now, ended atomic.Int32
				work := func(ctx context.Context) error {
					if at := now.Add(1); at > 1 {
						r.Errorf("%d at once, under a limit of one", at)
					}
					err := coir.Yield(ctx)
					now.Add(-1)
					ended.Add(1)
					return err
				}
				err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
					n.Limit(1)
					for range 2 {
						n.Go("waits", func(ctx context.Context) error {
							if err := work(ctx); err != nil {
								return err
							}
							if err := c.waits(ctx, n, work); err != nil {
								return err
							}
							return work(ctx) // it has a place again
						}, coir.WithGoroutine())
					}
					return nil
				})
				if err != nil || ended.Load() != 6 {
					r.Errorf("%d ended, %v", ended.Load(), err)
				}
			})
		})
	}
}

// The function of a Run that a child on a goroutine has called uses the child's place while it runs.
func TestRunOfAGoroutineChildKeepsThePlace(t *testing.T) {
	everywhere(t, func(ctx context.Context, r reporter) {
		var now atomic.Int32
		work := func(ctx context.Context) error {
			if now.Add(1) > 1 {
				r.Errorf("two at once, under a limit of one")
			}
			defer now.Add(-1)
			return coir.Yield(ctx)
		}
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Limit(1)
			for range 3 {
				n.Go("opens", func(ctx context.Context) error {
					return coir.Run(ctx, func(ctx context.Context, _ *coir.Nursery) error { return work(ctx) })
				}, coir.WithGoroutine())
				n.Go("works", work)
			}
			return nil
		})
		if err != nil {
			r.Errorf("Run returned %v", err)
		}
	})
}

// Random trees of children, some fibers and some on goroutines, some of which fail: each runs once, a limit holds, and
// Run returns the errors of those that failed before the cancellation.
func TestRandomTreesOfGoroutineChildren(t *testing.T) {
	everywhere(t, func(ctx context.Context, r reporter) {
		seed := rand.Uint64()
		if s, ok := r.(*sim.Sim); ok {
			seed = uint64(s.Intn(1000))
		}
		var mu sync.Mutex
		rng := rand.New(rand.NewPCG(seed, 0))
		draw := func(n int) int {
			mu.Lock()
			defer mu.Unlock()
			return rng.IntN(n)
		}
		var begun, ended, now, failed atomic.Int32
		places := 1 + draw(3)
		var grow func(n *coir.Nursery, limited bool, depth int)
		grow = func(n *coir.Nursery, limited bool, depth int) {
			for range 1 + draw(3) {
				var opts []coir.FiberOption
				if draw(2) == 0 {
					opts = append(opts, coir.WithGoroutine())
				}
				begun.Add(1)
				n.Go("child", func(ctx context.Context) error {
					defer ended.Add(1)
					if limited {
						if at := now.Add(1); int(at) > places {
							r.Errorf("seed %d: %d at once under a limit of %d", seed, at, places)
						}
					}
					_ = coir.Yield(ctx)
					if limited {
						now.Add(-1)
					}
					switch what := draw(6); {
					case what == 0:
						failed.Add(1)
						return errA
					case what < 3 && depth < 2:
						return coir.Run(ctx, func(_ context.Context, in *coir.Nursery) error {
							grow(in, false, depth+1)
							return nil
						})
					case what == 3 && depth < 2:
						grow(n, limited, depth+1)
					}
					return nil
				}, opts...)
			}
		}
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Limit(places)
			grow(n, true, 0)
			return nil
		})
		if begun.Load() != ended.Load() || (err != nil) != (failed.Load() > 0) || err != nil && !errors.Is(err, errA) {
			r.Errorf("seed %d: %d began, %d ended, %d failed, Run returned %v",
				seed, begun.Load(), ended.Load(), failed.Load(), err)
		}
	})
}

// A thousand children that block natively do not hold up the fibers, and none needs a worker.
func TestGoroutineChildrenNeedNoWorkers(t *testing.T) {
	rt := one(t)
	gate := make(chan struct{})
	err := rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		for range 1000 {
			n.Go("blocks", func(context.Context) error {
				<-gate
				return nil
			}, coir.WithGoroutine())
		}
		if err := n.Go("fiber", func(ctx context.Context) error { return coir.Sleep(ctx, time.Millisecond) }).Wait(ctx); err != nil {
			return err
		}
		if s := rt.Stats(); s.OnGoroutine != 1000 || s.Workers != 1 || s.Spawned != 1002 {
			t.Errorf("the statistics say %+v", s)
		}
		close(gate)
		return nil
	})
	if s := rt.Stats(); err != nil || s.OnGoroutine != 0 || s.Spawned != 1002 {
		t.Errorf("afterwards the statistics say %+v, %v", s, err)
	}
	eventually(t, "that all have ended", func() bool { return rt.Stats().Ended == 1002 })
}

// A child on a goroutine may lock its thread, and wait in coir with it.
func TestGoroutineChildMayLockItsThread(t *testing.T) {
	err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		ch := coir.NewChan[int](0)
		n.Go("locked", func(ctx context.Context) error {
			runtime.LockOSThread() // and ends with it: then Go ends the thread
			return ch.Send(ctx, 1)
		}, coir.WithGoroutine())
		_, err := ch.Recv(ctx)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A child in line is pending; one that runs is active, also while it waits.
func TestStateOfGoroutineChildren(t *testing.T) {
	err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Limit(1)
		gate := make(chan struct{})
		first := n.Go("first", func(context.Context) error { <-gate; return nil }, coir.WithGoroutine())
		second := n.Go("second", func(context.Context) error { return nil }, coir.WithGoroutine())
		eventually(t, "that it runs", func() bool { return first.State() == coir.StateActive })
		if s := second.State(); s != coir.StatePending {
			t.Errorf("a child in line is %v", s)
		}
		close(gate)
		return second.Wait(ctx)
	})
	if err != nil {
		t.Error(err)
	}
}

// Run in a child on a goroutine is on the runtime of the child, also while that is being closed.
func TestRunOfAGoroutineChildStaysOnItsRuntime(t *testing.T) {
	rt := coir.NewRuntime(coir.WithWorkers(1))
	running, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		err := rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
			n.Go("native", func(ctx context.Context) error {
				close(running)
				_ = coir.WaitCancel(ctx) // by Close
				before := rt.Stats().Spawned
				err := coir.Run(coir.Shield(ctx), func(_ context.Context, n *coir.Nursery) error {
					n.Go("inner", noop)
					return nil
				})
				if got := rt.Stats().Spawned - before; err != nil || got != 2 {
					t.Errorf("the runtime has started %d more, %v", got, err)
				}
				return nil
			}, coir.WithGoroutine())
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}()
	<-running
	if err := rt.Close(context.Background()); err != nil {
		t.Error(err)
	}
	<-ended
	if err := rt.Run(context.Background(), nothing); !errors.Is(err, coir.ErrClosed) {
		t.Errorf("after Close Run returned %v", err)
	}
}

// What a fiber must not do, a child on a goroutine must not do either.
func TestMistakesOfGoroutineChildren(t *testing.T) {
	rt := newRuntime(t)
	err := rt.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		n.Go("native", func(ctx context.Context) error {
			if err := coir.Self(ctx).Wait(ctx); err == nil || !strings.Contains(err.Error(), "fiber native waits for itself") {
				t.Errorf("a wait for itself returned %v", err)
			}
			panicsWith(t, "Runtime.Close called by one of its own fibers, native", func() { _ = rt.Close(ctx) })
			return nil
		}, coir.WithGoroutine())
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A child on a goroutine has the labels of its spawner, also if a sibling's end starts it.
//
// Spec: FB-34 (labels are inherited and not left behind)
func TestLabelsOfGoroutineChildren(t *testing.T) {
	err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		n.Limit(1)
		for _, name := range []string{"one", "another", ""} {
			spawn := func(context.Context) {
				labels := coro.Labels()
				n.Go("native", func(context.Context) error {
					if coro.Labels() != labels {
						t.Errorf("child %q does not have its spawner's labels", name)
					}
					return nil
				}, coir.WithGoroutine())
			}
			if name == "" {
				spawn(ctx)
			} else {
				pprof.Do(ctx, pprof.Labels("of", name), spawn)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Time in a bubble is the bubble's for a child on a goroutine, in coir and natively.
func TestGoroutineChildInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		err := coir.Run(t.Context(), func(_ context.Context, n *coir.Nursery) error {
			n.Go("native", func(ctx context.Context) error {
				time.Sleep(time.Hour)
				return coir.Sleep(ctx, time.Hour)
			}, coir.WithGoroutine())
			return nil
		})
		if d := time.Since(start); err != nil || d != 2*time.Hour {
			t.Errorf("took %v, %v", d, err)
		}
	})
}
