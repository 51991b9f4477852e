// Package xatomic is sync/atomic, sync.Mutex and the few other ways in which the library's own threads meet, by names that a
// build tag can change.
//
// In a normal build the types are those of the standard library, by alias, and the functions are inlined to what they stand
// for. With the tag coirinterleave each of them stops before it acts and lets internal/interleave choose who goes on: so the real code
// of the scheduler, of the park word and of channels is explored step by step, not a copy of it.
//
// What decides who wakes whom goes through here. Counters that are only shown do not, nor do locks under which nothing of
// the kind happens: each step less is a factor less to explore.
package xatomic
