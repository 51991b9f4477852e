package coir_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
	"github.com/coir-go/coir/sim"
)

func TestPromiseIsCompletedOnce(t *testing.T) {
	ctx := context.Background()
	failed := errors.New("failed")
	var p, q coir.Promise[int]
	if !p.Resolve(1) || p.Resolve(2) || p.Reject(failed) {
		t.Error("not exactly the first call completed it")
	}
	if v, err := p.Wait(ctx); v != 1 || err != nil {
		t.Errorf("Wait returned %d, %v, want 1, nil", v, err)
	}
	if !q.Reject(failed) || q.Resolve(1) {
		t.Error("not exactly the first call completed it")
	}
	if v, err := q.Wait(ctx); v != 0 || err != failed {
		t.Errorf("Wait returned %d, %v, want 0, %v", v, err, failed)
	}
	defer func() {
		if r := recover(); r == nil {
			t.Error("Reject(nil) does not panic")
		}
	}()
	new(coir.Promise[int]).Reject(nil)
}

// Of many that complete a promise one does, and all who wait get what it gave.
func TestPromiseOneOfManyCompletesIt(t *testing.T) {
	for range sized(20, 200, 2000) {
		var p coir.Promise[*int]
		var won atomic.Pointer[int]
		var all sync.WaitGroup
		got := make([]*int, 3)
		for i := range got {
			all.Go(func() { got[i], _ = p.Wait(context.Background()) })
		}
		for i := range 3 {
			all.Go(func() {
				v := new(int)
				*v = i
				if p.Resolve(v) && !won.CompareAndSwap(nil, v) {
					t.Error("two completed it")
				}
			})
		}
		all.Wait()
		for _, v := range got {
			if v != won.Load() || *v < 0 {
				t.Errorf("got %v, and %v was given", v, won.Load())
			}
		}
	}
}

func TestPromiseCase(t *testing.T) {
	err := coir.Run(context.Background(), func(ctx context.Context, n *coir.Nursery) error {
		p := coir.NewPromise[string](coir.WithName("answer"))
		never := new(coir.Promise[int])
		n.Go("oracle", func(context.Context) error {
			p.Resolve("42")
			return nil
		})
		for range 2 { // one waits, one need not
			v, err := "", errors.New("not written")
			i, selErr := coir.Select(ctx, never.DoneCase(nil, nil), p.DoneCase(&v, &err), coir.After(time.Hour))
			if i != 1 || selErr != nil || v != "42" || err != nil {
				t.Errorf("case %d, %v: %q, %v", i, selErr, v, err)
			}
		}
		failed := errors.New("failed")
		q := new(coir.Promise[string])
		q.Reject(failed)
		v, got := "as before", error(nil)
		if i, err := coir.TrySelect(q.DoneCase(&v, &got)); i != 0 || err != nil || v != "" || got != failed {
			t.Errorf("case %d, %v: %q, %v", i, err, v, got)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestPromiseCallsBack(t *testing.T) {
	var p coir.Promise[int]
	var got []string
	call := func(name string) { p.OnDone(func(v int, err error) { got = append(got, fmt.Sprint(name, v, err)) }) }
	call("a")
	p.OnDone(func(int, error) { panic("in a callback") })
	call("b")
	p.OnDone(func(int, error) { panic("in the last") })
	func() {
		defer func() {
			if r := recover(); r != "in a callback" {
				t.Errorf("recovered %v", r)
			}
		}()
		p.Resolve(7)
	}()
	call("c")
	if want := []string{"a7 <nil>", "b7 <nil>", "c7 <nil>"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestPromiseString(t *testing.T) {
	p := coir.NewPromise[int](coir.WithName("answer"))
	if got, want := p.String(), "coir.Promise[int](answer, not completed, 0 waiting)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	p.Resolve(1)
	if got, want := p.String(), "coir.Promise[int](answer, completed)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Whatever the order of two that complete it, a wait, a callback and a cancellation: the result is that of the one that
// was told so, and the callback is called once.
func TestPromiseUnderSimulation(t *testing.T) {
	sim.Test(t, func(ctx context.Context, s *sim.Sim) {
		p := coir.NewPromise[int](coir.WithName("answer"))
		won, got, called := 0, 0, 0
		_ = coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
			for i := 1; i <= 2; i++ {
				n.Go("oracle", func(context.Context) error {
					if p.Resolve(i) {
						won = i
					}
					return nil
				}, coir.WithIndex(i))
			}
			n.Go("waiter", func(ctx context.Context) error {
				got, _ = p.Wait(ctx)
				return nil
			})
			n.Go("caller", func(context.Context) error {
				p.OnDone(func(int, error) { called++ })
				return nil
			})
			n.Go("canceller", func(context.Context) error {
				n.Cancel(errors.New("stopped"))
				return nil
			})
			return nil
		})
		if got != 0 && got != won {
			s.Errorf("got %d, and %d was told that it completed it", got, won)
		}
		if called != 1 {
			s.Errorf("the callback was called %d times", called)
		}
	}, sim.WithStrategy(func(uint64) sim.Strategy { return sim.DPOR() }), sim.WithSchedules(20_000))
}
