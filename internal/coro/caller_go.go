//go:build !(amd64 || arm64) || purego

package coro

import "runtime"

// CallerPC returns where the function that calls it will return to: the place its own caller called it from. That
// function must not be inlined.
//
//go:noinline
//go:norace
func CallerPC() uintptr {
	var pc [1]uintptr
	runtime.Callers(3, pc[:])
	return pc[0]
}
