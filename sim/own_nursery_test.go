package sim

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coir-go/coir"
)

// Nurseries under simulation: the claims of nursery_test.go in the root that do not need goroutines or several workers.
// Limits with waits inside, and the first to fail, are in own_test.go.

// Fibers that wait for a place begin in the order of their Go, and there are never more fibers than places.
//
// Spec: NU-14 (Limit bounds the children that run)
func TestOwnLimitKeepsTheOrder(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		var begun [4]int32 // the order in which they began; the place orders the fibers, but not their memory
		var now, count atomic.Int32
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Limit(1)
			for i := range begun {
				n.Go("task", func(ctx context.Context) error {
					begun[i] = count.Add(1)
					if now.Add(1) > 1 {
						s.Errorf("two at once")
					}
					defer now.Add(-1)
					return coir.Yield(ctx)
				}, coir.WithIndex(i))
			}
			return nil
		})
		if err != nil || begun != [4]int32{1, 2, 3, 4} {
			s.Errorf("began as %v, %v", begun, err)
		}
	})
}

// A place that is given up in a wait goes to another fiber, and the waiter has one again before it continues, however
// it waits.
//
// Spec: NU-14 (Limit bounds the children that run)
// Spec: NU-15 (a child that waits for children gives its place up)
func TestOwnPlaceIsGivenUpAndTakenAgain(t *testing.T) {
	type child = func(context.Context) error
	for _, c := range []struct {
		name  string
		waits func(ctx context.Context, n *coir.Nursery, f child) error
	}{
		{"wait", func(ctx context.Context, n *coir.Nursery, f child) error { return n.Go("other", f).Wait(ctx) }},
		{"nested run", func(ctx context.Context, n *coir.Nursery, f child) error {
			return coir.Run(ctx, func(_ context.Context, in *coir.Nursery) error {
				in.Go("inner", func(ctx context.Context) error { return n.Go("other", f).Wait(ctx) })
				return nil
			})
		}},
		{"nested body", func(ctx context.Context, n *coir.Nursery, f child) error {
			return coir.Run(ctx, func(ctx context.Context, _ *coir.Nursery) error { return n.Go("other", f).Wait(ctx) })
		}},
		{"select", func(ctx context.Context, n *coir.Nursery, f child) error {
			var err error
			if _, sel := coir.Select(ctx, n.Go("other", f).DoneCase(&err)); sel != nil {
				return sel
			}
			return err
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			own(t, func(ctx context.Context, s *Sim) {
				var now, ended atomic.Int32
				work := func(ctx context.Context) error {
					if at := now.Add(1); at > 1 {
						s.Errorf("%d at once, under a limit of one", at)
					}
					err := coir.Yield(ctx)
					now.Add(-1)
					return err
				}
				err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
					n.Limit(1)
					for i := range 2 {
						n.Go("waiter", func(ctx context.Context) error {
							err := errors.Join(work(ctx), c.waits(ctx, n, work), work(ctx))
							ended.Add(1)
							return err
						}, coir.WithIndex(i))
					}
					return nil
				})
				if err != nil || ended.Load() != 2 {
					s.Errorf("%d ended, %v", ended.Load(), err)
				}
			})
		})
	}
}

// A wait that is cut short continues immediately, above the limit if necessary: otherwise the fiber that holds the
// place could never be stopped.
//
// Spec: NU-15 (a child that waits for children gives its place up)
// Spec: NU-20 (a join cut short leaves the fiber running)
func TestOwnLimitUnderCancelledWaits(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		gate := coir.NewChan[int](0, coir.WithName("gate"))
		var waited error
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Limit(1)
			n.Go("impatient", func(ctx context.Context) error {
				slow := n.Go("slow", func(ctx context.Context) error { _, err := gate.Recv(ctx); _ = err; return nil })
				short, cancel := coir.WithTimeout(ctx, time.Second)
				defer cancel()
				waited = slow.Wait(short)
				gate.Close() // slow cannot end before this, and has the only place
				return slow.Wait(ctx)
			})
			return nil
		})
		if err != nil || !errors.Is(waited, coir.ErrTimeout) {
			s.Errorf("wait: %v; run: %v", waited, err)
		}
	})
}

// Fibers that wait for a place when the nursery is cancelled still begin, see the cancellation, and end.
//
// Spec: NU-01 (a nursery completes after every child)
// Spec: NU-06 (cancel wakes every parked child)
func TestOwnCancelWithALine(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		var ran, saw atomic.Int32
		err := coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Limit(2)
			for i := range 4 {
				n.Go("task", func(ctx context.Context) error {
					ran.Add(1)
					err := coir.Sleep(ctx, time.Hour)
					if isCancelIn(ctx, err, errGone) {
						saw.Add(1)
					}
					return err
				}, coir.WithIndex(i))
			}
			n.Cancel(errGone)
			return nil
		})
		if !isCancelFor(err, errGone) || ran.Load() != 4 || saw.Load() != 4 || s.Now() != 0 {
			s.Errorf("%v, %d ran, %d saw it, at %v", err, ran.Load(), saw.Load(), s.Now())
		}
	})
}

// A cancellation ends every wait below, wherever it is, once, for the first cause. It ends no wait above.
//
// Spec: FB-16 (a cancelled fiber is woken by the ordinary claim)
// Spec: NU-06 (cancel wakes every parked child)
// Spec: NU-08 (cancel wakes each child once)
// Spec: NU-09 (cancel goes down the tree only)
// Spec: NU-10 (the first cause of a cancel stays)
func TestOwnCancelEndsEveryWaitBelow(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		other := errors.New("another cause")
		var causes [5]error
		var won atomic.Int32 // 1: errGone was first, 2: other
		never := coir.NewChan[int](0, coir.WithName("never"))
		err := coir.Run(ctx, func(ctx context.Context, outer *coir.Nursery) error {
			target := outer.Go("target", func(ctx context.Context) error { _, _ = never.Recv(ctx); return nil })
			_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
				n.Go("receives", func(ctx context.Context) error { _, causes[0] = never.Recv(ctx); return nil })
				n.Go("waits", func(ctx context.Context) error { causes[1] = target.Wait(ctx); return nil })
				n.Go("sleeps", func(ctx context.Context) error {
					ctx, cancel := coir.WithTimeout(ctx, time.Hour)
					defer cancel()
					causes[2] = coir.Sleep(ctx, 2*time.Hour)
					return nil
				})
				n.Go("nests", func(ctx context.Context) error {
					_ = coir.Run(ctx, func(_ context.Context, in *coir.Nursery) error {
						in.Go("below", func(ctx context.Context) error { _, causes[3] = never.Recv(ctx); return nil })
						return nil
					})
					return nil
				})
				n.Go("cancels", func(context.Context) error { n.Cancel(errGone); won.CompareAndSwap(0, 1); return nil })
				n.Go("cancels too", func(context.Context) error { n.Cancel(other); won.CompareAndSwap(0, 2); return nil })
				return nil
			})
			if ctx.Err() != nil {
				s.Errorf("the cancel went up")
			}
			never.Close()
			return nil
		})
		for i, got := range causes[:4] {
			if isCancelFor(got, errGone) == isCancelFor(got, other) || isCancelFor(got, errGone) != isCancelFor(causes[0], errGone) {
				s.Errorf("wait %d ended with %v, the first with %v", i, got, causes[0])
			}
		}
		if err != nil {
			s.Errorf("run: %v", err)
		}
		s.Sometimes(isCancelFor(causes[0], errGone), "one cause")
		s.Sometimes(isCancelFor(causes[0], other), "the other cause")
	})
}

// A cancellation is not seen behind a shield until the shield has ended.
//
// Spec: NU-08 (cancel wakes each child once)
func TestOwnShieldHoldsACancelOff(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		c := coir.NewChan[int](0, coir.WithName("c"))
		var inside, after error
		var v int
		_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
			n.Go("shielded", func(ctx context.Context) error {
				v, inside = c.Recv(coir.Shield(ctx))
				after = coir.Sleep(ctx, time.Hour)
				return nil
			})
			n.Go("sends", func(ctx context.Context) error { return c.Send(coir.Shield(ctx), 1) })
			n.Go("cancels", func(context.Context) error { n.Cancel(errGone); return nil })
			return nil
		})
		if v != 1 || inside != nil || !isCancelFor(after, errGone) {
			s.Errorf("inside: %d, %v; after: %v", v, inside, after)
		}
	})
}

// A panic of a child cancels the others and leaves Run when all have ended. A Go after that panics, and says why.
//
// Spec: NU-02 (Run returns when its nursery is complete)
// Spec: NU-11 (a child's error cancels its siblings)
func TestOwnPanicComesOutOfRun(t *testing.T) {
	own(t, func(ctx context.Context, s *Sim) {
		never := coir.NewChan[int](0, coir.WithName("never"))
		var left *coir.Nursery
		var waited error
		var out any
		func() {
			defer func() { out = recover() }()
			_ = coir.Run(ctx, func(_ context.Context, n *coir.Nursery) error {
				left = n
				n.Go("waits", func(ctx context.Context) error { _, waited = never.Recv(ctx); return nil })
				n.Go("panics", func(ctx context.Context) error { _ = coir.Yield(ctx); panic(errGone) })
				return nil
			})
		}()
		err, _ := out.(error)
		var pe *coir.PanicError
		if !errors.As(err, &pe) || !errors.Is(err, errGone) || !errors.Is(waited, context.Canceled) {
			s.Errorf("out of Run came %v; the one that waited: %v", out, waited)
		}
		func() {
			defer func() {
				if text, _ := recover().(string); !strings.Contains(text, "coir: ") {
					s.Errorf("a Go after Run: %q", text)
				}
			}()
			left.Go("late", func(context.Context) error { return nil })
		}()
	})
}
