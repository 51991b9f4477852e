package coir

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/coir-go/coir/internal/park"
	"github.com/coir-go/coir/internal/policy"
	"github.com/coir-go/coir/internal/race"
)

// Contexts of package context on a runtime with a policy. Package context reports a cancel on a separate goroutine, at
// a moment that the policy does not choose. But cancel() has closed the Done channel when it returns, and the fiber
// that called it makes its next step before any other fiber runs. So each step first looks at the contexts that fibers
// wait under: a cancel by a fiber takes effect at a definite step, and the canceller finds it.
//
// A deadline of package context passes by real time, and a goroutine may cancel at any time. Neither can be controlled:
// both are reported to the policy.

// watched is a context that a scope is linked to, or that a fiber waits under.
type watched struct {
	ctx  context.Context
	done <-chan struct{}

	sc *scope       // the scope to cancel; if nil,
	p  *park.Parker // the parker to wake,
	t  park.Ticket  // with this ticket

	prev, next *watched
	listed     bool
	depth      int
	stack      [24]uintptr // the call that made the scope, or the wait
}

// contextList lists the contexts that the fibers of a runtime with a policy depend on.
type contextList struct {
	n     atomic.Int32
	mu    sync.Mutex // goroutines may make scopes on the runtime too
	first *watched
	last  *watched
}

// add lists w. It is called with the caller's synchronisation visible.
//
//go:norace
func (l *contextList) add(w *watched) {
	race.Release(unsafe.Pointer(w)) // as package context does, whose cancel reads a context's children
	race.Disable()
	w.depth = runtime.Callers(3, w.stack[:])
	l.mu.Lock()
	w.listed, w.prev = true, l.last
	if l.last == nil {
		l.first = w
	} else {
		l.last.next = w
	}
	l.last = w
	l.n.Add(1)
	l.mu.Unlock()
	race.Enable()
}

//go:norace
func (l *contextList) remove(w *watched) {
	race.Disable()
	l.mu.Lock()
	l.unlink(w)
	l.mu.Unlock()
	race.Enable()
}

//go:norace
func (l *contextList) unlink(w *watched) {
	if !w.listed {
		return
	}
	if w.prev == nil {
		l.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.listed, w.prev, w.next = false, nil, nil
	l.n.Add(-1)
}

// takeDone removes the oldest context that is done from the list, and returns it, or nil if none is done.
//
//go:norace
func (l *contextList) takeDone() *watched {
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.first
	for w != nil && !isClosed(w.done) {
		w = w.next
	}
	if w != nil {
		l.unlink(w)
	}
	return w
}

// look cancels the scopes and wakes the fibers whose context is done. The fiber that is about to make a step calls it,
// in a hidden section.
//
//go:norace
func (l *contextList) look(p policy.Policy) {
	for l.n.Load() > 0 {
		w := l.takeDone()
		if w == nil {
			return
		}
		race.EnterUser()
		race.Acquire(unsafe.Pointer(w))
		e := endingOf(w.ctx)
		if e.err == context.DeadlineExceeded && !w.expiredInside() {
			p.Stray(policy.Op{Kind: policy.Deadline, Stack: w.stack[:w.depth]})
		}
		if w.sc != nil {
			w.sc.cancel(e, nil)
		}
		race.LeaveUser()
		if w.sc == nil {
			w.p.Wake(w.t, park.Cancelled, nil)
		}
	}
}

// expiredInside reports whether the context was derived from one of coir's scopes, and ended with the deadline of that
// scope.
func (w *watched) expiredInside() bool {
	sc := scopeBehind(w.ctx)
	return sc != nil && errors.Is(sc.ctxErr(), context.DeadlineExceeded)
}

// outside implements policy.Runtime.Outside.
//
//go:norace
func (l *contextList) outside(patience time.Duration) (stack []uintptr, deadline bool) {
	if l.n.Load() == 0 {
		return nil, false
	}
	l.mu.Lock()
	w := l.first
	for w != nil && !w.timed() {
		w = w.next
	}
	l.mu.Unlock()
	if w != nil {
		return w.stack[:w.depth], true
	}
	for end := time.Now().Add(patience); ; time.Sleep(patience / 10) {
		if w := l.takeDone(); w != nil {
			return w.stack[:w.depth], false
		}
		if time.Now().After(end) {
			return nil, false
		}
	}
}

// timed reports whether the context has a deadline that is not one of coir's.
//
//go:norace
func (w *watched) timed() bool {
	race.EnterUser()
	defer race.LeaveUser()
	race.Acquire(unsafe.Pointer(w))
	at, ok := w.ctx.Deadline()
	if sc := scopeBehind(w.ctx); ok && sc != nil {
		ours, timed := (*scopeContext)(sc).Deadline()
		return !timed || at.Before(ours)
	}
	return ok
}
