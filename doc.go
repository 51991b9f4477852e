// Package coir provides fibers, channels and nurseries that can be tested, observed and bounded.
//
// # Fibers and nurseries
//
// A fiber is a function that runs concurrently with others. Fibers are started in a nursery, which [Run] opens, and no
// fiber outlives its nursery: Run returns when its function and every fiber have ended.
//
//	err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
//		for i, u := range urls {
//			n.Go("fetch", func(ctx context.Context) error { return fetch(ctx, u) }, coir.WithIndex(i))
//		}
//		return nil
//	})
//
// The first fiber that fails cancels the others, and Run returns every error, joined. If a fiber panics, Run panics
// with a [*PanicError] that has the fiber's own stack and the other failures. Run called inside a fiber opens a nursery
// inside that fiber's nursery.
//
// A fiber is a goroutine underneath, and a million fibers cost about as much as a million goroutines. The difference is
// in the scheduling: the fibers of one [Runtime] run on a few workers, and a fiber that waits passes control directly
// to the next. So a nursery can bound how many of its fibers run at the same time ([Nursery.Limit]) without the
// deadlock of bounded pools, where a task waits for another task of the same pool: a fiber that waits for fibers gives
// up its place.
//
// A fiber returns a result in a variable that only it writes. Read the variable after [Fiber.Wait] or after Run. Or it
// completes a [Promise].
//
// # Contexts
//
// An operation that may wait takes a context. A fiber is given a context of its own: an operation under that context
// parks the fiber. In a plain goroutine the same operation blocks the goroutine. coir checks which goroutine is calling
// instead of trusting the context. So a fiber's context may be passed to other fibers and goroutines, kept, and used
// after the fiber has ended. Contexts derived from it with package context work too, and start no goroutine.
//
// # Cancel and time
//
// A cancelled nursery ends every wait under its context, and under contexts derived from that. An operation that begins
// after its context was cancelled fails, even if it would not have to wait, and even if the context is one of package
// context that was cancelled just before. [WithTimeout], [WithDeadline], [WithCancel] and [WithCancelCause] have the
// signatures of package context and make scopes inside a context, on the runtime's clock. Under a scope a wait costs a
// fiber nothing extra; under a context of package context each wait costs a registration. Any fiber or goroutine may
// wait under any of them. [Shield] protects work that must be finished from a cancel.
//
// To wait only for the cancel, call [WaitCancel]. A receive from ctx.Done() holds up the worker, as any native wait
// does. To stop a service on purpose, cancel its nursery with n.Cancel(nil): if its fibers return no other errors than
// those of cancels, Run returns nil.
//
// # How an operation ends
//
// Exactly one of these ends an operation, and errors.Is tells which:
//
//	it ended because                    errors.Is says                         text, on a channel named jobs
//	it was done                         nil
//	the channel is closed               ErrClosed                              coir: receive from jobs: channel is closed
//	the channel was aborted, for E      ErrClosed, E                           coir: send on jobs: channel was aborted: E
//	its own time limit passed           ErrTimeout, context.DeadlineExceeded   coir: send on jobs: timed out
//	the deadline of its context passed  ErrTimeout, context.DeadlineExceeded   coir: send on jobs: timed out
//	its context was cancelled, for E    context.Canceled                       coir: send on jobs: cancelled: E
//	it would have blocked, and is a Try ErrWouldBlock                          coir: send on jobs: would block
//
// The cause of a cancel is part of the text but not of the error chain: the timeout of a sibling is not a timeout of
// this operation, and a channel that a sibling found closed is not this channel. context.Cause(ctx) returns the cause.
// For the same reason the cause of an Abort is in the chain only if it is none of the errors of this table. A wait for
// an [Event] or a [Promise] with a name, or for a lock, tells that too: "coir: wait for the event ready: timed out".
// Without a name the text is shorter, as in "coir: timed out", or it is that of context.Canceled.
//
// # Channels
//
// A [Chan] passes values between fibers and goroutines, in any mix. The capacity given to [NewChan] sets the kind:
//
//	coir.NewChan[Order](0)               // a send returns once a receiver has taken the value
//	coir.NewChan[Order](64)              // up to 64 wait in a buffer
//	coir.NewChan[Order](coir.Unbounded)  // any number; memory is released after a burst
//	coir.NewChan[Config](coir.Conflated) // only the newest value
//
// An option sets what a send does when the channel is full: wait, drop the oldest, drop the newest, or fail
// ([WithOverflow]). Each dropped value is counted ([Chan.Stats]) and can be received by a handler ([OnUndelivered]).
// Each operation takes a context, has a form with a time limit ([Chan.RecvTimeout]), and a form that never waits
// ([Chan.TryRecv]). [Chan.All] iterates over the values, and its last pair has the error if it was cut short. Under
// coir's own contexts no operation allocates once it has been used; a wait directly under a cancellable context of
// package context does.
//
// If a send returns an error, the value is still the sender's; if a receive returns an error, it has received nothing.
// Exactly one of data, close, cancel and timeout ends a wait. Waiting operations are served in the order of arrival.
//
// # Closing
//
// After [Chan.Close] later sends fail, values that the channel holds and those of waiting senders are still delivered,
// and then receivers get [ErrClosed]. After [Chan.Abort] waiting operations return ErrClosed immediately, with the
// cause, and the remaining values go to OnUndelivered. Sending on a closed channel is an error, not a panic, and
// closing twice is harmless. Where several fibers send, use a [Pipe], which counts its ends: closing the last [Writer]
// closes the channel, and writers learn when the last [Reader] is gone.
//
// Close is for the sending side: senders that already wait continue to wait for a receiver. A receiver that leaves
// calls Abort, or closes its end of a Pipe.
//
// # Select
//
// [Select] waits for the first of several cases: sends and receives on channels of any type, a time, the end of a
// fiber, the end of one side of a pipe, an event, a promise. The list of cases may be built at run time.
//
//	var order Order
//	var config Config
//	i, err := coir.Select(ctx, orders.RecvCase(&order), configs.RecvCase(&config), coir.After(time.Second))
//
// If several cases are ready, each has the same chance; [SelectPriority] takes the first in the order given. For many
// channels, a [Selector] keeps its cases from one event to the next, so that the cost of an event does not depend on
// their number.
//
// # Events and promises
//
// An [Event] happens once, and any number of fibers and goroutines may wait for it. A [Promise] is a result that comes
// later: any fiber or goroutine completes it once, with a value or an error. The zero value of both is ready to use.
//
// # Built on channels
//
// [Ordered] runs tasks concurrently and returns their results in the order of the tasks. [Pool] hands out values that
// are expensive to create ([Pool.Get], [Pool.Put]). It is not a pool of workers: for that, use fibers under
// [Nursery.Limit].
//
// # Blocking calls
//
// A fiber that blocks in native code (a mutex, a Go channel, a system call) holds up its worker. [Blocking] announces
// the call, and another worker takes over immediately. Without it the runtime has to notice: [Blocking] says when. The
// runtime treats a fiber that computes for long the same way; [OnStall] reports it with its stack.
//
// # Threads
//
// A fiber runs on any free thread, unless it locks one with runtime.LockOSThread. A locked fiber may do everything that
// other fibers do, and so may a fiber inside a cgo callback. Each of its waits costs some ten microseconds more,
// because control passes between threads. Unlock the thread before the fiber ends. Go ends the thread of a goroutine
// that ends locked. The thread of a fiber cannot be ended: it is kept for the life of the process, with up to three
// goroutines, and nothing else runs on it. A program that locks a thread in order to modify it (a namespace,
// credentials) and let it end must do so in a goroutine of its own, and wait for that with [Blocking] or a channel.
//
// Like a goroutine, a fiber starts with the profiler labels of its spawner (pprof.Do, pprof.SetGoroutineLabels). What
// it sets there, or with debug.SetPanicOnFault, ends with it. The fiber's name is not among the labels. To show it in
// profiles, label the fiber: pprof.Do(ctx, pprof.Labels("fiber", name), ...).
//
// # In tests
//
// Package sim runs a program under schedules that it chooses, on virtual time, until one fails, and replays that
// schedule from a token: see docs/guide/testing.md. A runtime made with [WithClock] waits by a clock that the test
// moves.
//
// In a bubble of testing/synctest coir works as outside, on the time of the bubble, except for fibers that block in
// code other than coir's without [Blocking]: no time passes in which the runtime could notice. [Run] has a default
// runtime for each bubble, which is gone when the bubble ends. A [Runtime] belongs to the bubble that it was made in,
// and must be used and closed there. A fiber or goroutine that waits in a bubble must be woken from inside that bubble,
// as with Go's own channels. An operation that breaks these rules panics with a text that says what to write instead.
//
// # Ordering
//
// What happened before [Nursery.Go] is ordered before the fiber, a fiber's end before the return of a wait for the
// fiber, and a cancel before the return of a wait that it ended. A send is ordered before the return of the receive
// that takes its value. On a channel of capacity 0 the receive is ordered before the return of the send, and on one of
// capacity n the k-th receive before the return of the send k+n. A close is ordered before the return of an operation
// that returns ErrClosed because of it. The call that sets an [Event] or completes a [Promise] is ordered before the
// return of a wait for it, and a [Cond] orders as a mutex does. Nothing else orders fibers, on one worker or on many,
// and the race detector sees them as it sees goroutines. There is one exception: when an operation on a channel of
// capacity n waits, the detector sees the operation that ends the wait as ordered after what came before the wait, so
// it may miss a race between those two.
//
// # For authors of what can be waited for
//
// Programs do not need what follows. It is for packages that add something to wait for, or that stand for something
// outside of the process. The packages locks, pace, pubsub, desk, stream, supervise and netio are written with it, and
// with nothing else.
//
//   - [Queue], [Resource], [Verb]: something to take and give back, such as a lock or a permit.
//   - [Timer], [Schedule]: something that comes with time, such as a tick or a token.
//   - [Watch], [Alarm], [Watcher]: a call when a context ends or a time comes, for what is held for a caller.
//   - [Simulation], [Simulated]: a model in place of a network, a disk or a driver in a simulation.
//   - [Ended], [Jitter], [Point]: an operation's first look at its context, a random time, and a place where a
//     simulation may let others run.
//   - [Cond.Describe], [Promise.Describe], [Chan.Describe], [List], [WithSpawnSite]: what reports and snapshots say.
//
// Waits built this way end by cancel and deadline as those of a channel do, stand in a select, are ordered for the race
// detector, and are controlled and reported by package sim. In return, methods that say so run under a lock of the
// library: they must be short, and must not wait, panic or call back. This part of the package may change in a minor
// version also after 1.0. The rest will not.
package coir
