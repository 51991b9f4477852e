// Package coro passes control directly from one goroutine to another, without Go's scheduler deciding in between.
//
// # Three switchers, one contract
//
// A [Coro] is a goroutine that runs only while control has been passed to it. [Transfer] suspends the caller and
// resumes the other. The scheduler needs nothing else, and there are three implementations:
//
//   - slot.go (the default) swaps sideways on iter.Pull: one swap a transfer. See [Coro] there for how.
//   - trampoline.go (build tag coirtrampoline) calls next and yield only from their own sides: every transfer goes
//     back through the goroutine that called next, which takes two swaps. If a Go release ever forbids the sideways
//     swap, coir becomes slower, but still works.
//   - handoff.go (race builds) passes control between plain goroutines and hides the hand-over from the race detector.
//     Pull acquires and releases at every switch, so under Pull the detector would not find two fibers that share a
//     variable without synchronisation.
//
// Rejected: linkname to runtime.coroswitch (the linker forbids it); channels between goroutines in release builds
// (twice the cost of Go's own unbuffered channel).
//
// # Rules that follow from swapping sideways
//
// Work that must wait until a coroutine's stack is quiet is done by the resumed goroutine, right after its Transfer
// returns. A coroutine that has nothing more to do calls [Coro.Rest] instead of Transfer. It is then resumed either
// with work, or to leave.
//
// A coroutine that is locked to its thread, by runtime.LockOSThread or inside a cgo callback, may transfer, through a
// stand-in: see thread.go. It must not rest, because the next task to run on it would have its lock, and a goroutine
// that ends locked ends the process. [Coro.Bound] reports whether a coroutine is locked.
package coro

// Body is the function that a coroutine runs. It passes its argument to [Coro.Begin]. It has the type that iter.Pull
// takes, because a wrapper would be one more frame on every coroutine's stack, and a stack that outgrows its first two
// kilobytes doubles.
type Body = func(yield func(struct{}) bool)
