//go:build (amd64 || arm64) && !purego

package coro

// CallerPC returns where the function that calls it will return to: the place its own caller called it from. That
// function must not be inlined and must have a frame.
func CallerPC() uintptr
