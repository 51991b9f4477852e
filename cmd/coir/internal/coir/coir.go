// Package coir says whether a schedule is being explored, and defines codes for the parts of a schedule. `coir test`
// adds it to the standard library, where packages runtime, sync, internal/sync and testing use it. So it imports no
// packages, except in source.go, which is not added. The command uses the codes to read the records of package testing.
package coir

// On is set while a schedule runs. It changes only when no goroutine of a schedule runs. While no schedule is explored,
// the check costs one load.
var On bool

// Explores is set if the process explores schedules. The runtime sets it before it makes the first map, and never
// clears it.
var Explores bool

// Slow replaces the state of a mutex, which never has this value.
const Slow = -1 << 31

// Atomics is set while a schedule runs in which atomic operations are points.
var Atomics bool
