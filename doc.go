// Package coir gives programs fibers and nurseries that can be tested, seen and bounded.
//
// # Fibers and nurseries
//
// A fiber is a function that runs beside others. Fibers are started in a nursery, which [Run] opens, and none outlives
// it: Run returns when its function and every fiber have ended.
//
//	err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
//		for i, u := range urls {
//			n.Go("fetch", func(ctx context.Context) error { return fetch(ctx, u) }, coir.Index(i))
//		}
//		return nil
//	})
//
// The first fiber that fails cancels the others, and Run returns every error, joined. A panic in a fiber comes out of Run
// with the fiber's own stack. Run called inside a fiber opens a nursery inside that fiber's.
//
// A fiber is a goroutine underneath, and a million of them cost about what a million goroutines cost. What differs is
// who decides: fibers of one [Runtime] run on a few workers, and one that waits hands control straight to the next. So
// a nursery can bound how many of its fibers run at once ([Nursery.Limit]) without the deadlock that bounded pools have
// when a task waits for another in the same pool: a fiber that waits for fibers gives its place up.
//
// A fiber hands a result back in a variable that it alone writes and that is read after [Fiber.Wait], or after Run.
//
// # Contexts
//
// Every operation takes a context. The context that a fiber is given is the fiber's own: an operation on it parks the
// fiber. In a plain goroutine the same operation blocks the goroutine. Which of the two it is, is checked and not
// believed, so a fiber's context may be handed to anybody, kept, and used after the fiber has ended. Contexts derived
// from it with package context work too, and start no goroutine.
//
// # Cancel and time
//
// A cancelled nursery ends every wait of its fibers, with an error that is context.Canceled and wraps the cause. Each
// operation looks first whether its context is over. [WithTimeout], [WithDeadline] and [WithCancel] make scopes inside a
// context, on the runtime's clock; under them a fiber waits at no extra cost, where a context of package context costs a
// registration a wait. [Shield] keeps a cancel away from work that must be finished.
//
// To wait for nothing but the cancel, Sleep for long; a receive from ctx.Done() holds up the worker, as any native wait
// does. A service that is stopped on purpose is best cancelled with n.Cancel(nil) and has its fibers return nil: then Run
// does.
//
// # Blocking calls
//
// A fiber that blocks in native code (a mutex, a Go channel, a system call) holds up its worker. [Blocking] says so
// beforehand, and another worker takes over at once. Without it the runtime notices after about ten milliseconds.
// A fiber that computes for long is treated alike; [OnStall] reports it with its stack.
//
// A fiber must not wait while it is locked to its thread (runtime.LockOSThread) or inside a cgo callback: the Go
// runtime ends the process. Builds with the tag coirinvariants panic with a sentence before that.
//
// # Ordering
//
// What happened before [Nursery.Go] is ordered before the fiber, a fiber's end before the return of whoever waited for
// it, a cancel before the return of a wait that it ended. Nothing else orders fibers, on one worker or on many, and the
// race detector sees them as it sees goroutines.
package coir
