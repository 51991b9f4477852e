package coir_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/internal/invariant"
	"github.com/coir-go/coir/sim"
)

func TestEventHappensOnce(t *testing.T) {
	ctx := context.Background()
	var e coir.Event
	if e.IsSet() {
		t.Error("the zero Event has happened")
	}
	if !e.Set() || e.Set() {
		t.Error("not exactly the first Set made it happen")
	}
	if !e.IsSet() || e.Wait(ctx) != nil {
		t.Error("an event that has happened is waited for")
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := e.Wait(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("under a context that has ended Wait returned %v", err)
	}
}

func TestEventWakesAll(t *testing.T) {
	var e coir.Event
	var guests sync.WaitGroup
	text := "" // written before Set, read after Wait: the race detector sees the order
	for range 3 {
		guests.Go(func() {
			if err := e.Wait(context.Background()); err != nil || text != "set" {
				t.Errorf("a goroutine got %v and read %q", err, text)
			}
		})
	}
	err := coir.Run(context.Background(), func(_ context.Context, n *coir.Nursery) error {
		for i := range 100 { // more than are woken under one lock
			n.Go("waiter", func(ctx context.Context) error {
				if err := e.Wait(ctx); err != nil || text != "set" {
					t.Errorf("a fiber got %v and read %q", err, text)
				}
				return nil
			}, coir.WithIndex(i))
		}
		n.Go("setter", func(ctx context.Context) error {
			text = "set"
			if !e.Set() {
				t.Error("another has set it")
			}
			return nil
		})
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	guests.Wait()
}

func TestEventWaitEndsWithItsContext(t *testing.T) {
	var e coir.Event
	err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		in, cancel := coir.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		if err := e.Wait(in); !errors.Is(err, coir.ErrTimeout) {
			t.Errorf("after the time Wait returned %v", err)
		}
		stopped := errors.New("stopped")
		f := n.Go("waiter", func(ctx context.Context) error { return e.Wait(ctx) })
		n.Cancel(stopped)
		if err := f.Wait(coir.Shield(ctx)); !errors.Is(err, context.Canceled) {
			t.Errorf("after the cancel Wait returned %v", err)
		}
		return nil
	})
	if err == nil {
		t.Error("Run does not report the cancel")
	}
	if got := e.String(); !containsAll(got, "not set", "0 waiting") {
		t.Errorf("waits that ended are still there: %s", got)
	}
}

func TestEventCase(t *testing.T) {
	err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		e, other := coir.NewEvent(coir.WithName("ready")), new(coir.Event)
		c := coir.NewChan[int](0)
		if i, err := coir.TrySelect(e.DoneCase(), c.RecvCase(nil)); i != -1 || !errors.Is(err, coir.ErrWouldBlock) {
			t.Errorf("before Set: %d, %v", i, err)
		}
		n.Go("setter", func(context.Context) error {
			e.Set()
			return nil
		})
		for range 2 { // one waits, one need not
			if i, err := coir.Select(ctx, c.RecvCase(nil), other.DoneCase(), e.DoneCase()); i != 2 || err != nil {
				t.Errorf("Select returned %d, %v", i, err)
			}
		}
		s := coir.NewSelector()
		defer s.Clear()
		id := s.Add(e.DoneCase())
		if got, err := s.Wait(ctx); got != id || err != nil {
			t.Errorf("the Selector returned %d, %v", got, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestEventString(t *testing.T) {
	e := coir.NewEvent(coir.WithName("ready"))
	if got, want := e.String(), "coir.Event(ready, not set, 0 waiting)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	e.Set()
	if got, want := e.String(), "coir.Event(ready, set)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestEventAllocatesNothing(t *testing.T) {
	if invariant.Enabled || raceEnabled {
		t.Skip("these builds allocate")
	}
	if hidesNothing() {
		t.Skip("in this build to find out who waits allocates")
	}
	_ = coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		const rounds = 100
		events := make([]coir.Event, 2*(rounds+1))
		back := make([]coir.Event, len(events))
		n.Go("peer", func(ctx context.Context) error {
			for i := range events {
				if err := events[i].Wait(ctx); err != nil {
					return err
				}
				back[i].Set()
			}
			return nil
		})
		i := 0
		allocs := testing.AllocsPerRun(rounds, func() {
			for range 2 {
				events[i].Set()
				_ = back[i].Wait(ctx)
				i++
			}
		})
		if allocs != 0 {
			t.Errorf("%v allocations", allocs)
		}
		return nil
	})
}

// Whatever the order of a Set, waits, a select and a cancellation: each wait ends, by the one or the other.
func TestEventUnderSimulation(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		e := coir.NewEvent(coir.WithName("ready"))
		value := 0
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("waiter", func(ctx context.Context) error {
				if e.Wait(ctx) == nil && value != 1 {
					s.Errorf("woken before it happened")
				}
				return nil
			})
			n.Go("chooser", func(ctx context.Context) error {
				i, err := coir.Select(ctx, e.DoneCase(), coir.After(time.Second))
				if i == 0 && value != 1 || i == 1 && err != nil {
					s.Errorf("chose %d, %v when value was %d", i, err, value)
				}
				return nil
			})
			n.Go("setter", func(context.Context) error {
				value = 1
				if !e.Set() {
					s.Errorf("another has set it")
				}
				return nil
			})
			n.Go("canceller", func(context.Context) error {
				n.Cancel(errors.New("stopped"))
				return nil
			})
			return nil
		})
	}, sim.WithStrategy(func(uint64) sim.Strategy { return sim.DPOR() }), sim.WithSchedules(20_000))
}

// A wait for an event that no fiber will set is a deadlock, and the report says so.
func TestEventDeadlockIsTold(t *testing.T) {
	f := sim.Run(1, func(ctx context.Context, s *sim.Sim) {
		e := coir.NewEvent(coir.WithName("ready"))
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			n.Go("waiter", func(ctx context.Context) error { return e.Wait(ctx) })
			return nil
		})
	})
	if f == nil || f.Kind != sim.KindDeadlock {
		t.Fatalf("no deadlock: %v", f)
	}
	text := f.Error()
	if !containsAll(text, "waiter waits for the event ready", "no fiber is left to set ready", "await ready") {
		t.Errorf("the report does not say what is waited for:\n%s", text)
	}
}
