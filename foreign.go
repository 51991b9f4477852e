package coir

import (
	"context"
	"runtime"
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
)

// Contexts of package context on a runtime with a policy. Package context reports a cancellation on a separate
// goroutine, at a moment that the policy does not choose. But when cancel() returns, it has closed the Done channel,
// and the fiber that called it makes its next step before any other fiber runs. So each step first checks the contexts
// that fibers wait under. A cancellation by a fiber then takes effect at a definite step, and is attributed to that
// fiber.
//
// Deadlines of package context depend on real time, and a goroutine may cancel at any time. The policy cannot control
// either. So each use of a context with such a deadline is reported to it, and a cancel by a goroutine if no fiber can
// run.

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
		if w.Of.sc != nil {
			w.Of.sc.cancel(e, nil)
		}
		race.LeaveUser()
		if w.Of.sc == nil {
			w.Of.p.Wake(w.Of.t, park.Cancelled, nil)
		}
	}
}

// tellDeadline tells the policy if ctx has a deadline of package context. It is called when a fiber uses ctx, whether
// or not the deadline passes: that depends on the speed of the machine, and a schedule must not. It is called with the
// caller's synchronisation visible.
//
// Guarded by TestDeadlineOfPackageContextIsTold.
//
//go:noinline
func (rt *Runtime) tellDeadline(ctx context.Context) {
	if hasDeadline(ctx) {
		var stack [24]uintptr
		rt.policy.Stray(policy.Op{Kind: policy.Deadline, Stack: stack[:runtime.Callers(2, stack[:])]})
	}
}

// hasDeadline reports whether ctx has a deadline that is not one of coir's.
func hasDeadline(ctx context.Context) bool {
	at, ok := ctx.Deadline()
	sc := scopeBehind(ctx)
	if !ok || sc == nil {
		return ok
	}
	ours, timed := (*scopeContext)(sc).Deadline()
	if sc.cold().timed {
		ours, timed = (*timedScope)(unsafe.Pointer(sc)).deadline, true
	}
	return !timed || at.Before(ours)
}

// Outside implements policy.Runtime.
//
//go:norace
func (x *policed) Outside(patience time.Duration) (stack []uintptr) {
	w := x.contexts.Await(patience)
	if w == nil {
		return nil
	}
	return w.Stack()
}
