package coir_test

// The costs of operations on channels: no scheduling without need, no allocation, and no memory kept for values that
// have left.

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/invariant"
)

// A channel, and the fibers and goroutines that used it, keep no reference to a value that has left: one that was
// received, dropped, or not sent because the send failed.
func TestNothingIsKeptOfAValueThatLeft(t *testing.T) {
	type thing struct{ _ [64]byte }
	claimInTime(t, everyRow, func(s *stage) {
		c := coir.NewChan[*thing](s.capacity, coir.WithOverflow(s.over))
		var things []weak.Pointer[thing]
		fresh := func() *thing {
			p := new(thing)
			things = append(things, weak.Make(p))
			return p
		}
		fill := func() {
			n := 1
			if s.bounded() {
				n = max(s.capacity, 1)
			}
			for range n {
				_ = c.TrySend(fresh())
			}
		}
		empty := func() {
			for _, err := c.TryRecv(); err == nil; _, err = c.TryRecv() {
			}
		}
		// Kept and received, dropped, or refused: for lack of room or time, or because of a context that is done.
		refused := s.start(s.sender, func(ctx context.Context, a *player) {
			fill()
			_ = c.SendTimeout(ctx, fresh(), time.Millisecond)
			a.cancel(errWhy)
			_ = c.Send(ctx, fresh())
		})
		s.allEnded([]*player{refused}, nil)
		empty()
		// Given to a waiting receiver.
		receiver := s.start(s.receiver, func(ctx context.Context, a *player) { _, a.err = c.Recv(ctx) })
		s.until("it waits", func() bool { return c.Stats().Recv.Waiting == 1 })
		_ = c.TrySend(fresh())
		s.allEnded([]*player{receiver}, nil)
		// Taken from a waiting sender.
		if s.waits() {
			sender := s.start(s.sender, func(ctx context.Context, a *player) { fill(); a.err = c.Send(ctx, fresh()) })
			s.until("it waits", func() bool { return c.Stats().Send.Waiting == 1 })
			empty()
			s.allEnded([]*player{sender}, nil)
		}
		c.Close()
		_ = c.TrySend(fresh())
		s.until("the values are collected", func() bool {
			runtime.GC()
			return !slices.ContainsFunc(things, func(p weak.Pointer[thing]) bool { return p.Value() != nil })
		})
		runtime.KeepAlive(c)
	})
}

// An operation that need not wait does not touch the scheduler.
//
// Spec: CH-43 (a fast operation leaves the scheduler alone)
// Spec: PK-26 (a condition that holds needs no park)
func TestOperationsThatNeedNotWaitDoNotSwitch(t *testing.T) {
	rt := one(t)
	err := rt.Run(t.Context(), func(ctx context.Context, _ *coir.Nursery) error {
		for _, k := range kinds[1:] {
			c := coir.NewChan[int](k.capacity)
			_ = coir.Yield(ctx) // a fresh budget
			before := rt.Stats()
			for i := range 30 {
				err := c.Send(ctx, i)
				_, err2 := c.Recv(ctx)
				err3 := c.SendTimeout(ctx, i, time.Hour)
				_, err4 := c.RecvTimeout(ctx, time.Hour)
				if err := errors.Join(err, err2, err3, err4); err != nil {
					return err
				}
			}
			if after := rt.Stats(); after.Switches != before.Switches || after.Woken != before.Woken {
				t.Errorf("%s: %d switches and %d wakes", k.name, after.Switches-before.Switches, after.Woken-before.Woken)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A fiber that never has to wait still lets others run.
//
// Spec: SC-20 (a fiber yields after 128 operations)
func TestOperationsThatNeedNotWaitLetOthersRun(t *testing.T) {
	contexts := map[string]func(context.Context) context.Context{
		"own":     func(ctx context.Context) context.Context { return ctx },
		"foreign": func(context.Context) context.Context { return context.Background() },
	}
	for _, over := range policies {
		for name, in := range contexts {
			for _, full := range []bool{false, true} {
				if full && over == coir.OverflowWait {
					continue
				}
				t.Run(fmt.Sprintf("%v/%s/full %v", over, name, full), func(t *testing.T) {
					rt := one(t)
					err := rt.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
						c := coir.NewChan[int](1, coir.WithOverflow(over))
						_ = c.TrySend(0)
						var turns atomic.Int64
						var over atomic.Bool
						n.Go("other", func(ctx context.Context) error {
							for !over.Load() && coir.Yield(ctx) == nil {
								turns.Add(1)
							}
							return nil
						})
						for range 2_000 {
							if !full {
								_, _ = c.Recv(in(ctx))
							}
							_ = c.Send(in(ctx), 0)
						}
						// On a busy machine, a worker that was found held has given the other fiber away, and first continues with its
						// own.
						if n, held := turns.Load(), int64(rt.Stats().Replaced); n < 2_000/128-1-2*held {
							t.Errorf("another fiber had %d turns in 2000 operations", n)
						}
						over.Store(true)
						return nil
					})
					if err != nil {
						t.Error(err)
					}
				})
			}
		}
	}
}

// Waiting for a deadline is a park with a timer: no switch happens until the deadline has passed.
//
// Spec: CH-27 (a timed wait never polls)
func TestTimedWaitDoesNotPoll(t *testing.T) {
	rt := one(t)
	err := rt.Run(t.Context(), func(ctx context.Context, _ *coir.Nursery) error {
		c := coir.NewChan[int](0)
		before := rt.Stats()
		_, err := c.RecvTimeout(ctx, 20*time.Millisecond)
		err2 := c.SendTimeout(ctx, 1, 20*time.Millisecond)
		after := rt.Stats()
		if n := after.Switches - before.Switches; n > 8 || after.Woken-before.Woken > 2 {
			t.Errorf("two waits made %d switches and %d wakes", n, after.Woken-before.Woken)
		}
		return all(coir.ErrTimeout, err, err2)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A producer that waits at a full channel does not hold its worker: the only worker continues with other fibers, among
// them the consumer that makes room.
//
// Spec: CH-53 (a held-back producer holds no worker)
// Spec: FB-19 (an operation parks the fiber, not the worker)
func TestProducerThatIsHeldBackHoldsNoWorker(t *testing.T) {
	for _, k := range kinds[:3] {
		onOne(t, func(ctx context.Context, n *coir.Nursery) error {
			c := coir.NewChan[int](k.capacity)
			var produced atomic.Int64
			n.Go("producer", func(ctx context.Context) error {
				defer c.Close()
				for i := range 100 {
					if err := c.Send(ctx, i); err != nil {
						return err
					}
					produced.Add(1)
				}
				return nil
			})
			yieldUntil(ctx, t, "the producer is held back", func() bool { return c.Stats().Send.Waiting == 1 })
			for range 50 {
				if err := coir.Yield(ctx); err != nil {
					return err
				}
			}
			if n := int(produced.Load()); n != k.capacity {
				t.Errorf("%s: %d were produced before there was a consumer", k.name, n)
			}
			if got, err := collect(c.All(ctx)); err != nil || len(got) != 100 || produced.Load() != 100 {
				t.Errorf("%s: %d produced, %d consumed: %v", k.name, produced.Load(), len(got), err)
			}
			return nil
		}, nil)
	}
}

// In the steady state nothing is allocated: neither by operations that wait nor by others, with a time limit or
// without, nor by one fiber on channels of several types.
//
// Spec: CH-49 (a blocking operation allocates nothing)
func TestOperationsAllocateNothing(t *testing.T) {
	if raceEnabled || invariant.Enabled {
		t.Skip("the checks of this build allocate")
	}
	var byAsking uint64
	onOne(t, func(ctx context.Context, _ *coir.Nursery) error {
		byAsking = allocations(func() { _ = coir.Yield(ctx) })
		return nil
	}, nil)
	if byAsking > 50 {
		t.Skip("without assembly, finding out who calls allocates")
	}
	for _, k := range kinds {
		for _, timed := range []bool{false, true} {
			for _, as := range callers[:4] {
				t.Run(fmt.Sprintf("%s/timed %v/%v to %v", k.name, timed, as[0], as[1]), func(t *testing.T) {
					s := newStage(t, on(t, coir.WithWorkers(1)), row{kind: k, sender: as[0], receiver: as[1]})
					s.passWithoutMemory(timed)
				})
			}
		}
	}
	t.Run("try", func(t *testing.T) {
		onOne(t, func(context.Context, *coir.Nursery) error {
			for _, k := range kinds {
				c := coir.NewChan[int](k.capacity)
				noMemory(t, func() {
					for range 100 {
						_, _ = c.TryRecv()
						_ = c.TrySend(1)
						if k.capacity != coir.Unbounded {
							_ = c.TrySend(1)
						}
					}
				})
			}
			return nil
		}, nil)
	})
	t.Run("three types", func(t *testing.T) {
		onOne(t, func(ctx context.Context, n *coir.Nursery) error {
			a, b, c := coir.NewChan[int](0), coir.NewChan[string](0), coir.NewChan[[64]byte](0)
			n.Go("other", func(ctx context.Context) error {
				for {
					v, err := a.Recv(ctx)
					if err != nil {
						return nil // done
					}
					_ = b.SendTimeout(ctx, "x", time.Hour)
					_ = c.Send(ctx, [64]byte{byte(v)})
				}
			})
			noMemory(t, func() {
				for i := range 100 {
					_ = a.SendTimeout(ctx, i, time.Hour)
					_, _ = b.Recv(ctx)
					if v, err := c.RecvTimeout(ctx, time.Hour); err != nil || v[0] != byte(i) {
						t.Errorf("received %v, %v, want %d first", v, err, byte(i))
					}
				}
			})
			a.Close()
			return nil
		}, nil)
	})
}

// withoutCancel returns ctx for a fiber. A goroutine gets a context that is never done, because its wait under one that
// can be needs a channel.
func withoutCancel(ctx context.Context) context.Context {
	if coir.Self(ctx) == nil {
		return context.Background()
	}
	return ctx
}

// passWithoutMemory passes values back and forth between two players. One direction goes from full to empty, so that
// each side sometimes waits.
func (s *stage) passWithoutMemory(timed bool) {
	there, back := s.channel(), s.channel()
	echo := s.start(s.receiver, func(ctx context.Context, a *player) {
		ctx = withoutCancel(ctx)
		for {
			v, err := there.Recv(ctx)
			if timed {
				v, err = recvAgain(ctx, there, v, err)
			}
			if err != nil {
				back.Close()
				return
			}
			if v == 0 { // the last of some
				if a.err = back.Send(ctx, v); a.err != nil {
					return
				}
			}
		}
	})
	sender := s.start(s.sender, func(ctx context.Context, a *player) {
		ctx = withoutCancel(ctx)
		noMemory(s.t, func() {
			for range 10 {
				for v := 9; v >= 0; v-- {
					if timed {
						a.err = there.SendTimeout(ctx, v, time.Hour)
					} else {
						a.err = there.Send(ctx, v)
					}
					if a.err != nil {
						return
					}
				}
				if timed {
					_, a.err = back.RecvTimeout(ctx, time.Hour)
				} else {
					_, a.err = back.Recv(ctx)
				}
			}
		})
		there.Close()
	})
	s.allEnded([]*player{sender, echo}, nil)
}

// recvAgain receives another value with a time limit, unless that was the last.
func recvAgain(ctx context.Context, c *coir.Chan[int], v int, err error) (int, error) {
	if v == 0 || err != nil {
		return v, err
	}
	return c.RecvTimeout(ctx, time.Hour)
}

// noMemory fails the test if f allocates.
func noMemory(t tester, f func()) {
	t.Helper()
	n := allocations(f)
	for range 4 { // allocations of others come and go; those of f are there each time
		if n <= 50 {
			return
		}
		n = allocations(f)
	}
	t.Errorf("%d allocations in 100 runs", n)
}

// allocations counts the allocations of 100 runs of f, after a warm-up. A handful is not f's, but package testing's or
// the garbage collector's.
func allocations(f func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // it would empty pools
	for range 20 {
		f()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		f()
	}
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}

// A wait on a channel of large values holds memory for one value, only while it lasts: neither a fiber that continues,
// nor the goroutine that ran one, nor a goroutine that waited, keeps it.
func TestLargePlacesAreNotKept(t *testing.T) {
	type large [1 << 16]byte
	const waits = 200
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // a sync.Pool is emptied in two collections
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	crews(t, func(t *testing.T, c *crew) {
		before := heap()
		ch, on := coir.NewChan[large](0), coir.NewChan[int](0)
		for range waits {
			c.do(func(ctx context.Context) {
				_, _ = ch.Recv(ctx)
				_, _ = on.Recv(ctx)
			})
			c.do(func(ctx context.Context) { _, _ = ch.RecvTimeout(ctx, time.Hour) })
		}
		waitFor(t, ch, 0, 2*waits)
		ch.Abort(nil)
		waitFor(t, on, 0, waits)
		eventually(t, "half of the waiters live, and hold no large value", func() bool {
			return heap() < before+waits<<16/4
		})
		on.Close()
		c.wait()
	})
}
