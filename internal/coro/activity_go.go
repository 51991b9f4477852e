//go:build !(386 || amd64 || arm64) || purego

package coro

// ActivityOf returns what the goroutine for which G returned g does.
func ActivityOf(uintptr) Activity { return Unknown }
