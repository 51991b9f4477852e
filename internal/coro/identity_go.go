//go:build !(386 || amd64 || arm64) || purego

package coro

// Assembly reports whether G is one load. Without assembly it is a stack dump.
const Assembly = false

// G returns a number that identifies the running goroutine.
func G() uintptr { return uintptr(GoroutineID()) }
