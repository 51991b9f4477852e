// Package sched runs tasks: it decides which one goes on when another stops, and on which worker. It does not know what
// a task waits for.
//
// # Nouns
//
//	Task    one thunk to run, and the word it parks on. In a queue, running, or parked; never in two places.
//	Frame   a coroutine that runs tasks one after the other, and what a waiting task needs besides its word.
//	Worker  a chain of control: at any time exactly one goroutine of it runs, a frame's or the worker's own (its base).
//	        It has a run-next place and a ring of runnable tasks, both open to thieves.
//
// # The road taken
//
// A task that stops picks its successor and switches straight to it. Only when its worker's queues are empty, or the
// worker has been told something, does control go to the base, which looks further: the global queue, the queues of
// others, sleep. What may only happen once the old stack is quiet (commit a park, put a yielding task back, free a
// frame) is left in the worker for the side that is resumed: settle.
//
// The roads not taken: a scheduler loop between any two tasks costs a second swap and makes the whole exercise no faster
// than Go's own channels. Private queues that thieves must ask for cost less on every push, but a worker stuck in
// native code would sit on its tasks. A ring in front of the global list, as one of the specifications has it, buys
// nothing: the list is intrusive, a push is a lock and two stores and never blocks.
//
// # Who runs, and how many
//
// target workers run tasks at once. A worker that is held in native code (declared by Block, or found by the monitor)
// is not counted, and another takes its place; see idle.go for the sleep and wake of workers and monitor.go for finding
// the held. promela/idle.pml has the sleep and wake, with native calls; promela/shutdown.pml the end.
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
