//go:build !(amd64 || arm64) || purego

package coro

import "runtime"

// CallerPC returns the return address of the function that calls it: the place from which that function was called.
// That function must not be inlined.
//
//go:noinline
//go:norace
func CallerPC() uintptr {
	var pc [1]uintptr
	runtime.Callers(3, pc[:])
	return pc[0]
}
