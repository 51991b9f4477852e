// Package sched runs tasks: it decides which task runs when another stops, and on which worker. It does not know what a
// task waits for.
//
// # Nouns
//
//	Task    one thunk to run, and the word it parks on. In a queue, running, or parked; never in two places.
//	Frame   a coroutine that runs tasks one after the other, with the state that a waiting task needs beside its word.
//	Worker  a chain of goroutines, one for each frame and the worker's own (its base), of which exactly one runs at any
//	        time. It has a run-next place and a ring of runnable tasks. Other workers may steal from both.
//
// # The road taken
//
// A task that stops picks its successor and switches directly to it. Control goes to the base only when the worker's
// queues are empty or the worker has a request to serve. The base looks further: in the global queue and in the queues
// of other workers. If it finds nothing, it sleeps. Work that must wait until the old stack is quiet (commit a park,
// put a yielding task back, free a frame) is left in the worker for the resumed side, which calls settle.
//
// Three designs were rejected. A scheduler loop between any two tasks costs a second swap, and is then no faster than
// Go's own channels. With private queues, whose owner serves thieves on request, a push is cheaper, but a worker that
// is stuck in native code would keep its tasks. A ring in front of the global list gains nothing, because the list is
// intrusive, and a push takes a lock for two stores and never blocks.
//
// # Who runs, and how many
//
// At most target workers run tasks at a time. A worker that is held in native code (declared by Block, or found by the
// monitor) is not counted, and another worker takes its place. See idle.go for how workers sleep and wake, and stand.go
// and monitor.go for how held workers are found. promela/idle.pml models sleep and wake, with native calls;
// promela/shutdown.pml models the end; the worker that stands by is explored (TestExploreStandIn).
//
// # Invariants
//
//	one-place     A runnable task is in exactly one queue, and a running task is in none. (queued, in checked builds)
//	quiet-first   A task enters a queue only after its stack is quiet.
//	no-stranding  If a task is runnable, some worker that is neither idle nor held will look for it, or the monitor
//	              is armed and will notice that no worker does.
//
// Race builds hide this package's synchronisation (internal/race), so every function here that touches plain fields
// is marked go:norace.
package sched
