package coir

import (
	"context"

	"github.com/coir-go/coir/internal/bubble"
)

// How coir works in a bubble of testing/synctest.
//
// Goroutines, channels and timers made in a bubble cannot be used outside of it, and those made outside do not follow
// the bubble's time. So a runtime belongs to the bubble that it was made in, or to no bubble, and so do the nurseries
// and scopes on it:
//
//   - Run, and the time limits of goroutines, use the default runtime of the bubble in which they are called.
//   - A runtime must be used in the bubble that it was made in. Elsewhere Runtime.Run, Runtime.Close and Nursery.Go
//     panic.
//   - Channels, events and other objects are only memory, and belong to no bubble. But a fiber or goroutine that waits
//     in a bubble must be woken from inside the bubble; otherwise its waker panics. One that waits outside of bubbles
//     may be woken from anywhere.
//   - Done of a context that coir made outside must not be called for the first time in a bubble, because the channel
//     would belong to the bubble. A context made in a bubble must not be cancelled from outside after Done was called.
//
// Breaking a rule causes a panic with an explanation, instead of a fatal error of the Go runtime.
//
// Rejected: channels that belong to a bubble, like Go's. A goroutine in the bubble that waits on a channel from outside
// would not be durably blocked, so time in the bubble would stop: a channel in a package variable would hang the test.
// And every operation would have to check the bubble.

// bubbles lists the default runtimes of bubbles. It holds them weakly: the fibers on a runtime, or a timer on its
// clock, keep it alive while it is in use. A runtime that is not in use may be collected and made again.
var bubbles bubble.Registry[Runtime]

// defaultRuntime returns the default runtime for its caller. Sharing the runtime of a bubble does not order its users:
// they are ordered after its creation, but not after its first user.
func defaultRuntime() *Runtime {
	if home := bubble.Here(); home != 0 {
		return bubbles.Get(home, newInBubble)
	}
	return outside.runtime()
}

// inOtherBubble reports whether the caller is in a bubble other than the runtime's.
//
//go:norace
func (rt *Runtime) inOtherBubble() bool { return bubble.Outside(rt.s.Home()) }

// bindDone makes the Done channel of a scope in the scope's bubble. Otherwise package context would make it in the
// bubble of the first caller of Done.
//
//go:norace
func (sc *scope) bindDone(std context.Context) {
	if bubble.Possible {
		sc.checkDone()
		std.Done()
	}
}

// checkDone panics if the scope has no Done channel yet and the caller is in another bubble, where the channel must not
// be made.
//
//go:norace
func (sc *scope) checkDone() {
	if rt := sc.rt; sc.cold().std.Load() == nil && rt.inOtherBubble() {
		panic("coir: a context that was made " + rt.s.Home().String() + " has no Done channel yet and was used " +
			bubble.Here().String() + ": use a context that was made there, such as t.Context(), " +
			"or call Done once where the context was made")
	}
}

// checkCancel panics if closing the scope's Done channel from the caller's bubble is not allowed.
//
//go:norace
func (sc *scope) checkCancel() {
	if home := sc.rt.s.Home(); home != 0 && sc.rt.inOtherBubble() {
		panic("coir: a context that was made " + home.String() + " was cancelled by code that runs " +
			bubble.Here().String() + ", which Go does not allow: cancel it inside the bubble, with defer cancel()")
	}
}
