//go:build !linux

package runtime

// coirSleeps returns true: only on Linux can it find out whether a thread sleeps in the kernel.
func coirSleeps(uint64) bool { return true }
