//go:build (amd64 || arm64) && !purego

package coro

// G tells goroutines apart.
func G() uintptr

// CallerPC returns where the function that calls it will return to: the place its own caller called it from. That
// function must not be inlined and must have a frame.
func CallerPC() uintptr

// gAt returns the address that is off bytes into the runtime's record of the running goroutine. The record is an object
// of the heap that never moves, so the address may be kept.
func gAt(off uintptr) *uintptr //nolint:unused // a race build does not look for the lock
