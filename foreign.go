package coir

import (
	"context"
	"errors"
	"time"

	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
	"github.com/coir-go/coir/internal/stdctx"
)

// Contexts of package context on a runtime with a policy. Package context reports a cancellation on a separate
// goroutine, at a moment that the policy does not choose. But when cancel() returns, it has closed the Done channel,
// and the fiber that called it makes its next step before any other fiber runs. So each step first checks the contexts
// that fibers wait under. A cancellation by a fiber then takes effect at a definite step, and is attributed to that
// fiber.
//
// Deadlines of package context depend on real time, and a goroutine may cancel at any time. The policy cannot control
// either, so both are reported to it.

// dependent is a scope or a wait that ends when a context ends.
type dependent struct {
	sc *scope       // the scope to cancel; if nil,
	p  *park.Parker // the parker to wake,
	t  park.Ticket  // with this ticket
}

// lookAtContexts cancels the scopes and wakes the fibers whose context is done. The fiber that is about to make a step
// calls it, in a hidden section.
//
//go:norace
func (rt *Runtime) lookAtContexts() {
	for w := rt.contexts.TakeDone(); w != nil; w = rt.contexts.TakeDone() {
		race.EnterUser()
		w.Acquire()
		e := endingOf(w.Ctx)
		if e.err == context.DeadlineExceeded && !expiredInside(w.Ctx) {
			rt.policy.Stray(policy.Op{Kind: policy.Deadline, Stack: w.Stack()})
		}
		if w.Of.sc != nil {
			w.Of.sc.cancel(e, nil)
		}
		race.LeaveUser()
		if w.Of.sc == nil {
			w.Of.p.Wake(w.Of.t, park.Cancelled, nil)
		}
	}
}

// expiredInside reports whether ctx was derived from one of coir's scopes and ended because of that scope's deadline.
func expiredInside(ctx context.Context) bool {
	sc := scopeBehind(ctx)
	return sc != nil && errors.Is(sc.ctxErr(), context.DeadlineExceeded)
}

// Outside implements policy.Runtime.
//
//go:norace
func (x *policed) Outside(patience time.Duration) (stack []uintptr, deadline bool) {
	w, deadline := x.contexts.Await(patience, hasDeadline)
	if w == nil {
		return nil, false
	}
	return w.Stack(), deadline
}

// hasDeadline reports whether the context has a deadline that is not one of coir's.
//
//go:norace
func hasDeadline(w *stdctx.Entry[dependent]) bool {
	race.EnterUser()
	defer race.LeaveUser()
	w.Acquire()
	at, ok := w.Ctx.Deadline()
	if sc := scopeBehind(w.Ctx); ok && sc != nil {
		ours, timed := (*scopeContext)(sc).Deadline()
		return !timed || at.Before(ours)
	}
	return ok
}
