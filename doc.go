// Package coir provides fibers, channels and nurseries that can be tested, observed and bounded.
//
// # Fibers and nurseries
//
// A fiber is a function that runs concurrently with others. Fibers are started in a nursery, which [Run] opens. No
// fiber outlives its nursery: Run returns when its function and all fibers have ended.
//
//	err := coir.Run(ctx, func(ctx context.Context, n *coir.Nursery) error {
//		for i, u := range urls {
//			n.Go("fetch", func(ctx context.Context) error { return fetch(ctx, u) }, coir.WithIndex(i))
//		}
//		return nil
//	})
//
// The first fiber that fails cancels the others, and Run returns all errors, joined. If a fiber panics, Run panics with
// a [*PanicError] that contains the fiber's stack and the other failures. If a fiber calls Run, the new nursery is
// inside that fiber's nursery.
//
// A fiber is a goroutine underneath, and a million fibers cost about as much as a million goroutines. The difference is
// in the scheduling: the fibers of one [Runtime] run on a few workers, and a fiber that waits passes control directly
// to the next. So a nursery can bound how many of its fibers run at the same time ([Nursery.Limit]). Bounded pools
// deadlock when a task waits for another task of the same pool; a nursery does not, because a fiber that waits for
// fibers gives up its place.
//
// [Start] starts a fiber whose function has a result, and returns a [Task], whose Wait returns the result. [Map] and
// [ForEach] call a function with each of many items, a limited number at a time. [Race] returns the value of the first
// of several functions that succeeds. A fiber may also write its result to a variable that only it writes, which other
// code may read after [Fiber.Wait] or after Run, or complete a [Promise].
//
// # Contexts
//
// An operation that may wait takes a context. Each fiber is passed a context of its own, and an operation under that
// context parks the fiber. In a plain goroutine the same operation blocks the goroutine. coir does not rely on the
// context to identify the caller: it checks which goroutine is running. So a fiber's context may be passed to other
// fibers and goroutines, kept, and used after the fiber has ended. Contexts that package context derives from it work
// too, and start no goroutine.
//
// # Cancellation and time
//
// Cancelling a nursery ends every wait under its context, and under contexts derived from it. An operation that starts
// after its context was cancelled fails, even if it would not have to wait, and even if the context is one of package
// context that was cancelled just before. [WithTimeout], [WithDeadline], [WithCancel] and [WithCancelCause] have the
// signatures of their counterparts in package context, and make scopes inside a context, on the runtime's clock. For a
// fiber, a wait under a scope costs nothing extra; a wait under a context of package context costs a registration. Any
// fiber or goroutine may wait under any of them. [Shield] protects work that must be finished from cancellation, and
// [WithGrace] does so for a limited time.
//
// To wait only for the cancellation, call [WaitCancel]. A receive from ctx.Done() would block the worker, as any native
// wait does. To stop a service on purpose, cancel its nursery with n.Cancel(nil): if its fibers return no errors except
// those caused by cancellation, Run returns nil.
//
// # How an operation ends
//
// Exactly one of the following ends an operation, and errors.Is distinguishes them:
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
// The cause of a cancellation is part of the text but not of the error chain: the timeout of a sibling is not a timeout
// of this operation, and a channel that a sibling found closed is not this channel. context.Cause(ctx) returns the
// cause. For the same reason, the cause of an Abort is in the chain only if it is not one of the errors in this table.
// The error of a wait for a lock, or for an [Event] or a [Promise], also names the object, if it has a name: "coir:
// wait for the event ready: timed out". If the object has no name, the text is shorter, as in "coir: timed out", or is
// the text of context.Canceled.
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
// An option sets what a send does when the channel is full: wait, drop the oldest value, drop the newest value, or fail
// ([WithOverflow]). Each dropped value is counted ([Chan.Stats]) and can be passed to a handler ([OnUndelivered]). Each
// operation that waits takes a context. Send and Recv also have a form with a time limit ([Chan.RecvTimeout]) and a
// form that never waits ([Chan.TryRecv]). [Chan.All] iterates over the values; if it ends early, its last pair has the
// error. Under coir's own contexts an operation allocates at most when it is first used; a wait directly under a
// cancellable context of package context allocates.
//
// If a send returns an error, the value still belongs to the sender; if a receive returns an error, it has not received
// a value. Exactly one of data, close, cancellation and timeout ends a wait. Waiting operations are served in the order
// of arrival. [FromChan] and [ToChan] connect a Chan to a native channel.
//
// # Closing
//
// After [Chan.Close], later sends fail. Values that the channel holds and those of waiting senders are still delivered,
// and then receivers get [ErrClosed]. After [Chan.Abort], waiting operations immediately return an error that is
// ErrClosed and includes the cause, and the remaining values are passed to OnUndelivered. Sending on a closed channel
// is an error, not a panic, and closing a channel twice is harmless. Where several fibers send, use a [Pipe], which
// counts its endpoints: closing the last [Writer] closes the channel, and writers are told when the last [Reader] has
// gone.
//
// Close is for the sending side: senders that are already waiting continue to wait for a receiver. A receiver that
// stops receiving should call Abort, or close its end of a Pipe.
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
// channels, use a [Selector]: its cases stay registered from one event to the next, so the cost of an event does not
// depend on their number.
//
// # Events and promises
//
// An [Event] happens once, and any number of fibers and goroutines may wait for it. A [Promise] is a result that will
// be available later: any fiber or goroutine completes it once, by [Promise.Resolve] or [Promise.Reject]. The zero
// values of both are ready to use.
//
// # Built on channels
//
// [Ordered] runs tasks concurrently and returns their results in the order of the tasks. [Pool] lends values that are
// expensive to create ([Pool.Get], [Pool.Put]). It is not a pool of workers: for that, use fibers under
// [Nursery.Limit].
//
// # Blocking calls
//
// A fiber that blocks in native code (a mutex, a Go channel, a system call) also blocks its worker. If the call is made
// through [Blocking], another worker takes over immediately. Otherwise the runtime has to notice that the worker is
// blocked: see [Blocking] for how long this takes. The runtime treats a fiber that computes for a long time in the same
// way; [OnStall] reports such a fiber with its stack.
//
// # Threads
//
// A fiber runs on any free thread, unless it locks one with runtime.LockOSThread. A locked fiber may do everything that
// other fibers do, and so may a fiber inside a cgo callback. Each of its waits costs some ten microseconds more,
// because control passes between threads. Unlock the thread before the fiber ends. Go ends the thread of a goroutine
// that ends while locked, but the thread of a fiber cannot be ended: it is kept for the life of the process, with up to
// three goroutines, and runs nothing else. A program that locks a thread in order to modify it (a namespace,
// credentials) and let it end must do so in a separate goroutine, and wait for that goroutine with [Blocking] or a
// channel.
//
// Like a goroutine, a fiber starts with the profiler labels of its spawner (pprof.Do, pprof.SetGoroutineLabels). Labels
// that it sets, and a setting made with debug.SetPanicOnFault, end with it. The fiber's name is not among the labels.
// To show it in profiles, label the fiber: pprof.Do(ctx, pprof.Labels("fiber", name), ...).
//
// # In tests
//
// Package sim runs a program under schedules that it chooses, on virtual time, until one fails, and replays the failing
// schedule from a token: see docs/guide/testing.md. A runtime made with [WithClock] uses a clock that the test
// advances.
//
// In a bubble of testing/synctest coir works as outside, on the time of the bubble. There is one exception: if a fiber
// blocks in code other than coir's without [Blocking], the runtime cannot notice, because no time passes. For each
// bubble, [Run] has a default runtime, which is removed when the bubble ends. A [Runtime] belongs to the bubble in
// which it was made, and must be used and closed there. A fiber or goroutine that waits in a bubble must be woken from
// inside that bubble, as with Go's own channels. An operation that breaks these rules panics with a text that explains
// what to write instead.
//
// # Ordering
//
// What happened before [Nursery.Go] is ordered before the fiber, the end of a fiber before the return of a wait for it,
// and a cancellation before the return of a wait that it ended. A send is ordered before the return of the receive that
// gets its value. On a channel of capacity 0 the receive is also ordered before the return of the send. On a channel of
// capacity n the k-th receive is ordered before the return of the send k+n. A close is ordered before the return of an
// operation that returns ErrClosed because of it. The call that sets an [Event] or completes a [Promise] is ordered
// before the return of each wait for it. A [Cond] orders like a mutex. Nothing else orders fibers, on one worker or on
// many, and the race detector sees them as it sees goroutines. There is one exception: when an operation on a channel
// of capacity n waits, the detector sees the operation that ends the wait as ordered after what came before the wait,
// so it may miss a race between those two.
//
// # For authors of objects that can be waited for
//
// Most programs do not need the following names. They are for packages that implement further objects to wait for, or
// that give access to something outside of the process. The packages locks, pace, pubsub, desk, stream, supervise and
// netio are built on these names and the rest of this package, and use nothing internal.
//
//   - [Queue], [Resource], [Verb]: something to take and give back, such as a lock or a permit.
//   - [Timer], [Schedule]: something that becomes available with time, such as a tick or a token.
//   - [Watch], [Alarm], [Watcher]: a call when a context ends or at a given time, for objects held for a caller.
//   - [Simulation], [Simulated]: a model that replaces a network, a disk or a driver in a simulation.
//   - [Ended], [Jitter], [Point]: an operation's first check of its context, a random duration, and a place where a
//     simulation may let other fibers run.
//   - [Cond.Describe], [Promise.Describe], [Chan.Describe], [Chan.Show], [List], [WithSpawnSite]: descriptions in
//     reports and snapshots.
//   - [Chan.SendScope]: an operation that sends to a channel without calling Send, such as one to another process.
//
// Waits built this way end by cancellation and deadline like those of a channel, can be used in a select, are ordered
// for the race detector, and are controlled and reported by package sim. In return, methods whose documentation says so
// run under a lock of the library: they must be short, and must not wait, panic or call back. This part of the package
// may change in minor versions after 1.0. The rest will not.
package coir
