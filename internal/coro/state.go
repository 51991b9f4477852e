package coro

import (
	"runtime/debug"
	"unsafe"
)

// A goroutine has two settings that a program can change: its profile labels (runtime/pprof) and whether a fault panics
// (runtime/debug). A goroutine starts with the labels of its creator, and both settings end with it. A coroutine runs
// many thunks, so the settings of one are reset before the next.

// Labels returns the profile labels of the running goroutine. The standard library exports no function for it. The
// runtime keeps this name and the next for packages that link to them (go.dev/issue/67401).
//
//go:linkname Labels runtime/pprof.runtime_getProfLabel
func Labels() unsafe.Pointer

// SetLabels sets the profile labels of the running goroutine to labels, which Labels returned.
//
//go:linkname SetLabels runtime/pprof.runtime_setProfLabel
func SetLabels(labels unsafe.Pointer)

// Reset clears the settings of the running goroutine that a thunk, or the goroutine's creator, has left.
//
//go:norace
func Reset() {
	if Labels() != nil {
		SetLabels(nil)
	}
	debug.SetPanicOnFault(false)
}
