//go:build (amd64 || arm64) && !purego

package coro

// CallerPC returns the return address of the function that calls it: the place from which that function was called.
// That function must not be inlined and must have a frame.
func CallerPC() uintptr
