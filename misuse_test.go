package coir_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// Using a zero Chan or Selector panics with a clear text, in a fiber and in a goroutine.
func TestUseOfWhatWasNotMade(t *testing.T) {
	uses := map[string]func(ctx context.Context){
		"Send":        func(ctx context.Context) { _ = new(coir.Chan[[64]int]).Send(ctx, [64]int{}) },
		"SendTimeout": func(ctx context.Context) { _ = new(coir.Chan[int]).SendTimeout(ctx, 1, time.Hour) },
		"TrySend":     func(context.Context) { _ = new(coir.Chan[int]).TrySend(1) },
		"SendMany":    func(ctx context.Context) { _, _ = new(coir.Chan[int]).SendMany(ctx, []int{1, 2}) },
		"SendCase":    func(ctx context.Context) { _, _ = coir.Select(ctx, new(coir.Chan[int]).SendCase(1)) },
		"Recv":        func(ctx context.Context) { _, _ = new(coir.Chan[[64]int]).Recv(ctx) },
		"RecvTimeout": func(ctx context.Context) { _, _ = new(coir.Chan[int]).RecvTimeout(ctx, time.Hour) },
		"TryRecv":     func(context.Context) { _, _ = new(coir.Chan[int]).TryRecv() },
		"RecvMany":    func(ctx context.Context) { _, _ = new(coir.Chan[int]).RecvMany(ctx, make([]int, 2)) },
		"RecvCase":    func(ctx context.Context) { _, _ = coir.Select(ctx, new(coir.Chan[int]).RecvCase(nil)) },
		"Close":       func(context.Context) { new(coir.Chan[int]).Close() },
		"Abort":       func(context.Context) { new(coir.Chan[int]).Abort(nil) },
		"TrySelect":   func(context.Context) { _, _ = coir.TrySelect(new(coir.Chan[int]).RecvCase(nil)) },
		"Select of many": func(ctx context.Context) {
			_, _ = coir.Select(ctx, new(coir.Chan[int]).RecvCase(nil), coir.After(time.Hour))
		},
		"Add of a case":  func(context.Context) { coir.NewSelector().Add(new(coir.Chan[int]).RecvCase(nil)) },
		"Selector.Add":   func(context.Context) { new(coir.Selector).Add(coir.After(0)) },
		"Selector.Wait":  func(ctx context.Context) { _, _ = new(coir.Selector).Wait(ctx) },
		"Selector.Clear": func(context.Context) { new(coir.Selector).Clear() },
	}
	for name, use := range uses {
		check := func(t *testing.T, ctx context.Context) {
			defer func() {
				text, _ := recover().(string)
				if !strings.HasPrefix(text, "coir: use of a ") {
					t.Errorf("%s: panicked with %q", name, text)
				}
			}()
			use(ctx)
		}
		t.Run(name, func(t *testing.T) {
			check(t, t.Context())
			_ = coir.Run(t.Context(), func(ctx context.Context, _ *coir.Nursery) error {
				_ = coir.Yield(ctx)
				check(t, ctx)
				return nil
			})
		})
	}
}

// badContext is a context whose Done fails.
type badContext struct {
	context.Context
	fail func()
}

func (c badContext) Done() <-chan struct{} { c.fail(); return nil }

// A context whose Done panics, or calls runtime.Goexit, leaves no wait behind.
func TestDoneThatFailsLeavesNoWait(t *testing.T) {
	waits := map[string]func(ctx context.Context, c *coir.Chan[int]){
		"Send": func(ctx context.Context, c *coir.Chan[int]) { _ = c.SendTimeout(ctx, 1, time.Hour) },
		"Recv": func(ctx context.Context, c *coir.Chan[int]) { _, _ = c.RecvTimeout(ctx, time.Hour) },
		"Select": func(ctx context.Context, c *coir.Chan[int]) {
			_, _ = coir.Select(ctx, c.SendCase(1), coir.NewChan[int](0).RecvCase(nil))
		},
		"Selector": func(ctx context.Context, c *coir.Chan[int]) {
			s := coir.NewSelector()
			s.Add(c.RecvCase(nil))
			_, _ = s.Wait(ctx)
		},
	}
	fails := map[string]func(){"panic": func() { panic("Done failed") }, "Goexit": runtime.Goexit}
	for wait, do := range waits {
		for how, fail := range fails {
			t.Run(wait+"/"+how, func(t *testing.T) {
				c := coir.NewChan[int](0)
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					defer func() { _ = recover() }()
					do(badContext{context.Background(), fail}, c)
				}()
				<-ended
				if s := c.Stats(); s.Send.Waiting+s.Recv.Waiting != 0 {
					t.Errorf("%d senders and %d receivers wait", s.Send.Waiting, s.Recv.Waiting)
				}
				if err := c.TrySend(1); err == nil {
					t.Error("a value was sent to a receiver that has gone")
				}
			})
		}
	}
}

// A nil function, and a nil nursery, is a panic with a sentence where it was passed, not in a fiber later on.
func TestNilIsRefusedWhereItIsPassed(t *testing.T) {
	type fn = func(context.Context) error
	type value = func(context.Context) (int, error)
	var none *coir.Nursery
	uses := map[string]struct {
		use  func(ctx context.Context, n *coir.Nursery)
		want string
	}{
		"Go":          {func(_ context.Context, n *coir.Nursery) { n.Go("worker", nil) }, "Nursery.Go(worker) with a nil function"},
		"nil Go":      {func(context.Context, *coir.Nursery) { none.Go("worker", fn(nil)) }, "Nursery.Go(worker) on a nil *Nursery"},
		"nil Cancel":  {func(context.Context, *coir.Nursery) { none.Cancel(nil) }, "Nursery.Cancel of a nil *Nursery"},
		"nil Limit":   {func(context.Context, *coir.Nursery) { none.Limit(1) }, "Nursery.Limit of a nil *Nursery"},
		"Start":       {func(_ context.Context, n *coir.Nursery) { coir.Start(n, "size", value(nil)) }, "Start(size) with a nil function"},
		"nil Start":   {func(context.Context, *coir.Nursery) { coir.Start(none, "size", value(nil)) }, "Start(size) on a nil *Nursery"},
		"Race":        {func(ctx context.Context, _ *coir.Nursery) { _, _ = coir.Race(ctx, value(nil)) }, "Race with a nil function"},
		"Run":         {func(ctx context.Context, _ *coir.Nursery) { _ = coir.Run(ctx, nil) }, "Run with a nil function"},
		"Runtime.Run": {func(ctx context.Context, _ *coir.Nursery) { _ = coir.Default().Run(ctx, nil) }, "Run with a nil function"},
		"Blocking": {
			func(ctx context.Context, _ *coir.Nursery) { _, _ = coir.Blocking[int](ctx, nil) }, "Blocking with a nil function",
		},
		"ForEach": {
			func(ctx context.Context, _ *coir.Nursery) { _ = coir.ForEach(ctx, 1, slices.Values([]int{1}), nil) },
			"ForEach with a nil function",
		},
		"Map": {
			func(ctx context.Context, _ *coir.Nursery) {
				_, _ = coir.Map[int, int](ctx, 1, slices.Values([]int{1}), nil)
			}, "Map with a nil function",
		},
		"nil sequence": {
			func(ctx context.Context, _ *coir.Nursery) {
				_ = coir.ForEach(ctx, 1, nil, func(context.Context, int) error { return nil })
			}, "a nil iter.Seq has no items",
		},
		"Ordered.Go": {
			func(ctx context.Context, n *coir.Nursery) { _ = coir.NewOrdered[int](1).Go(ctx, n, "parse", nil) },
			"Ordered.Go(parse) with a nil function",
		},
		"OnDone":   {func(context.Context, *coir.Nursery) { new(coir.Promise[int]).OnDone(nil) }, "Promise.OnDone(nil)"},
		"NewPool":  {func(context.Context, *coir.Nursery) { coir.NewPool[int](1, nil, nil) }, "NewPool needs a function"},
		"NewTimer": {func(context.Context, *coir.Nursery) { coir.NewTimer(nil) }, "NewTimer: the Schedule is nil"},
	}
	for name, c := range uses {
		check := func(t *testing.T, ctx context.Context, n *coir.Nursery) {
			defer func() {
				if text, _ := recover().(string); !strings.HasPrefix(text, "coir: "+c.want) &&
					!strings.HasPrefix(text, "coir: Runtime."+c.want) {
					t.Errorf("%s: panicked with %q, want %q", name, text, c.want)
				}
			}()
			c.use(ctx, n)
		}
		t.Run(name, func(t *testing.T) {
			err := coir.Run(t.Context(), func(ctx context.Context, n *coir.Nursery) error {
				check(t, ctx, n)
				check(t, context.Background(), n)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
