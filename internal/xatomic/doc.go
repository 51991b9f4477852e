// Package xatomic provides sync/atomic, sync.Mutex and the few other means by which the library synchronises, under
// names that a build tag can redefine.
//
// In a normal build the types are aliases of those of the standard library, and the functions are inlined. With the tag
// coirinterleave each operation stops before it acts, and internal/interleave chooses which thread continues. So an
// exploration runs the real code of the scheduler, of the park word and of channels, not a copy of it.
//
// All synchronisation that decides about wakes uses this package. Counters that are only displayed do not, nor do locks
// that have no effect on wakes, because each step multiplies the number of executions to explore.
package xatomic
