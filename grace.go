package coir

import (
	"context"
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/clock"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/xatomic"
)

// graceScope is a scope that ends some time after another context: its Watch arms its timer. Ended and the cancel
// function may run at the same time, and no timer stays armed: the cancel function marks the scope before it stops the
// timer, and Ended looks at the mark after it has armed the timer. So one of them stops it.
type graceScope struct {
	scopeContext // first: it is the context that WithGrace returns
	cold         coldScope
	watch        Watch // of the other context
	timer        clock.Timer
	d            time.Duration
	left         xatomic.Bool // the cancel function has been called, and the first call stops the watch
}

// WithGrace returns a scope that has the values of ctx, and ends d after ctx has ended. Operations under it then return
// an error that is [ErrTimeout]. It is for work that has been accepted and must be finished after a cancellation, such
// as a signal, but not for ever. While ctx has not ended, the work may take any time. If ctx has ended already, d
// begins now. If d is not positive, the scope ends when ctx does. Call cancel when the scope is no longer needed.
//
// The scope has no deadline, because a deadline must not change when the grace begins. So operations that fail early if
// the deadline comes first, such as [Timer.Wait] and Retry of package pace, wait under this scope until it ends.
//
//	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
//	defer stop()
//	work, cancel := coir.WithGrace(ctx, 10*time.Second) // ends 10 s after the signal
//	defer cancel()
func WithGrace(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	// Spec: NU-21 (a shield delays a cancel)
	g := &graceScope{d: max(d, 0)}
	sc := (*scope)(&g.scopeContext)
	sc.useCold(&g.cold)
	c := resolve(ctx)
	sc.init(context.WithoutCancel(ctx), c.runtime(), nil, c.f)
	if err := g.watch.Start(ctx, g); err != nil {
		g.Ended(err)
	}
	return &g.scopeContext, g.cancel
}

// Ended implements Watcher. It is called while synchronisation is visible: see callEnded.
//
//go:norace
func (g *graceScope) Ended(error) {
	if g.d == 0 {
		g.expire() // a timer would be late
		return
	}
	sc := (*scope)(&g.scopeContext)
	clk := sc.rt.s.Clock()
	race.Release(unsafe.Pointer(&g.timer)) // for Expire
	race.Disable()
	clk.Arm(&g.timer, after(clk, g.d), g, 0)
	if sc.state.Load() == scopeCancelled {
		clk.Stop(&g.timer)
	}
	race.Enable()
}

// Expire implements clock.Target, as that of a timedScope.
//
//go:norace
func (g *graceScope) Expire(uint64) { race.Alone(g.expire) }

//go:norace
func (g *graceScope) expire() { (*scope)(&g.scopeContext).expire(unsafe.Pointer(&g.timer)) }

// cancel ends the scope.
//
//go:norace
func (g *graceScope) cancel() {
	sc := (*scope)(&g.scopeContext)
	by := sc.announceCancel()
	race.Disable()
	first := g.left.CompareAndSwap(false, true)
	race.Enable()
	if first {
		g.watch.Stop()
	}
	sc.end()
	race.Disable()
	sc.rt.s.Clock().Stop(&g.timer)
	race.Enable()
	by.stepped()
}
