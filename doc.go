// Package coir gives programs fibers, channels and nurseries that can be tested, seen and bounded.
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
// # Channels
//
// A [Chan] passes values between fibers and goroutines, in any mix. [NewChan] takes the capacity, which makes the kind:
//
//	coir.NewChan[Order](0)               // a send returns once a receiver has taken the value
//	coir.NewChan[Order](64)              // up to 64 wait in a buffer
//	coir.NewChan[Order](coir.Unlimited)  // any number; memory is given back after a burst
//	coir.NewChan[Config](coir.Conflated) // the newest value alone
//
// and what a send does when the channel is full is an option: wait, drop the oldest, drop the newest, or fail ([Overflow]).
// Every value that is dropped is counted ([Chan.Stats]) and can be had ([OnUndelivered]). Each operation takes a context, has a
// form with a time limit ([Chan.RecvTimeout]) and one that never waits ([Chan.TryRecv]); none allocates once it has been used.
//
// On every error the value is still the sender's, and nothing has been received. Exactly one of data, close, cancel and
// timeout ends a wait. Whoever waits is served in the order of arrival.
//
// # Closing
//
// [Chan.Close] is gentle: no more is taken, what the channel holds and senders that wait are still delivered, and then receivers
// get [ErrClosed]. [Chan.Abort] is hard: whoever waits gets ErrClosed at once, with the cause, and what is left goes to
// OnUndelivered. Sending on a closed channel is an error, not a panic, and closing twice is harmless. Where several send, a
// [Pipe] counts them: the last one that closes its [Writer] closes the channel, and writers learn when the last [Reader] is gone.
//
// Close belongs to the sending side: it leaves senders that wait waiting for a receiver. A receiver that leaves calls Abort, or
// closes its end of a Pipe.
//
// # Select
//
// [Select] waits for the first of several cases: sends and receives on channels of any type, a time, the end of a fiber, the end
// of one side of a pipe. The list may be put together at run time.
//
//	var order Order
//	var config Config
//	i, err := coir.Select(ctx, orders.RecvCase(&order), configs.RecvCase(&config), coir.After(time.Second))
//
// Of several that are ready each has the same chance; [SelectPriority] takes the first in the order given. Over many channels at
// once a [Selector] keeps its cases from one event to the next, so that an event costs the same whatever their number.
//
// # Built on channels
//
// [Ordered] runs tasks beside each other and gives their results in the order of the tasks. [Pool] lends out values that are
// dear to make; it is not a pool of workers, which are fibers under [Nursery.Limit].
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
// # In tests
//
// Package sim runs a program under schedules that it chooses, on virtual time, until one fails, and replays that one from a token: see
// docs/guide/testing.md. A runtime made [WithClock] waits by a clock that the test moves.
//
// In a bubble of testing/synctest everything works as outside, by the time of the bubble: [Run] has a default runtime
// for each bubble, which is gone when the bubble ends. A [Runtime] belongs to the bubble that it was made in, and must
// be used and closed there. A fiber or goroutine that waits in a bubble must be woken from inside that bubble, as with
// Go's own channels. An operation that breaks such a rule panics and says what to write instead.
//
// # Ordering
//
// What happened before [Nursery.Go] is ordered before the fiber, a fiber's end before the return of whoever waited for
// it, a cancel before the return of a wait that it ended. A send is ordered before the return of the receive that takes its
// value; on a channel of capacity 0 the receive is ordered before the return of the send, and on one of capacity n the k-th
// receive before the return of the send k+n. A close is ordered before whatever returns ErrClosed for it. Nothing else orders
// fibers, on one worker or on many, and the
// race detector sees them as it sees goroutines.
package coir
