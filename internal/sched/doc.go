// Package sched runs tasks: it decides which one runs when another stops, and on which worker. It does not know what a
// task waits for.
//
// # Nouns
//
//	Task    one thunk to run, and the word it parks on. In a queue, running, or parked; never in two places.
//	Frame   a coroutine that runs tasks one after the other, and what a waiting task needs in addition to its word.
//	Worker  a chain of control: at any time exactly one goroutine of it runs, a frame's or the worker's own (its base).
//	        It has a run-next place and a ring of runnable tasks, both open to thieves.
//
// # The road taken
//
// A task that stops picks its successor and switches directly to it. Control goes to the base only when the worker's
// queues are empty or the worker has a request to serve. The base looks further: the global queue, the queues of other
// workers, sleep. Work that must wait until the old stack is quiet (commit a park, put a yielding task back, free a
// frame) is left in the worker for the resumed side, which calls settle.
//
// Rejected: a scheduler loop between any two tasks costs a second swap, and is then no faster than Go's own channels.
// Private queues, whose owner serves thieves on request, make a push cheaper, but a worker stuck in native code would
// sit on its tasks. A ring in front of the global list, as in one of the specifications, gains nothing: the list is
// intrusive, and a push is a lock and two stores and never blocks.
//
// # Who runs, and how many
//
// target workers run tasks at a time. A worker that is held in native code (declared by Block, or found by the monitor)
// is not counted, and another takes its place. See idle.go for how workers sleep and wake, and stand.go and monitor.go
// for how held workers are found. promela/idle.pml models sleep and wake, with native calls; promela/shutdown.pml
// models the end; the worker that stands by is explored (TestExploreStandIn).
//
// # Invariants
//
//	one-place     A runnable task is in exactly one queue; a running one in none. (queued, in checked builds)
//	quiet-first   A task enters a queue only after its stack is quiet.
//	no-stranding  If a task is runnable, some worker that is neither idle nor held will look for it, or the monitor
//	              is armed and will see that none does.
//
// Race builds hide this package's synchronisation (internal/race), so every function here that touches plain fields
// is marked go:norace.
package sched
