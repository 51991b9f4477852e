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
// as a [*PanicError] with the fiber's own stack, and with whatever else has failed. Run called inside a fiber opens a nursery inside that fiber's.
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
// A cancelled nursery ends every wait under its context, and under contexts derived from that. An operation that begins after its context was cancelled fails, whether or not
// it would have to wait, also if the context is one of package context and was cancelled just before. [WithTimeout],
// [WithDeadline] and [WithCancel] make scopes inside a context, on the runtime's clock; under them a fiber waits at no extra
// cost, where a context of package context costs a registration a wait. Any fiber or goroutine may wait under any of them.
// [Shield] keeps a cancel away from work that must be finished.
//
// To wait for nothing but the cancel, Sleep for long; a receive from ctx.Done() holds up the worker, as any native wait
// does. To stop a service on purpose, cancel its nursery with n.Cancel(nil): if its fibers return nothing but that cancel, Run
// returns nil.
//
// # How an operation ends
//
// Exactly one of these ends an operation, and errors.Is says which:
//
//	it ended because                     errors.Is says                         text, on a channel named jobs
//	it was done                          nil
//	the channel is closed                ErrClosed                              coir: receive from jobs: channel is closed
//	the channel was aborted, for E       ErrClosed, E                           coir: send on jobs: channel was aborted: E
//	its own time limit passed            ErrTimeout, context.DeadlineExceeded   coir: send on jobs: timed out
//	the deadline of its context passed   ErrTimeout, context.DeadlineExceeded   coir: send on jobs: timed out
//	its context was cancelled, for E     context.Canceled                       coir: send on jobs: cancelled: E
//	it would have blocked, and is a Try  ErrWouldBlock                          coir: send on jobs: would block
//
// The cause of a cancel is part of the text and not of the chain of errors: a sibling's timeout is no timeout of this operation, and
// a channel that a sibling found closed is not this one. context.Cause(ctx) returns the cause. For the same reason the cause of an
// Abort is in the chain only if it is none of the errors of this table. Without a name the text is shorter, as in "coir: timed
// out", or that of context.Canceled.
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
// form with a time limit ([Chan.RecvTimeout]) and one that never waits ([Chan.TryRecv]). Under coir's own contexts none
// allocates once it has been used; a wait directly under a cancellable context of package context does.
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
// # Threads
//
// A fiber runs on whatever thread is free, unless it locks one with runtime.LockOSThread. A locked fiber may do
// everything that others do, and so may one that is inside a cgo callback. Each of its waits costs some ten
// microseconds more, because control passes between threads. Unlock before the fiber ends. Go ends the thread of a
// goroutine that ends locked; for a fiber it cannot be ended, so it is kept for the life of the process, with up to
// three goroutines, and nothing else runs on it. A program that locks a thread in order to spoil it (a namespace,
// credentials) and let it end does that in a goroutine of its own, and waits for it with [Blocking] or a channel.
//
// As a goroutine does, a fiber starts with the profiler's labels of its spawner (pprof.Do,
// pprof.SetGoroutineLabels), and what it sets there, or with debug.SetPanicOnFault, ends with it. The fiber's name is
// not among the labels; label it in the fiber if profiles should show it: pprof.Do(ctx, pprof.Labels("fiber", name),
// ...).
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
// fibers, on one worker or on many, and the race detector sees them as it sees goroutines. There is one exception: where
// an operation on a channel of capacity n waits, the detector takes the operation that ends the wait as ordered after
// what came before the wait, so it may miss a race between those two.
package coir
