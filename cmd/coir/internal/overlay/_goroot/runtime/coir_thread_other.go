//go:build !linux

package runtime

// coirSleeps reports whether a thread sleeps in the kernel, which is known on Linux only.
func coirSleeps(uint64) bool { return true }
