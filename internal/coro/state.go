package coro

import (
	"runtime/debug"
	"unsafe"
)

// The runtime keeps some things for a goroutine that a program sets: the labels of its profile (runtime/pprof) and
// whether a fault panics (runtime/debug). A goroutine starts with the labels of the one that made it, and both end
// with it. A coroutine runs many thunks, so what one has set is taken away before the next.

// Labels returns the profile labels of the running goroutine. There is no exported way to ask. The runtime promises
// this name and the next to those who link to them (go.dev/issue/67401).
//
//go:linkname Labels runtime/pprof.runtime_getProfLabel
func Labels() unsafe.Pointer

// SetLabels gives the running goroutine labels that Labels has returned.
//
//go:linkname SetLabels runtime/pprof.runtime_setProfLabel
func SetLabels(labels unsafe.Pointer)

// Reset takes from the running goroutine what a thunk, or whoever made the goroutine, has left there.
//
//go:norace
func Reset() {
	if Labels() != nil {
		SetLabels(nil)
	}
	debug.SetPanicOnFault(false)
}
