// Package interleave runs a small program of a few threads again and again, once for every order of their steps that can
// matter, and finds the order in which it goes wrong.
//
// A step is one access to something that is shared, and what the thread does by itself up to the next: only one thread runs at a
// time, and before each access it asks who is to go on. Accesses are announced by [Object]; internal/xatomic does it for
// the library's own code. Memory is sequentially consistent here, as sync/atomic promises.
//
// Two ways to choose the orders:
//
//   - Source-DPOR with sleep sets (Abdulla, Aronis, Jonsson, Sagonas, POPL 2014): at least one execution of each trace, that is of
//     each order of the accesses that conflict. If it ends, nothing is left out. Where two accesses race, the place before the
//     first is left with somebody to try who leads to the second going first.
//   - A bound on preemptions: every execution in which a thread that could go on is interrupted no more often than that. For programs
//     that are too large for the first.
//
// Both know only of the accesses that are announced. What a thread does to other memory is one with the announced access before it: nobody comes in
// between. The reduction also takes for granted that what a lock guards is used with the lock held. The bound does not.
//
// A reduction that loses executions looks like a good one, so the tests compare the set of traces with that of a plain
// search through everything.
//
// Locks and semaphores. A thread that is about to lock is not enabled while the lock is held. An unlock and the lock that
// follows are no race, because they cannot change places; the two locks are one, so the search looks past the unlock for it.
package interleave
