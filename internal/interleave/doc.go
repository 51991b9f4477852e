// Package interleave runs a small program of a few threads once for every order of their steps that can matter, and
// finds an order in which it fails.
//
// A step is one access to a shared object, together with the code of the thread up to the next access. Only one thread
// runs at a time, and before each access the search chooses which thread continues. Threads announce accesses through
// [Object]; internal/xatomic does so for the library's own code. Memory is sequentially consistent here, as sync/atomic
// promises.
//
// There are two ways to choose the orders:
//
//   - Source-DPOR with sleep sets (Abdulla, Aronis, Jonsson, Sagonas, POPL 2014): at least one execution of each trace,
//     that is of each order of the conflicting accesses. If it ends, nothing is left out. Where two accesses race, the
//     search also tries, before the first, a thread that leads to the second going first.
//   - A bound on preemptions: every execution in which threads that could continue are interrupted at most that often.
//     For programs that are too large for the first.
//
// Both see only announced accesses. Other memory accesses of a thread are part of the step of the announced access
// before them: no other thread runs in between. The reduction also assumes that data guarded by a lock is used with the
// lock held. The bound does not assume that.
//
// A reduction that misses executions looks like a good one, so the tests compare its set of traces with that of a
// search without reduction.
//
// Locks and semaphores. A thread that is about to lock is not enabled while the lock is held. An unlock and the lock
// that follows do not race, because they cannot change places; the two locks do, so the search looks past the unlock
// for the earlier lock.
package interleave
