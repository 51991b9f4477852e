package sim

import (
	"context"
	"io"
	"runtime"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// A failed schedule is torn down, whatever contexts its fibers wait under.

// Spec: SM-09 (a failed schedule is brought to its end)
func TestADeadlockUnderAShieldIsTold(t *testing.T) {
	send := func(under func(context.Context) context.Context) program {
		return func(ctx context.Context, _ *Sim) {
			_ = coir.NewChan[int](0, coir.WithName("c")).Send(under(ctx), 1)
		}
	}
	background := func(context.Context) context.Context { return context.Background() }
	inFiber := func(body func(ctx context.Context, c, d *coir.Chan[int]) error) program {
		return func(ctx context.Context, _ *Sim) {
			c, d := coir.NewChan[int](0, coir.WithName("c")), coir.NewChan[int](0, coir.WithName("d"))
			nursery(ctx, func(_ context.Context, n *coir.Nursery) {
				n.Limit(1)
				n.Go("f", func(ctx context.Context) error { return body(ctx, c, d) })
			})
		}
	}
	for name, fn := range map[string]program{
		"shield":     send(coir.Shield),
		"background": send(background),
		"value":      send(func(ctx context.Context) context.Context { return context.WithValue(coir.Shield(ctx), new(int), 1) }),
		"in a fiber": inFiber(func(ctx context.Context, c, _ *coir.Chan[int]) error { return c.Send(coir.Shield(ctx), 1) }),
		"select": inFiber(func(ctx context.Context, c, d *coir.Chan[int]) error {
			_, err := coir.Select(context.Background(), c.SendCase(1), d.RecvCase(nil))
			return err
		}),
		"selector": inFiber(func(ctx context.Context, c, _ *coir.Chan[int]) error {
			s := coir.NewSelector()
			s.Add(c.RecvCase(nil))
			_, err := s.Wait(coir.Shield(ctx))
			return err
		}),
		"nursery": func(ctx context.Context, _ *Sim) {
			c := coir.NewChan[int](0, coir.WithName("c"))
			nursery(context.Background(), func(_ context.Context, n *coir.Nursery) {
				n.Go("f", func(ctx context.Context) error { return c.Send(ctx, 1) })
			})
		},
		"while it is unwound": inFiber(func(ctx context.Context, c, d *coir.Chan[int]) error {
			_, _ = c.Recv(ctx)
			return d.Send(coir.Shield(ctx), 1)
		}),
		"with a timeout": inFiber(func(ctx context.Context, c, d *coir.Chan[int]) error {
			_, _ = c.Recv(ctx)
			return d.SendTimeout(coir.Shield(ctx), 1, time.Second)
		}),
		"again and again": inFiber(func(_ context.Context, c, _ *coir.Chan[int]) error {
			for c.Send(context.Background(), 1) != nil { //nolint:revive // it does not give up
			}
			return nil
		}),
	} {
		t.Run(name, func(t *testing.T) {
			f := found(t, KindDeadlock, fn, WithSteps(500))
			says(t, f, "no fiber can run", " c")
			again, err := Replay(f.Token, fn, WithSteps(500))
			if err != nil || again == nil || again.Kind != KindDeadlock {
				t.Errorf("replayed: %v, %v", again, err)
			}
		})
	}
}

// A wait that ends in this way returns an error.
func TestAnInterruptedWaitReturnsAnError(t *testing.T) {
	var errs []error
	_ = found(t, KindDeadlock, func(ctx context.Context, _ *Sim) {
		c := coir.NewChan[int](0)
		errs = errs[:0]
		for _, ctx := range []context.Context{coir.Shield(ctx), context.Background()} {
			_, err := c.Recv(ctx)
			i, other := coir.Select(ctx, c.RecvCase(nil))
			if i >= 0 {
				other = nil
			}
			errs = append(errs, err, other)
		}
	})
	for i, err := range errs {
		if err == nil {
			t.Errorf("wait %d has no error", i)
		}
	}
	if len(errs) != 4 {
		t.Errorf("%d waits came to their end", len(errs))
	}
}

func TestBlockingIsACallInASimulatedFiber(t *testing.T) {
	res := Explore(func(ctx context.Context, _ *Sim) {
		nursery(ctx, func(_ context.Context, n *coir.Nursery) {
			for i := range 2 {
				n.Go("io", func(ctx context.Context) error {
					if v, err := coir.Blocking(ctx, func() (int, error) {
						runtime.Gosched()
						return i, io.EOF
					}); v != i || err != io.EOF {
						t.Errorf("Blocking returned %v, %v", v, err)
					}
					return coir.Yield(ctx)
				}, coir.WithIndex(i))
			}
		})
	})
	if res.Failure != nil {
		t.Error(res.Failure)
	}
}
