//go:build !(386 || amd64 || arm64) || purego

package coro

// NumberOf returns the number that stack dumps show for the goroutine for which G returned g.
func NumberOf(g uintptr) uint64 { return uint64(g) }
