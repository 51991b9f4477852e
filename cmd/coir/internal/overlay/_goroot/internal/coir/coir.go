// Package coir says whether a schedule is being explored. It is a package of its own, without imports, because packages
// runtime, sync, internal/sync and testing all use it. The check is one load where nothing is explored.
package coir

// On is set while a schedule runs. It changes only when no goroutine of a schedule runs.
var On bool

// Slow replaces the state of a mutex, which never has this value.
const Slow = -1 << 31

// Atomics is set while a schedule runs in which atomic operations are points.
var Atomics bool

// What a goroutine is about to do at a point.
const (
	OpNone = iota
	OpGo
	OpSend
	OpRecv
	OpClose
	OpSelect
	OpLock
	OpTryLock
	OpUnlock
	OpRLock
	OpRUnlock
	OpWLock
	OpWUnlock
	OpAdd
	OpWait
	OpCondWait
	OpSignal
	OpBroadcast
	OpOnce
	OpYield
	OpAtomicLoad
	OpAtomicStore
	OpAtomicSwap
	OpAtomicCAS
	OpAtomicAdd
	OpAtomicBits
	OpMapLoad
	OpMapStore
	OpDone
	OpTryRLock
	OpTryWLock
	OpFail
)
