package coir

import (
	"context"

	"github.com/coir-go/coir/internal/bubble"
)

// How coir works in a bubble of testing/synctest.
//
// Goroutines, channels and timers that were made in a bubble cannot be used outside, and those made outside do not
// follow the bubble's time. So a runtime belongs to the bubble that it was made in, or to none, and so do the nurseries
// and scopes on it:
//
//   - Run, and time limits of goroutines, use the default runtime of the bubble that they are called in.
//   - A runtime is used in the bubble that it was made in. Runtime.Run, Runtime.Close and Nursery.Go panic elsewhere.
//   - Channels, events and the like are only memory, and belong to no bubble. But a fiber or goroutine that waits in a
//     bubble must be woken from inside it; otherwise its waker panics. One that waits outside may be woken by any.
//   - Done of a context that coir made outside must not be called for the first time in a bubble, because the channel
//     would belong to the bubble. A context made in a bubble must not be cancelled from outside once Done was called.
//
// Breaking a rule is a panic with an explanation, instead of the Go runtime's fatal error.
//
// Rejected: channels that belong to a bubble, like Go's. A goroutine that waits on a channel from outside would not be
// durably blocked, and time in the bubble would stand still: a channel in a package variable would hang the test. And
// every operation would have to check.

// bubbles lists the default runtimes of bubbles. It holds them weakly: a runtime in use is referred to by what runs on
// it, or by a timer on its clock. Any other may be collected and made again.
var bubbles bubble.Registry[Runtime]

// defaultRuntime returns the default runtime for its caller. Sharing that of a bubble orders nothing: its users are
// ordered after its creation, but not after its first user.
func defaultRuntime() *Runtime {
	if home := bubble.Here(); home != 0 {
		return bubbles.Get(home, newInBubble)
	}
	return outside.runtime()
}

// inOtherBubble reports whether the caller is in another bubble than the runtime.
//
//go:norace
func (rt *Runtime) inOtherBubble() bool { return bubble.Outside(rt.s.Home()) }

// bindDone makes the Done channel of a scope in the scope's bubble. Package context would make it on the first call of
// Done, wherever that is.
//
//go:norace
func (sc *scope) bindDone(std context.Context) {
	if bubble.Possible {
		sc.checkDone()
		std.Done()
	}
}

// checkDone panics if the scope has no Done channel yet and the caller is in another bubble, where none can be made.
//
//go:norace
func (sc *scope) checkDone() {
	if rt := sc.rt; sc.cold().std.Load() == nil && rt.inOtherBubble() {
		panic("coir: a context that was made " + rt.s.Home().String() + " has no Done channel yet and was used " +
			bubble.Here().String() + ": use a context that was made there, such as t.Context(), " +
			"or call Done once where the context was made")
	}
}

// checkCancel panics if the caller's bubble does not allow it to close the scope's Done channel.
//
//go:norace
func (sc *scope) checkCancel() {
	if home := sc.rt.s.Home(); home != 0 && sc.rt.inOtherBubble() {
		panic("coir: a context that was made " + home.String() + " was cancelled by code that runs " +
			bubble.Here().String() + ", which Go does not allow: cancel it inside the bubble, with defer cancel()")
	}
}
