//go:build (386 || amd64 || arm64) && !purego

package coro

// Assembly reports whether G is one load. Without assembly it is a stack dump.
const Assembly = true

// G returns a number that identifies the running goroutine.
func G() uintptr

// gAt returns the address off bytes into the runtime's record of the running goroutine. The record is a heap object
// that never moves, so the address may be kept.
func gAt(off uintptr) *uintptr //nolint:unused // a race build does not look for the lock
