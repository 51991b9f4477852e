package coir

import (
	"context"
	"runtime"
	"time"

	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
)

// Yield lets other fibers run. In a goroutine it calls runtime.Gosched. If ctx has ended, Yield immediately returns an
// error and lets no other fiber run, so that a loop over Yield ends.
//
//go:norace
func Yield(ctx context.Context) error {
	f, sc := scopeOf(ctx)
	if race.Enabled || f == nil || f.simulated {
		return yieldAny(ctx)
	}
	if !f.task.Here() {
		return yieldAny(ctx)
	}
	if sc.mayBeDone() {
		return yieldAny(ctx)
	}
	f.budget = budget
	// Task.Yield, inlined by hand to save a frame: see Task.BeginPark.
	if s := f.task.BeginYield(); s != nil {
		if s.Odd {
			s.Next()
		} else {
			s.Yield(struct{}{})
		}
		f.task.EndPark()
	}
	return nil
}

// yieldAny implements Yield for every kind of caller. If fibers used it too, the yield comparison in bench/ratios would
// take 1.4 times as long.
//
//go:noinline
//go:norace
func yieldAny(ctx context.Context) error {
	c := resolve(ctx)
	c.announce(policy.Op{Kind: policy.Yield})
	if e := c.refused(); e != nil {
		return e.op
	}
	if c.f == nil {
		runtime.Gosched()
		return nil
	}
	if c.f.simulated {
		return nil
	}
	race.Disable()
	c.f.budget = budget
	c.f.task.Yield()
	race.Enable()
	return nil
}

// Sleep waits until d has passed on the runtime's clock. If ctx ends first, it returns an error.
//
//go:norace
func Sleep(ctx context.Context, d time.Duration) error {
	// Spec: TM-02 (a sleeper is in no run queue)
	f, sc := ownFiber(ctx)
	if f == nil || d <= 0 {
		return sleepAny(ctx, d)
	}
	if f.simulated {
		f.step(policy.Op{Kind: policy.Sleep, For: d})
	}
	race.Disable()
	ok := f.beginSleep(sc, d)
	if ok {
		// Task.Park, inlined by hand to save a frame: see Task.BeginPark.
		if s := f.task.BeginPark(); s != nil {
			if s.Odd {
				s.Next()
			} else {
				s.Yield(struct{}{})
			}
			f.task.EndPark()
		}
		ok = f.endSleep(f.task.Reason())
	}
	race.Enable()
	if !ok {
		f.tellEnding(sc)
		return sc.ending().op
	}
	return nil
}

//go:noinline
//go:norace
func (f *Fiber) beginSleep(sc *scope, d time.Duration) bool {
	if sc.done() {
		return false
	}
	t := f.arm(sc, toSleep{})
	if !f.shouldPark(sc) {
		return false
	}
	f.armTimer(t, d)
	return true
}

//go:noinline
//go:norace
func (f *Fiber) endSleep(r park.Reason) bool {
	if r == park.TimedOut {
		return true
	}
	f.stopTimer()
	return false
}

// sleepAny implements Sleep for every kind of caller. A fiber holds 5.1 kB while it sleeps here, and 3.1 kB in Sleep:
// see ownFiber.
//
//go:noinline
//go:norace
func sleepAny(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return Yield(ctx)
	}
	c := resolve(ctx)
	c.announce(policy.Op{Kind: policy.Sleep, For: d})
	if e := c.refused(); e != nil {
		return e.op
	}
	race.Disable()
	w := c.waiter()
	r := c.await(&w, c.arm(&w, toSleep{}), c.deadline(d))
	w.done()
	race.Enable()
	if r == park.TimedOut {
		return nil
	}
	return c.cancelled().op
}
