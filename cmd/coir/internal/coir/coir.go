// Package coir says whether a schedule is being explored, and numbers what a schedule consists of. `coir test` lays it
// over the standard library, where packages runtime, sync, internal/sync and testing use it; so it imports nothing
// (source.go is not laid over). The command uses its codes, to read what those packages have recorded.
package coir

// On is set while a schedule runs. It changes only when no goroutine of a schedule runs. The check is one load where
// nothing is explored.
var On bool

// Explores is set if the process explores schedules. The runtime sets it before the first map is made, and it stays.
var Explores bool

// Slow replaces the state of a mutex, which never has this value.
const Slow = -1 << 31

// Atomics is set while a schedule runs in which atomic operations are points.
var Atomics bool
