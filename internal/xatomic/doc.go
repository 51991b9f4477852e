// Package xatomic is sync/atomic, sync.Mutex and the few other means by which the library synchronizes, under names
// that a build tag can redefine.
//
// In a normal build the types are those of the standard library, by alias, and the functions are inlined. With the tag
// coirinterleave each of them stops before it acts and lets internal/interleave choose which thread continues. So an
// exploration runs the real code of the scheduler, of the park word and of channels, not a copy of it.
//
// Everything that decides about waking goes through here. Counters that are only displayed do not, nor do locks that
// guard nothing of the kind: each step multiplies the number of executions to explore.
package xatomic
